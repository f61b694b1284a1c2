//! Dropping many handles with one turn of the allocator's lock.

use core::sync::atomic::Ordering;

use super::meta::{KINDS, meta};
use super::{Frame, alloc, release};

/// Collects handles to be dropped together: what an exiting program or an unmapped range gives back.
#[derive(Default)]
pub struct FrameBatch {
    first: u32,
    last: u32,
    by_kind: [u32; KINDS],
    tables: Chain,
}

/// Page tables, all zeroes.
#[derive(Default)]
struct Chain {
    first: u32,
    last: u32,
    count: usize,
}

impl FrameBatch {
    /// An empty batch.
    #[inline]
    pub const fn new() -> Self {
        Self { first: 0, last: 0, by_kind: [0; KINDS], tables: Chain { first: 0, last: 0, count: 0 } }
    }

    /// Drops `table`, a page table in which no entry is left and that nobody else has.
    #[inline]
    pub(in crate::mem) fn push_table(&mut self, table: Frame) {
        debug_assert!(table.refcount() == 1 && table.kind() == super::Kind::PageTable);
        let number = table.into_raw();
        let meta = meta(number);
        meta.next.store(self.tables.first, Ordering::Relaxed);
        if self.tables.first == 0 {
            self.tables.last = number;
        }
        self.tables.first = number;
        self.tables.count += 1;
    }

    /// Drops `frame`. Its page is free for others when the batch is dropped.
    #[inline]
    pub fn push(&mut self, frame: Frame) {
        let number = frame.into_raw();
        if release(number) {
            self.chain(number);
        }
    }

    /// Drops `frame` if its page has no other reference; gives it back otherwise.
    #[inline]
    pub(in crate::mem) fn push_sole(&mut self, frame: Frame) -> Result<(), Frame> {
        if frame.refcount() != 1 {
            return Err(frame);
        }
        self.chain(frame.into_raw());
        Ok(())
    }

    #[inline]
    fn chain(&mut self, number: u32) {
        let meta = meta(number);
        let kind = meta.kind.load(Ordering::Relaxed);
        if let Some(count) = self.by_kind.get_mut(kind as usize) {
            *count += 1;
        }
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
        if self.tables.first != 0 {
            alloc::free_tables(self.tables.first, self.tables.last, self.tables.count);
        }
    }
}
