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
//!
//! Faults on several harts run side by side here. A new entry is made only if there is none by then (who was late drops
//! its page), and one that is there changes under the lock of its leaf table. Whatever takes memory away from a program
//! has the space to itself, so that no area, table or object vanishes in the middle.

use core::mem::take;

use hal::addr::{PAGE_SIZE, page_down};
use hal::calls::Access;
use hal::mem::frame::{self, Frame, Kind};
use hal::mem::pgtable::{Prot, PteVal, SharedPte};

use super::area::{AreaFlags, Backing, STACK_GAP, Special, Vma};
use super::{AddressSpace, Inner, Local};
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
    pub fn fault(&self, addr: usize, access: Access) -> Result<(), FaultError> {
        self.fault_of(addr, access, false)
    }

    /// The same; with `windows` interrupts are let in if it has to wait: the caller holds no lock that a handler takes.
    #[inline]
    pub fn fault_of(&self, addr: usize, access: Access, windows: bool) -> Result<(), FaultError> {
        let mut guard = self.inner.read(windows);
        let (inner, local) = guard.parts();
        match inner.fault(local, addr, access) {
            Err(FaultError::MapErr) => {
                drop(guard);
                self.fault_below_stack(addr, access)
            }
            result => {
                let mapped = local.mapped.total();
                guard.tell(mapped);
                result
            }
        }
    }

    /// A fault where nothing is mapped; a stack may grow that far.
    #[cold]
    #[inline(never)]
    fn fault_below_stack(&self, addr: usize, access: Access) -> Result<(), FaultError> {
        let mut inner = self.alone();
        let result = inner.fault_alone(addr, access);
        self.tell(&inner);
        result
    }
}

impl Inner {
    /// Resolves a fault for one who has the space to himself, and lets a stack grow for it.
    pub(super) fn fault_alone(&mut self, addr: usize, access: Access) -> Result<(), FaultError> {
        if self.areas.find(addr).is_none() {
            self.grow_stack(addr)?;
        }
        let mut local = take(&mut self.local);
        let result = self.fault(&mut local, addr, access);
        self.mapped.add(take(&mut local.mapped));
        self.local = local;
        result
    }

    #[inline(always)]
    fn fault(&self, local: &mut Local, addr: usize, access: Access) -> Result<(), FaultError> {
        let area = self.areas.find_near(&mut local.area, addr).ok_or(FaultError::MapErr)?;
        if !allows(area.prot, access) {
            return Err(FaultError::AccErr);
        }
        let va = page_down(addr);
        let Ok(entry) = self.table.entry_shared(&mut local.cursor, va) else { return self.no_memory(area) };
        if entry.load().is_present() {
            return self.fault_present(area, local, va, access);
        }
        if access != Access::Write || !area.is_anonymous() {
            return self.fault_absent(area, local, va, access);
        }
        let Some(frame) = Frame::alloc_zeroed(Kind::Anonymous) else { return self.no_memory(area) };
        self.install_private(area, local, va, &entry, frame);
        Ok(())
    }

    /// Memory has run out after page tables may have been made.
    #[cold]
    fn no_memory(&self, area: &Vma) -> Result<(), FaultError> {
        area.past.touch();
        Err(FaultError::Oom)
    }

    #[inline(never)]
    fn fault_absent(&self, area: &Vma, local: &mut Local, va: usize, access: Access) -> Result<(), FaultError> {
        let entry = self.table.entry_shared(&mut local.cursor, va).map_err(|_| FaultError::Oom)?;
        area.past.touch();
        match &area.backing {
            Backing::Anonymous => {
                let zero = frame::zero_page().ok_or(FaultError::Oom)?;
                entry.install_borrowed(&zero, area.prot);
                Ok(())
            }
            Backing::Object(object) => self.fault_object(area, local, va, access, object, &entry),
            Backing::Special(special) => self.fault_special(area, local, va, access, special, &entry),
        }
    }

    fn fault_object(
        &self,
        area: &Vma,
        local: &mut Local,
        va: usize,
        access: Access,
        object: &Object,
        entry: &SharedPte<'_>,
    ) -> Result<(), FaultError> {
        let page = object.page(area.index_of(va))?;
        // A program's data, which is read first, by whoever relocates it, is mostly written to soon. Copying at once spares a
        // second fault, and the fence that another page in the place of a mapped one owes.
        let soon = area.flags.has(AreaFlags::PROGRAM) && area.prot.writable() && area.pages() <= COPIED_AT_ONCE;
        if !area.is_shared() && (access == Access::Write || soon) {
            return self.install_copy(area, local, va, &page, entry);
        }
        let prot = if area.is_shared() { area.prot } else { area.prot.without_write() };
        local.mapped.count_shared(entry.install(page, prot, false));
        if access != Access::Write {
            let low = (va & !(AROUND - 1)).max(area.start);
            let high = ((va & !(AROUND - 1)) + AROUND).min(area.end);
            let first = area.index_of(low);
            object.cached_pages(first, first + (high - low) / PAGE_SIZE, |index, frame| {
                // The window is aligned, so its entries are all in the table that was just used: it is not made now.
                if let Ok(entry) = self.table.entry_shared(&mut local.cursor, low + (index - first) * PAGE_SIZE)
                    && !entry.load().is_present()
                {
                    local.mapped.count_shared(entry.install(frame.clone(), prot, false));
                }
            });
        }
        Ok(())
    }

    fn fault_special(
        &self,
        area: &Vma,
        local: &mut Local,
        va: usize,
        access: Access,
        special: &Special,
        entry: &SharedPte<'_>,
    ) -> Result<(), FaultError> {
        let page = special.frames.get(area.index_of(va)).ok_or(FaultError::Bus)?;
        if access == Access::Write {
            return self.install_copy(area, local, va, page, entry);
        }
        let prot = area.prot.without_write();
        if page.kind() == Kind::Reserved {
            entry.install_borrowed(page, prot);
        } else {
            local.mapped.count_shared(entry.install(page.clone(), prot, false));
        }
        Ok(())
    }

    /// Maps a private copy of `page` where nothing is mapped.
    fn install_copy(
        &self,
        area: &Vma,
        local: &mut Local,
        va: usize,
        page: &Frame,
        entry: &SharedPte<'_>,
    ) -> Result<(), FaultError> {
        let copy = Frame::alloc_copy(Kind::Anonymous, page).ok_or(FaultError::Oom)?;
        self.install_private(area, local, va, entry, copy);
        Ok(())
    }

    /// Maps `frame` where nothing is mapped, unless another hart was faster.
    #[inline(always)]
    fn install_private(&self, area: &Vma, local: &mut Local, va: usize, entry: &SharedPte<'_>, frame: Frame) {
        frame.set_owner(self.id as usize, va);
        area.past.touch_private();
        local.mapped.count_private(entry.install(frame, area.prot, true));
    }

    #[inline(never)]
    fn fault_present(&self, area: &Vma, local: &mut Local, va: usize, access: Access) -> Result<(), FaultError> {
        let entry = self.table.entry_shared(&mut local.cursor, va).map_err(|_| FaultError::Oom)?;
        if allows(entry.load().prot(), access) {
            self.table.space().spurious(va);
            return Ok(());
        }
        let entry = &entry.lock();
        let value = entry.load();
        if allows(value.prot(), access) {
            // Another hart was faster; this one has what it found before the lock from then.
            return Ok(());
        }
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
        area.past.touch_private();
        if !value.is_private() {
            local.mapped.count_private(true);
            local.mapped.shared = local.mapped.shared.wrapping_sub(!value.is_borrowed() as usize);
        }
        entry.replace(copy, area.prot, true);
        Ok(())
    }

    /// A fault outside all areas: if a stack lies above, and may grow that far, it does.
    #[cold]
    fn grow_stack(&mut self, addr: usize) -> Result<(), FaultError> {
        let i = self.areas.first_above(addr);
        let below = self.areas.below(i).map(|area| (area.end, area.prot));
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
        Ok(())
    }
}

/// The rights that an area gives a page without a further fault: a page that others may have too is not writable in a
/// private area, and one that was not writable stays so until a write asks.
#[inline]
pub(super) fn own_rights(area: &Vma, value: PteVal) -> Prot {
    if area.is_shared() || value.is_private() && value.is_writable() { area.prot } else { area.prot.without_write() }
}
