//! A test-and-test-and-set spin lock.

use core::cell::UnsafeCell;
use core::fmt;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};

/// Mutual exclusion by spinning. Lock order: see the book; never held over a switch of tasks or an interrupt window.
pub struct SpinLock<T: ?Sized> {
    /// 1 while somebody has it. A whole word: RISC-V's atomic operations have no narrower form, and one on a byte takes
    /// seven instructions more.
    locked: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the lock hands out one reference at a time, so sharing it between harts moves the value, at most.
unsafe impl<T: ?Sized + Send> Sync for SpinLock<T> {}
// SAFETY: owning the lock is owning the value.
unsafe impl<T: ?Sized + Send> Send for SpinLock<T> {}

/// Proof that the lock is held; unlocks when dropped.
pub struct SpinGuard<'a, T: ?Sized> {
    lock: &'a SpinLock<T>,
    /// A guard stays on the hart that took it.
    _not_send: core::marker::PhantomData<*const ()>,
}

impl<T> SpinLock<T> {
    /// An unlocked lock around `value`.
    pub const fn new(value: T) -> Self {
        Self { locked: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    /// The value, when nobody else can have the lock any more.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> SpinLock<T> {
    /// Waits for the lock and takes it.
    #[inline]
    pub fn lock(&self) -> SpinGuard<'_, T> {
        if self.locked.swap(1, Ordering::Acquire) != 0 {
            contended(&self.locked);
        }
        SpinGuard { lock: self, _not_send: core::marker::PhantomData }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<SpinGuard<'_, T>> {
        if self.locked.swap(1, Ordering::Acquire) != 0 {
            return None;
        }
        Some(SpinGuard { lock: self, _not_send: core::marker::PhantomData })
    }

    /// The value, through the proof that nobody else has the lock.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// Waits for the lock of this word, which was found taken, and takes it.
#[inline(always)]
pub(crate) fn contended(locked: &AtomicU32) {
    let locked = &raw const *locked;
    // SAFETY: it keeps every register but t5 and t6, and goes on here with the lock taken.
    #[cfg(target_os = "none")]
    unsafe {
        core::arch::asm!("call t5, limen_lock_contended", in("t6") locked, lateout("t6") _, out("t5") _);
    }
    #[cfg(not(target_os = "none"))]
    limen_lock_wait(locked);
}

/// Waits for the lock whose word is at `locked`, and takes it.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
#[cold]
extern "C" fn limen_lock_wait(locked: *const AtomicU32) {
    // SAFETY: `contended` has the word borrowed.
    wait_for(unsafe { &*locked }, false, || {});
}

/// The same, with `each_turn` called while the lock is taken, and interrupts let in meanwhile, if `windows`. Only here is anything counted: a lock that is free costs no
/// more for it.
pub(super) fn wait_for(locked: &AtomicU32, windows: bool, mut each_turn: impl FnMut()) {
    let since = crate::time::now();
    loop {
        while locked.load(Ordering::Relaxed) != 0 {
            turn(windows);
            each_turn();
        }
        if locked.swap(1, Ordering::Acquire) == 0 {
            break;
        }
    }
    let counters = &crate::hart::this().counters;
    counters.lock_waits.add(1);
    counters.lock_wait_ticks.add(crate::time::now() - since);
}

/// A turn of a loop that waits for a lock.
pub(super) fn turn(windows: bool) {
    if windows {
        crate::hart::window();
    }
    // The holder may be waiting until this hart has fenced (see `mem::tlb::remote`).
    crate::mem::tlb::serve();
    crate::hart::pause();
}

impl<T: ?Sized> Deref for SpinGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while this hart holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> DerefMut for SpinGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and `&mut self` makes this the only reference through the guard.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T: ?Sized> Drop for SpinGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.locked.store(0, Ordering::Release);
    }
}

impl<T: Default> Default for SpinLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized> fmt::Debug for SpinLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SpinLock")
    }
}
