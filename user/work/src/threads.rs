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
        for _ in 0..1_000 {
            if RUNNING.load(Ordering::Acquire) as usize == count {
                return Ok(others);
            }
            kit::clock::sleep(100_000);
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
