//! Waking: which hart a thread runs on next, and how that hart learns of it.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use hal::hart;
use hal::task::Work;

use super::entity::{NOTIFIED, PARKED, RUNNING};
use super::{CPUS, IDLE, bonus, ensure_tick, grain, park, place};
use crate::seam::{Current, current};
use crate::thread::Thread;
use crate::timer::{self, Expire};
use crate::wait::Sleep;

impl Thread {
    /// Lets the thread run if it sleeps; marks it otherwise, so that its next sleep ends at once.
    pub fn wake(self: &Arc<Self>) {
        self.wake_from(false);
    }

    #[inline]
    fn wake_from(self: &Arc<Self>, follow: bool) {
        let state = &self.sched.state;
        let mut seen = PARKED;
        loop {
            let new = match seen {
                PARKED => RUNNING,
                // Noted again if it is noted already: the write is what a later park reads, together with what this
                // waker has changed.
                RUNNING | NOTIFIED => NOTIFIED,
                _ => return,
            };
            match state.compare_exchange_weak(seen, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(PARKED) => return enqueue(self.clone(), follow),
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Makes the thread look at its work soon: wakes it, or interrupts the hart that runs it.
    pub(crate) fn kick(self: &Arc<Self>) {
        self.wake();
        let hart = self.sched.hart();
        if self.context.on_hart() && hart != hart::id() {
            hart::send_reschedule(hart);
        }
    }

    /// Makes the thread pass through the scheduler soon, if it runs on another hart.
    pub(crate) fn look_soon(&self) {
        let hart = self.sched.hart();
        if self.context.on_hart() && hart != hart::id() {
            self.context.raise(Work::RESCHED);
            hart::send_reschedule(hart);
        }
    }

    /// Restricts the thread to the harts in `mask`, which has one that is online. It moves at its next wake-up or
    /// return to user mode; at once if it is the caller.
    pub fn set_affinity(self: &Arc<Self>, mask: usize) {
        self.sched.affinity.store(mask & hart::online_mask(), Ordering::Relaxed);
        let me = current();
        if core::ptr::eq(&raw const **self, &raw const *me) {
            move_to_allowed(me);
        } else if mask >> self.sched.hart() & 1 == 0 {
            self.context.raise(Work::RESCHED);
            if self.context.on_hart() {
                hart::send_reschedule(self.sched.hart());
            }
        }
    }
}

/// Moves the running thread to a hart that it may use. It parks, and a timer that is due already wakes it: interrupts
/// are off, so that happens when the hart has left it, and the wake-up chooses the hart anew.
pub(super) fn move_to_allowed(me: Current) {
    while me.sched.affinity() & 1 << hart::id() == 0 {
        let alarm = timer::add(hal::time::now(), me.arc());
        park(me, Sleep::Deep);
        timer::cancel(alarm);
    }
}

/// Puts a thread that was taken out of PARKED into a queue. `follow`: its waker seems about to sleep.
fn enqueue(thread: Arc<Thread>, follow: bool) {
    let here = hart::id();
    let sched = &thread.sched;
    let target = if thread.context.on_hart() {
        sched.hart()
    } else {
        let follow = follow && CPUS.at(here).waiting.load(Ordering::Relaxed) == 0;
        place::choose(sched.hart(), here, IDLE.load(Ordering::Relaxed), sched.affinity(), follow)
    };
    if target == here {
        enqueue_here(thread, here);
    } else {
        enqueue_there(thread, target);
    }
}

#[inline]
fn enqueue_here(thread: Arc<Thread>, here: usize) {
    let cpu = CPUS.at(here);
    let tick = cpu.tick.load(Ordering::Relaxed);
    let mut run = cpu.run.lock();
    if run.queue.is_empty() && !run.is_idling() {
        if tick == u64::MAX
            && let Some(running) = &run.current
        {
            // Without a tick nobody has charged the running thread for as long as it ran alone.
            let now = hal::time::now();
            cpu.vruntime.store(running.sched.charge(now), Ordering::Relaxed);
            ensure_tick(cpu, now);
        }
        run.queue.raise_floor(cpu.vruntime.load(Ordering::Relaxed));
    }
    let at = thread.sched.place(run.queue.floor(), bonus());
    run.queue.push(at, thread);
    cpu.waiting.store(run.queue.len(), Ordering::Relaxed);
    if at.saturating_add(grain()) < cpu.vruntime.load(Ordering::Relaxed)
        && let Some(running) = &run.current
    {
        running.context.raise(Work::RESCHED);
    }
}

#[cold]
fn enqueue_there(thread: Arc<Thread>, target: usize) {
    let cpu = CPUS.at(target);
    let mut run = cpu.run.lock();
    let at = thread.sched.place(run.queue.floor(), bonus());
    run.queue.push(at, thread);
    // Before the look at IDLE, for every hart: an idle one looks at its queue after it has said so.
    cpu.waiting.store(run.queue.len(), Ordering::SeqCst);
    let claimed = claim_idle(target);
    let preempts = at.saturating_add(grain()) < cpu.vruntime.load(Ordering::Relaxed);
    let disturb = !claimed && (preempts || cpu.tick.load(Ordering::Relaxed) == u64::MAX);
    if disturb && let Some(running) = &run.current {
        // It is busy: it looks at its queue on the way to user mode, and arms its tick.
        running.context.raise(Work::RESCHED);
    }
    drop(run);
    if claimed || disturb {
        hart::send_reschedule(target);
    }
}

/// Takes a hart out of the idle ones; the caller interrupts it if this is true.
fn claim_idle(target: usize) -> bool {
    IDLE.fetch_and(!(1 << target), Ordering::SeqCst) >> target & 1 != 0
}

/// Interrupts an idle hart, if there is one, so that it takes what waits here.
pub(super) fn call_for_help() {
    let idle = IDLE.load(Ordering::Relaxed) & !(1 << hart::id());
    if idle != 0 {
        let helper = idle.trailing_zeros() as usize;
        if claim_idle(helper) {
            hart::send_reschedule(helper);
        }
    }
}

/// Starts a new thread.
pub(crate) fn start(thread: &Arc<Thread>) {
    thread.wake();
}

/// Wake-ups through a wait queue come from system calls that pass data on (pipes, terminals, exits), whose callers mostly
/// wait for the answer next: the woken thread is queued behind them. If they do not, the tick finds it another hart.
impl alloc::task::Wake for Thread {
    fn wake(self: Arc<Self>) {
        self.wake_from(true);
    }

    #[inline]
    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_from(true);
    }
}

impl Expire for Thread {
    fn expire(self: Arc<Self>) {
        Thread::wake(&self);
    }
}
