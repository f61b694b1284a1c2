//! Job control: stopping and continuing a thread group.
//!
//! A stop is a flag on the group. Every thread finds it on its way to user mode, is counted, and waits there until
//! SIGCONT clears the flag or the group ends. The last one to be counted tells the parent (wait(2) with WUNTRACED).

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use uapi::signal::*;
use uapi::time::USER_HZ;
use uapi::{Sigaction, Siginfo};

use super::{GroupState, group_flag, send};
use crate::process::{Process, tree_lock};
use crate::seam::current;
use crate::thread::Thread;
use crate::wait::{self, Sleep};

/// Begins the stop of the running thread's group by `signal`. Nothing happens if the group ends.
pub(super) fn begin(signal: u32) {
    let process = &current().process;
    let group = &process.signals;
    let mut state = group.state.lock();
    if group.has(group_flag::EXIT | group_flag::EXEC | group_flag::STOP) {
        return;
    }
    state.stop_signal = signal;
    state.stop_left = 0;
    group.continued.store(false, Ordering::Relaxed);
    group.flags.fetch_or(group_flag::STOP, Ordering::AcqRel);
    process.for_each_thread(|thread| {
        thread.signals.stopped.store(false, Ordering::Relaxed);
        state.stop_left += 1;
        thread.notify();
    });
}

/// The running thread's part in a stop: is counted, waits. Returns when it is over.
pub(super) fn take_part() {
    let me = current();
    if count(&me) {
        let signal = me.process.signals.state.lock().stop_signal;
        tell_parent(&me.process, CLD_STOPPED, signal);
    }
    let group = &me.process.signals;
    let over = || {
        let flags = group.flags.load(Ordering::Acquire);
        (flags & group_flag::STOP == 0 || flags & (group_flag::EXIT | group_flag::EXEC) != 0).then_some(())
    };
    // Only the flags end it, and whoever changes them wakes all threads.
    let _ = wait::wait(Sleep::Deep, None, over);
}

/// Counts a thread as stopped; true when it was the last of a stop that is still wanted.
fn count(thread: &Thread) -> bool {
    let group = &thread.process.signals;
    let mut state = group.state.lock();
    if !group.has(group_flag::STOP) || thread.signals.stopped.swap(true, Ordering::Relaxed) {
        return false;
    }
    state.stop_left = state.stop_left.saturating_sub(1);
    if state.stop_left == 0 {
        group.stop_report.store(state.stop_signal, Ordering::Release);
    }
    state.stop_left == 0
}

/// A thread leaves the group: a stop does not wait for it any longer.
pub(crate) fn leave(thread: &Thread) {
    if count(thread) {
        let signal = thread.process.signals.state.lock().stop_signal;
        tell_parent(&thread.process, CLD_STOPPED, signal);
    }
}

/// Ends a stop, with the group's lock held. True when there was one.
pub(super) fn resume(process: &Process, state: &mut GroupState) -> bool {
    let group = &process.signals;
    if group.flags.fetch_and(!group_flag::STOP, Ordering::AcqRel) & group_flag::STOP == 0 {
        return false;
    }
    state.stop_signal = 0;
    let stopped = group.stop_report.swap(0, Ordering::AcqRel) != 0 || state.stop_left == 0;
    if stopped {
        group.continued.store(true, Ordering::Release);
    }
    process.for_each_thread(Thread::notify);
    stopped
}

/// Tells the parent that the process has stopped or goes on: SIGCHLD unless it asked not to be told, and its waits.
pub(super) fn tell_parent(process: &Arc<Process>, code: i32, signal: u32) {
    let tree = tree_lock();
    let Some(parent) = tree.process(process.ppid()) else { return };
    let action = parent.signals.action(SIGCHLD);
    if action.handler != SIG_IGN && action.flags & SA_NOCLDSTOP == 0 {
        send::send_locked(parent, &child_info(process, code, signal as i32));
    }
    parent.child_wait.wake_all();
}

/// The information of a SIGCHLD.
pub(crate) fn child_info(process: &Process, code: i32, status: i32) -> Siginfo {
    let ticks = hal::time::ns(process.time_run()) / (1_000_000_000 / USER_HZ);
    Siginfo::child(code, process.tgid as i32, process.credentials().uid, status, ticks as i64, 0)
}

/// Whether a parent with this action for SIGCHLD leaves its children to be reaped by nobody (sigaction(2)).
pub(crate) fn reaps_itself(action: &Sigaction) -> bool {
    action.handler == SIG_IGN || action.flags & SA_NOCLDWAIT != 0
}
