//! What the scheduler keeps for a thread.

use core::sync::atomic::{AtomicI8, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use uapi::Errno;
use uapi::sched::{SCHED_BATCH, SCHED_FIFO, SCHED_IDLE, SCHED_NORMAL, SCHED_RR};

use super::queue::{Virtual, scale};
use crate::wait::Sleep;

/// Runs or waits for a hart.
pub(super) const RUNNING: u32 = 0;
/// The same, and was woken meanwhile: its next park returns at once.
pub(super) const NOTIFIED: u32 = 1;
/// Sleeps, or is on its way there: whoever takes it out of this state puts it into a queue.
pub(super) const PARKED: u32 = 2;
/// Will never run again.
pub(super) const DEAD: u32 = 3;

/// The scheduler's view of a thread.
pub struct Sched {
    pub(super) state: AtomicU32,
    pub(super) vruntime: AtomicU64,
    /// When it was last charged for running, in clock ticks.
    pub(super) since: AtomicU64,
    time: AtomicU64,
    nice: AtomicI8,
    /// Virtual time a tick; 0 for real-time threads, whose place in a queue is fixed.
    scale: AtomicU32,
    policy: AtomicU32,
    priority: AtomicU32,
    /// The harts it may run on.
    pub(super) affinity: AtomicUsize,
    /// The hart it runs on, or ran on last.
    pub(super) hart: AtomicUsize,
    /// The letter for /proc/PID/stat while parked.
    pub(super) letter: AtomicU8,
}

impl Sched {
    /// A thread that is about to be started, with its parent's parameters.
    pub fn new(parent: Option<&Sched>) -> Self {
        let load = |f: fn(&Sched) -> u64, default| parent.map_or(default, f);
        Self {
            state: AtomicU32::new(PARKED),
            vruntime: AtomicU64::new(load(|s| s.vruntime.load(Ordering::Relaxed), 0)),
            since: AtomicU64::new(0),
            time: AtomicU64::new(0),
            nice: AtomicI8::new(parent.map_or(0, Sched::nice)),
            scale: AtomicU32::new(parent.map_or_else(|| scale(0), |s| s.scale.load(Ordering::Relaxed))),
            policy: AtomicU32::new(parent.map_or(SCHED_NORMAL, |s| s.policy().0)),
            priority: AtomicU32::new(parent.map_or(0, |s| s.policy().1)),
            affinity: AtomicUsize::new(parent.map_or(usize::MAX, Sched::affinity)),
            hart: AtomicUsize::new(hal::hart::id()),
            letter: AtomicU8::new(b'S'),
        }
    }

    /// An idle thread's: running, and not part of any queue.
    pub(super) fn running(&self) {
        self.state.store(RUNNING, Ordering::Relaxed);
        self.hart.store(hal::hart::id(), Ordering::Relaxed);
    }

    /// Charges the running thread for the time up to `now`; gives its virtual time.
    #[inline]
    pub(super) fn charge(&self, now: u64) -> Virtual {
        let ticks = now.saturating_sub(self.since.load(Ordering::Relaxed));
        self.since.store(now, Ordering::Relaxed);
        self.time.store(self.time.load(Ordering::Relaxed) + ticks, Ordering::Relaxed);
        let cost = ticks.wrapping_mul(u64::from(self.scale.load(Ordering::Relaxed)));
        let vruntime = self.vruntime.load(Ordering::Relaxed).wrapping_add(cost);
        self.vruntime.store(vruntime, Ordering::Relaxed);
        vruntime
    }

    pub(super) fn is_realtime(&self) -> bool {
        matches!(self.policy.load(Ordering::Relaxed), SCHED_FIFO | SCHED_RR)
    }

    /// Forgets that the running thread was woken: it is about to look at whatever it waits for.
    #[inline]
    pub(crate) fn forget_wakeups(&self) {
        if self.state.load(Ordering::Relaxed) == NOTIFIED {
            self.state.swap(RUNNING, Ordering::AcqRel);
        }
    }

    /// The virtual time at which a woken thread is queued on a hart whose time is `floor`.
    #[inline]
    pub(super) fn place(&self, floor: Virtual, bonus: Virtual) -> Virtual {
        let at = if self.is_realtime() {
            // Before everybody else's virtual time, which starts above this.
            99 - u64::from(self.priority.load(Ordering::Relaxed).min(99))
        } else {
            super::queue::place(self.vruntime.load(Ordering::Relaxed), floor, bonus)
        };
        self.vruntime.store(at, Ordering::Relaxed);
        at
    }

    pub(super) fn sleeping(&self, sleep: Sleep) {
        let letter = if sleep == Sleep::Interruptible { b'S' } else { b'D' };
        self.letter.store(letter, Ordering::Relaxed);
    }

    /// Clock ticks it has run, those since it was last charged left out.
    pub fn time_run(&self) -> u64 {
        self.time.load(Ordering::Relaxed)
    }

    /// Charges the running thread up to now, before its time is read for the last time.
    pub(crate) fn settle(&self) {
        self.charge(hal::time::now());
    }

    /// The letter of /proc/PID/stat: R, S or D (stopped and dead threads are the process's affair).
    pub fn letter(&self) -> u8 {
        if self.state.load(Ordering::Relaxed) == PARKED { self.letter.load(Ordering::Relaxed) } else { b'R' }
    }

    /// The hart it runs on, or ran on last.
    pub fn hart(&self) -> usize {
        self.hart.load(Ordering::Relaxed)
    }

    /// Nice value, -20 … 19.
    pub fn nice(&self) -> i8 {
        self.nice.load(Ordering::Relaxed)
    }

    /// Sets the nice value; what is out of range is clamped. Permission is the caller's affair.
    pub fn set_nice(&self, nice: i32) {
        self.nice.store(nice.clamp(-20, 19) as i8, Ordering::Relaxed);
        self.rescale();
    }

    /// Policy (`SCHED_*`) and static priority.
    pub fn policy(&self) -> (u32, u32) {
        (self.policy.load(Ordering::Relaxed), self.priority.load(Ordering::Relaxed))
    }

    /// Sets policy and priority from the thread's next wake-up on: `EINVAL` for a policy that is not there, or a priority
    /// that does not fit it.
    pub fn set_policy(&self, policy: u32, priority: u32) -> Result<(), Errno> {
        let fits = match policy {
            SCHED_NORMAL | SCHED_BATCH | SCHED_IDLE => priority == 0,
            SCHED_FIFO | SCHED_RR => (1..=99).contains(&priority),
            _ => false,
        };
        if !fits {
            return Err(Errno::EINVAL);
        }
        self.policy.store(policy, Ordering::Relaxed);
        self.priority.store(priority, Ordering::Relaxed);
        self.rescale();
        Ok(())
    }

    fn rescale(&self) {
        let scale = if self.is_realtime() { 0 } else { scale(self.nice()) };
        self.scale.store(scale, Ordering::Relaxed);
    }

    /// The harts it may run on, a bit each.
    pub fn affinity(&self) -> usize {
        self.affinity.load(Ordering::Relaxed)
    }
}
