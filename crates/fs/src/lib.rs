//! Files: the virtual file system, tmpfs, pipes, devices, terminals, `/proc` and `/sys`, in safe Rust.
//!
//! Nothing here ever sleeps. An operation that would have to wait answers `EAGAIN`; the system call layer then
//! registers on [`File::wait_queue`], tries again and only then blocks, and it is the one that looks at `O_NONBLOCK`.
//! So the whole crate runs on the host, in plain tests.
//!
//! Where to start reading: [`Caller`] is who asks; [`vfs`] has the calls on paths; [`File`] is an open file
//! description and [`FileOps`] what stands behind one; [`FdTable`] holds a process's descriptors.
//!
//! Lock order inside the crate: the tree lock, a directory's table, a dentry's place; a file's position, then a pipe's
//! or terminal's state, then whatever a user copy takes. No lock of this crate is held while a [`File`] is dropped.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod clock;
mod cred;
pub mod dev;
mod fdtable;
mod file;
pub mod lock;
mod object;
pub mod pipe;
pub mod proc;
pub mod random;
pub mod sysfs;
mod text;
pub mod tmpfs;
pub mod tty;
pub mod user_path;
pub mod vfs;

pub use clock::{now, set_clock};
pub use cred::{Credentials, cap};
pub use fdtable::{FdTable, NR_OPEN};
pub use file::{File, FileOps, Ops, PollEvents, RawEntry};
pub use text::{Content, TextSource};
pub use uapi::{Errno, Result};
pub use vfs::{Caller, FsContext, Path};

#[cfg(test)]
mod testing;
