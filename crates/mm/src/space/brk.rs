//! brk(2).

use hal::addr::{PAGE_SIZE, page_down, page_up};
use hal::mem::layout::user_top;
use hal::mem::pgtable::Prot;

use super::area::{AreaFlags, Backing, MAX_AREAS, Vma};
use super::{AddressSpace, Inner};

impl AddressSpace {
    /// Says where the heap begins, for exec: at `end` of the program's data, moved by the layout's random offset.
    pub fn set_brk(&self, end: usize) {
        self.with(|inner| {
            let start = page_up(end).unwrap_or(end).saturating_add(inner.layout.brk_offset);
            (inner.brk_start, inner.brk) = (start, start);
        });
    }

    /// brk(2) as the kernel does it: gives the end of the heap, the old one if it cannot be moved to `addr`.
    pub fn brk(&self, addr: usize) -> usize {
        self.with(|inner| inner.set_break(addr))
    }
}

impl Inner {
    fn set_break(&mut self, addr: usize) -> usize {
        let old = self.brk;
        if addr < self.brk_start || addr >= user_top() {
            return old;
        }
        if addr - self.brk_start > self.limits.data {
            return old;
        }
        let (Some(old_end), Some(new_end)) = (page_up(old), page_up(addr)) else { return old };
        if new_end < old_end {
            if self.unmap(new_end, old_end).is_err() {
                return old;
            }
        } else if new_end > old_end {
            // One page is left between the heap and what comes next.
            let Some(at) = self.areas.free(old_end, (new_end + PAGE_SIZE).min(page_down(user_top()))) else {
                return old;
            };
            let area = Vma::new(old_end, new_end, Prot::RW, AreaFlags::MAY_WRITE, Backing::Anonymous, 0, None);
            let too_many = self.areas.len() > MAX_AREAS;
            if too_many || self.check_size(new_end - old_end, true).is_err() || self.add(at, area).is_err() {
                return old;
            }
        }
        self.brk = addr;
        addr
    }
}
