//! Dropping many handles in one turn.

use core::sync::atomic::Ordering;

use super::meta::{KINDS, Kind, Meta, meta};
use super::pool::{Bundle, Chain, MAGAZINE};
use super::{Frame, local, release};

/// Collects handles to be dropped together: what an exiting program or an unmapped range gives back. The frames are
/// chained in magazines as they come, so that giving them back is a few stores, however many they are.
#[derive(Default)]
pub struct FrameBatch {
    /// Less than a magazine.
    pub(super) chain: Chain,
    /// The last of `chain`.
    pub(super) last: u32,
    pub(super) last_table: u32,
    pub(super) full: Bundle,
    /// Page tables, all zeroes.
    pub(super) tables: Chain,
    /// Frames by kind, page tables of `tables` not counted. Instead of anonymous ones, which need no count, the first
    /// says how many others there are.
    pub(super) by_kind: [u32; KINDS],
}

impl FrameBatch {
    /// An empty batch.
    #[inline]
    pub const fn new() -> Self {
        Self {
            chain: Chain::EMPTY,
            last: 0,
            last_table: 0,
            full: Bundle::EMPTY,
            tables: Chain::EMPTY,
            by_kind: [0; KINDS],
        }
    }

    /// Drops `table`, a page table in which no entry is left and that nobody else has.
    #[inline]
    pub(in crate::mem) fn push_table(&mut self, table: Frame) {
        debug_assert!(table.refcount() == 1 && table.kind() == Kind::PageTable);
        let number = table.into_raw();
        if self.tables.len == 0 {
            self.last_table = number;
        }
        self.tables.push(number);
    }

    /// Drops `frame`. Its page is free for others when the batch is dropped.
    #[inline]
    pub fn push(&mut self, frame: Frame) {
        let number = frame.into_raw();
        let meta = meta(number);
        if release(meta) {
            self.chain(number, meta);
        }
    }

    /// Drops `frame` if its page has no other reference; gives it back otherwise.
    #[inline]
    pub(in crate::mem) fn push_sole(&mut self, frame: Frame) -> Result<(), Frame> {
        let meta = meta(frame.number());
        if meta.refs.load(Ordering::Acquire) != 1 {
            return Err(frame);
        }
        self.chain(frame.into_raw(), meta);
        Ok(())
    }

    #[inline]
    fn chain(&mut self, number: u32, meta: &Meta) {
        let kind = meta.kind.load(Ordering::Relaxed);
        if kind != Kind::Anonymous as u8
            && let Some(count) = self.by_kind.get_mut(kind as usize)
        {
            *count += 1;
            self.by_kind[Kind::Anonymous as usize] += 1;
        }
        if self.chain.len == 0 {
            self.last = number;
        }
        meta.next.store(self.chain.first, Ordering::Relaxed);
        self.chain = Chain { first: number, len: self.chain.len + 1 };
        if self.chain.len == MAGAZINE {
            self.close();
        }
    }

    #[cold]
    #[inline(never)]
    fn close(&mut self) {
        self.full.add(core::mem::take(&mut self.chain));
    }

    /// Tells a test on the host that the frames are about to be free.
    #[inline(always)]
    pub(super) fn tell(&self) {
        #[cfg(not(target_os = "none"))]
        {
            let tell = |mut chain: Chain| {
                while chain.len != 0 {
                    tell!(Freed(chain.pop()));
                }
            };
            self.full.each(tell);
            tell(self.chain);
            tell(self.tables);
        }
    }
}

impl FrameBatch {
    /// Drops what was pushed so far.
    #[inline]
    pub fn flush(&mut self) {
        if self.chain.len != 0 || !self.full.is_empty() || self.tables.len != 0 {
            local::free_batch(self);
        }
    }
}

impl Drop for FrameBatch {
    #[inline]
    fn drop(&mut self) {
        self.flush();
    }
}
