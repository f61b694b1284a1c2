//! Timers that run while the process does: setitimer(2) ITIMER_VIRTUAL and ITIMER_PROF, and the limit RLIMIT_CPU.
//!
//! Their clock is the time that the process's threads have run, in clock ticks. A hart that begins to run a thread of a
//! process with such a timer sets its own timer to when the process would be there if nobody else ran; when that comes
//! too early or too late (threads on other harts run too), it is looked at again, or as late as the next switch. The
//! kernel's own share is not measured, so the two interval timers differ in their signal only.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use hal::sync::SpinLock;
use uapi::Siginfo;
use uapi::resource::{RLIM_INFINITY, RLIMIT_CPU};
use uapi::signal::{SI_KERNEL, SIGKILL, SIGPROF, SIGVTALRM, SIGXCPU};

use crate::process::Process;
use crate::seam::current;
use crate::signal::send_process;
use crate::timer;

/// Which timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CpuTimer {
    /// ITIMER_VIRTUAL: SIGVTALRM.
    Virtual = 0,
    /// ITIMER_PROF: SIGPROF.
    Prof = 1,
}

/// The limit's own timer comes behind the two.
const LIMIT: usize = 2;
const NEVER: u64 = u64::MAX;

/// A timer of a process's clock.
#[derive(Clone, Copy)]
struct Setting {
    /// Time run at which it fires; [`NEVER`].
    deadline: u64,
    /// 0: once.
    interval: u64,
}

impl Setting {
    const OFF: Self = Self { deadline: NEVER, interval: 0 };

    /// True when it fires at `used`, and then goes on to the first time after that.
    fn fire(&mut self, used: u64) -> bool {
        if used < self.deadline {
            return false;
        }
        self.deadline = match self.interval {
            0 => NEVER,
            interval => {
                let missed = (used - self.deadline) / interval;
                self.deadline.saturating_add(interval.saturating_mul(missed + 1))
            }
        };
        true
    }
}

/// A process's timers.
pub(crate) struct CpuTimers {
    settings: SpinLock<[Setting; 3]>,
    /// The first deadline: what a switch looks at.
    next: AtomicU64,
}

impl CpuTimers {
    pub const fn new() -> Self {
        Self { settings: SpinLock::new([Setting::OFF; 3]), next: AtomicU64::new(NEVER) }
    }

    fn change<R>(&self, change: impl FnOnce(&mut [Setting; 3]) -> R) -> R {
        let mut settings = self.settings.lock();
        let result = change(&mut settings);
        let next = settings.iter().map(|s| s.deadline).min().unwrap_or(NEVER);
        self.next.store(next, Ordering::Release);
        result
    }
}

/// Sets this hart's timer for the process whose thread it runs, if the process has a timer.
#[inline]
pub(crate) fn watch(process: &Process, now: u64) {
    let next = process.cpu_timers.next.load(Ordering::Acquire);
    if next != NEVER {
        let left = next.saturating_sub(process.time_run());
        timer::arm(now.saturating_add(left));
    }
}

/// The timer interrupt came while a thread of the process ran, as far as one knows: fires what is due.
pub(crate) fn expire(process: &Arc<Process>) {
    let used = process.time_run();
    let fired = process.cpu_timers.change(|settings| settings.each_mut().map(|setting| setting.fire(used)));
    let limit = process.limits(RLIMIT_CPU).unwrap_or_default();
    let over = limit.rlim_max != RLIM_INFINITY && hal::time::ns(used) / 1_000_000_000 >= limit.rlim_max;
    let last = if over { SIGKILL } else { SIGXCPU };
    for (fired, signal) in fired.into_iter().zip([SIGVTALRM, SIGPROF, last]) {
        if fired {
            // A standard signal is never refused.
            let _ = send_process(process, &Siginfo::plain(signal, SI_KERNEL));
        }
    }
    watch(process, hal::time::now());
}

impl Process {
    pub(crate) fn has_cpu_timer(&self) -> bool {
        self.cpu_timers.next.load(Ordering::Relaxed) != NEVER
    }

    /// Time left and interval of a timer, in clock ticks; 0 and 0 when it does not run.
    pub fn cpu_timer(&self, which: CpuTimer) -> (u64, u64) {
        let used = self.time_run();
        let setting = self.cpu_timers.settings.lock()[which as usize];
        match setting.deadline {
            NEVER => (0, 0),
            deadline => (deadline.saturating_sub(used).max(1), setting.interval),
        }
    }

    /// Sets a timer of the running process to fire after `value` clock ticks of running and then every `interval` (0:
    /// once); `value` 0 stops it. Gives what was left, as [`Process::cpu_timer`].
    pub fn set_cpu_timer(&self, which: CpuTimer, value: u64, interval: u64) -> (u64, u64) {
        let old = self.cpu_timer(which);
        let deadline = if value == 0 { NEVER } else { self.time_run().saturating_add(value) };
        self.cpu_timers.change(|settings| settings[which as usize] = Setting { deadline, interval });
        self.watch_everywhere();
        old
    }

    /// Follows a change of RLIMIT_CPU: SIGXCPU at the soft limit and every second after it, SIGKILL at the hard one.
    pub(crate) fn follow_cpu_limit(&self) {
        let soft = self.limit(RLIMIT_CPU);
        let second = hal::time::ticks_per_second();
        let deadline = if soft == RLIM_INFINITY { NEVER } else { soft.max(1).saturating_mul(second) };
        self.cpu_timers.change(|settings| settings[LIMIT] = Setting { deadline, interval: second });
        self.watch_everywhere();
    }

    /// Makes every hart that runs a thread of this process look at its timers.
    fn watch_everywhere(&self) {
        if core::ptr::eq(self, &raw const *current().process) {
            watch(self, hal::time::now());
        }
        self.for_each_thread(|thread| thread.look_soon());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_fires_once_or_goes_on_without_catching_up() {
        let mut once = Setting { deadline: 100, interval: 0 };
        assert!(!once.fire(99) && once.fire(130) && !once.fire(u64::MAX - 1));
        let mut again = Setting { deadline: 100, interval: 10 };
        assert!(again.fire(135));
        assert_eq!(again.deadline, 140);
        assert!(!again.fire(139) && again.fire(140));
        assert_eq!(again.deadline, 150);
    }
}
