//! Floating-point registers belong to their task: through preemption, calls, signals and fork; exec gives zeroes.

use crate::registers::compete;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use kit::check::{Must, Outcome};
use kit::random::Random;
use kit::registers::{self, Floats};
use kit::signal;
use kit::thread::Thread;
use kit::uapi::signal::{SIGALRM, SIGUSR1};
use kit::uapi::{Siginfo, Ucontext, nr};
use kit::{call, child, clock, ensure, equal};
use rt::tap::Test;

pub const TESTS: &[Test] = &[
    Test::new("floats/first-use-is-zero", first_use),
    Test::new("floats/kept-over-calls", calls),
    Test::new("floats/kept-while-others-use-them", others),
    Test::new("floats/threads-have-their-own", threads),
    Test::new("floats/fork-child-inherits", fork_child),
    Test::new("floats/signal-handler-cannot-spoil-them", spoiled),
    Test::new("floats/signal-frame-has-them", framed),
];

fn same(wanted: &Floats, reason: &'static str) -> Outcome {
    let found = registers::floats();
    for (index, (got, want)) in found.iter().zip(wanted).enumerate() {
        if got != want {
            rt::println!("# f{index} (32: fcsr): {got:#x}, wanted {want:#x}");
            return Err(reason);
        }
    }
    Ok(())
}

fn first_use() -> Outcome {
    // A process that has just been forked from one that never used them.
    same(&[0; 33], "a register is not zero at first use")
}

fn calls() -> Outcome {
    let mut random = Random::new(1);
    for _ in 0..50 {
        let pattern = registers::float_pattern(&mut random);
        registers::fill_floats(&pattern);
        call!(nr::GETPPID);
        call!(nr::SCHED_YIELD);
        clock::sleep(200_000);
        same(&pattern, "a call changed a floating-point register")?;
    }
    Ok(())
}

fn own_pattern(seed: u64, milliseconds: u64) -> Outcome {
    let mut random = Random::new(seed);
    let end = clock::now() + milliseconds * 1_000_000;
    while clock::now() < end {
        let pattern = registers::float_pattern(&mut random);
        registers::fill_floats(&pattern);
        let mut given = registers::pattern(&mut random);
        given[registers::A7] = 300_000;
        registers::spin(&mut given);
        same(&pattern, "another task's floating-point registers")?;
        if random.below(2) == 0 {
            call!(nr::SCHED_YIELD);
            same(&pattern, "another task's floating-point registers after a yield")?;
        }
    }
    Ok(())
}

fn others() -> Outcome {
    compete(1)?;
    let mut children = [0; 4];
    for (index, child) in children.iter_mut().enumerate() {
        *child = child::start(|| own_pattern(index as u64 + 20, 400))?;
    }
    own_pattern(2, 400)?;
    children.into_iter().try_for_each(child::finish)
}

static FAILED: AtomicU32 = AtomicU32::new(0);

extern "C" fn thread(seed: usize) -> usize {
    if own_pattern(seed as u64, 300).is_err() {
        FAILED.store(1, Relaxed);
    }
    0
}

fn threads() -> Outcome {
    let threads = [30, 31, 32].map(|seed| Thread::start(thread, seed));
    own_pattern(33, 300)?;
    for thread in threads {
        thread.must("thread")?.join();
    }
    equal!(FAILED.load(Relaxed), 0, "a thread saw another's registers");
    Ok(())
}

fn fork_child() -> Outcome {
    let mut random = Random::new(3);
    for _ in 0..10 {
        let pattern = registers::float_pattern(&mut random);
        registers::fill_floats(&pattern);
        let child = child::start(|| {
            same(&pattern, "the child's registers differ from the parent's")?;
            registers::fill_floats(&[!0; 33].map(|word: u64| word & 0x1f));
            call!(nr::SCHED_YIELD);
            Ok(())
        })?;
        same(&pattern, "fork changed the parent's registers")?;
        child::finish(child)?;
        same(&pattern, "the child changed the parent's registers")?;
    }
    Ok(())
}

static TAKEN: AtomicU32 = AtomicU32::new(0);

extern "C" fn spoil(_: i32, _: *const Siginfo, _: *mut Ucontext) {
    let taken = TAKEN.fetch_add(1, Relaxed);
    registers::fill_floats(&registers::float_pattern(&mut Random::new(u64::from(taken) + 500)));
}

fn spoiled() -> Outcome {
    signal::handle(SIGALRM, spoil, 0).must("sigaction")?;
    signal::handle(SIGUSR1, spoil, 0).must("sigaction")?;
    signal::timer(1_000, 1_000);
    let mut random = Random::new(4);
    let limit = clock::now() + 10_000_000_000;
    while TAKEN.load(Relaxed) < 80 {
        ensure!(clock::now() < limit, "too few signals");
        let pattern = registers::float_pattern(&mut random);
        registers::fill_floats(&pattern);
        signal::raise(SIGUSR1);
        let mut given = registers::pattern(&mut random);
        given[registers::A7] = 200_000;
        registers::spin(&mut given);
        same(&pattern, "a handler changed the interrupted registers")?;
    }
    signal::timer(0, 0);
    Ok(())
}

/// The handler sees the interrupted registers in the frame, and what it writes there is loaded.
extern "C" fn increment(_: i32, _: *const Siginfo, context: *mut Ucontext) {
    // SAFETY: the frame is ours until we return.
    let frame = unsafe { &mut (*context).uc_mcontext };
    frame.fpregs.iter_mut().for_each(|word| *word = word.wrapping_add(1));
    frame.fcsr ^= 0x1f;
}

fn framed() -> Outcome {
    signal::handle(SIGUSR1, increment, 0).must("sigaction")?;
    let mut pattern = registers::float_pattern(&mut Random::new(5));
    registers::fill_floats(&pattern);
    signal::raise(SIGUSR1);
    for (index, word) in pattern.iter_mut().enumerate() {
        *word = if index == 32 { *word ^ 0x1f } else { word.wrapping_add(1) };
    }
    same(&pattern, "what the handler wrote to the frame was not loaded")
}
