//! A hart that caches entries which are not valid, played on one that does not: `limen.tlb=inject`.
//!
//! A new leaf entry is *hidden*: V is clear, so that the hart finds nothing, while everything else is in place, so that the
//! kernel sees a page that is mapped. (With V clear all other bits are software's.) The program faults again, the kernel
//! finds that its tables allow the access, calls the fault spurious and fences; and the fence that would have dropped
//! the cached entry sets V. One entry in four is *deep*: only a fence of the whole ASID reveals it, as if a cached entry
//! of an inner level had hidden it. So the longest chain of spurious faults is two.

use core::sync::atomic::Ordering;

use crate::addr::PAGE_SHIFT;
use crate::mem::pgtable::{V, leaf_slot};

/// In a hidden entry: it is deep. (G of a valid one, which no entry of a program has.)
const DEEP: u64 = 1 << 5;
/// R, W and X: an entry with none of them is a page without rights, not a hidden one.
const RIGHTS: u64 = 7 << 1;

/// Whether new entries are hidden.
#[inline]
pub(in crate::mem) fn is_on() -> bool {
    super::policy::injects()
}

/// The form in which a new entry for `va` is written.
pub(in crate::mem) fn hidden(entry: u64, va: usize) -> u64 {
    if entry & V == 0 || entry & RIGHTS == 0 {
        return entry;
    }
    entry & !V | if (va >> PAGE_SHIFT) % 4 == 3 { DEEP } else { 0 }
}

/// The entry's value for the kernel.
pub(in crate::mem) fn revealed(entry: u64) -> u64 {
    if entry & V == 0 && entry & RIGHTS != 0 { entry & !DEEP | V } else { entry }
}

/// A spurious fault at `va` was fenced: `wide` if the fence covered the inner levels.
#[cold]
pub(super) fn publish(root: u32, va: usize, wide: bool) {
    let Some(slot) = leaf_slot(root, va) else { return };
    let entry = slot.load(Ordering::Relaxed);
    if wide || entry & DEEP == 0 {
        // Fails if the entry was changed meanwhile; the next fault looks again.
        slot.exchange(entry, revealed(entry));
    }
}
