//! Raw system calls: number in a7, arguments in a0 to a5, result in a0; every other register is preserved.

use core::arch::asm;
use uapi::{Errno, Result};

/// A system call with six arguments; those that it does not have are 0.
///
/// # Safety
/// Arguments that are addresses are what the call expects of them, and the call does nothing to memory that Rust relies on.
#[inline(always)]
pub unsafe fn call6(number: usize, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: `ecall` changes a0 and what the call's addresses name, which the caller answers for.
    unsafe {
        asm!("ecall", in("a7") number, inlateout("a0") args[0] => result, in("a1") args[1], in("a2") args[2], in("a3") args[3], in("a4") args[4], in("a5") args[5], options(nostack));
    }
    result
}

/// A system call with up to three arguments.
///
/// # Safety
/// As [`call6`].
#[inline(always)]
pub unsafe fn call3(number: usize, a0: usize, a1: usize, a2: usize) -> isize {
    let result: isize;
    // SAFETY: as in `call6`; registers that hold no argument are not read by the call.
    unsafe {
        asm!("ecall", in("a7") number, inlateout("a0") a0 => result, in("a1") a1, in("a2") a2, options(nostack));
    }
    result
}

/// [`call6`] with the error split off.
///
/// # Safety
/// As [`call6`].
///
/// # Errors
/// What the kernel returned.
#[inline]
pub unsafe fn try6(number: usize, args: [usize; 6]) -> Result<usize> {
    // SAFETY: passed on.
    check(unsafe { call6(number, args) })
}

/// [`call3`] with the error split off.
///
/// # Safety
/// As [`call6`].
///
/// # Errors
/// What the kernel returned.
#[inline]
pub unsafe fn try3(number: usize, a0: usize, a1: usize, a2: usize) -> Result<usize> {
    // SAFETY: passed on.
    check(unsafe { call3(number, a0, a1, a2) })
}

/// The result in a return value.
///
/// # Errors
/// It is an error number.
#[inline]
pub fn check(result: isize) -> Result<usize> {
    match Errno::from_ret(result) {
        Some(error) => Err(error),
        None => Ok(result.cast_unsigned()),
    }
}
