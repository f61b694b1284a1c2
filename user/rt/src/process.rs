//! Processes: making, replacing, awaiting, ending.

use crate::sys;
use core::ffi::{CStr, c_char};
use core::time::Duration;
use uapi::{Errno, Result, Timespec, nr, signal, wait};

/// Which side of a [`fork`] this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fork {
    /// The new process.
    Child,
    /// The old one, with the child's number.
    Parent(i32),
}

/// How a process ended (wait(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this status.
    Exited(u8),
    /// A signal killed it.
    Killed(u8),
}

impl Ended {
    /// From the word that wait4(2) writes.
    pub const fn from_status(status: u32) -> Self {
        match status & 0x7f {
            0 => Ended::Exited((status >> 8) as u8),
            number => Ended::Killed(number as u8),
        }
    }

    /// As a shell gives it: the status, or 128 + signal.
    pub const fn shell_status(self) -> u8 {
        match self {
            Ended::Exited(status) => status,
            Ended::Killed(number) => 128 + number,
        }
    }
}

/// exit_group(2).
pub fn exit(status: u8) -> ! {
    loop {
        // SAFETY: no addresses; the call does not return.
        unsafe { sys::call3(nr::EXIT_GROUP, usize::from(status), 0, 0) };
    }
}

/// getpid(2).
pub fn id() -> i32 {
    // SAFETY: no addresses.
    unsafe { sys::call3(nr::GETPID, 0, 0, 0) as i32 }
}

/// fork(2): a child with a copy of memory.
///
/// # Errors
/// As the call.
pub fn fork() -> Result<Fork> {
    // SAFETY: without CLONE_VM and with stack 0 the child goes on on its own copy of this stack.
    match unsafe { sys::try6(nr::CLONE, [signal::SIGCHLD as usize, 0, 0, 0, 0, 0]) }? {
        0 => Ok(Fork::Child),
        child => Ok(Fork::Parent(child as i32)),
    }
}

/// execve(2): returns only the error.
///
/// # Safety
/// `argv` and `envp` point to arrays of strings, each array ended by a null pointer.
pub unsafe fn execute(path: &CStr, argv: *const *const c_char, envp: *const *const c_char) -> Errno {
    // SAFETY: the call reads the path and what the caller answers for.
    match unsafe { sys::try3(nr::EXECVE, path.as_ptr() as usize, argv as usize, envp as usize) } {
        Err(error) => error,
        Ok(_) => unreachable!("execve returned without an error"),
    }
}

/// Waits for `child`, or for any with -1; gives its number and how it ended. Interruptions are waited through.
///
/// # Errors
/// As wait4(2).
pub fn wait(child: i32) -> Result<(i32, Ended)> {
    loop {
        match wait_flags(child, 0) {
            Ok(Some(ended)) => return Ok(ended),
            Ok(None) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// As [`wait`], but `None` at once if no child has ended.
///
/// # Errors
/// As wait4(2).
pub fn try_wait(child: i32) -> Result<Option<(i32, Ended)>> {
    wait_flags(child, wait::WNOHANG)
}

fn wait_flags(child: i32, flags: u32) -> Result<Option<(i32, Ended)>> {
    let mut status = 0_u32;
    let address = core::ptr::from_mut(&mut status) as usize;
    // SAFETY: the call writes one integer to `status`.
    let found = unsafe { sys::try6(nr::WAIT4, [child as isize as usize, address, flags as usize, 0, 0, 0]) }?;
    Ok((found != 0).then(|| (found as i32, Ended::from_status(status))))
}

/// setpgid(2); 0 stands for the caller, and for a group of the process's own number.
///
/// # Errors
/// As the call.
pub fn set_group(process: i32, group: i32) -> Result<()> {
    // SAFETY: no addresses.
    unsafe { sys::try3(nr::SETPGID, process as isize as usize, group as isize as usize, 0) }.map(|_| ())
}

/// kill(2).
///
/// # Errors
/// As the call.
pub fn kill(process: i32, number: i32) -> Result<()> {
    // SAFETY: no addresses.
    unsafe { sys::try3(nr::KILL, process as isize as usize, number as usize, 0) }.map(|_| ())
}

/// Sleeps at least so long, unless a signal handler ran.
pub fn sleep(time: Duration) {
    let mut request = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
    let address = core::ptr::from_mut(&mut request) as usize;
    // SAFETY: the call reads the time and writes what is left to the same place.
    unsafe { sys::call3(nr::NANOSLEEP, address, address, 0) };
}

/// The monotonic clock.
pub fn now() -> Duration {
    const CLOCK_MONOTONIC: usize = 1;
    let mut time = Timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes the time to `time`.
    unsafe { sys::call3(nr::CLOCK_GETTIME, CLOCK_MONOTONIC, core::ptr::from_mut(&mut time) as usize, 0) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
