//! The fair queue of one hart: who is runnable, and who has had least of the hart.
//!
//! Each entry has a *virtual time*: the time it has run, scaled by its weight (sched(7), nice(2)), so that equal virtual
//! times mean fair shares. The entry with the smallest goes first. The queue is a sorted deque: a preempted task goes to
//! the back and a woken one to the front, both cheap ends, and nothing is allocated once the deque is as long as there
//! are tasks ([`RunQueue::reserve`] when a task is made).
//!
//! Not chosen: a heap (no cheap removal for affinity and stealing), a tree (an allocation for each wake-up).

use alloc::collections::VecDeque;

/// Virtual time in 1/1024 timer ticks of a nice-0 task.
pub type Virtual = u64;

/// Where a hart's time starts: above the fixed keys of real-time threads.
const START: Virtual = 1 << 32;

/// 1024 × 1024 / weight for nice −20 … 19; each step is a share of about 10 % (nice 0: 1024).
const SCALE: [u32; 40] = [
    12, 15, 19, 23, 29, 36, 45, 56, 70, 88, 110, 137, 172, 215, 269, 336, 419, 526, 655, 820, 1024, 1279, 1601, 1993,
    2479, 3130, 3855, 4877, 6096, 7654, 9533, 11916, 14980, 18725, 23302, 29127, 36158, 45590, 58254, 69905,
];

/// The virtual time that a tick of running costs at `nice`.
pub fn scale(nice: i8) -> u32 {
    SCALE[(nice.clamp(-20, 19) + 20) as usize]
}

/// Where a woken task starts: at its own virtual time, but not so far back that it could starve the others for what it
/// slept, nor so far ahead (it comes from another hart's clock) that it would starve itself.
#[inline]
pub fn place(own: Virtual, floor: Virtual, bonus: Virtual) -> Virtual {
    own.clamp(floor.saturating_sub(bonus), floor.saturating_add(bonus))
}

/// The runnable tasks of a hart but the one that runs. The first lies outside the deque: while two tasks hand over to
/// each other, the deque is not touched.
pub struct RunQueue<T> {
    /// None: the queue is empty.
    first: Option<(Virtual, T)>,
    rest: VecDeque<(Virtual, T)>,
    floor: Virtual,
}

impl<T> Default for RunQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> RunQueue<T> {
    /// An empty queue.
    pub const fn new() -> Self {
        Self { first: None, rest: VecDeque::new(), floor: START }
    }

    /// Makes room for `total` entries; false when there is no memory.
    pub fn reserve(&mut self, total: usize) -> bool {
        self.rest.try_reserve(total.saturating_sub(self.rest.len())).is_ok()
    }

    /// Runnable tasks waiting.
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    /// True when nobody waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The virtual time that this hart has reached; it never goes back.
    #[inline]
    pub fn floor(&self) -> Virtual {
        self.floor
    }

    /// Moves the hart's time on to `at`, if it is behind.
    #[inline]
    pub fn raise_floor(&mut self, at: Virtual) {
        self.floor = self.floor.max(at);
    }

    /// The smallest virtual time that waits.
    #[inline]
    pub fn first(&self) -> Option<Virtual> {
        self.first.as_ref().map(|(at, _)| *at)
    }

    /// Adds a task, behind all with the same virtual time.
    #[inline]
    pub fn push(&mut self, at: Virtual, task: T) {
        if self.first.is_none() {
            self.first = Some((at, task));
        } else {
            self.push_behind(at, task);
        }
    }

    fn push_behind(&mut self, at: Virtual, task: T) {
        match &mut self.first {
            Some(first) if at < first.0 => {
                let old = core::mem::replace(first, (at, task));
                self.rest.push_front(old);
            }
            _ if self.rest.back().is_none_or(|(last, _)| *last <= at) => self.rest.push_back((at, task)),
            _ => {
                let index = self.rest.partition_point(|(other, _)| *other <= at);
                self.rest.insert(index, (at, task));
            }
        }
    }

    /// Takes the task with the smallest virtual time, and moves the hart's time on to it.
    #[inline]
    pub fn pop(&mut self) -> Option<(Virtual, T)> {
        let (at, task) = self.first.take()?;
        if !self.rest.is_empty() {
            self.first = self.rest.pop_front();
        }
        self.raise_floor(at);
        Some((at, task))
    }

    /// Takes the last task that `wanted` accepts: the one that this hart would serve latest.
    pub fn take_last(&mut self, mut wanted: impl FnMut(&T) -> bool) -> Option<T> {
        if let Some(index) = self.rest.iter().rposition(|(_, task)| wanted(task)) {
            return self.rest.remove(index).map(|(_, task)| task);
        }
        let first = self.first.take_if(|(_, task)| wanted(task))?;
        self.first = self.rest.pop_front();
        Some(first.1)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_nice_task_gets_its_share() {
        // Two tasks at nice 0 and 5 for a long time, one tick each turn.
        let mut q = RunQueue::new();
        q.push(0, (0i8, 0u64));
        q.push(0, (5i8, 0u64));
        let mut ran = [0u64; 2];
        for _ in 0..10_000 {
            let (at, (nice, _)) = q.pop().unwrap();
            ran[usize::from(nice == 5)] += 1;
            q.push(at + u64::from(scale(nice)), (nice, 0));
        }
        let ratio = ran[0] as f64 / ran[1] as f64;
        assert!((2.9..3.2).contains(&ratio), "1024/335, got {ratio}");
    }

    #[test]
    fn a_sleeper_is_early_but_not_for_ever() {
        assert_eq!(place(0, 1_000_000, 4000), 996_000);
        assert_eq!(place(999_999, 1_000_000, 4000), 999_999);
        assert_eq!(place(u64::MAX, 10, 4000), 4010);
        assert_eq!(place(0, 10, 4000), 0);
    }

    proptest! {
        #[test]
        fn pops_in_order_and_first_come_first_served(times in prop::collection::vec(0u64..50, 0..100)) {
            let mut q = RunQueue::new();
            for (i, at) in times.iter().enumerate() {
                q.push(*at, i);
            }
            let mut want: std::vec::Vec<_> = times.iter().copied().enumerate().map(|(i, at)| (at, i)).collect();
            want.sort();
            prop_assert_eq!(q.len(), want.len());
            let stolen = q.take_last(|i| i % 3 == 0);
            prop_assert_eq!(stolen, want.iter().rev().map(|w| w.1).find(|i| i % 3 == 0));
            want.retain(|w| Some(w.1) != stolen);
            let got: std::vec::Vec<_> = std::iter::from_fn(|| q.pop()).collect();
            prop_assert_eq!(got, want);
        }
    }
}
