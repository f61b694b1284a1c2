//! A value set once at boot and read for ever after.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU8, Ordering};

const EMPTY: u8 = 0;
const BUSY: u8 = 1;
const READY: u8 = 2;

/// A cell that is written at most once; reading it is one load and a branch.
pub struct Once<T> {
    state: AtomicU8,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the value is written before `READY` is published and never again; afterwards only shared references exist.
unsafe impl<T: Send + Sync> Sync for Once<T> {}
// SAFETY: owning the cell is owning the value.
unsafe impl<T: Send> Send for Once<T> {}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Once<T> {
    /// An empty cell.
    pub const fn new() -> Self {
        Self { state: AtomicU8::new(EMPTY), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Sets the value; gives it back when the cell already had one.
    pub fn set(&self, value: T) -> Result<&T, T> {
        if self.state.compare_exchange(EMPTY, BUSY, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return Err(value);
        }
        // SAFETY: the exchange above made this the only writer, and no reader looks before READY.
        let set = unsafe { (*self.value.get()).write(value) };
        self.state.store(READY, Ordering::Release);
        Ok(set)
    }

    /// The value, once it is set.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        if self.state.load(Ordering::Acquire) != READY {
            return None;
        }
        // SAFETY: READY is published after the write, and the value is never written again.
        Some(unsafe { (*self.value.get()).assume_init_ref() })
    }
}
