//! setitimer(2) ITIMER_REAL and alarm(2): SIGALRM after a time, once or again and again.

use alloc::sync::Arc;

use hal::sync::SpinLock;
use uapi::Siginfo;
use uapi::signal::{SI_KERNEL, SIGALRM};

use crate::process::Process;
use crate::signal::send_process;
use crate::timer::{self, Expire, TimerId};

#[derive(Default)]
struct Setting {
    /// When it fires next; 0: never.
    deadline: u64,
    interval: u64,
    timer: Option<TimerId>,
}

/// A process's interval timer.
#[derive(Default)]
pub struct Itimer(SpinLock<Setting>);

impl Itimer {
    /// Not running.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Time left and interval, in clock ticks; 0 and 0 when it does not run.
    pub fn get(&self) -> (u64, u64) {
        let setting = self.0.lock();
        match setting.deadline {
            0 => (0, 0),
            // A timer that is due and not yet served has a little left, not nothing: 0 means that it does not run.
            deadline => (deadline.saturating_sub(hal::time::now()).max(1), setting.interval),
        }
    }

    pub(crate) fn disarm(&self) {
        let mut setting = self.0.lock();
        let timer = setting.timer.take();
        setting.deadline = 0;
        drop(setting);
        if let Some(timer) = timer {
            timer::cancel(timer);
        }
    }
}

/// The first time after `now` of a timer that was due at `deadline`: missed ones are not made up for.
fn next(deadline: u64, interval: u64, now: u64) -> u64 {
    let missed = now.saturating_sub(deadline) / interval.max(1);
    deadline.saturating_add(interval.saturating_mul(missed + 1))
}

impl Process {
    /// Sets the timer to fire after `value` clock ticks and then every `interval` (0: once); `value` 0 stops it. Gives
    /// what was left, as [`Itimer::get`].
    pub fn set_itimer(self: &Arc<Self>, value: u64, interval: u64) -> (u64, u64) {
        let old = self.itimer.get();
        self.itimer.disarm();
        if value != 0 {
            let deadline = hal::time::now().saturating_add(value);
            let mut setting = self.itimer.0.lock();
            let timer = Some(timer::add(deadline, self.clone()));
            *setting = Setting { deadline, interval, timer };
        }
        old
    }
}

impl Expire for Process {
    fn expire(self: Arc<Self>) {
        let now = hal::time::now();
        {
            let mut setting = self.itimer.0.lock();
            if setting.deadline == 0 || setting.deadline > now {
                return;
            }
            if setting.interval == 0 {
                *setting = Setting::default();
            } else {
                setting.deadline = next(setting.deadline, setting.interval, now);
                setting.timer = Some(timer::add(setting.deadline, self.clone()));
            }
        }
        // A standard signal is never refused.
        let _ = send_process(&self, &Siginfo::plain(SIGALRM, SI_KERNEL));
    }
}

#[cfg(test)]
mod tests {
    use super::next;

    #[test]
    fn missed_expirations_are_skipped() {
        assert_eq!(next(100, 10, 100), 110);
        assert_eq!(next(100, 10, 109), 110);
        assert_eq!(next(100, 10, 135), 140);
        assert_eq!(next(100, u64::MAX, 135), u64::MAX);
    }
}
