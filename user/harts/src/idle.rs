//! Harts that wait for interrupts: timers, wake-ups, signals and the console reach each of them, whatever the others do.

use crate::team::{LOST, MAX};
use core::sync::atomic::{AtomicU32, Ordering::SeqCst};
use kit::check::{Must, Outcome};
use kit::thread::{self, Thread};
use kit::uapi::signal::{SIGALRM, SIGUSR1, sigmask};
use kit::uapi::{Errno, Siginfo, Timespec, Ucontext, nr};
use kit::{call, clock, ensure, equal, harts, signal};
use rt::tap::Test;
use rt::{io, process};

pub const TESTS: &[Test] = &[
    Test::new("idle/timers-wake-each-hart", || each_hart(false, timers)),
    Test::new("idle/timers-wake-the-only-idle-hart", || each_hart(true, timers)),
    Test::new("idle/each-hart-wakes-each-other", wake_each_other),
    Test::new("idle/signals-reach-idle-and-busy-harts", signals),
    Test::new("idle/a-timer-of-one-hart-wakes-another", elsewhere),
];

/// How long a timer is set for.
const SPAN: u64 = 3_000_000;

static SPIN: AtomicU32 = AtomicU32::new(0);
static WORD: AtomicU32 = AtomicU32::new(0);
static TAKEN: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_: i32, _: *const Siginfo, _: *mut Ucontext) {
    TAKEN.fetch_add(1, SeqCst);
}

/// Keeps a hart (the argument's low byte) busy until [`SPIN`] is no longer what the rest of it says.
extern "C" fn spin(argument: usize) -> usize {
    let _ = harts::pin(argument & 0xff);
    while SPIN.load(SeqCst) as usize == argument >> 8 {
        core::hint::spin_loop();
    }
    0
}

/// Runs `body` on `hart`, with all others idle or, if they are to be `busy`, running other threads.
fn on_hart(hart: usize, busy: bool, body: impl FnOnce() -> Outcome) -> Outcome {
    let all = harts::count();
    harts::pin(hart).must("sched_setaffinity")?;
    let mut threads = [const { None }; MAX];
    for other in (0..all).filter(|other| busy && *other != hart) {
        threads[other] = Some(Thread::start(spin, (SPIN.load(SeqCst) as usize) << 8 | other).must("thread")?);
    }
    let result = body();
    SPIN.fetch_add(1, SeqCst);
    threads.into_iter().flatten().for_each(Thread::join);
    harts::allow((1 << all) - 1).must("sched_setaffinity")?;
    result
}

fn each_hart(busy: bool, body: fn() -> Outcome) -> Outcome {
    (0..harts::count()).try_for_each(|hart| {
        on_hart(hart, busy, || {
            body()?;
            equal!(harts::here(), hart, "the hart of a thread that may run on one only");
            Ok(())
        })
    })
}

/// Sleeps in every way there is.
fn timers() -> Outcome {
    signal::handle(SIGALRM, count, 0).must("sigaction")?;
    let open = signal::block(sigmask(SIGALRM));
    for way in 0..4 {
        let start = clock::now();
        match way {
            0 => equal!(clock::sleep(SPAN), 0, "nanosleep"),
            1 => equal!(thread::wait(&WORD, WORD.load(SeqCst), Some(SPAN)), Err(Errno::ETIMEDOUT), "futex"),
            2 => {
                let limit = Timespec::from_ns(SPAN);
                equal!(call!(nr::PPOLL, 0, 0, &raw const limit, 0, 8), 0, "ppoll");
            }
            _ => {
                let before = TAKEN.load(SeqCst);
                signal::timer(SPAN as i64 / 1_000, 0);
                equal!(call!(nr::RT_SIGSUSPEND, &raw const open, signal::SET_SIZE), -4, "sigsuspend");
                equal!(TAKEN.load(SeqCst), before + 1, "signals of the timer");
            }
        }
        let slept = clock::now() - start;
        ensure!(slept >= SPAN, "it ended early");
        ensure!(slept < SPAN + LOST / 3, "it ended much too late");
    }
    signal::set_mask(open);
    Ok(())
}

/// Waits for [`WORD`] to change on the hart of this number, and answers by changing it again.
extern "C" fn answer(hart: usize) -> usize {
    let _ = harts::pin(hart);
    for turn in 0..TURNS {
        while WORD.load(SeqCst) < 2 * turn + 1 {
            let _ = thread::wait(&WORD, 2 * turn, None);
        }
        WORD.store(2 * turn + 2, SeqCst);
        thread::wake(&WORD, 1);
    }
    0
}

const TURNS: u32 = 10;

fn wake_each_other() -> Outcome {
    let all = harts::count();
    for (from, to) in (0..all * all).map(|pair| (pair / all, pair % all)) {
        WORD.store(0, SeqCst);
        on_hart(from, false, || {
            let thread = Thread::start(answer, to).must("thread")?;
            for turn in 0..TURNS {
                WORD.store(2 * turn + 1, SeqCst);
                thread::wake(&WORD, 1);
                while WORD.load(SeqCst) < 2 * turn + 2 {
                    let result = thread::wait(&WORD, 2 * turn + 1, Some(LOST));
                    ensure!(result != Err(Errno::ETIMEDOUT), "no answer");
                }
            }
            thread.join();
            Ok(())
        })?;
    }
    Ok(())
}

/// Takes signals until [`SPIN`] changes, in a sleep or while it runs, as the second bit of the argument says.
extern "C" fn take(argument: usize) -> usize {
    let _ = harts::pin(argument >> 1);
    let until = SPIN.load(SeqCst);
    WORD.fetch_add(1, SeqCst);
    while SPIN.load(SeqCst) == until {
        if argument & 1 == 0 {
            clock::sleep(10 * LOST);
        }
    }
    0
}

fn signals() -> Outcome {
    signal::handle(SIGUSR1, count, 0).must("sigaction")?;
    let all = harts::count();
    for (hart, busy) in (0..2 * all).map(|pair| (pair / 2, pair % 2)) {
        let started = WORD.load(SeqCst);
        let thread = Thread::start(take, hart << 1 | busy).must("thread")?;
        while WORD.load(SeqCst) == started {
            clock::sleep(100_000);
        }
        for turn in 0..TURNS {
            clock::sleep(if turn % 2 == 0 { 300_000 } else { 0 });
            let before = TAKEN.load(SeqCst);
            equal!(call!(nr::TGKILL, process::id(), thread.id, SIGUSR1), 0, "tgkill");
            let end = clock::now() + LOST;
            while TAKEN.load(SeqCst) == before {
                ensure!(clock::now() < end, "the signal does not arrive");
            }
        }
        SPIN.fetch_add(1, SeqCst);
        call!(nr::TGKILL, process::id(), thread.id, SIGUSR1);
        thread.join();
    }
    Ok(())
}

/// Lets SIGALRM through on the hart of this number.
extern "C" fn take_alarm(hart: usize) -> usize {
    let _ = harts::pin(hart);
    let open = signal::mask() & !sigmask(SIGALRM);
    call!(nr::RT_SIGSUSPEND, &raw const open, signal::SET_SIZE);
    0
}

/// The process's timer, set on one hart, whose signal only a thread on another takes.
fn elsewhere() -> Outcome {
    signal::handle(SIGALRM, count, 0).must("sigaction")?;
    signal::block(sigmask(SIGALRM));
    let all = harts::count();
    for (from, to) in (0..all * all).map(|pair| (pair / all, pair % all)) {
        on_hart(from, false, || {
            let before = TAKEN.load(SeqCst);
            let thread = Thread::start(take_alarm, to).must("thread")?;
            let start = clock::now();
            signal::timer(SPAN as i64 / 1_000, 0);
            thread.join();
            equal!(TAKEN.load(SeqCst), before + 1, "signals of the timer");
            ensure!(clock::now() - start < LOST, "the signal came much too late");
            Ok(())
        })?;
    }
    Ok(())
}

/// Reads a line from the console on each hart, all others idle or all busy.
pub fn console() -> Outcome {
    for (hart, busy) in (0..2 * harts::count()).map(|pair| (pair / 2, pair % 2 == 1)) {
        on_hart(hart, busy, || {
            io::write_all(io::STDOUT, b"?\n").must("write")?;
            let mut line = [0; 16];
            let count = io::read(io::STDIN, &mut line).must("read")?;
            ensure!(&line[..count] == b"here\n", "another line than was typed");
            Ok(())
        })?;
    }
    Ok(())
}
