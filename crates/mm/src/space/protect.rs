//! mprotect(2).

use hal::addr::{PAGE_SIZE, page_up};
use hal::mem::pgtable::Prot;
use uapi::{Errno, mman};

use super::area::AreaFlags;
use super::fault::own_rights;
use super::map::rights;
use super::{AddressSpace, Inner};

const KNOWN: u32 =
    mman::PROT_READ | mman::PROT_WRITE | mman::PROT_EXEC | mman::PROT_SEM | mman::PROT_GROWSDOWN | mman::PROT_GROWSUP;

impl AddressSpace {
    /// mprotect(2) with `PROT_*` bits. `EINVAL`, `ENOMEM` (a hole in the range: what lies before it has changed),
    /// `EACCES` (a shared mapping of a file that is not open for writing).
    pub fn mprotect(&self, addr: usize, len: usize, prot: u32) -> Result<(), Errno> {
        let grows = prot & (mman::PROT_GROWSDOWN | mman::PROT_GROWSUP);
        if grows == mman::PROT_GROWSDOWN | mman::PROT_GROWSUP || !addr.is_multiple_of(PAGE_SIZE) {
            return Err(Errno::EINVAL);
        }
        if len == 0 {
            return Ok(());
        }
        let end = page_up(len).and_then(|len| addr.checked_add(len)).ok_or(Errno::ENOMEM)?;
        if prot & !KNOWN != 0 {
            return Err(Errno::EINVAL);
        }
        self.with(|inner| {
            let mut start = addr;
            if grows != 0 {
                // Downwards, the first area of the range will do; nothing grows upwards.
                let first = inner.areas.get(inner.areas.first_above(addr)).filter(|area| area.start < end);
                let area = first.filter(|area| grows == mman::PROT_GROWSDOWN || area.start <= addr);
                let area = area.ok_or(Errno::ENOMEM)?;
                if grows == mman::PROT_GROWSUP || !area.flags.has(AreaFlags::GROWS_DOWN) {
                    return Err(Errno::EINVAL);
                }
                start = area.start;
            }
            let rights = rights(prot);
            let result = inner.protect(start, end, rights);
            inner.merge(start, end);
            result
        })
    }
}

impl Inner {
    fn protect(&mut self, start: usize, end: usize, prot: Prot) -> Result<(), Errno> {
        let mut at = start;
        while at < end {
            let i = self.areas.find(at).ok_or(Errno::ENOMEM)?;
            let Some(area) = self.areas.get(i) else { return Err(Errno::ENOMEM) };
            if prot.writable() && !area.flags.has(AreaFlags::MAY_WRITE) {
                return Err(Errno::EACCES);
            }
            let to = area.end.min(end);
            if area.prot != prot {
                self.split(at)?;
                self.split(to)?;
                let i = self.areas.find(at).ok_or(Errno::ENOMEM)?;
                let Some(area) = self.areas.get_mut(i) else { return Err(Errno::ENOMEM) };
                area.prot = prot;
                if area.past.is_touched() {
                    self.table.protect(at, to, |value| own_rights(area, value));
                }
            }
            at = to;
        }
        Ok(())
    }
}
