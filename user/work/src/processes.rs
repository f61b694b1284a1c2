//! Several processes: who wakes whom, and who makes whom.

use crate::memory::small_pages;
use crate::meter::{Lack, Meter, Outcome, holds};
use crate::threads::pin;
use core::sync::atomic::{AtomicU32, Ordering};
use kit::memory::Zeroes;
use kit::uapi::nr;
use kit::{attempt, call, memory};
use rt::io;
use rt::process::{self, Ended, Fork};

/// One byte to another process and one back, over two pipes.
pub fn pipe_round_trip(meter: &mut Meter) -> Outcome {
    let (request_read, request_write) = io::pipe()?;
    let (answer_read, answer_write) = io::pipe()?;
    let Fork::Parent(child) = process::fork()? else {
        let _ = io::close(request_write);
        let mut byte = [0_u8];
        while io::read(request_read, &mut byte) == Ok(1) {
            let _ = io::write(answer_write, &byte);
        }
        process::exit(0);
    };
    let mut byte = [0_u8];
    let outcome = meter.each(|| {
        io::write(request_write, b"x")?;
        holds(io::read(answer_read, &mut byte)? == 1, "no answer")
    });
    io::close(request_write)?;
    process::wait(child)?;
    outcome
}

/// Two processes on one hart that yield to each other.
pub fn switch(meter: &mut Meter) -> Outcome {
    let stop = memory::shared_value::<AtomicU32>()?;
    pin(0)?;
    let Fork::Parent(child) = process::fork()? else {
        while stop.load(Ordering::Acquire) == 0 {
            call!(nr::SCHED_YIELD);
        }
        process::exit(0);
    };
    let outcome = meter.each(|| {
        attempt!(nr::SCHED_YIELD)?;
        Ok(())
    });
    stop.store(1, Ordering::Release);
    process::wait(child)?;
    outcome
}

/// What the programs of [`together`] tell each other.
struct Stage {
    ready: AtomicU32,
    begin: AtomicU32,
    done: AtomicU32,
    stop: AtomicU32,
}

// SAFETY: atomics, of which zeroes are a value.
unsafe impl Zeroes for Stage {}

fn take_part(stage: &Stage, hart: usize, rounds: usize, work: impl Fn(usize) -> Result<(), Lack>) -> Result<(), Lack> {
    pin(hart)?;
    work(rounds.div_ceil(10))?;
    stage.ready.fetch_add(1, Ordering::AcqRel);
    while stage.begin.load(Ordering::Acquire) == 0 {}
    work(rounds)?;
    stage.done.fetch_add(1, Ordering::AcqRel);
    // A program's end is no part of the work.
    while stage.stop.load(Ordering::Acquire) == 0 {}
    Ok(())
}

/// Has `harts` programs do `rounds` of `work` at once, number i on hart i, the calling one being number 0. All of them are
/// there and have warmed up before the first begins.
///
/// # Errors
/// Programs cannot be made, or not pinned; or as `work`.
pub fn together(harts: usize, work: impl Fn(usize) -> Result<(), Lack>, rounds: usize, meter: &mut Meter) -> Outcome {
    let stage = memory::shared_value::<Stage>()?;
    let others = harts as u32 - 1;
    for hart in 1..harts {
        if let Fork::Child = process::fork()? {
            process::exit(u8::from(take_part(stage, hart, rounds, &work).is_err()));
        }
    }
    pin(0)?;
    work(rounds.div_ceil(10))?;
    let ready = (0..1_000).any(|_| {
        kit::clock::sleep(100_000);
        stage.ready.load(Ordering::Acquire) == others
    });
    holds(ready, "programs do not get to other harts")?;
    let outcome = meter.between(|| {
        stage.begin.store(1, Ordering::Release);
        work(rounds)?;
        while stage.done.load(Ordering::Acquire) != others {}
        Ok(())
    });
    stage.stop.store(1, Ordering::Release);
    for _ in 1..harts {
        holds(process::wait(-1)?.1 == Ended::Exited(0), "a program ended otherwise")?;
    }
    outcome
}

/// Waits for `child`, which must exit with `status`.
fn exits(child: i32, status: u8) -> Result<(), Lack> {
    holds(process::wait(child)? == (child, Ended::Exited(status)), "the child ended otherwise")
}

pub fn fork_exit_wait(meter: &mut Meter) -> Outcome {
    meter.each(|| match process::fork()? {
        Fork::Child => process::exit(7),
        Fork::Parent(child) => exits(child, 7),
    })
}

/// As [`fork_exit_wait`], by a program that has written to `pages` more, none of them a huge one: each costs the fork a
/// copy of its entry, and the end a release.
pub fn fork_with(meter: &mut Meter, pages: usize) -> Outcome {
    small_pages(pages)?;
    fork_exit_wait(meter)
}

pub fn fork_exec_wait(meter: &mut Meter) -> Outcome {
    let argv = [c"busybox".as_ptr(), c"true".as_ptr(), core::ptr::null()];
    meter.each(|| match process::fork()? {
        Fork::Child => {
            // SAFETY: both arrays hold strings and end with a null pointer.
            unsafe { process::execute(c"/bin/busybox", argv.as_ptr(), meter.args.environment_pointer()) };
            process::exit(127)
        }
        Fork::Parent(child) => exits(child, 0),
    })
}
