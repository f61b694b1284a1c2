//! Sending: queueing a signal, and choosing and waking who takes it.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use fs::{Credentials, cap};
use hal::sync::SpinGuard;
use uapi::resource::RLIMIT_SIGPENDING;
use uapi::signal::*;
use uapi::{Errno, Siginfo};

use super::pending::QueueFull;
use super::rules::{Default, STOP_SET, default_action, is_ignored};
use super::{GroupState, group_flag, stop};
use crate::process::{Process, State, tree_lock};
use crate::seam::current;
use crate::thread::Thread;

/// Sends to a process: any thread that does not block the signal takes it. `EAGAIN` when a queued signal finds the
/// queue full. No permission check.
pub fn send_process(process: &Arc<Process>, info: &Siginfo) -> Result<(), Errno> {
    send(process, None, info)
}

/// Sends to one thread. `EAGAIN` when a queued signal finds the queue full. No permission check.
pub fn send_thread(thread: &Arc<Thread>, info: &Siginfo) -> Result<(), Errno> {
    send(&thread.process, Some(thread), info)
}

fn send(process: &Arc<Process>, to: Option<&Arc<Thread>>, info: &Siginfo) -> Result<(), Errno> {
    let mut state = process.signals.state.lock();
    let continued = prepare(process, &mut state, info.si_signo as u32);
    let sent = queue(process, &mut state, to, info);
    drop(state);
    if continued {
        stop::tell_parent(process, CLD_CONTINUED, SIGCONT);
    }
    sent
}

/// Sends SIGCHLD or another signal to a parent while the tree is locked: it must not be one that stops or continues, as
/// that would tell the grandparent.
pub(crate) fn send_locked(process: &Arc<Process>, info: &Siginfo) {
    let mut state = process.signals.state.lock();
    // A full queue loses the information of a standard signal, not the signal.
    let _ = queue(process, &mut state, None, info);
}

/// A stop signal forgets a pending SIGCONT; SIGCONT forgets pending stop signals and continues the group. True when it
/// was stopped.
fn prepare(process: &Process, state: &mut GroupState, signal: u32) -> bool {
    let forget = match sigmask(signal) {
        bit if bit & STOP_SET != 0 => sigmask(SIGCONT),
        bit if bit == sigmask(SIGCONT) => STOP_SET,
        _ => return false,
    };
    state.shared.remove(forget);
    process.signals.publish(state);
    process.for_each_thread(|t| t.signals.with_pending(|p| p.remove(forget)));
    signal == SIGCONT && stop::resume(process, state)
}

fn queue(
    process: &Arc<Process>,
    state: &mut SpinGuard<'_, GroupState>,
    to: Option<&Arc<Thread>>,
    info: &Siginfo,
) -> Result<(), Errno> {
    let group = &process.signals;
    let signal = info.si_signo as u32;
    if process.state() != State::Alive || group.has(group_flag::EXIT) && signal != SIGKILL {
        return Ok(());
    }
    let action = group.action(signal);
    let first = match to {
        Some(thread) => Some(thread.clone()),
        None => process.leader(),
    };
    let Some(first) = first else { return Ok(()) };
    let fatal = action.handler == SIG_DFL && default_action(signal) == Default::Terminate;
    if first.wants_even_if_ignored() & sigmask(signal) == 0 {
        let spared = group.protected.load(Ordering::Relaxed) && action.handler == SIG_DFL;
        if is_ignored(signal, &action) || spared {
            return Ok(());
        }
    }
    let limit = usize::try_from(process.limit(RLIMIT_SIGPENDING)).unwrap_or(usize::MAX);
    let added = match to {
        Some(thread) => thread.signals.with_pending(|p| p.add(info, limit)),
        None => {
            let added = state.shared.add(info, limit);
            group.publish(state);
            added
        }
    };
    added.map_err(|QueueFull| Errno::EAGAIN)?;
    let Some(taker) = choose(process, to, &first, signal) else { return Ok(()) };
    if fatal && !group.protected.load(Ordering::Relaxed) {
        // Everybody is told at once, instead of by the one that takes it.
        end_group(process, state, uapi::wait::killed(signal, false));
    } else {
        taker.notify();
    }
    Ok(())
}

/// The thread that takes a signal: the one it was sent to, else the caller if it can, else the first that can. None
/// when all block it.
fn choose(process: &Process, to: Option<&Arc<Thread>>, first: &Arc<Thread>, signal: u32) -> Option<Arc<Thread>> {
    let can = |t: &Thread| t.signals.blocked() & sigmask(signal) == 0 && !t.signals.exiting.load(Ordering::Relaxed);
    if can(first) {
        return Some(first.clone());
    }
    if to.is_some() {
        return None;
    }
    let mut found = None;
    process.for_each_thread(|t| {
        if found.is_none() && can(t) {
            found = Some(t.clone());
        }
    });
    found
}

/// Begins the end of a group with this status word; nothing happens if it has begun.
pub(crate) fn end_group(process: &Process, state: &mut GroupState, status: i32) {
    if state.exit_status.is_none() {
        state.exit_status = Some(status);
        process.signals.flags.fetch_or(group_flag::EXIT, Ordering::AcqRel);
        process.for_each_thread(Thread::notify);
    }
}

/// A fault of the running thread: the signal cannot be refused. If it is blocked or ignored, its default happens.
pub fn force(info: &Siginfo) {
    let me = current();
    let group = &me.process.signals;
    let signal = info.si_signo as u32;
    let state = group.state.lock();
    let hand = group.hand();
    let action = hand.action(signal);
    let blocked = me.signals.blocked() & sigmask(signal) != 0;
    if blocked || action.handler == SIG_IGN {
        hand.set_action(signal, uapi::Sigaction::default());
    }
    if hand.action(signal).handler == SIG_DFL {
        group.protected.store(false, Ordering::Relaxed);
    }
    if blocked {
        me.signals.blocked.fetch_and(!sigmask(signal), Ordering::SeqCst);
    }
    // The bit alone would do if the queue were full; the limit is for others.
    let _ = me.signals.with_pending(|p| p.add(info, usize::MAX));
    drop(state);
    me.context.raise(hal::task::Work::SIGNAL);
}

/// Whether `me` may send `signal` to `process` (kill(2)).
fn may_send(me: &Process, process: &Process, signal: u32, same_session: bool) -> bool {
    let (mine, theirs): (Arc<Credentials>, Arc<Credentials>) = (me.credentials(), process.credentials());
    let own = [mine.euid, mine.uid].iter().any(|&id| id == theirs.suid || id == theirs.uid);
    own || mine.has(cap::KILL) || signal == SIGCONT && same_session
}

fn check(signal: u32) -> Result<(), Errno> {
    if signal <= NSIG { Ok(()) } else { Err(Errno::EINVAL) }
}

/// Sends to a process that was looked up, with the permission check; signal 0 is the check alone.
fn send_checked(process: &Arc<Process>, to: Option<&Arc<Thread>>, info: &Siginfo, session: bool) -> Result<(), Errno> {
    let signal = info.si_signo as u32;
    if !may_send(&current().process, process, signal, session) {
        return Err(Errno::EPERM);
    }
    if signal == 0 { Ok(()) } else { send(process, to, info) }
}

fn from_me(make: fn(u32, i32, u32) -> Siginfo, signal: u32) -> Siginfo {
    let process = &current().process;
    make(signal, process.tgid as i32, process.credentials().uid)
}

/// kill(2) and, with `info`, rt_sigqueueinfo(2). `EINVAL`, `ESRCH`, `EPERM`.
pub fn kill(pid: i32, signal: u32, info: Option<Siginfo>) -> Result<(), Errno> {
    check(signal)?;
    let info = info.unwrap_or_else(|| from_me(Siginfo::kill, signal));
    let me = &current().process;
    match pid {
        i32::MIN => Err(Errno::ESRCH),
        pid if pid < -1 => kill_group(pid.unsigned_abs(), &info),
        0 => {
            let own = tree_lock().node(me.tgid).map_or(0, |n| n.pgid());
            kill_group(own, &info)
        }
        // Those that may not be sent to are left out, and that is no error, even if they are all.
        -1 => match kill_some(&info, |pid, _| pid > 1 && pid != me.tgid) {
            Err(Errno::EPERM) => Ok(()),
            result => result,
        },
        _ => {
            let tree = tree_lock();
            // A thread's number names its process, too.
            let named = tree.process(pid as u32).or_else(|| tree.thread(pid as u32).map(|t| &t.process)).cloned();
            let sid = |pid| tree.node(pid).map(|n| n.sid());
            let process = named.ok_or(Errno::ESRCH)?;
            let session = sid(me.tgid) == sid(process.tgid);
            drop(tree);
            send_checked(&process, None, &info, session)
        }
    }
}

/// Sends to all processes of a group, as kill(2) with a negative number. `ESRCH` when there is none, `EPERM` when none
/// may be sent to.
pub fn kill_group(pgid: u32, info: &Siginfo) -> Result<(), Errno> {
    kill_some(info, |_, group| group == pgid)
}

fn kill_some(info: &Siginfo, wanted: impl Fn(u32, u32) -> bool) -> Result<(), Errno> {
    let mut result = Err(Errno::ESRCH);
    let mut after = 0;
    let sid = tree_lock().node(current().process.tgid).map(|n| n.sid());
    // One at a time: sending may tell a parent, which needs the tree.
    while let Some((pid, process, session)) = next(after, &wanted) {
        after = pid;
        let sent = send_checked(&process, None, info, Some(session) == sid);
        if result.is_err() && (sent.is_ok() || result == Err(Errno::ESRCH)) {
            result = sent;
        }
    }
    result
}

/// The first wanted process with a number above `after`, and its session.
fn next(after: u32, wanted: &impl Fn(u32, u32) -> bool) -> Option<(u32, Arc<Process>, u32)> {
    let tree = tree_lock();
    let mut found = tree.processes().filter(|(pid, n)| *pid > after && wanted(*pid, n.pgid()));
    found.next().map(|(pid, node)| (pid, node.value.clone(), node.sid()))
}

/// Sends to all processes of a group without a permission check: for terminals and the kernel itself.
pub fn send_group(pgid: u32, info: &Siginfo) {
    let mut after = 0;
    while let Some((pid, process, _)) = next(after, &|_, group| group == pgid) {
        after = pid;
        // A standard signal is never refused.
        let _ = send(&process, None, info);
    }
}

/// tgkill(2), tkill(2) (`tgid` None) and, with `info`, rt_tgsigqueueinfo(2). `EINVAL`, `ESRCH`, `EPERM`.
pub fn kill_thread(tgid: Option<i32>, tid: i32, signal: u32, info: Option<Siginfo>) -> Result<(), Errno> {
    check(signal)?;
    if tid <= 0 || tgid.is_some_and(|t| t <= 0) {
        return Err(Errno::EINVAL);
    }
    let info = info.unwrap_or_else(|| from_me(Siginfo::tkill, signal));
    let thread = tree_lock().thread(tid as u32).cloned().ok_or(Errno::ESRCH)?;
    if tgid.is_some_and(|t| t as u32 != thread.process.tgid) {
        return Err(Errno::ESRCH);
    }
    send_checked(&thread.process, Some(&thread), &info, false)
}
