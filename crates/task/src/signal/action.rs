//! What a thread asks about its own signals: rt_sigaction, rt_sigprocmask, sigaltstack, rt_sigsuspend, rt_sigtimedwait.

use core::sync::atomic::Ordering;

use uapi::signal::*;
use uapi::{Errno, SigSet, Sigaction, Siginfo, StackT};

use super::frame::{altstack_flags, new_altstack};
use super::pending::Pending;
use super::rules::{is_ignored, next_signal};
use crate::seam::current;
use crate::thread::Thread;
use crate::wait::{self, Sleep};

/// rt_sigaction(2): sets the action if `new` is given, and gives the old one. `EINVAL` for what is no signal, or one
/// whose action cannot change.
pub fn sigaction(signal: u32, new: Option<Sigaction>) -> Result<Sigaction, Errno> {
    if signal == 0 || signal > NSIG || new.is_some() && sigmask(signal) & UNBLOCKABLE != 0 {
        return Err(Errno::EINVAL);
    }
    let process = &current().process;
    let hand = process.signals.hand();
    let Some(new) = new else { return Ok(hand.action(signal)) };
    let new = Sigaction { flags: new.flags & SA_ALL, mask: new.mask & !UNBLOCKABLE, ..new };
    // Under the group's lock, so that no signal is queued by the old action after the pending ones were dropped.
    let mut state = process.signals.state.lock();
    let old = hand.set_action(signal, new);
    if is_ignored(signal, &new) {
        let bit = sigmask(signal);
        state.shared.remove(bit);
        process.signals.publish(&state);
        process.for_each_thread(|t| t.signals.with_pending(|p| p.remove(bit)));
    }
    Ok(old)
}

/// rt_sigprocmask(2): changes the mask if `new` is given, and gives the old one. `EINVAL` for an unknown `how`.
pub fn sigprocmask(how: u32, new: Option<SigSet>) -> Result<SigSet, Errno> {
    let me = current();
    let old = me.signals.blocked();
    if let Some(set) = new {
        me.set_blocked(match how {
            SIG_BLOCK => old | set,
            SIG_UNBLOCK => old & !set,
            SIG_SETMASK => set,
            _ => return Err(Errno::EINVAL),
        });
    }
    Ok(old)
}

/// sigaltstack(2) of a thread whose stack pointer is `sp`: sets the stack if `new` is given, and gives the old one.
pub fn sigaltstack(sp: usize, new: Option<StackT>) -> Result<StackT, Errno> {
    let me = current();
    let old = me.signals.altstack();
    if let Some(new) = new {
        me.signals.set_altstack(new_altstack(&old, sp, &new)?);
    }
    Ok(StackT { ss_flags: altstack_flags(&old, sp), ..old })
}

/// rt_sigsuspend(2): always an error, and the mask is restored when the signal has been delivered.
pub fn sigsuspend(mask: SigSet) -> Errno {
    current().set_blocked_for_call(mask);
    wait::pause()
}

/// rt_sigtimedwait(2): takes one signal of `set`, waiting until `deadline` (absolute, clock ticks; None: for ever).
/// `EAGAIN` at the deadline, `EINTR` when another signal came.
pub fn sigtimedwait(set: SigSet, deadline: Option<u64>) -> Result<Siginfo, Errno> {
    let me = current();
    let set = set & !UNBLOCKABLE;
    let mut info = Siginfo::default();
    if me.take_signal(!set, &mut info) {
        return Ok(info);
    }
    if deadline.is_some_and(|d| hal::time::now() >= d) {
        return Err(Errno::EAGAIN);
    }
    // What is waited for is unblocked meanwhile, so that senders wake this thread; `awaited` keeps them from dropping it.
    let blocked = me.signals.blocked();
    me.signals.awaited.store(set, Ordering::SeqCst);
    me.set_blocked(blocked & !set);
    let result = wait::wait(Sleep::Interruptible, deadline, || me.take_signal(!set, &mut info).then_some(()));
    me.set_blocked(blocked);
    me.signals.awaited.store(0, Ordering::SeqCst);
    match result {
        Ok(()) => Ok(info),
        // It may have come between the last look and the mask's return.
        Err(_) if me.take_signal(!set, &mut info) => Ok(info),
        Err(Errno::ETIMEDOUT) => Err(Errno::EAGAIN),
        Err(_) => Err(Errno::EINTR),
    }
}

impl Thread {
    /// Takes the next signal that is not in `except` into `info`: the thread's own first, then the group's. False when
    /// there is none.
    pub(crate) fn take_signal(&self, except: SigSet, info: &mut Siginfo) -> bool {
        let mut take = |pending: &mut Pending| match next_signal(pending.set(), except) {
            Some(signal) => {
                pending.take_into(signal, info);
                true
            }
            None => false,
        };
        if self.signals.pending() & !except != 0 && self.signals.with_pending(&mut take) {
            return true;
        }
        let group = &self.process.signals;
        if group.pending() & !except == 0 {
            return false;
        }
        let mut state = group.state.lock();
        let taken = take(&mut state.shared);
        group.publish(&state);
        taken
    }

    /// What must not be dropped as ignored, because the thread looks for it by other means.
    pub(super) fn wants_even_if_ignored(&self) -> SigSet {
        self.signals.blocked() | self.signals.awaited.load(Ordering::Acquire)
    }
}
