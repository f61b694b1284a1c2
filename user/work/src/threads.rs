//! Threads: on other harts, taking turns, waking each other.

use crate::meter::{Lack, Meter, Outcome};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use kit::memory;
use kit::thread::{self, Thread};
use kit::uapi::nr;
use kit::{attempt, call};

/// Keeps the calling thread on one hart.
///
/// # Errors
/// As sched_setaffinity(2): there is no such hart.
pub fn pin(hart: usize) -> Result<(), Lack> {
    let set = 1_u64 << hart;
    attempt!(nr::SCHED_SETAFFINITY, 0, 8, &raw const set)?;
    Ok(())
}

static STOP: AtomicBool = AtomicBool::new(false);
static RUNNING: AtomicU32 = AtomicU32::new(0);
/// The hart that the next thread of [`Others`] goes to.
static HART: AtomicU32 = AtomicU32::new(1);

/// Threads that run on harts of their own, using a page, until they are stopped.
pub struct Others {
    threads: [Option<Thread>; 7],
}

extern "C" fn use_page(page: usize) -> usize {
    let hart = HART.fetch_add(1, Ordering::AcqRel);
    if pin(hart as usize).is_ok() {
        RUNNING.fetch_add(1, Ordering::AcqRel);
    }
    while !STOP.load(Ordering::Acquire) {
        memory::peek(page);
    }
    0
}

impl Others {
    /// Starts `count` of them on harts 1 and up, and waits until they run there.
    ///
    /// # Errors
    /// Threads cannot be made, or not pinned.
    pub fn start(count: usize, page: usize) -> Result<Self, Lack> {
        let mut others = Self { threads: [const { None }; 7] };
        for place in others.threads.iter_mut().take(count) {
            *place = Some(Thread::start(use_page, page)?);
        }
        if all_run(count) {
            return Ok(others);
        }
        others.stop();
        Err(Lack::Because("threads do not get to other harts"))
    }

    /// Ends them.
    pub fn stop(self) {
        STOP.store(true, Ordering::Release);
        self.threads.into_iter().flatten().for_each(Thread::join);
    }
}

/// Waits until `count` threads run where they belong, and says whether they do.
fn all_run(count: usize) -> bool {
    (0..1_000).any(|_| {
        let all = RUNNING.load(Ordering::Acquire) as usize == count;
        if !all {
            kit::clock::sleep(100_000);
        }
        all
    })
}

/// A work of several threads, by number.
type Work<'a> = &'a (dyn Fn(usize) + Sync);

/// What a thread of [`together`] is told.
struct Member<'a> {
    hart: usize,
    work: Work<'a>,
}

static BEGIN: AtomicBool = AtomicBool::new(false);
static DONE: AtomicU32 = AtomicU32::new(0);

extern "C" fn take_part(member: usize) -> usize {
    // SAFETY: `together` keeps it where it is until this thread has ended.
    let member = unsafe { &*(member as *const Member<'_>) };
    if pin(member.hart).is_ok() {
        RUNNING.fetch_add(1, Ordering::AcqRel);
    }
    let stopped = || STOP.load(Ordering::Acquire);
    while !BEGIN.load(Ordering::Acquire) && !stopped() {}
    if !stopped() {
        (member.work)(member.hart);
        DONE.fetch_add(1, Ordering::AcqRel);
    }
    // A thread's end is no part of the work.
    while !stopped() {}
    0
}

/// Has `harts` threads work at once, number i on hart i, the calling one being number 0. When all are there, `measure` is
/// called with what begins the work, does the caller's part and waits for the others.
///
/// # Errors
/// Threads cannot be made, or not pinned; or as `measure`.
pub fn together(harts: usize, work: Work<'_>, measure: impl FnOnce(&dyn Fn()) -> Outcome) -> Outcome {
    pin(0)?;
    let members: [Member<'_>; 8] = core::array::from_fn(|hart| Member { hart, work });
    let mut others = Others { threads: [const { None }; 7] };
    for (place, member) in others.threads.iter_mut().zip(&members[1..]).take(harts - 1) {
        match Thread::start(take_part, core::ptr::from_ref(member) as usize) {
            Ok(thread) => *place = Some(thread),
            Err(error) => {
                others.stop();
                return Err(error.into());
            }
        }
    }
    let outcome = if all_run(harts - 1) {
        measure(&|| {
            BEGIN.store(true, Ordering::Release);
            work(0);
            while DONE.load(Ordering::Acquire) as usize != harts - 1 {}
        })
    } else {
        Err(Lack::Because("threads do not get to other harts"))
    };
    others.stop();
    outcome
}

static TURN: AtomicU32 = AtomicU32::new(0);
const OURS: u32 = 0;
const THEIRS: u32 = 1;
const END: u32 = 2;

extern "C" fn answer(_: usize) -> usize {
    loop {
        match TURN.load(Ordering::Acquire) {
            THEIRS => {
                TURN.store(OURS, Ordering::Release);
                thread::wake(&TURN, 1);
            }
            OURS => drop(thread::wait(&TURN, OURS, None)),
            _ => return 0,
        }
    }
}

/// Two threads that hand a word to each other.
pub fn futex_round_trip(meter: &mut Meter) -> Outcome {
    let other = Thread::start(answer, 0)?;
    let outcome = meter.each(|| {
        TURN.store(THEIRS, Ordering::Release);
        thread::wake(&TURN, 1);
        while TURN.load(Ordering::Acquire) == THEIRS {
            let _ = thread::wait(&TURN, THEIRS, None);
        }
        Ok(())
    });
    TURN.store(END, Ordering::Release);
    thread::wake(&TURN, 1);
    other.join();
    outcome
}

extern "C" fn yield_too(_: usize) -> usize {
    while !STOP.load(Ordering::Acquire) {
        call!(nr::SCHED_YIELD);
    }
    0
}

/// Two threads on one hart that yield to each other.
pub fn switch(meter: &mut Meter) -> Outcome {
    pin(0)?;
    let other = Thread::start(yield_too, 0)?;
    let outcome = meter.each(|| {
        attempt!(nr::SCHED_YIELD)?;
        Ok(())
    });
    STOP.store(true, Ordering::Release);
    other.join();
    outcome
}
