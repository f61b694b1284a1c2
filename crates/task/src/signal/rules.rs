//! The rules of signal(7), as functions of plain values: what happens by default, what is ignored, which comes next,
//! and how an interrupted call goes on.

use uapi::Errno;
use uapi::signal::*;
use uapi::{SigSet, Sigaction};

/// What a signal does when nothing else was asked for (signal(7), table of standard signals).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Default {
    /// Ends the process. Core dumps are not written (RLIMIT_CORE is 0), so "core" is this too.
    Terminate,
    /// Nothing.
    Ignore,
    /// Stops the process.
    Stop,
    /// Continues a stopped process.
    Continue,
}

/// Signals that stop by default.
pub const STOP_SET: SigSet = sigmask(SIGSTOP) | sigmask(SIGTSTP) | sigmask(SIGTTIN) | sigmask(SIGTTOU);
/// Signals ignored by default.
pub const IGNORE_SET: SigSet = sigmask(SIGCHLD) | sigmask(SIGURG) | sigmask(SIGWINCH) | sigmask(SIGCONT);
/// Signals that an instruction causes: they are taken before all others.
pub const SYNCHRONOUS_SET: SigSet =
    sigmask(SIGSEGV) | sigmask(SIGBUS) | sigmask(SIGILL) | sigmask(SIGTRAP) | sigmask(SIGFPE) | sigmask(SIGSYS);

/// The default action.
pub const fn default_action(signal: u32) -> Default {
    let bit = sigmask(signal);
    if bit & STOP_SET != 0 {
        Default::Stop
    } else if signal == SIGCONT {
        Default::Continue
    } else if bit & IGNORE_SET != 0 {
        Default::Ignore
    } else {
        Default::Terminate
    }
}

/// True when a signal with this action has no effect at all, so that it need not be queued.
pub const fn is_ignored(signal: u32, action: &Sigaction) -> bool {
    match action.handler {
        SIG_IGN => true,
        SIG_DFL => sigmask(signal) & IGNORE_SET != 0,
        _ => false,
    }
}

/// Which of the pending signals is taken next: those an instruction caused, then the lowest number.
#[inline]
pub const fn next_signal(pending: SigSet, blocked: SigSet) -> Option<u32> {
    let mut ready = pending & !blocked;
    if ready & SYNCHRONOUS_SET != 0 {
        ready &= SYNCHRONOUS_SET;
    }
    if ready == 0 { None } else { Some(ready.trailing_zeros() + 1) }
}

/// What is done with a signal that was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Drop it.
    Drop,
    /// Run the handler.
    Handle,
    /// Stop the process.
    Stop,
    /// End the process.
    Terminate,
}

/// Judges a signal that was taken. `protected`: the process is the first one, whom only its own faults may kill;
/// `orphaned`: its group has nobody who would continue it, so terminal stops are dropped.
pub fn judge(signal: u32, action: &Sigaction, protected: bool, orphaned: impl FnOnce() -> bool) -> Verdict {
    match action.handler {
        SIG_IGN => Verdict::Drop,
        SIG_DFL => match default_action(signal) {
            Default::Ignore | Default::Continue => Verdict::Drop,
            _ if protected => Verdict::Drop,
            Default::Stop if signal != SIGSTOP && orphaned() => Verdict::Drop,
            Default::Stop => Verdict::Stop,
            Default::Terminate => Verdict::Terminate,
        },
        _ => Verdict::Handle,
    }
}

/// The mask while a handler runs.
pub const fn handler_mask(signal: u32, action: &Sigaction, blocked: SigSet) -> SigSet {
    let own = if action.flags & SA_NODEFER == 0 { sigmask(signal) } else { 0 };
    (blocked | action.mask | own) & !UNBLOCKABLE
}

/// How a call that a signal interrupted goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resume {
    /// The result stands.
    Result,
    /// It gives EINTR.
    Interrupted,
    /// It is made again, with the same arguments.
    Again,
    /// restart_syscall(2) is made in its place.
    RestartBlock,
}

/// How a call with result `ret` goes on. `handler`: the flags of the action whose handler runs now, if one does.
pub fn resume(ret: isize, handler: Option<u64>) -> Resume {
    let Some(error) = Errno::from_ret(ret).filter(|e| e.is_restart()) else { return Resume::Result };
    match (error, handler) {
        (Errno::ERESTARTNOINTR, _) => Resume::Again,
        (Errno::ERESTART_RESTARTBLOCK, None) => Resume::RestartBlock,
        (_, None) => Resume::Again,
        (Errno::ERESTARTSYS, Some(flags)) if flags & SA_RESTART != 0 => Resume::Again,
        _ => Resume::Interrupted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(handler: usize, flags: u64) -> Sigaction {
        Sigaction { handler, flags, mask: 0 }
    }

    #[test]
    fn defaults_are_those_of_the_manual() {
        assert_eq!(default_action(SIGTERM), Default::Terminate);
        assert_eq!(default_action(SIGSEGV), Default::Terminate);
        assert_eq!(default_action(SIGCHLD), Default::Ignore);
        assert_eq!(default_action(SIGTTIN), Default::Stop);
        assert_eq!(default_action(SIGCONT), Default::Continue);
        assert_eq!(default_action(SIGRTMIN), Default::Terminate);
        assert_eq!(default_action(SIGPWR), Default::Terminate);
    }

    #[test]
    fn faults_come_first_then_low_numbers() {
        assert_eq!(next_signal(0, 0), None);
        assert_eq!(next_signal(sigmask(SIGHUP) | sigmask(SIGSEGV), 0), Some(SIGSEGV));
        assert_eq!(next_signal(sigmask(SIGTERM) | sigmask(64), 0), Some(SIGTERM));
        assert_eq!(next_signal(sigmask(SIGTERM) | sigmask(64), sigmask(SIGTERM)), Some(64));
    }

    #[test]
    fn the_first_process_survives_what_it_does_not_handle() {
        let default = action(SIG_DFL, 0);
        assert_eq!(judge(SIGKILL, &default, true, || false), Verdict::Drop);
        assert_eq!(judge(SIGKILL, &default, false, || false), Verdict::Terminate);
        assert_eq!(judge(SIGTERM, &action(0x1000, 0), true, || false), Verdict::Handle);
    }

    #[test]
    fn an_orphaned_group_ignores_the_terminals_stop() {
        let default = action(SIG_DFL, 0);
        assert_eq!(judge(SIGTSTP, &default, false, || true), Verdict::Drop);
        assert_eq!(judge(SIGTSTP, &default, false, || false), Verdict::Stop);
        assert_eq!(judge(SIGSTOP, &default, false, || true), Verdict::Stop);
    }

    #[test]
    fn handlers_cannot_block_kill_and_defer_themselves_by_default() {
        let mut a = action(0x1000, 0);
        a.mask = !0;
        assert_eq!(handler_mask(SIGINT, &a, 0), !UNBLOCKABLE);
        assert_eq!(handler_mask(SIGINT, &action(0x1000, 0), 4), sigmask(SIGINT) | 4);
        assert_eq!(handler_mask(SIGINT, &action(0x1000, SA_NODEFER), 4), 4);
    }

    #[test]
    fn restart_table() {
        let ret = |e: Errno| e.to_ret();
        assert_eq!(resume(5, Some(0)), Resume::Result);
        assert_eq!(resume(ret(Errno::EINTR), None), Resume::Result);
        for handler in [None, Some(0), Some(SA_RESTART)] {
            assert_eq!(resume(ret(Errno::ERESTARTNOINTR), handler), Resume::Again);
        }
        assert_eq!(resume(ret(Errno::ERESTARTSYS), None), Resume::Again);
        assert_eq!(resume(ret(Errno::ERESTARTSYS), Some(0)), Resume::Interrupted);
        assert_eq!(resume(ret(Errno::ERESTARTSYS), Some(SA_RESTART)), Resume::Again);
        assert_eq!(resume(ret(Errno::ERESTARTNOHAND), None), Resume::Again);
        assert_eq!(resume(ret(Errno::ERESTARTNOHAND), Some(SA_RESTART)), Resume::Interrupted);
        assert_eq!(resume(ret(Errno::ERESTART_RESTARTBLOCK), None), Resume::RestartBlock);
        assert_eq!(resume(ret(Errno::ERESTART_RESTARTBLOCK), Some(SA_RESTART)), Resume::Interrupted);
    }
}
