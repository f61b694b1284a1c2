//! System calls that touch nothing but their own task, and a signal to it.

use crate::timed;
use core::arch::asm;
use kit::signal::Handler;
use kit::uapi::signal::SIGUSR1;
use kit::uapi::{Siginfo, Timespec, Ucontext, nr, open};
use kit::{call, clock, signal as signals, vdso};
use rt::io;

pub fn getppid(rounds: u32, _: rt::Args) -> Option<u64> {
    let ticks = |rounds: u32| {
        let start = clock::ticks();
        // SAFETY: the call changes a0 only.
        unsafe {
            asm!("2: li a7, 173", "ecall", "addi {n}, {n}, -1", "bnez {n}, 2b", n = inout(reg) u64::from(rounds) => _, out("a0") _, out("a7") _, options(nostack));
        }
        clock::ticks() - start
    };
    ticks(rounds / 10);
    Some(ticks(rounds))
}

pub fn read_zero(rounds: u32, _: rt::Args) -> Option<u64> {
    let file = io::open(c"/dev/zero", open::O_RDONLY, 0).ok()?;
    let mut byte = [0_u8];
    let ticks = timed(rounds, || io::read(file, &mut byte) == Ok(1));
    io::close(file).ok()?;
    ticks
}

pub fn write_null(rounds: u32, _: rt::Args) -> Option<u64> {
    let file = io::open(c"/dev/null", open::O_WRONLY, 0).ok()?;
    let ticks = timed(rounds, || io::write(file, b"x") == Ok(1));
    io::close(file).ok()?;
    ticks
}

pub fn sched_yield(rounds: u32, _: rt::Args) -> Option<u64> {
    timed(rounds, || call!(nr::SCHED_YIELD) == 0)
}

pub fn clock_gettime_vdso(rounds: u32, args: rt::Args) -> Option<u64> {
    let read = vdso::clock_gettime(&vdso::Vdso::find(args)?)?;
    let mut now = Timespec::default();
    timed(rounds, || read(1, &raw mut now) == 0)
}

pub fn open_read_close(rounds: u32, _: rt::Args) -> Option<u64> {
    timed(rounds, || {
        let mut text = [0_u8; 64];
        io::open(c"/sys/kernel/cpu_byteorder", open::O_RDONLY, 0)
            .is_ok_and(|file| io::read(file, &mut text) == Ok(7) && io::close(file).is_ok())
    })
}

extern "C" fn nothing(_: i32, _: *const Siginfo, _: *mut Ucontext) {}

pub fn signal(rounds: u32, _: rt::Args) -> Option<u64> {
    signals::handle(SIGUSR1, nothing as Handler, 0).ok()?;
    let id = rt::process::id();
    timed(rounds, || call!(nr::KILL, id, SIGUSR1) == 0)
}
