//! The arena that stands for physical memory on the host, and the one lock that gives a test all of it.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::alloc::{Layout, alloc_zeroed};
use std::sync::{Mutex, MutexGuard, Once};

use crate::addr::PhysAddr;

/// Physical address at which the arena appears.
pub const ARENA_PHYS: usize = 0x8000_0000;
/// Size of the arena in bytes. The last [`RESERVED_LEN`] bytes are not free memory.
pub const ARENA_LEN: usize = 64 << 20;
/// Bytes at the end of the arena that play a boot-time image (see [`boot_memory`]).
pub const RESERVED_LEN: usize = 1 << 20;

static OFFSET: AtomicUsize = AtomicUsize::new(0);
static READY: Once = Once::new();
static TURN: Mutex<()> = Mutex::new(());

pub(super) fn offset() -> usize {
    OFFSET.load(Ordering::Relaxed)
}

/// Makes the arena if this is the first call, and gives the caller all of it until the guard is dropped: frame
/// counters are exact only while one test at a time runs.
pub fn arena() -> MutexGuard<'static, ()> {
    // A test that failed poisons the lock; the next one can still run.
    let turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    READY.call_once(|| {
        let layout = Layout::from_size_align(ARENA_LEN, 4 << 20).expect("constant");
        // SAFETY: the layout's size is not zero. The arena is never freed.
        let base = unsafe { alloc_zeroed(layout) } as usize;
        assert_ne!(base, 0);
        OFFSET.store(base.wrapping_sub(ARENA_PHYS), Ordering::Relaxed);
        // SAFETY: the arena is this process's own memory, used for nothing else.
        unsafe {
            super::frame::init(
                &[(PhysAddr(ARENA_PHYS), ARENA_LEN - RESERVED_LEN)],
                &[(PhysAddr(ARENA_PHYS + ARENA_LEN - RESERVED_LEN), RESERVED_LEN)],
            );
        }
    });
    turn
}

/// Puts `bytes` at byte `at` of the reserved part, as a boot loader does with an initramfs, and says where they are.
pub fn boot_memory(at: usize, bytes: &[u8]) -> PhysAddr {
    assert!(at + bytes.len() <= RESERVED_LEN);
    let phys = ARENA_PHYS + ARENA_LEN - RESERVED_LEN + at;
    // SAFETY: inside the arena by the assertion; tests that use it hold the arena's lock.
    unsafe {
        core::ptr::copy_nonoverlapping(
            bytes.as_ptr(),
            super::layout::phys_to_virt(PhysAddr(phys)) as *mut u8,
            bytes.len(),
        );
    }
    PhysAddr(phys)
}
