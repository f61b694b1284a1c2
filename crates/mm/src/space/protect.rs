//! mprotect(2).

use hal::addr::{PAGE_SIZE, page_up};
use hal::hart;
use hal::mem::pgtable::{Prot, PteRef};
use uapi::{Errno, mman};

use super::area::{AreaFlags, Vma};
use super::map::rights;
use super::{AddressSpace, At, Inner};

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
            inner.protect(start, end, rights(prot))
        })
    }
}

impl Inner {
    fn protect(&mut self, start: usize, end: usize, prot: Prot) -> Result<(), Errno> {
        let first = self.areas.find(start).ok_or(Errno::ENOMEM)?;
        let result = self.protect_from(first, start, end, prot);
        let from = self.areas.prev(first).unwrap_or(first);
        self.merge_from(self.areas.again(from, start.saturating_sub(1)), end);
        result
    }

    /// From `at` on, which is in the area at `i`.
    fn protect_from(&mut self, mut i: At, mut at: usize, end: usize, prot: Prot) -> Result<(), Errno> {
        loop {
            let area = self.areas.get(i).filter(|area| area.start <= at).ok_or(Errno::ENOMEM)?;
            if prot.writable() && !area.flags.has(AreaFlags::MAY_WRITE) {
                return Err(Errno::EACCES);
            }
            let area_end = area.end;
            if area.prot != prot {
                if area.start < at {
                    self.split_at(i, at)?;
                    i = self.areas.again(self.areas.next(i), at);
                }
                if area_end > end {
                    self.split_at(i, end)?;
                    i = self.areas.again(i, at);
                }
                let Some(area) = self.areas.get_mut(i) else { return Err(Errno::ENOMEM) };
                area.prot = prot;
                if area.past.is_touched() {
                    self.table.protect(at, area.end, |entry| exclusive_rights(area, entry));
                }
            }
            at = area_end;
            if at >= end {
                return Ok(());
            }
            i = self.areas.next(i);
            if self.areas.begins_chunk(i) {
                hart::window();
            }
        }
    }
}

/// The rights that an area gives a page that is mapped. A private page is writable at once if nobody else has it, which
/// spares the fault that would find that out.
fn exclusive_rights(area: &Vma, entry: &PteRef<'_>) -> Prot {
    let value = entry.load();
    if area.is_shared() || value.is_private() && (value.is_writable() || entry.is_sole_owner()) {
        area.prot
    } else {
        area.prot.without_write()
    }
}
