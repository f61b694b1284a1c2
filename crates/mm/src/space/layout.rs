//! Where a program's parts go.

use hal::addr::{PAGE_SHIFT, PAGE_SIZE, page_down, page_up};
use hal::mem::layout::user_top;

use super::area::STACK_GAP;

/// Lowest address of a mapping (Linux's vm.mmap_min_addr).
pub const MIN_ADDR: usize = 0x1_0000;
/// The window in which addresses are chosen ends here at the latest, whatever the mode.
const WINDOW_MAX: usize = 1 << 47;
/// Random pages between the window's end and the stack.
const STACK_RANDOM: usize = 0x3ffff;
/// Random bits, in pages, of the mapping base and of position-independent programs.
const MMAP_RANDOM_BITS: u32 = 18;
/// Random bytes between a program's data and its heap.
const BRK_RANDOM: usize = 32 << 20;
/// Where mappings begin, upwards, when the stack's size is unlimited.
const BOTTOM_UP_BASE: usize = (1 << 39) / 3;

/// The addresses drawn at exec.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// End of the addresses that are chosen without a hint.
    pub window: usize,
    /// First address above the stack, page-aligned.
    pub stack_top: usize,
    /// Mappings go below this, downwards (or from it upwards: `bottom_up`).
    pub mmap_base: usize,
    /// Mappings are placed upwards, since the stack may take any size.
    pub bottom_up: bool,
    /// Where a position-independent program without interpreter-chosen address goes.
    pub dyn_base: usize,
    /// Bytes to leave between the end of the program's data and its heap.
    pub brk_offset: usize,
}

impl Layout {
    /// A layout for the mode in use. `random`: bits to place things by, `None` to place them the same each time
    /// (personality's ADDR_NO_RANDOMIZE). `stack_limit` is RLIMIT_STACK in bytes, `usize::MAX` for no limit.
    pub fn new(random: Option<[u64; 4]>, stack_limit: usize) -> Self {
        let window = user_top().min(WINDOW_MAX);
        let pages = |word: usize, mask: usize| random.map_or(0, |r| (r[word] as usize & mask) << PAGE_SHIFT);
        let stack_top = window - pages(0, STACK_RANDOM);
        let mmap_random = pages(1, (1 << MMAP_RANDOM_BITS) - 1);
        let bottom_up = stack_limit == usize::MAX;
        let mmap_base = if bottom_up {
            page_up(BOTTOM_UP_BASE.min(window / 3)).unwrap_or(BOTTOM_UP_BASE) + mmap_random
        } else {
            let spare = STACK_GAP + random.map_or(0, |_| (STACK_RANDOM + 1) << PAGE_SHIFT);
            let gap = stack_limit.saturating_add(spare).clamp(128 << 20, window / 6 * 5);
            page_down(window - gap) - mmap_random
        };
        Self {
            window,
            stack_top,
            mmap_base,
            bottom_up,
            dyn_base: page_down(window / 3 * 2) + pages(2, (1 << MMAP_RANDOM_BITS) - 1),
            brk_offset: pages(3, BRK_RANDOM / PAGE_SIZE - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use hal::mem::layout::{Mode, set_mode};

    use super::*;

    #[test]
    fn parts_stay_apart_in_every_mode() {
        let _turn = hal::mem::host::arena();
        for mode in [Mode::Sv39, Mode::Sv48, Mode::Sv57] {
            set_mode(mode);
            for random in [None, Some([0; 4]), Some([u64::MAX; 4])] {
                let layout = Layout::new(random, 8 << 20);
                assert!(!layout.bottom_up);
                assert!(layout.stack_top <= layout.window && layout.window <= user_top());
                assert!(layout.stack_top - (8 << 20) - STACK_GAP >= layout.mmap_base);
                assert!(layout.dyn_base + (1 << 32) < layout.mmap_base);
                assert_eq!((layout.mmap_base | layout.dyn_base) % PAGE_SIZE, 0);
            }
            assert!(Layout::new(None, usize::MAX).bottom_up);
        }
        set_mode(Mode::Sv39);
        assert_eq!(Layout::new(None, 8 << 20).mmap_base, (1 << 38) - (128 << 20));
    }
}
