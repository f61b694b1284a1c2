//! The riscv64 Linux user ABI: numbers, structures and flags, written from the man pages, the asm-generic ABI and
//! the RISC-V psABI.
//!
//! Everything here is plain data. Structures that cross the user boundary implement zerocopy's traits, so that they
//! are read from and written to user memory as bytes without `unsafe`; padding is named, so that no kernel byte can
//! leak through a hole. Field and constant names are those of the man pages. Constants live in one module a family
//! (`open::O_CLOEXEC`, `signal::SIGCHLD`); structures are re-exported at the root.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
// Fields and constants carry the names of the man page cited at their module or structure.
#![allow(missing_docs)]

/// Asserts a structure's size and, optionally, offsets of its fields at compile time.
macro_rules! layout {
    ($t:ty : $size:literal $(, $field:ident @ $off:literal)* $(,)?) => {
        const _: () = {
            assert!(core::mem::size_of::<$t>() == $size);
            $(assert!(core::mem::offset_of!($t, $field) == $off);)*
        };
    };
}

pub mod auxv;
pub mod clone;
pub mod elf;
mod errno;
pub mod fs;
pub mod futex;
pub mod ioctl;
pub mod mman;
pub mod nr;
pub mod open;
pub mod poll;
pub mod prctl;
pub mod resource;
pub mod sched;
pub mod sigframe;
pub mod siginfo;
pub mod signal;
pub mod system;
pub mod termios;
pub mod time;
pub mod vdso;
pub mod wait;

pub use clone::CloneArgs;
pub use elf::{Ehdr, Phdr};
pub use errno::{Errno, Result};
pub use fs::{Dirent64, Flock, Iovec, OpenHow, Stat, Statfs, Statx};
pub use futex::RobustListHead;
pub use poll::{EpollEvent, FdSet, Pollfd};
pub use resource::{Rlimit64, Rusage};
pub use sched::{SchedAttr, SchedParam};
pub use sigframe::{Mcontext, SigFrame, StackT, Ucontext};
pub use siginfo::{Sigevent, Siginfo};
pub use signal::{SigSet, Sigaction};
pub use system::{CapData, CapHeader, Sysinfo, Utsname};
pub use termios::{Termio, Termios, Winsize};
pub use time::{Itimerspec, Itimerval, Timespec, Timeval, Timezone, Tms};
pub use vdso::{TimeBase, VdsoData};
