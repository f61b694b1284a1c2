//! Page-table entries (privileged specification, section "Sv39").

use core::sync::atomic::Ordering;

use super::{Prot, Slot};
use crate::addr::PAGE_SIZE;
use crate::mem::frame::{Frame, meta};
use crate::mem::tlb::{self, Reason, Space, inject};

/// Valid.
pub(in crate::mem) const V: u64 = 1 << 0;
const R: u64 = 1 << 1;
const W: u64 = 1 << 2;
const X: u64 = 1 << 3;
/// Accessible in user mode.
const U: u64 = 1 << 4;
/// Accessed.
const A: u64 = 1 << 6;
/// Dirty.
const D: u64 = 1 << 7;
/// Software: the entry holds no reference to its page.
pub(super) const BORROWED: u64 = 1 << 8;
/// Software: the page is private to programs (anonymous or a private copy of a file's page), not the file's own.
pub(super) const PRIVATE: u64 = 1 << 9;
/// Position of the physical page number.
pub(super) const PPN_SHIFT: u32 = 10;

/// Orders what was written to a page or table before the store that links it.
#[inline]
pub(super) fn link_fence() {
    #[cfg(target_os = "none")]
    // SAFETY: a fence; it also keeps the compiler from moving memory accesses over it.
    unsafe {
        core::arch::asm!("fence w, w", options(nostack, preserves_flags));
    }
    #[cfg(not(target_os = "none"))]
    core::sync::atomic::fence(Ordering::Release);
}

#[inline]
pub(super) const fn frame_number(entry: u64) -> u32 {
    (entry >> PPN_SHIFT) as u32
}

/// Whether a valid entry points to a table.
#[inline]
pub(super) const fn is_table(entry: u64) -> bool {
    entry & (V | R | W | X) == V
}

#[inline]
pub(super) const fn table_entry(number: u32) -> u64 {
    (number as u64) << PPN_SHIFT | V
}

/// A leaf entry. With [`Prot::NONE`] the entry keeps its page but is invalid for the hardware.
#[inline]
pub(super) fn leaf(number: u32, prot: Prot, software: u64) -> u64 {
    let valid = if prot == Prot::NONE { 0 } else { V };
    let dirty = if prot.writable() { D } else { 0 };
    let entry = (number as u64) << PPN_SHIFT | prot.bits() | U | A | dirty | valid | software;
    check(entry);
    entry
}

/// The rules a leaf entry must keep, checked in debug builds.
#[inline]
fn check(entry: u64) {
    debug_assert!(entry & U != 0 && entry & A != 0, "leaf without U or A: {entry:#x}");
    debug_assert!(entry & W == 0 || entry & (R | D) == R | D, "writable without R or D: {entry:#x}");
    debug_assert!((entry & V != 0) == (entry & (R | W | X) != 0), "valid without permission: {entry:#x}");
    debug_assert!(frame_number(entry) != 0 && entry >> 54 == 0, "bad page number: {entry:#x}");
    debug_assert!(entry & BORROWED == 0 || entry & W == 0, "borrowed page writable: {entry:#x}");
}

/// A leaf entry's value at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PteVal(pub(super) u64);

impl PteVal {
    /// No page.
    pub const ABSENT: Self = Self(0);

    /// A page is mapped, if only with [`Prot::NONE`].
    #[inline]
    pub const fn is_present(self) -> bool {
        self.0 != 0
    }

    /// What the hardware allows.
    #[inline]
    pub const fn prot(self) -> Prot {
        Prot((self.0 & (R | W | X)) as u8)
    }

    /// Stores go through.
    #[inline]
    pub const fn is_writable(self) -> bool {
        self.0 & W != 0
    }

    /// The page is the program's own, not a file's.
    #[inline]
    pub const fn is_private(self) -> bool {
        self.0 & PRIVATE != 0
    }

    /// The entry holds no reference to its page.
    #[inline]
    pub const fn is_borrowed(self) -> bool {
        self.0 & BORROWED != 0
    }

    /// Number of the page's frame; 0 when absent.
    #[inline]
    pub const fn number(self) -> u32 {
        frame_number(self.0)
    }
}

/// An entry that the caller has to itself: it has the whole page table, or the lock of the entry's.
pub struct PteRef<'a> {
    pub(super) slot: &'a Slot,
    pub(super) space: &'a Space,
    pub(super) va: usize,
}

impl<'a> PteRef<'a> {
    #[inline]
    pub(super) fn new(slot: &'a Slot, space: &'a Space, va: usize) -> Self {
        Self { slot, space, va }
    }

    /// The value now.
    #[inline]
    pub fn load(&self) -> PteVal {
        PteVal(self.slot.load(Ordering::Relaxed))
    }

    /// Maps `frame`, which the entry owns from now on; `private` as [`PteVal::is_private`]. The entry is absent.
    /// Nothing is owed but what instruction fetches need, and that is done.
    #[inline]
    pub fn install(&self, frame: Frame, prot: Prot, private: bool) {
        if prot.executable() {
            self.space.sync_code(frame.number());
        }
        self.set_absent(leaf(frame.into_raw(), prot, if private { PRIVATE } else { 0 }));
    }

    /// Maps the page of `frame` for reading without holding a reference: for pages that are never freed. The entry is
    /// absent. Nothing happens if the page can be freed.
    #[inline]
    pub fn install_borrowed(&self, frame: &Frame, prot: Prot) {
        if frame.kind() == crate::mem::frame::Kind::Reserved {
            if prot.executable() {
                self.space.sync_code(frame.number());
            }
            self.set_absent(leaf(frame.number(), prot.without_write(), BORROWED));
        }
    }

    #[inline]
    fn set_absent(&self, entry: u64) {
        debug_assert_eq!(self.slot.load(Ordering::Relaxed), 0, "entry in use");
        link_fence();
        if tlb::is_lazy() {
            self.slot.store(entry, Ordering::Relaxed);
        } else {
            self.slot.store(wary(entry, self.va), Ordering::Relaxed);
            self.space.linked(self.va, false);
        }
    }

    /// A handle to the mapped page. `None` when absent.
    #[inline]
    pub fn frame(&self) -> Option<Frame> {
        let entry = self.slot.load(Ordering::Relaxed);
        (entry != 0).then(|| clone_of(entry))
    }

    /// Whether the entry holds the page's only reference: nobody else maps or keeps it.
    #[inline]
    pub fn is_sole_owner(&self) -> bool {
        let entry = self.slot.load(Ordering::Relaxed);
        entry & BORROWED == 0 && entry != 0 && meta(frame_number(entry)).refs.load(Ordering::Acquire) == 1
    }

    /// Gives more rights to the page that is mapped, and fences what that owes.
    #[inline]
    pub fn widen(&self, prot: Prot) {
        let entry = self.slot.load(Ordering::Relaxed);
        debug_assert!(prot.contains(PteVal(entry).prot()) && entry != 0);
        if prot.executable() && !PteVal(entry).prot().executable() {
            self.space.sync_code(frame_number(entry));
        }
        let new = leaf(frame_number(entry), prot, entry & (BORROWED | PRIVATE));
        self.slot.set(new);
        self.space.widened(self.va);
    }

    /// Puts `prot` in place of the rights; what that owes is the caller's matter.
    #[inline]
    pub(super) fn set_prot(&self, prot: Prot) {
        let entry = self.slot.load(Ordering::Relaxed);
        let new = leaf(frame_number(entry), prot, entry & (BORROWED | PRIVATE));
        // Nothing the hardware could add (A, D) is lost: A is always set, and D with W.
        self.slot.swap(new);
    }

    /// Puts another page in the place of what is mapped, and frees that after the fence it owes.
    #[inline]
    pub fn replace(&self, frame: Frame, prot: Prot, private: bool) {
        debug_assert!(self.load().is_present());
        if prot.executable() {
            self.space.sync_code(frame.number());
        }
        let new = leaf(frame.into_raw(), prot, if private { PRIVATE } else { 0 });
        link_fence();
        let mut old = owned(self.slot.swap(new));
        if planted!(ReplaceFreesFirst) {
            old = None;
        }
        self.space.shoot(self.va, self.va + PAGE_SIZE, false, Reason::Replace);
        drop(old);
    }

    /// Clears the entry and gives the reference that it held.
    #[inline]
    pub(super) fn take(&self) -> Option<Frame> {
        owned(self.slot.swap(0))
    }
}

/// The form in which a new entry for `va` is written where some hart caches entries that are not valid, or is made to.
#[cold]
pub(super) fn wary(entry: u64, va: usize) -> u64 {
    if inject::is_on() { inject::hidden(entry, va) } else { entry }
}

/// The reference that an entry just taken out of its slot held.
#[inline]
pub(super) fn owned(entry: u64) -> Option<Frame> {
    if entry == 0 || entry & BORROWED != 0 {
        return None;
    }
    // SAFETY: `install` and `replace` gave the handle up to the entry, and a swap takes an entry out only once.
    Some(unsafe { Frame::from_raw(frame_number(entry)) })
}

/// Another handle to the page of a present entry, which stays.
#[inline]
pub(super) fn clone_of(entry: u64) -> Frame {
    // SAFETY: the entry holds a reference, or its page is never freed, and nobody changes the entry meanwhile (the caller
    // has the page table to itself, or its lock); so the page is alive, and the handle made here is not dropped but cloned.
    let held = core::mem::ManuallyDrop::new(unsafe { Frame::from_raw(frame_number(entry)) });
    Frame::clone(&held)
}

/// For a fork: takes the right to write away.
#[inline]
pub(super) fn write_protect(slot: &Slot) {
    slot.clear(W | D);
}

/// For a fork: whether the entry's page is a private one whose reference can be shared.
#[inline]
pub(super) const fn is_shareable(entry: u64) -> bool {
    entry & PRIVATE != 0 && entry & BORROWED == 0
}

/// Whether stores go through.
#[inline]
pub(super) const fn writable(entry: u64) -> bool {
    entry & W != 0
}

/// The entry without the right to write.
#[inline]
pub(super) const fn read_only(entry: u64) -> u64 {
    entry & !(W | D)
}

impl PteRef<'_> {
    /// Maps what `value`, a borrowed entry, mapped. The entry is absent.
    #[inline]
    pub(super) fn install_value(&self, value: PteVal) {
        debug_assert!(value.is_borrowed());
        self.set_absent(inject::revealed(value.0));
    }
}
