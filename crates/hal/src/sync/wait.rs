//! Wait queues: who is to be told when a condition may have become true.
//!
//! A queue holds [`Waker`]s, the standard library's own handle for "tell this one", so that pipes, terminals and
//! polls need not know what a task is and their tests can wait with anything. A waiter registers, looks at its
//! condition again, and only then sleeps: a wake-up between the look and the sleep is never lost, because the waker
//! marks the task runnable before it can block.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::Waker;

use super::SpinLock;

/// Names one registration in a [`WaitQueue`], for taking it back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitEntry(u64);

struct Waiters {
    next: u64,
    list: Vec<(u64, Waker)>,
}

/// The waiters of one condition. Waking an empty queue costs one load and takes no lock.
pub struct WaitQueue {
    count: AtomicUsize,
    waiters: SpinLock<Waiters>,
}

impl Default for WaitQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl WaitQueue {
    /// A queue with no waiter.
    pub const fn new() -> Self {
        Self { count: AtomicUsize::new(0), waiters: SpinLock::new(Waiters { next: 0, list: Vec::new() }) }
    }

    /// Registers `waker`; it stays until [`WaitQueue::remove`], however often it is woken. The caller looks at its
    /// condition *after* this.
    pub fn add(&self, waker: &Waker) -> WaitEntry {
        self.add_owned(waker.clone())
    }

    /// As [`WaitQueue::add`], for a waker that the caller does not need itself.
    #[inline]
    pub fn add_owned(&self, waker: Waker) -> WaitEntry {
        let mut waiters = self.waiters.lock();
        let id = waiters.next;
        waiters.next += 1;
        waiters.list.push((id, waker));
        // SeqCst pairs with the load in `wake_all`: either the waker sees this count, or this waiter sees the change.
        self.count.store(waiters.list.len(), Ordering::SeqCst);
        WaitEntry(id)
    }

    /// Takes a registration back; nothing happens if it is gone.
    pub fn remove(&self, entry: WaitEntry) {
        let mut waiters = self.waiters.lock();
        if let Some(at) = waiters.list.iter().position(|(id, _)| *id == entry.0) {
            waiters.list.swap_remove(at);
        }
        self.count.store(waiters.list.len(), Ordering::SeqCst);
    }

    /// Wakes all waiters. Call it after the change that they wait for is visible, with or without its lock held.
    #[inline]
    pub fn wake_all(&self) {
        core::sync::atomic::fence(Ordering::SeqCst);
        if self.count.load(Ordering::SeqCst) != 0 {
            self.wake_slow();
        }
    }

    #[cold]
    fn wake_slow(&self) {
        for (_, waker) in &self.waiters.lock().list {
            waker.wake_by_ref();
        }
    }

    /// True when somebody waits.
    pub fn has_waiters(&self) -> bool {
        self.count.load(Ordering::SeqCst) != 0
    }
}
