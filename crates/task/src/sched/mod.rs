//! The scheduler: a fair queue for each hart, a direct hand-over between tasks, no tick unless two want the same hart.
//!
//! # Sleeping and waking
//! A thread's state is one word, and every change of it is one atomic operation:
//!
//! ```text
//!              park(): CAS                    wake(): CAS, then enqueue
//!   RUNNING ───────────────────► PARKED ───────────────────────────────► RUNNING
//!   RUNNING ──wake(): CAS──► NOTIFIED ──park(): returns at once──► RUNNING
//! ```
//!
//! Whoever moves a thread out of PARKED, and nobody else, puts it into a queue; so it is in one queue at most. A thread
//! that was woken while its hart still saves its registers may be queued on that very hart only, which reaches its
//! queue when it is done; other harts do not steal it before ([`hal::task::Context::on_hart`]).
//!
//! # Who keeps the running thread alive
//! The hart's `current`. At a switch it moves to `last` (or back into the queue), where it stays until the hart's next
//! switch; so the stack of a thread that has exited is freed by another thread, never by itself.
//!
//! # Preemption
//! A tick is armed only while somebody waits in the queue, and left armed when the queue runs empty: two processes that
//! hand over to each other set the timer once a slice, not once a switch. Wake-ups preempt when the woken thread is
//! behind the running one by more than a grain.

mod entity;
mod place;
mod queue;
mod wake;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use hal::hart::{self, MAX_HARTS, PerHart};
use hal::sync::SpinLock;
use hal::task::{Work, switch};

use crate::seam::{Current, about_to_run, current};
use crate::thread::Thread;
use crate::wait::Sleep;
use crate::{cputimer, timer};
pub use entity::Sched;
use entity::{DEAD, PARKED, RUNNING};
use queue::{RunQueue, Virtual};
pub(crate) use wake::start;
use wake::{call_for_help, move_to_allowed};

/// A slice: how long a thread runs before another that waits is looked at. A second has 2^8 of them.
const SLICE_SHIFT: u32 = 8;

struct Run {
    queue: RunQueue<Arc<Thread>>,
    current: Option<Arc<Thread>>,
    last: Option<Arc<Thread>>,
    idle: Option<Arc<Thread>>,
}

impl Run {
    fn is_idling(&self) -> bool {
        match (&self.current, &self.idle) {
            (Some(current), Some(idle)) => Arc::ptr_eq(current, idle),
            _ => true,
        }
    }
}

struct Cpu {
    run: SpinLock<Run>,
    /// Length of the queue.
    waiting: AtomicUsize,
    /// Virtual time of the current thread when it was last charged.
    vruntime: AtomicU64,
    /// When the tick fires; `u64::MAX`: it is off.
    tick: AtomicU64,
}

impl Cpu {
    const fn new() -> Self {
        Self {
            run: SpinLock::new(Run { queue: RunQueue::new(), current: None, last: None, idle: None }),
            waiting: AtomicUsize::new(0),
            vruntime: AtomicU64::new(0),
            tick: AtomicU64::new(u64::MAX),
        }
    }
}

static CPUS: PerHart<Cpu> = PerHart::new([const { Cpu::new() }; MAX_HARTS]);
/// Harts that wait for work; taking a bit out is the promise to interrupt that hart.
static IDLE: AtomicUsize = AtomicUsize::new(0);

#[inline]
fn slice() -> u64 {
    hal::time::ticks_per_second() >> SLICE_SHIFT
}

/// How far behind a woken thread may start: half a slice.
#[inline]
fn bonus() -> Virtual {
    slice() * 512
}

/// How much of a lead the running thread keeps before a wake-up takes the hart from it: a quarter of a slice.
#[inline]
fn grain() -> Virtual {
    slice() * 256
}

/// How far ahead of its hart's time a thread can get at most: 128 slices, or half a second of the others running.
#[inline]
fn horizon() -> Virtual {
    slice() * 1024 * 128
}

/// Makes room in every queue for `threads` threads, so that no wake-up ever allocates. False without memory.
pub(crate) fn reserve(threads: usize) -> bool {
    static ROOM: AtomicUsize = AtomicUsize::new(0);
    if threads <= ROOM.load(Ordering::Relaxed) {
        return true;
    }
    let room = threads.next_power_of_two().max(64);
    if !(0..hart::count()).all(|i| CPUS.at(i).run.lock().queue.reserve(room)) {
        return false;
    }
    ROOM.fetch_max(room, Ordering::Relaxed);
    true
}

/// Makes the running stack the hart's idle thread. Once a hart, before anything is woken on it.
pub(crate) fn adopt_idle(idle: Arc<Thread>) {
    idle.sched.running();
    idle.sched.since.store(hal::time::now(), Ordering::Relaxed);
    let mut run = CPUS.get().run.lock();
    run.idle = Some(idle.clone());
    run.current = Some(idle);
}

/// Runs threads for ever on this hart, and waits for interrupts when there are none.
pub fn idle() -> ! {
    let me = current();
    let bit = 1usize << hart::id();
    loop {
        reschedule(me, Leave::Idle);
        IDLE.fetch_or(bit, Ordering::SeqCst);
        if CPUS.get().waiting.load(Ordering::SeqCst) == 0 {
            if hart::count() > 1 {
                // Who changes the space that ran here last need not wake this hart for it.
                mm::activate_kernel();
            }
            hart::idle();
        }
        IDLE.fetch_and(!bit, Ordering::SeqCst);
    }
}

/// How a thread leaves its hart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leave {
    /// It is parked or dead.
    Gone,
    /// It goes on when nobody is more entitled.
    Preempted,
    /// It lets everybody who waits go first.
    Yield,
    /// It is the idle thread.
    Idle,
}

/// Gives the hart to the thread that is entitled to it, and returns when the caller gets it back. Interrupts are off.
fn reschedule(me: Current, how: Leave) {
    let cpu = CPUS.get();
    let now = hal::time::now();
    let vruntime = me.sched.charge(now);
    // Declared before the guard, so that it is dropped after the unlock: a thread's last reference frees a lot.
    let dead;
    let mut run = cpu.run.lock();
    dead = run.last.take();
    match how {
        Leave::Gone => {}
        Leave::Idle => {
            if run.queue.is_empty() && !steal(&mut run) {
                return;
            }
        }
        Leave::Preempted | Leave::Yield => {
            let first = run.queue.first();
            if first.is_none_or(|first| how == Leave::Preempted && first > vruntime) {
                cpu.vruntime.store(vruntime, Ordering::Relaxed);
                let waits = first.is_some();
                drop(run);
                if waits {
                    ensure_tick(cpu, now);
                }
                return;
            }
            if let Some(mine) = run.current.take() {
                let floor = run.queue.floor();
                let at = if how == Leave::Yield && !me.sched.is_realtime() { vruntime.max(floor) } else { vruntime };
                run.queue.push(at.min(floor.saturating_add(horizon())), mine);
            }
        }
    }
    if run.queue.is_empty() {
        steal(&mut run);
    }
    let next = match run.queue.pop() {
        Some((_, next)) => next,
        // Only a hart that is being set up has no idle thread.
        None => run.idle.clone().expect("the hart has an idle thread"),
    };
    let waiting = run.queue.len();
    cpu.waiting.store(waiting, Ordering::Relaxed);
    let next_ref = about_to_run(&next);
    next_ref.sched.since.store(now, Ordering::Relaxed);
    cpu.vruntime.store(next_ref.sched.vruntime.load(Ordering::Relaxed), Ordering::Relaxed);
    let same = core::ptr::eq(&raw const *next_ref, &raw const *me);
    let before = run.current.replace(next);
    if !same {
        run.last = before;
    }
    drop(run);
    drop(dead);
    if waiting != 0 {
        ensure_tick(cpu, now);
    }
    if next_ref.process.has_cpu_timer() {
        cputimer::watch(&next_ref.process, now);
    }
    if !same {
        me.counts.switched(how == Leave::Gone);
        next_ref.sched.hart.store(hart::id(), Ordering::Relaxed);
        // A kernel thread has no address space and borrows the last one's tables.
        next_ref.mm_slot().with(|mm| {
            if let Some(mm) = mm {
                mm.activate();
            }
        });
        switch(&me.context, &next_ref.context);
    }
}

/// Takes a thread that waits on another hart into this queue, if there is one.
fn steal(run: &mut Run) -> bool {
    let here = hart::id();
    for other in (0..hart::count()).filter(|&other| other != here) {
        let cpu = CPUS.at(other);
        if cpu.waiting.load(Ordering::Relaxed) == 0 {
            continue;
        }
        // Two harts that steal from each other would each hold its own queue: only a try.
        let Some(mut theirs) = cpu.run.try_lock() else { continue };
        let taken = theirs.queue.take_last(|t| !t.context.on_hart() && t.sched.affinity() >> here & 1 != 0);
        cpu.waiting.store(theirs.queue.len(), Ordering::Relaxed);
        drop(theirs);
        if let Some(thread) = taken {
            let at = thread.sched.place(run.queue.floor(), bonus());
            run.queue.push(at, thread);
            return true;
        }
    }
    false
}

#[inline]
fn ensure_tick(cpu: &Cpu, now: u64) {
    if cpu.tick.load(Ordering::Relaxed) == u64::MAX {
        // With a hart idle, who waits here for long should rather run there: that is looked at sooner.
        let idle = IDLE.load(Ordering::Relaxed) != 0;
        let at = now + if idle { slice() / 16 } else { slice() };
        cpu.tick.store(at, Ordering::Relaxed);
        timer::arm(at);
    }
}

/// The timer interrupt: serves timers, then the tick.
pub fn timer_interrupt() {
    let now = hal::time::now();
    timer::expire(now);
    let cpu = CPUS.get();
    let timed = {
        let run = cpu.run.lock();
        run.current.as_ref().filter(|t| t.process.has_cpu_timer()).map(|t| t.process.clone())
    };
    if let Some(process) = timed {
        cputimer::expire(&process);
    }
    let tick = cpu.tick.load(Ordering::Relaxed);
    if tick > now {
        if tick != u64::MAX {
            timer::arm(tick);
        }
        return;
    }
    cpu.tick.store(u64::MAX, Ordering::Relaxed);
    let run = cpu.run.lock();
    let (Some(first), Some(running)) = (run.queue.first(), run.current.as_ref()) else { return };
    let vruntime = running.sched.charge(now);
    cpu.vruntime.store(vruntime, Ordering::Relaxed);
    if first < vruntime {
        running.context.raise(Work::RESCHED);
    }
    drop(run);
    call_for_help();
    ensure_tick(cpu, now);
}

/// Serves RESCHED on the way to user mode.
pub(crate) fn preempt(me: Current) {
    me.context.clear(Work::RESCHED);
    move_to_allowed(me);
    if me.process.has_cpu_timer() {
        cputimer::watch(&me.process, hal::time::now());
    }
    reschedule(me, Leave::Preempted);
}

/// sched_yield(2).
pub fn yield_now() {
    let me = current();
    me.context.clear(Work::RESCHED);
    reschedule(me, Leave::Yield);
}

/// Sleeps until the next wake-up; false if there was one since the last park, and it did not sleep.
#[inline]
pub(crate) fn park(me: Current, sleep: Sleep) -> bool {
    me.sched.sleeping(sleep);
    if me.sched.state.compare_exchange(RUNNING, PARKED, Ordering::AcqRel, Ordering::Acquire).is_ok() {
        reschedule(me, Leave::Gone);
        true
    } else {
        // It was NOTIFIED. An exchange, not a store: it reads from the last wake-up, and so sees what that announced.
        me.sched.state.swap(RUNNING, Ordering::AcqRel);
        false
    }
}

/// The end of the running thread: everybody else has let go of it.
pub(crate) fn leave_for_ever() -> ! {
    let me = current();
    me.sched.state.store(DEAD, Ordering::Release);
    reschedule(me, Leave::Gone);
    unreachable!("a dead thread ran")
}

/// Runnable threads that wait on any hart, and harts that run one (/proc/loadavg, /proc/stat).
pub fn runnable() -> usize {
    let waiting: usize = (0..hart::count()).map(|i| CPUS.at(i).waiting.load(Ordering::Relaxed)).sum();
    let busy = hart::online_mask() & !IDLE.load(Ordering::Relaxed);
    waiting + busy.count_ones() as usize
}

/// Clock ticks for which a hart has had nothing to run; 0 for one that is not there or has not started.
pub fn idle_time(index: usize) -> u64 {
    if index >= hart::count() {
        return 0;
    }
    let run = CPUS.at(index).run.lock();
    let Some(idle) = &run.idle else { return 0 };
    // The idle thread is charged when it looks at its queue; what came since is added here.
    let since = idle.sched.since.load(Ordering::Relaxed);
    let open = if run.is_idling() { hal::time::now().saturating_sub(since) } else { 0 };
    idle.sched.time_run() + open
}

impl Thread {
    /// Clock ticks that the thread has run. What it has run since it was last charged counts too: a thread that has a
    /// hart to itself is not charged for as long as it runs.
    pub fn time_run(&self) -> u64 {
        let since = self.sched.since.load(Ordering::Relaxed);
        let charged = self.sched.time_run();
        if self.context.on_hart() { charged + hal::time::now().saturating_sub(since) } else { charged }
    }
}
