//! Robust futexes: what a thread still holds when it ends is marked, and one waiter of each is woken
//! (get_robust_list(2)). The list is the program's own memory and trusted for nothing: its length is bounded, and a fault
//! ends the walk.

use core::sync::atomic::Ordering;

use hal::addr::UserAddr;
use uapi::RobustListHead;
use uapi::futex::*;
use zerocopy::IntoBytes;

use crate::seam;
use crate::thread::Thread;

/// What an ending owner makes of its word: the new value, and whether a waiter is woken. None: it is not the owner's.
fn died(word: u32, tid: u32, pending: bool, pi: bool) -> Option<(Option<u32>, bool)> {
    let owner = word & FUTEX_TID_MASK;
    if pending && !pi && owner == 0 {
        // It ended between giving the lock back and waking who waits.
        return Some((None, true));
    }
    (owner == tid).then_some((Some(word & FUTEX_WAITERS | FUTEX_OWNER_DIED), !pi && word & FUTEX_WAITERS != 0))
}

/// Walks the list of a thread that ends, which is the running one.
pub(crate) fn leave(me: &Thread) {
    let head = me.robust_list.swap(0, Ordering::Relaxed);
    if head == 0 {
        return;
    }
    let mut list = RobustListHead::default();
    if hal::user::copy_in(list.as_mut_bytes(), UserAddr(head)).is_err() {
        return;
    }
    // Bit 0 of an entry's address marks a priority-inheriting lock.
    let word = |entry: usize| UserAddr((entry & !1).wrapping_add_signed(list.futex_offset));
    let pending = list.list_op_pending;
    let mut entry = list.list;
    for _ in 0..ROBUST_LIST_LIMIT {
        if entry & !1 == head {
            break;
        }
        let mut next = 0usize;
        let read = hal::user::copy_in(next.as_mut_bytes(), UserAddr(entry & !1));
        if entry & !1 != pending & !1 && !release(me, word(entry), false, entry & 1 != 0) || read.is_err() {
            return;
        }
        entry = next;
    }
    if pending & !1 != 0 {
        release(me, word(pending), true, pending & 1 != 0);
    }
}

/// Marks one word; false when it cannot be reached.
fn release(me: &Thread, at: UserAddr, pending: bool, pi: bool) -> bool {
    let Ok(mut seen) = hal::user::load_u32(at) else { return false };
    while let Some((new, wake)) = died(seen, me.tid(), pending, pi) {
        if let Some(new) = new {
            match hal::user::cmpxchg_u32(at, seen, new) {
                Ok(was) if was == seen => {}
                Ok(was) => {
                    seen = was;
                    continue;
                }
                Err(_) => return false,
            }
        }
        if wake {
            let key = me.mm_slot().with(|mm| mm.map(|mm| seam::futex_key(mm, at, true)));
            if let Some(Ok(key)) = key {
                super::wake_key(key, 1, FUTEX_BITSET_MATCH_ANY);
            }
        }
        break;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owners_words_are_marked() {
        assert_eq!(died(42, 42, false, false), Some((Some(FUTEX_OWNER_DIED), false)));
        assert_eq!(died(42 | FUTEX_WAITERS, 42, false, false), Some((Some(FUTEX_OWNER_DIED | FUTEX_WAITERS), true)));
        assert_eq!(died(42 | FUTEX_WAITERS, 42, false, true), Some((Some(FUTEX_OWNER_DIED | FUTEX_WAITERS), false)));
        assert_eq!(died(43, 42, false, false), None);
        assert_eq!(died(0, 42, false, false), None);
        assert_eq!(died(0, 42, true, false), Some((None, true)));
    }
}
