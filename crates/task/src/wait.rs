//! How a system call sleeps.
//!
//! A sleeper registers its waker where the change will be announced, looks at its condition, and parks. Whoever changes
//! the condition wakes the queue afterwards. The waker leaves a mark on a thread that has not parked yet, and the park
//! that follows returns at once: a wake-up between the look and the sleep is not lost, and nobody needs a common lock.
//! A sleeper may be woken for nothing; so every sleep is a loop around its condition.

use core::sync::atomic::{AtomicBool, Ordering, fence};

use hal::sync::WaitQueue;
use uapi::Errno;

use crate::sched;
use crate::seam::current;
use crate::timer;

/// What ends a sleep before its condition holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sleep {
    /// Any signal that will be delivered: `ERESTARTSYS`.
    Interruptible,
    /// Only the end of the thread: `ERESTARTSYS`, which nobody will see.
    Killable,
    /// Nothing.
    Deep,
}

/// Waits until `condition` gives a value, woken through `queue`.
///
/// `deadline` is absolute, in clock ticks; `ETIMEDOUT` when it passes. `ERESTARTSYS` when a signal ends the sleep. The
/// condition is tried first without registering. Call without spin locks; `condition` may take them.
#[inline]
pub fn wait_on<T>(
    queue: &WaitQueue,
    sleep: Sleep,
    deadline: Option<u64>,
    mut condition: impl FnMut() -> Option<T>,
) -> Result<T, Errno> {
    match condition() {
        Some(value) => Ok(value),
        None => wait_more(queue, sleep, deadline, condition),
    }
}

/// As [`wait_on`], for a caller that has just tried in vain: registers first.
pub fn wait_more<T>(
    queue: &WaitQueue,
    sleep: Sleep,
    deadline: Option<u64>,
    condition: impl FnMut() -> Option<T>,
) -> Result<T, Errno> {
    let entry = queue.add_owned(current().waker());
    let result = wait(sleep, deadline, condition);
    queue.remove(entry);
    result
}

/// As [`wait_on`], for a caller that has registered [`crate::Current::waker`] itself, on any number of queues
/// (poll(2)), and takes the registrations back afterwards.
pub fn wait<T>(sleep: Sleep, deadline: Option<u64>, mut condition: impl FnMut() -> Option<T>) -> Result<T, Errno> {
    let me = current();
    let mut alarm = None;
    let mut idle_turns = 0;
    // What woke the thread before it registered was for an earlier wait: it would only end the first park for nothing.
    me.sched.forget_wakeups();
    // The registration comes before the look, for every hart: the other half of the fence in `WaitQueue::wake_all`.
    fence(Ordering::SeqCst);
    let result = loop {
        if let Some(value) = condition() {
            break Ok(value);
        }
        let stop = match sleep {
            Sleep::Interruptible => me.interrupted(),
            Sleep::Killable => me.dying(),
            Sleep::Deep => false,
        };
        if stop {
            break Err(Errno::ERESTARTSYS);
        }
        if let Some(deadline) = deadline {
            if hal::time::now() >= deadline {
                break Err(Errno::ETIMEDOUT);
            }
            if alarm.is_none() && deadline != u64::MAX {
                alarm = Some(timer::add(deadline, me.arc()));
            }
        }
        if !sched::park(me, sleep) {
            // Woken before it slept. Once is usual; a condition that wakes its own queue would keep the hart for ever.
            idle_turns += 1;
            if idle_turns > 2 {
                sched::yield_now();
            }
        }
    };
    if let Some(alarm) = alarm {
        timer::cancel(alarm);
    }
    result
}

/// Sleeps until `deadline` (absolute, clock ticks); `ERESTARTSYS` when a signal comes first.
pub fn sleep_until(deadline: u64) -> Result<(), Errno> {
    match wait(Sleep::Interruptible, Some(deadline), || None::<()>) {
        Err(Errno::ETIMEDOUT) | Ok(()) => Ok(()),
        Err(error) => Err(error),
    }
}

/// pause(2): sleeps until a signal comes; always an error.
pub fn pause() -> Errno {
    match wait(Sleep::Interruptible, None, || None::<()>) {
        Err(Errno::ERESTARTSYS) | Ok(()) => Errno::ERESTARTNOHAND,
        Err(error) => error,
    }
}

/// Something that happens once and is waited for.
#[derive(Default)]
pub struct Completion {
    done: AtomicBool,
    queue: WaitQueue,
}

impl Completion {
    /// Not yet happened.
    pub const fn new() -> Self {
        Self { done: AtomicBool::new(false), queue: WaitQueue::new() }
    }

    /// It has happened.
    pub fn complete(&self) {
        self.done.store(true, Ordering::Release);
        self.queue.wake_all();
    }

    /// Waits until it has happened.
    pub fn wait(&self, sleep: Sleep) -> Result<(), Errno> {
        wait_on(&self.queue, sleep, None, || self.done.load(Ordering::Acquire).then_some(()))
    }
}
