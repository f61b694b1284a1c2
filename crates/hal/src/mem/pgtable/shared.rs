//! Entries of a page table that several harts share, each resolving a fault.
//!
//! Most faults find nothing in their entry, and one compare-and-swap fills it; whoever comes second finds it filled and lets
//! the program try again. To change an entry that *is* there one must look at its page first (who else has it?) and keep
//! it from vanishing meanwhile, so that takes the lock of the leaf table, a word in the metadata of the table's frame. Two
//! harts wait for each other there only if both copy pages of the same two megabytes.
//!
//! What makes entries absent, and frees tables, has the page table to itself.

use core::ops::Deref;
use core::sync::atomic::{AtomicU32, Ordering};

use super::pte::{BORROWED, PRIVATE, leaf, link_fence, wary};
use super::{Cursor, NoMemory, PageTable, Prot, PteRef, PteVal, index, table};
use crate::mem::frame::{Frame, Kind, meta};
use crate::mem::tlb;
use crate::sync::contended;

/// An entry that other harts may be changing.
pub struct SharedPte<'a> {
    entry: PteRef<'a>,
    lock: &'static AtomicU32,
}

/// An entry whose table is locked.
pub struct LockedPte<'a> {
    entry: &'a PteRef<'a>,
    lock: &'static AtomicU32,
}

impl PageTable {
    /// The entry for the page of `va`, present or not. Makes the tables on the way; fails when there is no memory for
    /// them or `va` is not in the user half.
    #[inline(always)]
    pub fn entry_shared(&self, cursor: &mut Cursor, va: usize) -> Result<SharedPte<'_>, NoMemory> {
        let number = self.table_for(cursor, va)?;
        // SAFETY: the table is linked, and stays so while `self` is borrowed.
        let slot = unsafe { &table(number)[index(va, 0)] };
        Ok(SharedPte { entry: PteRef::new(slot, &self.space, va), lock: &meta(number).prev })
    }
}

impl SharedPte<'_> {
    /// The value at this moment.
    #[inline]
    pub fn load(&self) -> PteVal {
        self.entry.load()
    }

    /// Maps `frame`, which the entry owns from now on, as [`PteRef::install`] does, if the entry is absent; says whether it was.
    /// Otherwise the frame is dropped.
    #[inline(always)]
    pub fn install(&self, frame: Frame, prot: Prot, private: bool) -> bool {
        if prot.executable() {
            self.entry.space.sync_code(frame.number());
        }
        let claimed = self.claim(leaf(frame.number(), prot, if private { PRIVATE } else { 0 }));
        if claimed {
            let _ = frame.into_raw();
        }
        claimed
    }

    /// Maps the page of `frame` without a reference, as [`PteRef::install_borrowed`] does, if the entry is absent.
    #[inline]
    pub fn install_borrowed(&self, frame: &Frame, prot: Prot) {
        if frame.kind() == Kind::Reserved {
            if prot.executable() {
                self.entry.space.sync_code(frame.number());
            }
            self.claim(leaf(frame.number(), prot.without_write(), BORROWED));
        }
    }

    #[inline(always)]
    fn claim(&self, entry: u64) -> bool {
        let PteRef { slot, space, va } = &self.entry;
        link_fence();
        if planted!(FillsBlindly) {
            slot.store(entry, Ordering::Relaxed);
            return true;
        }
        if tlb::is_lazy() {
            return slot.claim(entry);
        }
        let claimed = slot.claim(wary(entry, *va));
        space.linked(*va, false);
        claimed
    }

    /// Waits for the lock of the entry's table and takes it.
    #[inline]
    pub fn lock(&self) -> LockedPte<'_> {
        if self.lock.swap(1, Ordering::Acquire) != 0 {
            contended(self.lock);
        }
        LockedPte { entry: &self.entry, lock: self.lock }
    }
}

impl<'a> Deref for LockedPte<'a> {
    type Target = PteRef<'a>;
    #[inline]
    fn deref(&self) -> &PteRef<'a> {
        self.entry
    }
}

impl Drop for LockedPte<'_> {
    #[inline]
    fn drop(&mut self) {
        self.lock.store(0, Ordering::Release);
    }
}
