//! Page faults.
//!
//! The common case, a write to fresh private memory, is straight-line code: area, entry, zeroed page, store. The rest
//! is told apart by what the entry holds:
//!
//! | entry | access | what happens |
//! |---|---|---|
//! | absent, anonymous | write | a page of zeroes of its own |
//! | absent, anonymous | other | the shared page of zeroes, read-only |
//! | absent, object, shared | any | the object's page with the area's rights |
//! | absent, object, private | write | a private copy of the object's page |
//! | absent, object, private | other | the object's page read-only, and its neighbours that are in memory |
//! | read-only, private page, no other owner | write | the page is writable again |
//! | read-only, anything else | write | a private copy |
//! | allows the access | any | a stale translation: fenced and tried again |

use alloc::sync::Arc;

use hal::addr::{PAGE_SIZE, page_down};
use hal::calls::Access;
use hal::mem::frame::{self, Frame, Kind};
use hal::mem::pgtable::{Prot, PteVal};

use super::area::{AreaFlags, Backing, STACK_GAP, Special, Vma};
use super::{AddressSpace, Inner};
use crate::object::{Object, PageError};

/// Bytes around a fault in which pages that a file has in memory are mapped along.
const AROUND: usize = 16 * PAGE_SIZE;

/// Pages of the largest data segment whose pages are copied when they are first read.
const COPIED_AT_ONCE: usize = 64;

/// Why a fault cannot be resolved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultError {
    /// Nothing is mapped there: SIGSEGV, SEGV_MAPERR.
    MapErr,
    /// The area does not allow the access: SIGSEGV, SEGV_ACCERR.
    AccErr,
    /// The page lies beyond the file's end: SIGBUS, BUS_ADRERR.
    Bus,
    /// No memory.
    Oom,
}

impl From<PageError> for FaultError {
    fn from(error: PageError) -> Self {
        match error {
            PageError::BeyondEnd => Self::Bus,
            PageError::NoMemory => Self::Oom,
        }
    }
}

/// Whether rights allow an access.
#[inline]
fn allows(prot: Prot, access: Access) -> bool {
    match access {
        Access::Read => prot.readable(),
        Access::Write => prot.writable(),
        Access::Execute => prot.executable(),
    }
}

impl AddressSpace {
    /// Resolves a fault at `addr`, so that the access can be tried again.
    #[inline]
    pub fn fault(&self, addr: usize, access: Access) -> Result<(), FaultError> {
        self.inner.lock().fault(addr, access)
    }
}

impl Inner {
    #[inline]
    pub(super) fn fault(&mut self, addr: usize, access: Access) -> Result<(), FaultError> {
        let i = match self.areas.find(addr) {
            Some(i) => i,
            None => self.grow_stack(addr)?,
        };
        let Some(area) = self.areas.get_mut(i) else { return Err(FaultError::MapErr) };
        if !allows(area.prot, access) {
            return Err(FaultError::AccErr);
        }
        let va = page_down(addr);
        area.flags.0 |= AreaFlags::TOUCHED;
        let entry = self.table.entry(va).map_err(|_| FaultError::Oom)?;
        let value = entry.load();
        if access == Access::Write && area.is_anonymous() && !value.is_present() {
            let frame = Frame::alloc_zeroed(Kind::Anonymous).ok_or(FaultError::Oom)?;
            frame.set_owner(self.id as usize, va);
            entry.install(frame, area.prot, true);
            area.flags.0 |= AreaFlags::PRIVATE_PAGES;
            self.private += 1;
            return Ok(());
        }
        self.fault_rest(i, va, access, value)
    }

    #[inline(never)]
    fn fault_rest(&mut self, i: usize, va: usize, access: Access, value: PteVal) -> Result<(), FaultError> {
        if value.is_present() {
            return self.fault_present(i, va, access, value);
        }
        let Some(area) = self.areas.get(i) else { return Err(FaultError::MapErr) };
        match &area.backing {
            Backing::Anonymous => {
                let zero = frame::zero_page().ok_or(FaultError::Oom)?;
                self.table.entry(va).map_err(|_| FaultError::Oom)?.install_borrowed(&zero, area.prot);
                Ok(())
            }
            Backing::Object(object) => {
                let object = object.clone();
                self.fault_object(i, va, access, &object)
            }
            Backing::Special(special) => {
                let special = special.clone();
                self.fault_special(i, va, access, &special)
            }
        }
    }

    fn fault_object(&mut self, i: usize, va: usize, access: Access, object: &Arc<Object>) -> Result<(), FaultError> {
        let Some(area) = self.areas.get_mut(i) else { return Err(FaultError::MapErr) };
        let page = object.page(area.index_of(va))?;
        // A program's data, which is read first, by whoever relocates it, is mostly written to soon. Copying at once spares a
        // second fault, and the fence that another page in the place of a mapped one owes.
        let soon = area.flags.has(AreaFlags::PROGRAM) && area.prot.writable() && area.pages() <= COPIED_AT_ONCE;
        if !area.is_shared() && (access == Access::Write || soon) {
            return self.install_copy(i, va, &page);
        }
        let prot = if area.is_shared() { area.prot } else { area.prot.without_write() };
        let entry = self.table.entry(va).map_err(|_| FaultError::Oom)?;
        entry.install(page, prot, false);
        self.shared += 1;
        if access != Access::Write {
            let low = (va & !(AROUND - 1)).max(area.start);
            let high = ((va & !(AROUND - 1)) + AROUND).min(area.end);
            let (first, mapped) = (area.index_of(low), &mut self.shared);
            let table = &self.table;
            object.cached_pages(first, first + (high - low) / PAGE_SIZE, |index, frame| {
                // The window is aligned, so its entries are all in the table that was just used.
                if let Some(entry) = table.find(low + (index - first) * PAGE_SIZE)
                    && !entry.load().is_present()
                {
                    entry.install(frame.clone(), prot, false);
                    *mapped += 1;
                }
            });
        }
        Ok(())
    }

    fn fault_special(&mut self, i: usize, va: usize, access: Access, special: &Special) -> Result<(), FaultError> {
        let Some(area) = self.areas.get(i) else { return Err(FaultError::MapErr) };
        let page = special.frames.get(area.index_of(va)).ok_or(FaultError::Bus)?;
        if access == Access::Write {
            return self.install_copy(i, va, page);
        }
        let prot = area.prot.without_write();
        let entry = self.table.entry(va).map_err(|_| FaultError::Oom)?;
        if page.kind() == Kind::Reserved {
            entry.install_borrowed(page, prot);
        } else {
            entry.install(page.clone(), prot, false);
            self.shared += 1;
        }
        Ok(())
    }

    /// Maps a private copy of `page` where nothing is mapped.
    fn install_copy(&mut self, i: usize, va: usize, page: &Frame) -> Result<(), FaultError> {
        let Some(area) = self.areas.get_mut(i) else { return Err(FaultError::MapErr) };
        let copy = Frame::alloc_copy(Kind::Anonymous, page).ok_or(FaultError::Oom)?;
        copy.set_owner(self.id as usize, va);
        self.table.entry(va).map_err(|_| FaultError::Oom)?.install(copy, area.prot, true);
        area.flags.0 |= AreaFlags::PRIVATE_PAGES;
        self.private += 1;
        Ok(())
    }

    fn fault_present(&mut self, i: usize, va: usize, access: Access, value: PteVal) -> Result<(), FaultError> {
        if allows(value.prot(), access) {
            self.table.space().spurious(va);
            return Ok(());
        }
        let Some(area) = self.areas.get_mut(i) else { return Err(FaultError::MapErr) };
        let Some(entry) = self.table.find(va) else { return Err(FaultError::MapErr) };
        if access != Access::Write {
            entry.widen(own_rights(area, value));
            return Ok(());
        }
        if area.is_shared() || value.is_private() && entry.is_sole_owner() {
            entry.widen(area.prot);
            return Ok(());
        }
        // The page of zeroes need not be read to be copied.
        let copy = if value.number() == frame::zero_page_number() {
            Frame::alloc_zeroed(Kind::Anonymous)
        } else {
            entry.frame().and_then(|old| Frame::alloc_copy(Kind::Anonymous, &old))
        };
        let copy = copy.ok_or(FaultError::Oom)?;
        copy.set_owner(self.id as usize, va);
        let prot = area.prot;
        area.flags.0 |= AreaFlags::PRIVATE_PAGES;
        if !value.is_private() {
            self.private += 1;
            self.shared -= !value.is_borrowed() as usize;
        }
        self.table.replace(va, copy, prot, true).map_err(|_| FaultError::MapErr)
    }

    /// A fault outside all areas: if a stack lies above, and may grow that far, it does.
    #[cold]
    fn grow_stack(&mut self, addr: usize) -> Result<usize, FaultError> {
        let i = self.areas.first_above(addr);
        let below = i.checked_sub(1).and_then(|i| self.areas.get(i)).map(|area| (area.end, area.prot));
        let Some(area) = self.areas.get_mut(i) else { return Err(FaultError::MapErr) };
        if !area.flags.has(AreaFlags::GROWS_DOWN) {
            return Err(FaultError::MapErr);
        }
        let start = page_down(addr);
        if area.end - start > self.limits.stack || start < super::layout::MIN_ADDR {
            return Err(FaultError::MapErr);
        }
        if let Some((end, prot)) = below
            && prot != Prot::NONE
            && start - end < STACK_GAP
        {
            return Err(FaultError::MapErr);
        }
        let more = (area.start - start) / PAGE_SIZE;
        if (self.total + more).saturating_mul(PAGE_SIZE) > self.limits.address_space {
            return Err(FaultError::MapErr);
        }
        area.start = start;
        self.total += more;
        Ok(i)
    }
}

/// The rights that an area gives a page without a further fault: a page that others may have too is not writable in a
/// private area, and one that was not writable stays so until a write asks.
#[inline]
pub(super) fn own_rights(area: &Vma, value: PteVal) -> Prot {
    if area.is_shared() || value.is_private() && value.is_writable() { area.prot } else { area.prot.without_write() }
}
