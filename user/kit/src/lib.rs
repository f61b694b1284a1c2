//! What the test programs of the guest share.
//!
//! Tests do on purpose what a library keeps a program from: they pass bad addresses, unmap what they use and jump where
//! nothing is. So [`call!`] is a raw system call that may stand anywhere. A test answers for the addresses it passes as
//! the author of an `unsafe` block would; what it breaks is its own process, which is a child made for it.

#![cfg_attr(target_os = "none", no_std)]
#![cfg(target_os = "none")]

pub mod check;
pub mod child;
pub mod clock;
pub mod elf;
pub mod file;
pub mod harts;
pub mod memory;
pub mod probe;
pub mod random;
pub mod registers;
pub mod signal;
pub mod thread;
pub mod usage;
pub mod vdso;

pub use rt;
pub use rt::uapi;

/// What [`call!`] expands to.
#[inline(always)]
pub fn raw(number: usize, arguments: [usize; 6]) -> isize {
    // SAFETY: whoever writes the invocation answers for the addresses, see above.
    unsafe { rt::sys::call6(number, arguments) }
}

/// A raw system call: the number, then up to six arguments, each cast to `usize`. Gives what the kernel returned, an
/// `isize`.
#[macro_export]
macro_rules! call {
    ($number:expr $(, $argument:expr)* $(,)?) => {{
        let given: &[usize] = &[$($argument as usize),*];
        let mut arguments = [0_usize; 6];
        arguments[..given.len()].copy_from_slice(given);
        $crate::raw($number as usize, arguments)
    }};
}

/// [`call!`] with the error split off: a `Result<usize, Errno>`.
#[macro_export]
macro_rules! attempt {
    ($($part:tt)*) => { $crate::rt::sys::check($crate::call!($($part)*)) };
}
