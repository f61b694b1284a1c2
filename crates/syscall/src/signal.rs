//! Signals: signal(7), sigaction(2), sigprocmask(2), kill(2), sigaltstack(2), and how they are raised from inside.

use hal::addr::UserAddr;
use hal::task::UserFrame;
use task::signal::{self, action};
use task::{Restart, current};
use uapi::signal::{NSIG, SI_TKILL};
use uapi::{Errno, Result, SigSet, Sigaction, Siginfo, StackT, Timespec};

use crate::caller::{get, get_opt, put_opt};
use crate::table::{arguments, calls};

calls! {
    fast {
        RT_SIGACTION = rt_sigaction;
        RT_SIGPROCMASK = rt_sigprocmask;
        RT_SIGPENDING = rt_sigpending;
        RT_SIGSUSPEND = rt_sigsuspend;
        RT_SIGTIMEDWAIT = rt_sigtimedwait;
        RT_SIGQUEUEINFO = rt_sigqueueinfo;
        RT_TGSIGQUEUEINFO = rt_tgsigqueueinfo;
        KILL = kill;
        TKILL = tkill;
        TGKILL = tgkill;
        RESTART_SYSCALL = restart_syscall;
    }
    full {
        SIGALTSTACK = sigaltstack;
        RT_SIGRETURN = rt_sigreturn;
    }
}

/// Sends the running thread a signal that one of its own calls has earned (SIGPIPE).
pub(crate) fn raise(number: u32) {
    let me = current();
    let info = Siginfo::kill(number, me.process.tgid as i32, me.process.credentials().uid);
    // A standard signal is never refused.
    let _ = signal::send_thread(&me.arc(), &info);
}

/// `EINVAL` for another size of a signal set than the kernel's.
pub(crate) fn check_set_size(size: usize) -> Result<()> {
    if size == size_of::<SigSet>() { Ok(()) } else { Err(Errno::EINVAL) }
}

fn rt_sigaction(number: i32, new: UserAddr, old: UserAddr, size: usize) -> Result<()> {
    check_set_size(size)?;
    let new: Option<Sigaction> = get_opt(new)?;
    let previous = action::sigaction(u32::try_from(number).map_err(|_| Errno::EINVAL)?, new)?;
    put_opt(old, &previous)
}

fn rt_sigprocmask(how: u32, set: UserAddr, old: UserAddr, size: usize) -> Result<()> {
    check_set_size(size)?;
    let previous = action::sigprocmask(how, get_opt(set)?)?;
    put_opt(old, &previous)
}

fn rt_sigpending(set: UserAddr, size: usize) -> Result<()> {
    if size > size_of::<SigSet>() {
        return Err(Errno::EINVAL);
    }
    let me = current();
    let pending = me.process.pending_for(&me).to_le_bytes();
    hal::user::copy_out(set, pending.get(..size).unwrap_or_default())
}

fn rt_sigsuspend(set: UserAddr, size: usize) -> Result<()> {
    check_set_size(size)?;
    Err(action::sigsuspend(get(set)?))
}

fn rt_sigtimedwait(set: UserAddr, info: UserAddr, timeout: UserAddr, size: usize) -> Result<u32> {
    check_set_size(size)?;
    let set = get(set)?;
    let deadline = match get_opt::<Timespec>(timeout)? {
        Some(timeout) => Some(crate::time::deadline_after(&timeout)?),
        None => None,
    };
    let taken = action::sigtimedwait(set, deadline)?;
    put_opt(info, &taken)?;
    Ok(taken.si_signo as u32)
}

/// The information that a program made up; only to itself may it look like the kernel's or like kill(2)'s.
fn made_up(number: i32, info: UserAddr, to: i32) -> Result<Siginfo> {
    let info = Siginfo { si_signo: number, ..get(info)? };
    let me = current();
    if (info.si_code >= 0 || info.si_code == SI_TKILL) && to != me.process.tgid as i32 && to != me.tid() as i32 {
        return Err(Errno::EPERM);
    }
    Ok(info)
}

/// A signal's number, or one that no signal has.
fn signal_number(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(NSIG + 1)
}

fn rt_sigqueueinfo(pid: i32, number: i32, info: UserAddr) -> Result<()> {
    let info = made_up(number, info, pid)?;
    if pid <= 0 {
        return Err(Errno::ESRCH);
    }
    signal::kill(pid, signal_number(number), Some(info))
}

fn rt_tgsigqueueinfo(tgid: i32, tid: i32, number: i32, info: UserAddr) -> Result<()> {
    let info = made_up(number, info, tid)?;
    signal::kill_thread(Some(tgid), tid, signal_number(number), Some(info))
}

fn kill(pid: i32, number: i32) -> Result<()> {
    signal::kill(pid, signal_number(number), None)
}

fn tkill(tid: i32, number: i32) -> Result<()> {
    signal::kill_thread(None, tid, signal_number(number), None)
}

fn tgkill(tgid: i32, tid: i32, number: i32) -> Result<()> {
    signal::kill_thread(Some(tgid), tid, signal_number(number), None)
}

/// sigaltstack(2): it needs the caller's stack pointer.
fn sigaltstack(frame: &mut UserFrame) -> Result<()> {
    let [new, old, ..] = arguments(frame).map(UserAddr);
    let new: Option<StackT> = get_opt(new)?;
    let previous = action::sigaltstack(frame.sp, new)?;
    put_opt(old, &previous)
}

fn rt_sigreturn(frame: &mut UserFrame) -> isize {
    signal::rt_sigreturn(frame)
}

/// restart_syscall(2): goes on with what a stop interrupted.
fn restart_syscall() -> Result<usize> {
    match current().take_restart() {
        Restart::None => Err(Errno::EINTR),
        Restart::Sleep { deadline, remaining } => crate::time::sleep(deadline, UserAddr(remaining)).map(|()| 0),
        Restart::Futex { address, op, value, bitset, deadline } => {
            crate::futex::wait_until(UserAddr(address), op, value, bitset, deadline)
        }
        Restart::Poll { fds, count, deadline } => crate::file::poll::poll_until(UserAddr(fds), count, Some(deadline)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_no_signals_stay_that() {
        assert_eq!(signal_number(9), 9);
        assert_eq!(signal_number(0), 0);
        assert!(signal_number(-1) > NSIG && signal_number(65) > NSIG);
        assert_eq!(check_set_size(4), Err(Errno::EINVAL));
    }
}
