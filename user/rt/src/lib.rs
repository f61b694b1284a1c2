//! What a static riscv64 program of `user/` needs instead of a C library: a start, system calls, printing, test reports.
//!
//! The programs run unchanged on Limen and on Linux. They are plain static ELF files for the bare-metal target, linked
//! by lld at its default address with read-only, executable and writable segments on pages of their own; the target has
//! no FP and no vector registers, so that a program touches these only by its own assembly. A program is:
//!
//! ```ignore
//! #![cfg_attr(target_os = "none", no_std, no_main)]
//! rt::program!(main);
//! #[cfg(target_os = "none")]
//! fn main(args: rt::Args) -> u8 { rt::println!("hello"); 0 }
//! ```
//!
//! On the host such a package still compiles, as an empty program; so does this crate.

#![cfg_attr(target_os = "none", no_std)]

#[cfg(target_os = "none")]
mod args;
#[cfg(target_os = "none")]
pub mod io;
#[cfg(target_os = "none")]
pub mod process;
#[cfg(target_os = "none")]
mod start;
#[cfg(target_os = "none")]
pub mod sys;
#[cfg(target_os = "none")]
pub mod tap;

#[cfg(target_os = "none")]
pub use args::Args;
pub use uapi;

/// Makes `$main`, a `fn(rt::Args) -> u8`, the program: what it returns is the exit status.
#[macro_export]
macro_rules! program {
    ($main:path) => {
        #[cfg(target_os = "none")]
        // SAFETY: the name is the one that the start code calls, defined once in a program, with the signature it expects.
        #[unsafe(no_mangle)]
        fn limen_user_main(args: $crate::Args) -> u8 {
            $main(args)
        }
        #[cfg(not(target_os = "none"))]
        fn main() {}
    };
}
