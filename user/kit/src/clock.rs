//! Time, and instructions.

use crate::call;
use core::arch::asm;
use rt::uapi::{Timespec, nr, time};

/// Nanoseconds of one tick of the `time` register on QEMU's machine. With instructions counted, one nanosecond is one
/// instruction.
pub const TICK: u64 = 100;

/// The `time` register.
#[inline(always)]
pub fn ticks() -> u64 {
    let value;
    // SAFETY: reads a counter that user mode may read.
    unsafe { asm!("rdtime {}", out(reg) value, options(nomem, nostack)) };
    value
}

/// The `cycle` register. It traps where the kernel does not allow it.
#[inline(always)]
pub fn cycles() -> u64 {
    let value;
    // SAFETY: reads a counter.
    unsafe { asm!("rdcycle {}", out(reg) value, options(nomem, nostack)) };
    value
}

/// A clock in nanoseconds, by the system call.
pub fn read(clock: i32) -> u64 {
    let mut now = Timespec::default();
    call!(nr::CLOCK_GETTIME, clock, &raw mut now);
    now.to_ns().unwrap_or(0)
}

/// The monotonic clock in nanoseconds.
pub fn now() -> u64 {
    read(time::CLOCK_MONOTONIC)
}

/// Sleeps for so many nanoseconds, unless a signal comes.
pub fn sleep(nanoseconds: u64) -> isize {
    let request = Timespec::from_ns(nanoseconds);
    call!(nr::NANOSLEEP, &raw const request, 0)
}

/// Sleeps until the monotonic clock shows so many nanoseconds.
pub fn sleep_until(nanoseconds: u64) {
    let request = Timespec::from_ns(nanoseconds);
    while call!(nr::CLOCK_NANOSLEEP, time::CLOCK_MONOTONIC, time::TIMER_ABSTIME, &raw const request, 0) != 0 {}
}
