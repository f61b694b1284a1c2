//! A shared thing that a thread has, and may replace or give up.

use alloc::sync::Arc;

use hal::sync::SpinLock;

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
