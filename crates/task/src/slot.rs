//! A shared thing that a thread has, and may replace or give up.

use alloc::sync::Arc;

use hal::sync::SpinLock;

/// How often one who must not wait looks whether the slot is free.
const TRIES: u32 = 100;

/// Holds the thread's reference to something shared (address space, descriptors). Empty once the thread has exited.
pub struct Slot<T>(SpinLock<Option<Arc<T>>>);

impl<T> Slot<T> {
    /// A slot with this in it.
    pub const fn new(value: Option<Arc<T>>) -> Self {
        Self(SpinLock::new(value))
    }

    /// Another reference to what is in it.
    #[inline]
    pub fn get(&self) -> Option<Arc<T>> {
        self.0.lock().clone()
    }

    /// The same for one who holds a lock that a handler takes: gives up soon. The thread itself may have the slot locked
    /// while it waits for the memory that is in it, and whoever has that may have let an interrupt in whose handler waits
    /// for the other lock.
    #[inline]
    pub fn try_with<R>(&self, look: impl FnOnce(Option<&Arc<T>>) -> R) -> Option<R> {
        let guard = (0..TRIES).find_map(|_| self.0.try_lock())?;
        Some(look(guard.as_ref()))
    }

    /// Looks at what is in it without counting a reference. `look` runs with the slot locked: it must not sleep.
    #[inline]
    pub fn with<R>(&self, look: impl FnOnce(Option<&Arc<T>>) -> R) -> R {
        look(self.0.lock().as_ref())
    }

    /// Puts `value` in and gives what was there.
    pub fn replace(&self, value: Option<Arc<T>>) -> Option<Arc<T>> {
        core::mem::replace(&mut *self.0.lock(), value)
    }
}
