//! Files by descriptor, and printing.

use crate::sys;
use core::ffi::CStr;
use core::fmt;
use uapi::{Errno, Result, nr, open};

/// Standard input, output and error.
pub const STDIN: i32 = 0;
/// See [`STDIN`].
pub const STDOUT: i32 = 1;
/// See [`STDIN`].
pub const STDERR: i32 = 2;

const fn fd_arg(fd: i32) -> usize {
    fd as isize as usize
}

/// open(2), relative to the working directory.
///
/// # Errors
/// As the call.
pub fn open(path: &CStr, flags: u32, mode: u32) -> Result<i32> {
    // SAFETY: the path is a string ended by a zero byte, which the call only reads.
    let fd = unsafe {
        sys::try6(nr::OPENAT, [fd_arg(open::AT_FDCWD), path.as_ptr() as usize, flags as usize, mode as usize, 0, 0])
    }?;
    Ok(fd as i32)
}

/// close(2).
///
/// # Errors
/// As the call.
pub fn close(fd: i32) -> Result<()> {
    // SAFETY: no addresses.
    unsafe { sys::try3(nr::CLOSE, fd_arg(fd), 0, 0) }.map(|_| ())
}

/// read(2).
///
/// # Errors
/// As the call.
pub fn read(fd: i32, buffer: &mut [u8]) -> Result<usize> {
    // SAFETY: the call writes to the buffer only, which is ours for now.
    unsafe { sys::try3(nr::READ, fd_arg(fd), buffer.as_mut_ptr() as usize, buffer.len()) }
}

/// Reads until the buffer is full or the file ends.
///
/// # Errors
/// As read(2).
pub fn read_full(fd: i32, buffer: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match read(fd, &mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// write(2).
///
/// # Errors
/// As the call.
pub fn write(fd: i32, bytes: &[u8]) -> Result<usize> {
    // SAFETY: the call only reads the bytes.
    unsafe { sys::try3(nr::WRITE, fd_arg(fd), bytes.as_ptr() as usize, bytes.len()) }
}

/// Writes all of `bytes`.
///
/// # Errors
/// As write(2).
pub fn write_all(fd: i32, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        match write(fd, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// dup3(2) without flags; `from` and `to` may be the same.
///
/// # Errors
/// As the call.
pub fn duplicate(from: i32, to: i32) -> Result<()> {
    if from == to {
        return Ok(());
    }
    // SAFETY: no addresses.
    unsafe { sys::try3(nr::DUP3, fd_arg(from), fd_arg(to), 0) }.map(|_| ())
}

/// pipe2(2) without flags: the reading and the writing end.
///
/// # Errors
/// As the call.
pub fn pipe() -> Result<(i32, i32)> {
    let mut ends = [0_i32; 2];
    // SAFETY: the call writes two integers to `ends`.
    unsafe { sys::try3(nr::PIPE2, ends.as_mut_ptr() as usize, 0, 0) }?;
    Ok((ends[0], ends[1]))
}

/// ioctl(2) with a structure that the call reads, writes, or both.
///
/// # Safety
/// `request` takes an address of a `T`.
///
/// # Errors
/// As the call.
pub unsafe fn ioctl<T>(fd: i32, request: u32, argument: &mut T) -> Result<usize> {
    // SAFETY: the caller says that `request` goes with `T`.
    unsafe { sys::try3(nr::IOCTL, fd_arg(fd), request as usize, core::ptr::from_mut(argument) as usize) }
}

/// ioctl(2) with a number.
///
/// # Errors
/// As the call.
pub fn ioctl_number(fd: i32, request: u32, argument: usize) -> Result<usize> {
    // SAFETY: a request that takes an address gets a number below the lowest mapped page, or fails with EFAULT.
    unsafe { sys::try3(nr::IOCTL, fd_arg(fd), request as usize, argument.min(4095)) }
}

/// Formatted output to a descriptor, gathered so that a line is one write. Errors are dropped.
pub fn print(fd: i32, arguments: fmt::Arguments<'_>) {
    let mut line = Line { fd, bytes: [0; 512], length: 0 };
    let _ = fmt::Write::write_fmt(&mut line, arguments);
    line.flush();
}

struct Line {
    fd: i32,
    bytes: [u8; 512],
    length: usize,
}

impl Line {
    fn flush(&mut self) {
        let _ = write_all(self.fd, &self.bytes[..self.length]);
        self.length = 0;
    }
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for &byte in text.as_bytes() {
            if self.length == self.bytes.len() {
                self.flush();
            }
            self.bytes[self.length] = byte;
            self.length += 1;
        }
        Ok(())
    }
}

/// Prints to standard output.
#[macro_export]
macro_rules! print {
    ($($arg:tt)*) => { $crate::io::print($crate::io::STDOUT, format_args!($($arg)*)) };
}

/// Prints a line to standard output.
#[macro_export]
macro_rules! println {
    ($($arg:tt)*) => { $crate::io::print($crate::io::STDOUT, format_args!("{}\n", format_args!($($arg)*))) };
}

/// Prints a line to standard error.
#[macro_export]
macro_rules! eprintln {
    ($($arg:tt)*) => { $crate::io::print($crate::io::STDERR, format_args!("{}\n", format_args!($($arg)*))) };
}
