//! Dropping many handles with one turn of the allocator's lock.

use core::sync::atomic::Ordering;

use super::meta::{IDLE, KINDS, meta};
use super::{Frame, alloc, release};

/// Collects handles to be dropped together: what an exiting program or an unmapped range gives back.
#[derive(Default)]
pub struct FrameBatch {
    first: u32,
    last: u32,
    by_kind: [u32; KINDS],
}

impl FrameBatch {
    /// An empty batch.
    #[inline]
    pub const fn new() -> Self {
        Self { first: 0, last: 0, by_kind: [0; KINDS] }
    }

    /// Drops `frame`. Its page is free for others when the batch is dropped.
    #[inline]
    pub fn push(&mut self, frame: Frame) {
        let number = frame.into_raw();
        if !release(number) {
            return;
        }
        let meta = meta(number);
        let kind = meta.kind.load(Ordering::Relaxed);
        if let Some(count) = self.by_kind.get_mut(kind as usize) {
            *count += 1;
        }
        meta.kind.store(IDLE, Ordering::Relaxed);
        meta.next.store(self.first, Ordering::Relaxed);
        if self.first == 0 {
            self.last = number;
        }
        self.first = number;
    }
}

impl Drop for FrameBatch {
    #[inline]
    fn drop(&mut self) {
        if self.first != 0 {
            alloc::free_chain(self.first, self.last, &self.by_kind);
        }
    }
}
