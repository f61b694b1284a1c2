//! Signals from a timer and between processes, and registers under them.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use kit::check::{Must, Outcome};
use kit::random::Random;
use kit::registers;
use kit::uapi::signal::{SIGALRM, SIGKILL, SIGUSR1, sigmask};
use kit::uapi::{Siginfo, Ucontext, nr};
use kit::{call, child, clock, ensure, equal, signal};
use rt::process;

static TAKEN: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_: i32, _: *const Siginfo, _: *mut Ucontext) {
    registers::fill_floats(&registers::float_pattern(&mut Random::new(u64::from(TAKEN.fetch_add(1, Relaxed)))));
}

/// A counting loop and calls, with all registers known, under a timer's signals.
pub fn timer_storm(random: &mut Random) -> Outcome {
    TAKEN.store(0, Relaxed);
    signal::handle(SIGALRM, count, 0).must("sigaction")?;
    signal::timer(300, 300);
    let end = clock::now() + 5_000_000_000;
    while TAKEN.load(Relaxed) < 10 && clock::now() < end {
        let mut given = registers::pattern(random);
        given[registers::A7] = 50_000;
        let left = registers::spin(&mut given);
        ensure!(registers::difference(&given, &left, &[registers::A7]) == 0, "a register under a timer");
        registers::checked_call(random, nr::GETPPID, &[])?;
    }
    signal::timer(0, 0);
    ensure!(TAKEN.load(Relaxed) >= 10, "too few signals");
    Ok(())
}

/// Two processes that send each other a signal in turn, each waiting with the others blocked.
pub fn exchange(_: &mut Random) -> Outcome {
    TAKEN.store(0, Relaxed);
    signal::handle(SIGUSR1, count, 0).must("sigaction")?;
    let before = signal::block(sigmask(SIGUSR1));
    let open = before & !sigmask(SIGUSR1);
    let turn = |other: i32, first: bool| -> Outcome {
        for round in 1..=20 {
            if first {
                process::kill(other, SIGUSR1 as i32).must("kill")?;
            }
            while TAKEN.load(Relaxed) < round {
                equal!(call!(nr::RT_SIGSUSPEND, &raw const open, signal::SET_SIZE), -4, "sigsuspend");
            }
            if !first {
                process::kill(other, SIGUSR1 as i32).must("kill")?;
            }
        }
        Ok(())
    };
    let parent = process::id();
    let other = child::start(|| turn(parent, false))?;
    let result = turn(other, true);
    if result.is_err() {
        let _ = process::kill(other, SIGKILL as i32);
    }
    signal::set_mask(before);
    result.and(child::finish(other))
}

/// Floating-point registers of several tasks, with yields between.
pub fn floats(random: &mut Random) -> Outcome {
    let seed = random.next();
    let side = |seed: u64| -> Outcome {
        let mut random = Random::new(seed);
        for _ in 0..50 {
            let pattern = registers::float_pattern(&mut random);
            registers::fill_floats(&pattern);
            match random.below(3) {
                0 => drop(call!(nr::SCHED_YIELD)),
                1 => drop(clock::sleep(50_000)),
                _ => {
                    let mut given = registers::pattern(&mut random);
                    given[registers::A7] = 20_000;
                    registers::spin(&mut given);
                }
            }
            equal!(registers::floats(), pattern, "floating-point registers");
        }
        Ok(())
    };
    let other = child::start(|| side(seed + 1))?;
    side(seed)?;
    child::finish(other)
}
