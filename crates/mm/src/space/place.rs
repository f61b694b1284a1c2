//! Finding room.

use hal::addr::{PAGE_SIZE, page_down};
use hal::mem::layout::user_top;

use super::layout::MIN_ADDR;
use super::{At, Inner};

impl Inner {
    /// An address for `len` bytes (whole pages): `hint` if it is free, else the highest (or, bottom-up, the lowest)
    /// gap of the window that is large enough; and where in the list an area there belongs. `None` when there is none.
    pub(super) fn place(&mut self, hint: usize, len: usize) -> Option<(usize, At)> {
        if len > user_top() {
            return None;
        }
        if hint != 0 {
            // One that rounds up to the end of all addresses rounds up to none.
            let hint = page_down(hint.wrapping_add(PAGE_SIZE - 1)).max(MIN_ADDR);
            if hint <= user_top() - len
                && let Some(at) = self.areas.free(hint, hint + len)
            {
                return Some((hint, at));
            }
        }
        if self.layout.bottom_up {
            return self.place_up(self.layout.mmap_base, len);
        }
        self.place_down(len).or_else(|| self.place_up(page_down(self.layout.window / 3), len))
    }

    /// The highest place below `mmap_base`. What an earlier search has seen to be full is not searched again.
    fn place_down(&mut self, len: usize) -> Option<(usize, At)> {
        let base = self.layout.mmap_base;
        let ceiling = if len >= self.search_len { self.search_top.min(base) } else { base };
        let (ceiling, at) = self.areas.highest_gap(MIN_ADDR, ceiling, len)?;
        (self.search_top, self.search_len) = (ceiling, len);
        Some((ceiling - len, at))
    }

    fn place_up(&mut self, base: usize, len: usize) -> Option<(usize, At)> {
        self.areas.lowest_gap(base.max(MIN_ADDR), self.layout.window, len)
    }

    /// Addresses up to `end` have become free: the next search begins at the top again if that is above the last one.
    pub(super) fn freed(&mut self, end: usize) {
        if end > self.search_top {
            self.search_len = usize::MAX;
        }
    }
}
