//! Signals: who has which, who sends, what happens on the way to user mode.
//!
//! [`rules`], [`pending`] and [`frame`] are the rules as plain functions; [`send`] queues and wakes; [`deliver`] takes and
//! acts, on a thread's own way to user mode; [`stop`] is job control.
//!
//! Sets of pending signals are mirrored in atomics, so that "is anything deliverable?" needs no lock. The group's lock
//! orders everything that must not be missed: a signal is queued and the thread's work bit raised under it.

pub mod action;
pub mod deliver;
pub mod frame;
pub mod pending;
pub mod rules;
pub mod send;
pub mod stop;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use hal::sync::{Once, SpinLock};
use hal::task::Work;
use uapi::signal::*;
use uapi::{SigSet, Sigaction, StackT};

pub use deliver::{rt_sigreturn, user_work};
pub use send::{force, kill, kill_group, kill_thread, send_group, send_process, send_thread};

use crate::process::Process;
use crate::thread::Thread;
use pending::Pending;

/// Number of signals, as an array length.
const SIGNALS: usize = NSIG as usize;

type Actions = [Sigaction; SIGNALS];

/// The actions for all signals; shared by CLONE_SIGHAND. A copy shares the table until one of the two changes it: most
/// children do not before their execve(2).
pub struct SigHand {
    /// None: everything by default.
    actions: SpinLock<Option<Arc<Actions>>>,
}

impl SigHand {
    /// Everything by default.
    pub const fn new() -> Self {
        Self { actions: SpinLock::new(None) }
    }

    /// A copy for a fork.
    pub fn copy(&self) -> Self {
        Self { actions: SpinLock::new(self.actions.lock().clone()) }
    }

    /// The action for a signal.
    #[inline]
    pub fn action(&self, signal: u32) -> Sigaction {
        match &*self.actions.lock() {
            Some(table) => table.get((signal as usize).wrapping_sub(1)).copied().unwrap_or_default(),
            None => Sigaction::default(),
        }
    }

    /// Sets the action for a signal; gives the old one.
    pub(crate) fn set_action(&self, signal: u32, action: Sigaction) -> Sigaction {
        let mut actions = self.actions.lock();
        let table = actions.get_or_insert_with(|| Arc::new([Sigaction::default(); SIGNALS]));
        match Arc::make_mut(table).get_mut((signal as usize).wrapping_sub(1)) {
            Some(slot) => core::mem::replace(slot, action),
            None => Sigaction::default(),
        }
    }

    /// execve(2), CLONE_CLEAR_SIGHAND: what is caught goes to its default; what is ignored stays ignored.
    pub(crate) fn reset_caught(&self) {
        let mut actions = self.actions.lock();
        let Some(table) = &mut *actions else { return };
        if table.iter().all(|action| action.handler == SIG_DFL) {
            *actions = None;
        } else if table.iter().any(|action| action.handler > SIG_IGN) {
            for action in Arc::make_mut(table) {
                let handler = if action.handler == SIG_IGN { SIG_IGN } else { SIG_DFL };
                *action = Sigaction { handler, ..Sigaction::default() };
            }
        }
    }
}

impl Default for SigHand {
    fn default() -> Self {
        Self::new()
    }
}

/// Something for all threads of the group to look at before they go back to user mode.
pub(crate) mod group_flag {
    /// The group ends: every thread exits.
    pub const EXIT: u32 = 1;
    /// The group stops: every thread waits.
    pub const STOP: u32 = 2;
    /// A thread replaces the image: all others exit.
    pub const EXEC: u32 = 4;
}

/// What a process's threads share of signals, under its lock.
pub(crate) struct GroupState {
    pub shared: Pending,
    /// The signal that stops the group, while [`group_flag::STOP`] is set.
    pub stop_signal: u32,
    /// Threads that have not yet stopped.
    pub stop_left: usize,
    /// The status word of wait(2) that the end of the group was given.
    pub exit_status: Option<i32>,
    /// Threads that have begun to exit and are still in the process's list.
    pub leaving: usize,
    /// The thread that replaces the image, while [`group_flag::EXEC`] is set.
    pub exec_tid: u32,
}

/// Signals of a thread group.
pub struct Group {
    pub(crate) state: SpinLock<GroupState>,
    hand: SpinLock<Arc<SigHand>>,
    shared_set: AtomicU64,
    pub(crate) flags: AtomicU32,
    /// What wait(2) with WUNTRACED may report: the signal that stopped the group; 0: nothing.
    pub(crate) stop_report: AtomicU32,
    /// What wait(2) with WCONTINUED may report.
    pub(crate) continued: AtomicBool,
    /// It is the first process, and what it does not handle does not harm it.
    pub(crate) protected: AtomicBool,
}

impl Group {
    /// Nothing pending.
    pub fn new(hand: Arc<SigHand>) -> Self {
        Self {
            state: SpinLock::new(GroupState {
                shared: Pending::new(),
                stop_signal: 0,
                stop_left: 0,
                exit_status: None,
                leaving: 0,
                exec_tid: 0,
            }),
            hand: SpinLock::new(hand),
            shared_set: AtomicU64::new(0),
            flags: AtomicU32::new(0),
            stop_report: AtomicU32::new(0),
            continued: AtomicBool::new(false),
            protected: AtomicBool::new(false),
        }
    }

    /// The actions.
    pub fn hand(&self) -> Arc<SigHand> {
        self.hand.lock().clone()
    }

    pub(crate) fn set_hand(&self, hand: Arc<SigHand>) {
        let old = core::mem::replace(&mut *self.hand.lock(), hand);
        drop(old);
    }

    /// The action for a signal.
    #[inline]
    pub fn action(&self, signal: u32) -> Sigaction {
        self.hand.lock().action(signal)
    }

    /// Signals pending for the group as a whole.
    #[inline]
    pub fn pending(&self) -> SigSet {
        self.shared_set.load(Ordering::Acquire)
    }

    pub(crate) fn publish(&self, state: &GroupState) {
        self.shared_set.store(state.shared.set(), Ordering::Release);
    }

    #[inline]
    pub(crate) fn has(&self, flag: u32) -> bool {
        self.flags.load(Ordering::Acquire) & flag != 0
    }

    /// True while all threads are stopped, or about to be.
    pub fn is_stopped(&self) -> bool {
        self.has(group_flag::STOP)
    }
}

/// Signals of a thread.
pub struct ThreadSignals {
    blocked: AtomicU64,
    set: AtomicU64,
    pending: SpinLock<Pending>,
    /// The mask to go back to when the call that changed it is over (sigsuspend(2), ppoll(2)).
    saved: AtomicU64,
    restore: AtomicBool,
    /// What sigtimedwait(2) waits for: unblocked meanwhile, but not to be dropped as ignored.
    awaited: AtomicU64,
    altstack: SpinLock<StackT>,
    /// It takes no more signals.
    pub(crate) exiting: AtomicBool,
    /// It was counted as stopped.
    pub(crate) stopped: AtomicBool,
}

impl ThreadSignals {
    /// With the mask and alternate stack that the thread starts with.
    pub fn new(blocked: SigSet, altstack: StackT) -> Self {
        Self {
            blocked: AtomicU64::new(blocked & !UNBLOCKABLE),
            set: AtomicU64::new(0),
            pending: SpinLock::new(Pending::new()),
            saved: AtomicU64::new(0),
            restore: AtomicBool::new(false),
            awaited: AtomicU64::new(0),
            altstack: SpinLock::new(altstack),
            exiting: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        }
    }

    /// The mask.
    #[inline]
    pub fn blocked(&self) -> SigSet {
        self.blocked.load(Ordering::Acquire)
    }

    /// Signals pending for this thread alone.
    #[inline]
    pub fn pending(&self) -> SigSet {
        self.set.load(Ordering::Acquire)
    }

    /// The alternate stack.
    pub fn altstack(&self) -> StackT {
        *self.altstack.lock()
    }

    pub(crate) fn set_altstack(&self, stack: StackT) {
        *self.altstack.lock() = stack;
    }

    /// Works on the pending signals and mirrors their set.
    pub(crate) fn with_pending<R>(&self, work: impl FnOnce(&mut Pending) -> R) -> R {
        let mut pending = self.pending.lock();
        let result = work(&mut pending);
        self.set.store(pending.set(), Ordering::Release);
        result
    }
}

impl Thread {
    /// True when something is to be delivered or done before the thread runs user code again: sleeps end early.
    #[inline]
    pub fn interrupted(&self) -> bool {
        self.context.has(Work::SIGNAL) && self.has_signals()
    }

    /// True when something is pending and not blocked, or the group ends, stops or is replaced.
    pub(crate) fn has_signals(&self) -> bool {
        let group = &self.process.signals;
        let pending = self.signals.pending() | group.pending();
        pending & !self.signals.blocked() != 0 || group.flags.load(Ordering::Acquire) != 0
    }

    /// True when the thread will not run user code again.
    #[inline]
    pub fn dying(&self) -> bool {
        if !self.context.has(Work::SIGNAL) {
            return false;
        }
        let group = &self.process.signals;
        group.has(group_flag::EXIT)
            || group.has(group_flag::EXEC) && group.state.lock().exec_tid != self.tid()
            || (self.signals.pending() | group.pending()) & sigmask(SIGKILL) != 0
    }

    /// Raises the work bit if there is work for it. The caller is the thread itself, after it has changed its mask.
    pub(crate) fn refresh(&self) {
        if self.has_signals() || self.signals.restore.load(Ordering::Relaxed) {
            self.context.raise(Work::SIGNAL);
        }
    }

    /// Sets the running thread's mask; what cannot be blocked is not.
    pub fn set_blocked(&self, mask: SigSet) {
        self.signals.blocked.store(mask & !UNBLOCKABLE, Ordering::SeqCst);
        self.refresh();
    }

    /// Sets the running thread's mask until the current call is over and its signals are delivered (ppoll(2),
    /// pselect(2), sigsuspend(2), epoll_pwait(2)).
    pub fn set_blocked_for_call(&self, mask: SigSet) {
        if !self.signals.restore.load(Ordering::Relaxed) {
            self.signals.saved.store(self.signals.blocked(), Ordering::Relaxed);
            self.signals.restore.store(true, Ordering::Relaxed);
        }
        self.set_blocked(mask);
    }

    /// Goes back to the mask from before [`Thread::set_blocked_for_call`], for a call that was not interrupted.
    pub fn restore_blocked(&self) {
        if self.signals.restore.swap(false, Ordering::Relaxed) {
            self.set_blocked(self.signals.saved.load(Ordering::Relaxed));
        }
    }

    /// The mask that counts as the thread's own: the saved one inside such a call.
    pub(crate) fn own_mask(&self) -> SigSet {
        if self.signals.restore.load(Ordering::Relaxed) {
            self.signals.saved.load(Ordering::Relaxed)
        } else {
            self.signals.blocked()
        }
    }

    /// Makes the thread look at its signals.
    pub(crate) fn notify(self: &Arc<Self>) {
        self.context.raise(Work::SIGNAL);
        self.kick();
    }
}

static TRAMPOLINE: Once<fn(&mm::AddressSpace) -> usize> = Once::new();

/// Tells where an address space has the vDSO's `rt_sigreturn`: the return address of handlers. Called once at boot.
pub fn set_trampoline(find: fn(&mm::AddressSpace) -> usize) {
    let _ = TRAMPOLINE.set(find);
}

pub(crate) fn trampoline(mm: &mm::AddressSpace) -> usize {
    TRAMPOLINE.get().map_or(0, |find| find(mm))
}

impl Process {
    /// Signals pending for `thread`, its own and the group's (rt_sigpending(2)).
    pub fn pending_for(&self, thread: &Thread) -> SigSet {
        (thread.signals.pending() | self.signals.pending()) & thread.signals.blocked()
    }
}
