//! A lock for many readers that never meet.
//!
//! Each hart has a spin lock of its own, on a cache line of its own. Who reads takes that of the hart it runs on: one
//! atomic operation on a line that no other hart writes to, so that readers on any number of harts do not even slow
//! each other down. Who writes takes all of them, in order. (Linux had it as *brlock*.)
//!
//! With a hart's lock goes something of its own, which its reader may change: counts, and where it found things last.

use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::spin::{contended, turn, wait_for};
use crate::hart;

/// Turns of waiting after which a writer asks the others to let it go first.
const PATIENCE: u32 = 1000;

/// A value that is read on all harts and seldom written, and an `L` for each hart. Held by whoever the guards say, never
/// over a switch of tasks; a reader takes no other lock of this kind.
pub struct ReadersLock<T, L> {
    value: UnsafeCell<T>,
    /// The hart, counted from 1, on which somebody has waited to write for long; 0 for none. Others who want to write
    /// wait until it has.
    starved: AtomicU32,
    harts: Parts<L>,
}

/// What a lock needs for each hart, allocated.
pub struct Parts<L>(Vec<Local<L>>);

/// One hart's part.
#[derive(Default)]
#[repr(align(64))]
struct Local<L> {
    /// 1 while somebody has it.
    locked: AtomicU32,
    /// See [`ReadersLock::figures`].
    figure: AtomicUsize,
    value: UnsafeCell<L>,
}

// SAFETY: readers on several harts have `&T` at once, hence `T: Sync`; a writer has the only `&mut T`, on whichever
// hart, hence `Send`. An `L` is reached by one hart at a time.
unsafe impl<T: Send + Sync, L: Send> Sync for ReadersLock<T, L> {}
// SAFETY: owning the lock is owning the values.
unsafe impl<T: Send, L: Send> Send for ReadersLock<T, L> {}

/// Proof that this hart's part is locked.
pub struct ReadGuard<'a, T, L> {
    lock: &'a ReadersLock<T, L>,
    local: &'a Local<L>,
    /// A guard stays on the hart that took it.
    _not_send: PhantomData<*const ()>,
}

/// Proof that all parts are locked.
pub struct WriteGuard<'a, T, L> {
    lock: &'a ReadersLock<T, L>,
    _not_send: PhantomData<*const ()>,
}

impl<L: Default> Parts<L> {
    /// A part for each hart that there is. `None` when there is no memory.
    pub fn new() -> Option<Self> {
        let count = hart::count();
        let mut parts = Vec::new();
        parts.try_reserve_exact(count).ok()?;
        parts.extend((0..count).map(|_| Local::default()));
        Some(Self(parts))
    }
}

impl<T, L> ReadersLock<T, L> {
    /// An unlocked lock around `value`.
    #[inline]
    pub const fn new(value: T, parts: Parts<L>) -> Self {
        Self { value: UnsafeCell::new(value), starved: AtomicU32::new(0), harts: parts }
    }

    /// Waits for this hart's part and takes it. With `windows` interrupts are let in while it waits, which may be for as
    /// long as a large program's fork takes: the caller holds no lock that a handler takes ([`hart::window`]).
    #[inline]
    pub fn read(&self, windows: bool) -> ReadGuard<'_, T, L> {
        let local = &self.harts.0[hart::id()];
        if local.locked.swap(1, Ordering::Acquire) != 0 {
            if windows {
                wait_open(&local.locked);
            } else {
                contended(&local.locked);
            }
        }
        ReadGuard { lock: self, local, _not_send: PhantomData }
    }

    /// The figure that each hart's reader last [told](ReadGuard::tell): for those who cannot wait for the lock.
    pub fn figures(&self) -> impl Iterator<Item = usize> {
        self.harts.0.iter().map(|local| local.figure.load(Ordering::Relaxed))
    }

    /// Waits for all parts and takes them; `windows` as in [`ReadersLock::read`].
    #[inline]
    pub fn write(&self, windows: bool) -> WriteGuard<'_, T, L> {
        if self.starved.load(Ordering::Relaxed) != 0 {
            self.give_way(windows);
        }
        for local in &self.harts.0 {
            if local.locked.swap(1, Ordering::Acquire) != 0 {
                self.wait(&local.locked, windows);
            }
        }
        WriteGuard { lock: self, _not_send: PhantomData }
    }

    /// Waits until the one who has waited for long has had its turn.
    #[cold]
    fn give_way(&self, windows: bool) {
        while self.starved.load(Ordering::Relaxed) != 0 {
            turn(windows);
        }
    }

    /// Waits for a part, to write. Whoever takes a free lock first has it, which is nearly always fair enough, and
    /// keeps the lock going when the host lets some harts rest; but a few who write in a loop could keep out another
    /// for seconds. Hence patience ends.
    #[cold]
    fn wait(&self, locked: &AtomicU32, windows: bool) {
        let me = hart::id() as u32 + 1;
        let mut turns = 0u32;
        wait_for(locked, windows, || {
            turns = turns.saturating_add(1);
            if turns == PATIENCE {
                let _ = self.starved.compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed);
            }
        });
        if turns >= PATIENCE {
            let _ = self.starved.compare_exchange(me, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// The value, through the proof that nobody else has the lock.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// Waits for a part, to read, and takes it.
#[cold]
#[inline(never)]
fn wait_open(locked: &AtomicU32) {
    wait_for(locked, true, || {});
}

impl<T, L> ReadGuard<'_, T, L> {
    /// The value and what is this hart's.
    #[inline]
    pub fn parts(&mut self) -> (&T, &mut L) {
        // SAFETY: a writer has all parts, and this one is taken, so there is none: the value is only read. The part is
        // this guard's alone, which is borrowed as long as the reference lives.
        unsafe { (&*self.lock.value.get(), &mut *self.local.value.get()) }
    }

    /// Lets everybody know this hart's figure.
    #[inline]
    pub fn tell(&self, figure: usize) {
        self.local.figure.store(figure, Ordering::Relaxed);
    }
}

impl<T, L> Drop for ReadGuard<'_, T, L> {
    #[inline]
    fn drop(&mut self) {
        self.local.locked.store(0, Ordering::Release);
    }
}

impl<T, L> WriteGuard<'_, T, L> {
    /// The value, and what is each hart's, with its figure.
    #[inline]
    pub fn parts(&mut self) -> (&mut T, impl Iterator<Item = (&mut L, &AtomicUsize)>) {
        // SAFETY: all parts are taken, so nobody else has a reference to anything here. Each part is handed out once.
        let locals = self.lock.harts.0.iter().map(|local| (unsafe { &mut *local.value.get() }, &local.figure));
        // SAFETY: as above; the value lies apart from the parts.
        (unsafe { &mut *self.lock.value.get() }, locals)
    }
}

impl<T, L> Deref for WriteGuard<'_, T, L> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: all parts are taken, so there is no other reference but through this guard.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T, L> DerefMut for WriteGuard<'_, T, L> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and `&mut self` makes this the only reference through the guard.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T, L> Drop for WriteGuard<'_, T, L> {
    #[inline]
    fn drop(&mut self) {
        for local in &self.lock.harts.0 {
            local.locked.store(0, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread::scope;

    use super::*;
    use crate::mem::host::arena;

    /// Readers on four harts see both halves of the value equal, whatever two writers do, and lose no count.
    #[test]
    fn readers_see_whole_values_and_keep_their_counts() {
        let _turn = arena();
        hart::host::set_count(4);
        let lock = ReadersLock::<(u64, u64), u64>::new((0, 0), Parts::new().unwrap());
        scope(|scope| {
            for index in 0..4 {
                let lock = &lock;
                scope.spawn(move || {
                    hart::host::on(index, || {
                        for turn in 0..5000 {
                            if turn % 5 == 0 && index < 2 {
                                let mut guard = lock.write(false);
                                guard.0 += 1;
                                guard.1 += 1;
                            } else {
                                let mut guard = lock.read(true);
                                let (value, mine) = guard.parts();
                                assert_eq!(value.0, value.1);
                                *mine += 1;
                                let figure = *mine as usize;
                                guard.tell(figure);
                            }
                        }
                    });
                });
            }
        });
        assert_eq!(lock.figures().collect::<std::vec::Vec<_>>(), [4000, 4000, 5000, 5000]);
        let mut guard = lock.write(false);
        let (value, counts) = guard.parts();
        assert_eq!((value.0, value.1), (2000, 2000));
        assert_eq!(counts.map(|(count, _)| *count).collect::<std::vec::Vec<_>>(), [4000, 4000, 5000, 5000]);
        drop(guard);
        hart::host::set_count(1);
    }

    /// Who has waited for long gets the lock although others take it all the time.
    #[test]
    fn nobody_waits_for_ever() {
        let _turn = arena();
        hart::host::set_count(3);
        let lock = ReadersLock::<u32, ()>::new(0, Parts::new().unwrap());
        lock.starved.store(3, Ordering::Relaxed);
        scope(|scope| {
            let other = scope.spawn(|| hart::host::on(1, || *lock.write(false) += 1));
            hart::host::on(0, || drop(lock.read(true)));
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!other.is_finished());
            lock.starved.store(0, Ordering::Relaxed);
        });
        assert_eq!(*lock.write(false), 1);
        hart::host::set_count(1);
    }
}
