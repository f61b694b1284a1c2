//! Blocks of free frames: the buddy lists, and the memory that was never used.

use core::sync::atomic::Ordering;

use super::MAX_ORDER;
use super::meta::{FREE, IDLE, meta};

/// Ranges of free memory that can be told apart.
pub(super) const MAX_RANGES: usize = 16;

/// One range of memory, in frame numbers. Metadata exists below `next` only.
#[derive(Clone, Copy)]
pub(super) struct Range {
    pub start: u32,
    pub next: u32,
    pub end: u32,
}

pub(super) const NO_RANGE: Range = Range { start: 0, next: 0, end: 0 };

/// Free blocks by order (doubly linked, merged with their buddies when freed), and the untouched memory above each
/// range's watermark.
pub(super) struct Buddies {
    lists: [u32; MAX_ORDER + 1],
    ranges: [Range; MAX_RANGES],
}

impl Buddies {
    /// The memory of `ranges`, all of it untouched.
    pub const fn new(ranges: [Range; MAX_RANGES]) -> Self {
        Self { lists: [0; MAX_ORDER + 1], ranges }
    }

    /// Whether there is a block of just this order.
    pub fn has(&self, order: usize) -> bool {
        self.lists[order] != 0
    }

    /// A block from the buddy lists, split as needed, or from untouched memory; 0 when there is none.
    pub fn carve(&mut self, order: usize) -> u32 {
        for found in order..=MAX_ORDER {
            let number = self.lists[found];
            if number != 0 {
                self.unlink(number, found);
                for half in (order..found).rev() {
                    self.link(number + (1 << half), half);
                }
                return number;
            }
        }
        let size = 1u32 << order;
        for i in 0..MAX_RANGES {
            let Range { next, end, .. } = self.ranges[i];
            let Some(number) = next.checked_next_multiple_of(size) else { continue };
            if number < end && end - number >= size {
                self.ranges[i].next = number + size;
                // What alignment skipped becomes blocks of its own.
                let mut gap = next;
                while gap < number {
                    let order = (gap.trailing_zeros() as usize).min((number - gap).ilog2() as usize).min(MAX_ORDER);
                    self.link(gap, order);
                    gap += 1 << order;
                }
                return number;
            }
        }
        0
    }

    /// A free block joins the buddy lists, merged with its buddy as often as that is free too.
    pub fn insert(&mut self, mut number: u32, mut order: usize) {
        // Metadata is valid from the range's start up to its watermark.
        let Some(range) = self.ranges.iter().find(|r| r.start <= number && number < r.next).copied() else { return };
        while order < MAX_ORDER {
            let buddy = number ^ (1 << order);
            if buddy < range.start || buddy >= range.next {
                break;
            }
            let meta = meta(buddy);
            if meta.kind.load(Ordering::Relaxed) != FREE || meta.order.load(Ordering::Relaxed) as usize != order {
                break;
            }
            self.unlink(buddy, order);
            meta.kind.store(IDLE, Ordering::Relaxed);
            number &= !(1 << order);
            order += 1;
        }
        self.link(number, order);
    }

    fn link(&mut self, number: u32, order: usize) {
        let head = self.lists[order];
        let block = meta(number);
        block.reset(FREE, order);
        block.next.store(head, Ordering::Relaxed);
        block.prev.store(0, Ordering::Relaxed);
        if head != 0 {
            meta(head).prev.store(number, Ordering::Relaxed);
        }
        self.lists[order] = number;
    }

    fn unlink(&mut self, number: u32, order: usize) {
        let block = meta(number);
        let (next, prev) = (block.next.load(Ordering::Relaxed), block.prev.load(Ordering::Relaxed));
        block.kind.store(IDLE, Ordering::Relaxed);
        if prev == 0 {
            self.lists[order] = next;
        } else {
            meta(prev).next.store(next, Ordering::Relaxed);
        }
        if next != 0 {
            meta(next).prev.store(prev, Ordering::Relaxed);
        }
    }
}
