//! Several tasks: who wakes whom, and who makes whom.

use crate::timed;
use core::sync::atomic::{AtomicU32, Ordering};
use kit::memory;
use kit::thread::{self, Thread};
use rt::io;
use rt::process::{self, Ended, Fork};

/// One byte to another process and one back, over two pipes.
pub fn pipe_round_trip(rounds: u32, _: rt::Args) -> Option<u64> {
    let (request_read, request_write) = io::pipe().ok()?;
    let (answer_read, answer_write) = io::pipe().ok()?;
    let Fork::Parent(child) = process::fork().ok()? else {
        let _ = io::close(request_write);
        let mut byte = [0_u8];
        while io::read(request_read, &mut byte) == Ok(1) {
            let _ = io::write(answer_write, &byte);
        }
        process::exit(0);
    };
    let mut byte = [0_u8];
    let ticks = timed(rounds, || io::write(request_write, b"x") == Ok(1) && io::read(answer_read, &mut byte) == Ok(1));
    for file in [request_read, request_write, answer_read, answer_write] {
        io::close(file).ok()?;
    }
    process::wait(child).ok()?;
    ticks
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
pub fn futex_round_trip(rounds: u32, _: rt::Args) -> Option<u64> {
    TURN.store(OURS, Ordering::Release);
    let other = Thread::start(answer, 0).ok()?;
    let ticks = timed(rounds, || {
        TURN.store(THEIRS, Ordering::Release);
        thread::wake(&TURN, 1);
        while TURN.load(Ordering::Acquire) == THEIRS {
            let _ = thread::wait(&TURN, THEIRS, None);
        }
        true
    });
    TURN.store(END, Ordering::Release);
    thread::wake(&TURN, 1);
    other.join();
    ticks
}

pub fn fork_exit_wait(rounds: u32, _: rt::Args) -> Option<u64> {
    timed(rounds, || match process::fork() {
        Ok(Fork::Child) => process::exit(7),
        Ok(Fork::Parent(child)) => process::wait(child) == Ok((child, Ended::Exited(7))),
        Err(_) => false,
    })
}

/// As [`fork_exit_wait`], by a program that has written to 32 pages more: each costs the fork a copy of its entry, and the
/// end a release.
pub fn fork_exit_wait_32(rounds: u32, args: rt::Args) -> Option<u64> {
    let base = memory::private(32 * memory::PAGE).ok()?;
    for page in 0..32 {
        memory::poke(base + page * memory::PAGE, 1);
    }
    let ticks = fork_exit_wait(rounds, args);
    memory::unmap(base, 32 * memory::PAGE).ok()?;
    ticks
}

pub fn fork_exec_wait(rounds: u32, args: rt::Args) -> Option<u64> {
    let argv = [c"busybox".as_ptr(), c"true".as_ptr(), core::ptr::null()];
    timed(rounds, || match process::fork() {
        Ok(Fork::Child) => {
            // SAFETY: both arrays hold strings and end with a null pointer.
            unsafe { process::execute(c"/bin/busybox", argv.as_ptr(), args.environment_pointer()) };
            process::exit(127)
        }
        Ok(Fork::Parent(child)) => process::wait(child) == Ok((child, Ended::Exited(0))),
        Err(_) => false,
    })
}
