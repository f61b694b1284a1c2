//! Pages and tables on their way out: collected while entries are cleared, fenced once, then dropped.
//!
//! A page whose only reference was the entry's is chained through its metadata, to be freed after the fence. One that
//! others hold too must keep its reference until then (the others could drop theirs), so its handle is stored.

use core::mem::MaybeUninit;

use super::{Reason, Space};
use crate::addr::PAGE_SIZE;
use crate::hart;
use crate::mem::frame::{Frame, FrameBatch};

/// Pages with other references that are collected before a fence is forced.
const CAPACITY: usize = 64;

/// Handles taken out of a page table of one space. They are dropped after the fence that their removal owes, at the
/// latest when the gather is.
pub struct Gather<'a> {
    space: &'a Space,
    reason: Reason,
    /// No hart can reach the space any more: nothing is owed, handles are dropped at once.
    immediate: bool,
    /// Interrupts may come in between two page tables.
    windows: bool,
    tables: bool,
    start: usize,
    end: usize,
    held: usize,
    frames: [MaybeUninit<Frame>; CAPACITY],
    batch: FrameBatch,
}

impl<'a> Gather<'a> {
    /// For changes to `space`'s table.
    #[inline]
    pub(in crate::mem) fn new(space: &'a Space, reason: Reason, immediate: bool) -> Self {
        Self {
            space,
            reason,
            immediate,
            windows: false,
            tables: false,
            start: usize::MAX,
            end: 0,
            held: 0,
            frames: [const { MaybeUninit::uninit() }; CAPACITY],
            batch: FrameBatch::new(),
        }
    }

    /// Lets interrupts in now and then while much is cleared: the caller holds no lock that a handler takes (see
    /// [`hart::window`]).
    #[inline]
    pub fn allow_windows(&mut self) {
        self.windows = true;
    }

    /// The place for a window.
    #[inline]
    pub(in crate::mem) fn pause(&self) {
        if self.windows {
            hart::window();
        }
    }

    /// Whether this gather fences for `space`.
    #[inline]
    pub(in crate::mem) fn is_for(&self, space: &Space) -> bool {
        core::ptr::eq(self.space, space)
    }

    /// The entry of the page at `va` was narrowed or cleared.
    #[inline]
    pub(in crate::mem) fn touch(&mut self, va: usize) {
        self.start = self.start.min(va);
        self.end = self.end.max(va + PAGE_SIZE);
    }

    /// Where no hart can reach the space: what takes the pages from `va` on at once.
    #[inline]
    pub(in crate::mem) fn unreachable(&mut self, va: usize) -> Option<&mut FrameBatch> {
        if !self.immediate {
            return None;
        }
        self.touch(va);
        Some(&mut self.batch)
    }

    /// `frame` was taken out of the entry for `va`, where it may still be reached. The caller has [touched](Gather::touch) the first entry that it
    /// cleared and will touch the last.
    #[inline]
    pub(in crate::mem) fn frame(&mut self, frame: Frame, va: usize) {
        let Err(frame) = self.batch.push_sole(frame) else { return };
        if self.held == CAPACITY {
            self.end = self.end.max(va);
            self.flush();
            self.start = va;
        }
        self.frames[self.held].write(frame);
        self.held += 1;
    }

    /// `table`, in which no entry is left, was unlinked.
    #[inline]
    pub(in crate::mem) fn table(&mut self, table: Frame) {
        self.tables = true;
        self.batch.push_table(table);
    }

    /// Fences what is owed and drops what was collected.
    pub fn flush(&mut self) {
        let freed_first = match self.tables {
            true => planted!(TableFreesFirst),
            false => planted!(UnmapFreesFirst),
        };
        if freed_first {
            self.free();
        }
        if !self.immediate && (self.tables || self.start < self.end) {
            let end =
                if planted!(UnmapLastPage) { (self.end - PAGE_SIZE).max(self.start + PAGE_SIZE) } else { self.end };
            self.space.shoot(self.start.min(end), end, self.tables, self.reason);
        }
        (self.tables, self.start, self.end) = (false, usize::MAX, 0);
        self.free();
    }

    fn free(&mut self) {
        for frame in &mut self.frames[..core::mem::take(&mut self.held)] {
            // SAFETY: the first `held` handles were written and are taken once, since `held` is 0 from here on.
            self.batch.push(unsafe { frame.assume_init_read() });
        }
        self.batch.flush();
    }
}

impl Drop for Gather<'_> {
    #[inline]
    fn drop(&mut self) {
        // Nothing is held that did not leave a trace here.
        if self.tables || self.start < self.end {
            self.flush();
        }
    }
}
