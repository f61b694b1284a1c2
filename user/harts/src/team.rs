//! Threads that do the same at once, one on each hart.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use kit::check::{Must, Outcome};
use kit::thread::{self, Thread};
use kit::{clock, ensure, harts};
use rt::process;

/// Most threads of a team.
pub const MAX: usize = 8;

/// Nanoseconds after which what has not come will not come. The host may be busy.
pub const LOST: u64 = 30_000_000_000;

static SCALE: AtomicU32 = AtomicU32::new(1);

/// Has all tests run so many times as long.
pub fn set_scale(factor: u32) {
    SCALE.store(factor, SeqCst);
}

/// A number of rounds, as long as is wanted.
pub fn scaled(rounds: u32) -> u32 {
    rounds * SCALE.load(SeqCst)
}

static WORK: AtomicUsize = AtomicUsize::new(0);
static SIZE: AtomicUsize = AtomicUsize::new(0);
static ARRIVED: AtomicU32 = AtomicU32::new(0);

/// How many there are.
pub fn size() -> usize {
    SIZE.load(SeqCst)
}

extern "C" fn member(index: usize) -> usize {
    // SAFETY: `run` has stored a function of that type.
    let work = unsafe { core::mem::transmute::<usize, fn(usize) -> Outcome>(WORK.load(SeqCst)) };
    if let Err(reason) = harts::pin(index % harts::count()).must("sched_setaffinity").and_then(|()| work(index)) {
        rt::println!("# thread {index}: {reason}");
        process::exit(1);
    }
    0
}

/// Runs `work` on `size` threads, each on a hart of its own as far as there are enough, with their numbers. One that fails
/// ends the process. One team at a time.
pub fn run(size: usize, work: fn(usize) -> Outcome) -> Outcome {
    let size = size.min(MAX);
    WORK.store(work as *const () as usize, SeqCst);
    SIZE.store(size, SeqCst);
    ARRIVED.store(0, SeqCst);
    let mut threads = [const { None }; MAX];
    for (index, slot) in threads.iter_mut().enumerate().take(size) {
        *slot = Some(Thread::start(member, index).must("thread")?);
    }
    threads.into_iter().flatten().for_each(Thread::join);
    Ok(())
}

/// Waits until all have come here, for the `turn`th time (from 1 on).
pub fn meet(turn: usize) -> Outcome {
    ARRIVED.fetch_add(1, SeqCst);
    thread::wake(&ARRIVED, u32::MAX >> 1);
    await_at_least(&ARRIVED, (turn * size()) as u32)
}

/// Changes a word that others wait for.
pub fn tell(word: &AtomicU32, value: u32) {
    word.store(value, SeqCst);
    thread::wake(word, u32::MAX >> 1);
}

/// Sleeps until the word is at least this. Whoever changes it has to wake.
pub fn await_at_least(word: &AtomicU32, wanted: u32) -> Outcome {
    loop {
        let seen = word.load(SeqCst);
        if seen >= wanted {
            return Ok(());
        }
        let start = clock::now();
        let _ = thread::wait(word, seen, Some(LOST));
        ensure!(clock::now() - start < LOST / 2, "a wake-up is lost, or another thread is stuck");
    }
}

/// Looks until the condition holds.
pub fn until(condition: impl Fn() -> bool) -> Outcome {
    let end = clock::now() + LOST;
    while !condition() {
        ensure!(clock::now() < end, "what was awaited does not come");
        clock::sleep(200_000);
    }
    Ok(())
}
