//! Finding room.

use hal::addr::{PAGE_SIZE, page_down};
use hal::mem::layout::user_top;

use super::Inner;
use super::layout::MIN_ADDR;

impl Inner {
    /// An address for `len` bytes (whole pages): `hint` if it is free, else the highest (or, bottom-up, the lowest)
    /// gap of the window that is large enough. `None` when there is none.
    pub(super) fn place(&mut self, hint: usize, len: usize) -> Option<usize> {
        if len > user_top() {
            return None;
        }
        if hint != 0 {
            // One that rounds up to the end of all addresses rounds up to none.
            let hint = page_down(hint.wrapping_add(PAGE_SIZE - 1)).max(MIN_ADDR);
            if hint <= user_top() - len && self.areas.is_free(hint, hint + len) {
                return Some(hint);
            }
        }
        if self.layout.bottom_up {
            return self.place_up(self.layout.mmap_base, len);
        }
        self.place_down(len).or_else(|| self.place_up(page_down(self.layout.window / 3), len))
    }

    /// The highest place below `mmap_base`. What an earlier search has seen to be full is not searched again.
    fn place_down(&mut self, len: usize) -> Option<usize> {
        let base = self.layout.mmap_base;
        let mut ceiling = if len >= self.search_len { self.search_top.min(base) } else { base };
        let mut i = self.areas.first_above(ceiling - 1);
        // An area that reaches over the ceiling lowers it.
        if let Some(area) = self.areas.get(i) {
            ceiling = ceiling.min(area.start_with_gap());
        }
        loop {
            let below = i.checked_sub(1).and_then(|i| self.areas.get(i));
            let floor = below.map_or(MIN_ADDR, |area| area.end.max(MIN_ADDR));
            if ceiling > floor && ceiling - floor >= len {
                (self.search_top, self.search_len) = (ceiling, len);
                return Some(ceiling - len);
            }
            ceiling = ceiling.min(below?.start_with_gap());
            i -= 1;
        }
    }

    fn place_up(&self, base: usize, len: usize) -> Option<usize> {
        let mut floor = base.max(MIN_ADDR);
        let mut i = self.areas.first_above(floor);
        loop {
            let area = self.areas.get(i);
            let ceiling = area.map_or(self.layout.window, |area| area.start_with_gap().min(self.layout.window));
            if ceiling > floor && ceiling - floor >= len {
                return Some(floor);
            }
            floor = floor.max(area?.end);
            i += 1;
        }
    }

    /// Addresses up to `end` have become free: the next search begins at the top again if that is above the last one.
    pub(super) fn freed(&mut self, end: usize) {
        if end > self.search_top {
            self.search_len = usize::MAX;
        }
    }
}
