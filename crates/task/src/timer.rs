//! Timers: what happens at a time.
//!
//! Each hart has a queue of its own, ordered by deadline, and serves it from its timer interrupt; a timer lives on the
//! hart that set it. The hart's clock is set to the earlier of the first timer and the scheduler's tick, and not set at
//! all when there is neither.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use hal::hart::{MAX_HARTS, PerHart};
use hal::sync::SpinLock;

/// What a timer does. Runs in the timer interrupt with no lock held; it must not sleep.
pub trait Expire: Send + Sync {
    /// The time has come.
    fn expire(self: Arc<Self>);
}

/// Names a timer that was set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimerId {
    hart: usize,
    deadline: u64,
    number: u64,
}

/// Entries in the order of their deadlines; first come, first served among equals.
pub struct TimerQueue<T> {
    entries: BTreeMap<(u64, u64), T>,
    numbers: u64,
}

impl<T> Default for TimerQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> TimerQueue<T> {
    /// An empty queue.
    pub const fn new() -> Self {
        Self { entries: BTreeMap::new(), numbers: 0 }
    }

    /// Adds an entry; the number tells it from others with its deadline.
    pub fn add(&mut self, deadline: u64, value: T) -> u64 {
        self.numbers += 1;
        self.entries.insert((deadline, self.numbers), value);
        self.numbers
    }

    /// Takes an entry out again; None when it has expired.
    pub fn remove(&mut self, deadline: u64, number: u64) -> Option<T> {
        self.entries.remove(&(deadline, number))
    }

    /// Takes the first entry whose deadline is not after `now`.
    pub fn expired(&mut self, now: u64) -> Option<T> {
        let entry = self.entries.first_entry()?;
        if entry.key().0 > now { None } else { Some(entry.remove()) }
    }

    /// The first deadline; `u64::MAX` when there is none.
    pub fn next(&self) -> u64 {
        self.entries.first_key_value().map_or(u64::MAX, |(key, _)| key.0)
    }
}

struct Clock {
    queue: SpinLock<TimerQueue<Arc<dyn Expire>>>,
    /// First deadline of the queue.
    next: AtomicU64,
    /// What the hart's timer is set to.
    set: AtomicU64,
}

static CLOCKS: PerHart<Clock> = PerHart::new(
    [const {
        Clock { queue: SpinLock::new(TimerQueue::new()), next: AtomicU64::new(u64::MAX), set: AtomicU64::new(u64::MAX) }
    }; MAX_HARTS],
);

/// Calls `target.expire()` on this hart once the clock has reached `deadline` (in ticks).
pub fn add(deadline: u64, target: Arc<dyn Expire>) -> TimerId {
    let clock = CLOCKS.get();
    let mut queue = clock.queue.lock();
    let number = queue.add(deadline, target);
    clock.next.store(queue.next(), Ordering::Relaxed);
    drop(queue);
    arm(deadline);
    TimerId { hart: hal::hart::id(), deadline, number }
}

/// Takes a timer back; false when it has expired (and may be running).
pub fn cancel(id: TimerId) -> bool {
    let clock = CLOCKS.at(id.hart);
    let mut queue = clock.queue.lock();
    let target = queue.remove(id.deadline, id.number);
    clock.next.store(queue.next(), Ordering::Relaxed);
    drop(queue);
    // The hart's timer is left as it is: one interrupt for nothing costs less than setting it anew each time.
    target.is_some()
}

/// Makes this hart's timer fire no later than `deadline`.
#[inline]
pub(crate) fn arm(deadline: u64) {
    let clock = CLOCKS.get();
    if deadline < clock.set.load(Ordering::Relaxed) {
        clock.set.store(deadline, Ordering::Relaxed);
        hal::time::set_timer(Some(deadline));
    }
}

/// Serves what has expired; the timer interrupt has switched the hart's timer off. The scheduler arms its tick after
/// this.
pub(crate) fn expire(now: u64) {
    let clock = CLOCKS.get();
    clock.set.store(u64::MAX, Ordering::Relaxed);
    while clock.next.load(Ordering::Relaxed) <= now {
        let mut queue = clock.queue.lock();
        let target = queue.expired(now);
        clock.next.store(queue.next(), Ordering::Relaxed);
        drop(queue);
        if let Some(target) = target {
            target.expire();
        }
    }
    let next = clock.next.load(Ordering::Relaxed);
    if next != u64::MAX {
        arm(next);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    proptest! {
        /// Whatever is added and taken back, the rest expires in order, each exactly once, never early.
        #[test]
        fn expires_in_order(times in prop::collection::vec((0u64..100, any::<bool>()), 0..100)) {
            let mut queue = TimerQueue::new();
            let mut want = Vec::new();
            for (i, (deadline, keep)) in times.iter().enumerate() {
                let number = queue.add(*deadline, i);
                if *keep {
                    want.push((*deadline, i));
                } else {
                    prop_assert_eq!(queue.remove(*deadline, number), Some(i));
                    prop_assert_eq!(queue.remove(*deadline, number), None);
                }
            }
            want.sort();
            let mut got = Vec::new();
            for now in 0..=100 {
                prop_assert!(queue.next() >= now);
                while let Some(i) = queue.expired(now) {
                    got.push((now, i));
                }
            }
            prop_assert_eq!(got, want);
            prop_assert_eq!(queue.next(), u64::MAX);
        }
    }
}
