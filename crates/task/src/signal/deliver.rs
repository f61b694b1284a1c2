//! Delivery: what a thread does about its signals on its way to user mode, and how a handler returns.

use core::sync::atomic::Ordering;

use hal::addr::UserAddr;
use hal::task::{UserFrame, Work, replace_frame};
use uapi::signal::*;
use uapi::{Errno, Sigaction, Siginfo};

use super::frame::{self, NO_ALTSTACK};
use super::rules::{Resume, Verdict, handler_mask, judge, resume};
use super::{group_flag, send, stop};
use crate::process::tree_lock;
use crate::seam::{Current, current};
use crate::{exit, fault, sched};

/// Serves the running thread's work bits; called by the HAL on the way to user mode until none is left.
pub fn user_work(frame: &mut UserFrame) {
    let me = current();
    if me.context.has(Work::SIGNAL) {
        me.context.clear(Work::SIGNAL);
        signals(me, frame);
    }
    if me.context.has(Work::RESCHED) {
        sched::preempt(me);
        fault::pay_back(me);
    }
}

/// Takes signals until one has a handler or none is left.
fn signals(me: Current, frame: &mut UserFrame) {
    let mut info = Siginfo::default();
    while let Some(action) = next(me, &mut info) {
        let signal = info.si_signo as u32;
        let group = &me.process.signals;
        let orphaned = || {
            let tree = tree_lock();
            tree.node(me.process.tgid).is_none_or(|n| tree.is_orphaned(n.pgid(), 0))
        };
        match judge(signal, &action, group.protected.load(Ordering::Relaxed), orphaned) {
            Verdict::Drop => {}
            Verdict::Stop => stop::begin(signal),
            Verdict::Terminate => exit::exit_group(uapi::wait::killed(signal, false)),
            Verdict::Handle => {
                handle(me, frame, &info, &action);
                // Another one may wait: it is delivered on top of this one.
                me.refresh();
                return;
            }
        }
    }
    // No handler runs: an interrupted call goes on as if nothing had been.
    if frame.is_call() {
        match resume(frame.a0 as isize, None) {
            Resume::Result | Resume::Interrupted => {}
            Resume::Again => frame.restart_call(),
            Resume::RestartBlock => {
                frame.restart_call();
                frame.a7 = uapi::nr::RESTART_SYSCALL;
            }
        }
    }
    me.restore_blocked();
}

/// The next signal to act on, in `info`, and its action, after the group's own affairs: its end, its stop.
fn next(me: Current, info: &mut Siginfo) -> Option<Sigaction> {
    let group = &me.process.signals;
    loop {
        let flags = group.flags.load(Ordering::Acquire);
        if flags & group_flag::EXIT != 0 {
            let status = group.state.lock().exit_status.unwrap_or(0);
            exit::exit_thread(status);
        }
        if flags & group_flag::EXEC != 0 && group.state.lock().exec_tid != me.tid() {
            exit::exit_thread(0);
        }
        if flags & group_flag::STOP != 0 {
            stop::take_part();
            continue;
        }
        if !me.take_signal(me.signals.blocked(), info) {
            return None;
        }
        let signal = info.si_signo as u32;
        let hand = group.hand();
        let action = hand.action(signal);
        if action.flags & SA_RESETHAND != 0 && action.handler > SIG_IGN {
            hand.set_action(signal, Sigaction { handler: SIG_DFL, ..action });
        }
        return Some(action);
    }
}

/// Makes the thread go to user mode in a handler. If its frame cannot be written, SIGSEGV takes its place.
fn handle(me: Current, frame: &mut UserFrame, info: &Siginfo, action: &Sigaction) {
    let signal = info.si_signo as u32;
    if frame.is_call() {
        match resume(frame.a0 as isize, Some(action.flags)) {
            Resume::Result | Resume::RestartBlock => {}
            Resume::Interrupted => frame.a0 = Errno::EINTR.to_ret() as usize,
            Resume::Again => frame.restart_call(),
        }
        frame.forget_call();
    }
    let altstack = me.signals.altstack();
    let mask = me.own_mask();
    let written = frame::frame_address(frame.sp, action, &altstack).filter(|&at| {
        let put = |offset, bytes: &[u8]| hal::user::copy_out(UserAddr(at).add(offset), bytes);
        frame::write(info, frame, &me.context.fp(), mask, &altstack, put).is_ok()
    });
    let Some(at) = written else {
        if signal == SIGSEGV {
            me.process.signals.hand().set_action(SIGSEGV, Sigaction::default());
        }
        send::force(&Siginfo::plain(SIGSEGV, SI_KERNEL));
        return;
    };
    frame::enter(frame, action, signal, at, me.mm_slot().with(|mm| mm.map_or(0, |mm| super::trampoline(mm))));
    me.signals.restore.store(false, Ordering::Relaxed);
    me.set_blocked(handler_mask(signal, action, me.signals.blocked()));
    if altstack.ss_flags & SS_AUTODISARM != 0 {
        me.signals.set_altstack(NO_ALTSTACK);
    }
}

/// rt_sigreturn(2): goes back to what a handler interrupted. A malformed frame is answered by SIGSEGV. Gives the value
/// for `a0`, which is the restored one.
pub fn rt_sigreturn(regs: &mut UserFrame) -> isize {
    let me = current();
    let mut restored = frame::Restored::default();
    let sp = UserAddr(regs.sp);
    if !frame::read(&mut restored, |offset, bytes| hal::user::copy_in(bytes, sp.add(offset))) {
        send::force(&Siginfo::plain(SIGSEGV, SI_KERNEL));
        return 0;
    }
    // As for sigaltstack(2), whose refusal is not an error here (the handler may still be on it).
    let old = me.signals.altstack();
    if let Ok(altstack) = frame::new_altstack(&old, restored.regs.sp, &restored.altstack) {
        me.signals.set_altstack(altstack);
    }
    me.context.set_fp(&restored.fp);
    replace_frame(regs, &restored.regs);
    me.set_blocked(restored.mask);
    regs.a0 as isize
}
