//! Signals: actions, masks, sending.

use crate::{attempt, call};
use rt::uapi::signal::{SA_SIGINFO, SIG_BLOCK, SIG_SETMASK, SIG_UNBLOCK};
use rt::uapi::{Itimerval, Result, SigSet, Sigaction, Siginfo, StackT, Timeval, Ucontext, nr, time};

/// What the kernel calls: the signal, what is known about it, and the interrupted registers, which may be changed.
pub type Handler = extern "C" fn(i32, *const Siginfo, *mut Ucontext);

/// Bytes of a set of signals as the calls take it.
pub const SET_SIZE: usize = 8;

/// sigaction(2): calls `handler`.
///
/// # Errors
/// As the call.
pub fn handle(signal: u32, handler: Handler, flags: u64) -> Result<()> {
    set(signal, Sigaction { handler: handler as usize, flags: flags | SA_SIGINFO, mask: 0 })
}

/// sigaction(2) with everything given.
///
/// # Errors
/// As the call.
pub fn set(signal: u32, action: Sigaction) -> Result<()> {
    attempt!(nr::RT_SIGACTION, signal, &raw const action, 0, SET_SIZE).map(|_| ())
}

/// The action that is set.
///
/// # Errors
/// As the call.
pub fn action(signal: u32) -> Result<Sigaction> {
    let mut action = Sigaction::default();
    attempt!(nr::RT_SIGACTION, signal, 0, &raw mut action, SET_SIZE).map(|_| action)
}

fn change(how: u32, set: SigSet) -> SigSet {
    let mut old = 0_u64;
    call!(nr::RT_SIGPROCMASK, how, &raw const set, &raw mut old, SET_SIZE);
    old
}

/// Blocks these signals too; gives the mask as it was.
pub fn block(set: SigSet) -> SigSet {
    change(SIG_BLOCK, set)
}

/// Lets these signals through.
pub fn unblock(set: SigSet) -> SigSet {
    change(SIG_UNBLOCK, set)
}

/// Sets the mask.
pub fn set_mask(set: SigSet) -> SigSet {
    change(SIG_SETMASK, set)
}

/// The mask.
pub fn mask() -> SigSet {
    change(SIG_BLOCK, 0)
}

/// The signals that wait.
pub fn pending() -> SigSet {
    let mut set = 0_u64;
    call!(nr::RT_SIGPENDING, &raw mut set, SET_SIZE);
    set
}

/// Sends a signal to the calling thread.
pub fn raise(signal: u32) {
    call!(nr::TGKILL, rt::process::id(), call!(nr::GETTID), signal);
}

/// A timer of the process that sends SIGALRM after `first` microseconds and then each `interval`; zeroes stop it.
pub fn timer(first: i64, interval: i64) {
    let span = |micros: i64| Timeval { tv_sec: micros / 1_000_000, tv_usec: micros % 1_000_000 };
    let value = Itimerval { it_interval: span(interval), it_value: span(first) };
    call!(nr::SETITIMER, time::ITIMER_REAL, &raw const value, 0);
}

/// sigaltstack(2): gives what was set.
///
/// # Errors
/// As the call.
pub fn alternate_stack(base: usize, size: usize, flags: u32) -> Result<StackT> {
    let new = StackT { ss_sp: base, ss_flags: flags, pad: 0, ss_size: size };
    let mut old = StackT::default();
    attempt!(nr::SIGALTSTACK, &raw const new, &raw mut old).map(|_| old)
}
