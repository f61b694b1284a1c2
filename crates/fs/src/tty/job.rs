//! Job control: which processes a terminal belongs to, and whom it stops.

use alloc::sync::Arc;

use hal::sync::Once;
use uapi::signal::{SIGCONT, SIGHUP, SIGTTIN};
use uapi::{Errno, Result};

use super::{TTYS, Tty};

/// The numbers of the calling process that job control goes by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobIds {
    /// Process.
    pub pid: u32,
    /// Process group.
    pub pgid: u32,
    /// Session; its leader has the same number.
    pub sid: u32,
}

/// What a terminal needs of the process model. Called without a lock of this crate held.
pub trait TtySignals: Send + Sync {
    /// The caller's numbers.
    fn current(&self) -> JobIds;

    /// Sends a signal to every process of a group, as the kernel.
    fn signal_group(&self, pgid: u32, signal: u32);

    /// Whether the caller blocks or ignores this signal.
    fn is_ignored(&self, signal: u32) -> bool;

    /// Whether the caller's process group is orphaned: nobody is there to continue it.
    fn is_orphaned(&self) -> bool;

    /// The session of a process group; `None` if there is no such group.
    fn session_of_group(&self, pgid: u32) -> Option<u32>;

    /// Whether the caller may take a terminal from another session (`CAP_SYS_ADMIN`), or put input in its mouth.
    fn is_privileged(&self) -> bool;
}

static SIGNALS: Once<&'static dyn TtySignals> = Once::new();

/// Sets the process model. Without one there is no job control.
pub fn set_signals(signals: &'static dyn TtySignals) {
    let _ = SIGNALS.set(signals);
}

pub(super) fn signals() -> Option<&'static dyn TtySignals> {
    SIGNALS.get().copied()
}

pub(super) fn current() -> Option<JobIds> {
    Some(signals()?.current())
}

pub(super) fn signal_group(group: u32, signal: u32) {
    if let Some(signals) = signals() {
        signals.signal_group(group, signal);
    }
}

/// The terminal that controls a session.
pub fn of_session(sid: u32) -> Option<Arc<Tty>> {
    TTYS.lock().iter().find(|tty| tty.state.lock().session == Some(sid)).cloned()
}

/// The leader of a session ended, or gave its terminal up: the foreground group is hung up on and continued, and the
/// terminal is free.
pub fn session_exit(sid: u32) {
    let Some(tty) = of_session(sid) else { return };
    let mut state = tty.state.lock();
    let group = state.foreground.take();
    state.session = None;
    drop(state);
    if let Some(group) = group {
        signal_group(group, SIGHUP);
        signal_group(group, SIGCONT);
    }
    tty.queue.wake_all();
}

impl Tty {
    /// The foreground process group (`tpgid` in `/proc/PID/stat`).
    pub fn foreground(&self) -> Option<u32> {
        self.state.lock().foreground
    }

    /// The session that it controls.
    pub fn session(&self) -> Option<u32> {
        self.state.lock().session
    }

    /// Makes it the controlling terminal of a session leader that has none, when nobody else has it.
    pub(super) fn acquire(&self) {
        let Some(ids) = current() else { return };
        if ids.pid == ids.sid && of_session(ids.sid).is_none() {
            let mut state = self.state.lock();
            if state.session.is_none() {
                state.session = Some(ids.sid);
                state.foreground = Some(ids.pgid);
            }
        }
    }

    /// `TIOCSCTTY`. `EPERM`: no leader, has one already, or another session has this and `steal` is not allowed.
    pub(super) fn take_control(&self, steal: bool) -> Result<()> {
        let signals = signals().ok_or(Errno::EPERM)?;
        let ids = signals.current();
        let mine = of_session(ids.sid);
        if ids.pid == ids.sid && mine.as_ref().is_some_and(|tty| core::ptr::eq(&**tty, self)) {
            return Ok(());
        }
        if ids.pid != ids.sid || mine.is_some() {
            return Err(Errno::EPERM);
        }
        if self.session().is_some() && !(steal && signals.is_privileged()) {
            return Err(Errno::EPERM);
        }
        let mut state = self.state.lock();
        state.session = Some(ids.sid);
        state.foreground = Some(ids.pgid);
        Ok(())
    }

    /// `TIOCNOTTY`: of the leader it ends the session's hold.
    pub(super) fn give_up_control(&self) -> Result<()> {
        let ids = current().ok_or(Errno::ENOTTY)?;
        if self.session() != Some(ids.sid) {
            return Err(Errno::ENOTTY);
        }
        if ids.pid == ids.sid {
            session_exit(ids.sid);
        }
        Ok(())
    }

    /// `ENOTTY` unless this is the caller's controlling terminal.
    pub(super) fn controls_caller(&self) -> Result<JobIds> {
        let ids = current().ok_or(Errno::ENOTTY)?;
        if self.session() == Some(ids.sid) { Ok(ids) } else { Err(Errno::ENOTTY) }
    }

    /// `TIOCSPGRP`.
    pub(super) fn set_foreground(&self, pgid: i32) -> Result<()> {
        let ids = self.controls_caller()?;
        self.check_foreground(uapi::signal::SIGTTOU)?;
        let pgid = u32::try_from(pgid).map_err(|_| Errno::EINVAL)?;
        match signals().and_then(|signals| signals.session_of_group(pgid)) {
            None => return Err(Errno::ESRCH),
            Some(sid) if sid != ids.sid => return Err(Errno::EPERM),
            Some(_) => {}
        }
        self.state.lock().foreground = Some(pgid);
        Ok(())
    }

    /// Lets foreground processes pass, and those that this terminal does not control. A background group is sent
    /// `signal` (the call is restarted when it is continued); if it could not act on it, a read fails with `EIO` and
    /// anything else passes; so does a change in an orphaned group fail with `EIO`.
    pub(super) fn check_foreground(&self, signal: u32) -> Result<()> {
        let Some(signals) = signals() else { return Ok(()) };
        let (session, foreground) = {
            let state = self.state.lock();
            (state.session, state.foreground)
        };
        // The quick way out: nobody's terminal has no background.
        let (Some(session), Some(foreground)) = (session, foreground) else { return Ok(()) };
        let ids = signals.current();
        if ids.sid != session || ids.pgid == foreground {
            return Ok(());
        }
        if signals.is_ignored(signal) {
            return if signal == SIGTTIN { Err(Errno::EIO) } else { Ok(()) };
        }
        if signals.is_orphaned() {
            return Err(Errno::EIO);
        }
        signals.signal_group(ids.pgid, signal);
        Err(Errno::ERESTARTSYS)
    }
}
