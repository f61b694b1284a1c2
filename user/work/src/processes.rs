//! Several processes: who wakes whom, and who makes whom.

use crate::memory::small_pages;
use crate::meter::{Lack, Meter, Outcome, holds};
use crate::threads::pin;
use core::sync::atomic::{AtomicU32, Ordering};
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
