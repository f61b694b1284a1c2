//! Moving bytes: read(2), readv(2), pread(2), lseek(2).
//!
//! Files never wait: they answer `EAGAIN`. The waiting is here, off the path of the common case: a read that finds
//! bytes and a write that finds room return without looking at a flag of the file.

use alloc::vec::Vec;

use fs::File;
use hal::addr::UserAddr;
use hal::user::{InBuf, OutBuf, in_user_half};
use task::{Sleep, wait_more};
use uapi::fs::{MAX_RW_COUNT, PIPE_BUF, RWF_APPEND, RWF_DSYNC, RWF_HIPRI, RWF_NOWAIT, RWF_SYNC, S_IFREG};
use uapi::open::O_NONBLOCK;
use uapi::signal::SIGPIPE;
use uapi::{Errno, Result};

use super::iovec::Segments;
use crate::caller::file;
use crate::table::calls;

calls! {
    fast {
        READ = read;
        WRITE = write, lacks "RLIMIT_FSIZE";
        READV = readv;
        WRITEV = writev;
        PREAD64 = pread64;
        PWRITE64 = pwrite64;
        PREADV = preadv;
        PWRITEV = pwritev;
        PREADV2 = preadv2;
        PWRITEV2 = pwritev2;
        LSEEK = lseek;
    }
}

/// How a transfer may wait, and where in the file it goes.
#[derive(Clone, Copy, Default)]
pub(super) struct Mode {
    /// The offset; `None`: the file's own position.
    pub at: Option<i64>,
    /// `RWF_NOWAIT`.
    pub no_wait: bool,
}

impl Mode {
    /// The mode of what comes `bytes` later.
    pub fn after(self, bytes: usize) -> Self {
        Self { at: self.at.map(|at| at.saturating_add_unsigned(bytes as u64)), ..self }
    }
}

/// The length of a buffer, which must be in the user half, even if nothing is copied; at most 2 GiB at a time.
#[inline]
fn length(buf: UserAddr, len: usize) -> Result<usize> {
    if in_user_half(buf, len) { Ok(len.min(MAX_RW_COUNT)) } else { Err(Errno::EFAULT) }
}

fn read(fd: i32, buf: UserAddr, len: usize) -> Result<usize> {
    let file = file(fd)?;
    let mut out = OutBuf::User(buf, length(buf, len)?);
    match file.read(&mut out) {
        Err(Errno::EAGAIN) => read_waiting(&file, &mut out, Mode::default()),
        result => result,
    }
}

fn write(fd: i32, buf: UserAddr, len: usize) -> Result<usize> {
    let file = file(fd)?;
    let mut input = InBuf::User(buf, length(buf, len)?);
    match file.write(&mut input) {
        Ok(done) if input.is_empty() => Ok(done),
        result => write_rest(&file, &mut input, Mode::default(), result),
    }
}

pub(super) fn read_now(file: &File, out: &mut OutBuf<'_>, mode: Mode) -> Result<usize> {
    match mode.at {
        Some(at) => file.read_at(at, out),
        None => file.read(out),
    }
}

fn write_now(file: &File, input: &mut InBuf<'_>, mode: Mode) -> Result<usize> {
    match mode.at {
        Some(at) => file.write_at(at, input),
        None => file.write(input),
    }
}

/// After a first attempt that answered `EAGAIN`: waits until `attempt` answers something else, unless the file or the
/// call must not wait.
fn waiting<T>(file: &File, no_wait: bool, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    if no_wait || file.flags() & O_NONBLOCK != 0 {
        return Err(Errno::EAGAIN);
    }
    let queue = file.wait_queue().ok_or(Errno::EAGAIN)?;
    wait_more(queue, Sleep::Interruptible, None, || match attempt() {
        Err(Errno::EAGAIN) => None,
        result => Some(result),
    })?
}

#[cold]
fn read_waiting(file: &File, out: &mut OutBuf<'_>, mode: Mode) -> Result<usize> {
    waiting(file, mode.no_wait, || read_now(file, out, mode))
}

/// Reads once, waiting if need be.
pub(super) fn read_one(file: &File, out: &mut OutBuf<'_>, mode: Mode) -> Result<usize> {
    match read_now(file, out, mode) {
        Err(Errno::EAGAIN) => read_waiting(file, out, mode),
        result => result,
    }
}

/// Goes on with a write whose first attempt gave `result`, until everything is written, an error comes, or it may not
/// wait. What was written counts for more than an error after it; a broken pipe raises SIGPIPE either way.
#[cold]
fn write_rest(file: &File, input: &mut InBuf<'_>, mode: Mode, mut result: Result<usize>) -> Result<usize> {
    let mut done = 0;
    let error = loop {
        let now = mode.after(done);
        match result {
            Ok(0) => return Ok(done),
            Ok(n) => {
                done += n;
                if input.is_empty() {
                    return Ok(done);
                }
                result = write_now(file, input, mode.after(done));
            }
            Err(Errno::EAGAIN) => match waiting(file, mode.no_wait, || write_now(file, input, now)) {
                Err(error) => break error,
                ok => result = ok,
            },
            Err(error) => break error,
        }
    };
    if error == Errno::EPIPE {
        crate::signal::raise(SIGPIPE);
    }
    if done > 0 { Ok(done) } else { Err(error) }
}

/// Writes all it can of `input`.
pub(super) fn write_one(file: &File, input: &mut InBuf<'_>, mode: Mode) -> Result<usize> {
    match write_now(file, input, mode) {
        Ok(done) if input.is_empty() => Ok(done),
        result => write_rest(file, input, mode, result),
    }
}

fn pread64(fd: i32, buf: UserAddr, len: usize, at: i64) -> Result<usize> {
    if at < 0 {
        return Err(Errno::EINVAL);
    }
    let file = file(fd)?;
    read_one(&file, &mut OutBuf::User(buf, length(buf, len)?), Mode { at: Some(at), no_wait: false })
}

fn pwrite64(fd: i32, buf: UserAddr, len: usize, at: i64) -> Result<usize> {
    if at < 0 {
        return Err(Errno::EINVAL);
    }
    let file = file(fd)?;
    write_one(&file, &mut InBuf::User(buf, length(buf, len)?), Mode { at: Some(at), no_wait: false })
}

/// Runs `one` for each segment until one is not used up; an error counts only if nothing was moved before it.
fn each(segments: &Segments, mut one: impl FnMut(UserAddr, usize, usize) -> Result<usize>) -> Result<usize> {
    let mut done = 0;
    for (base, len) in segments.iter() {
        match one(base, len, done) {
            Ok(n) => {
                done += n;
                if n < len {
                    break;
                }
            }
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(done)
}

fn read_vector(file: &File, vector: UserAddr, count: usize, mode: Mode) -> Result<usize> {
    let segments = Segments::read(vector, count)?;
    if segments.total() == 0 {
        return read_one(file, &mut OutBuf::Kernel(&mut []), mode);
    }
    each(&segments, |base, len, done| {
        let mut out = OutBuf::User(base, len);
        // Once something has arrived, the rest does not wait for more.
        if done == 0 { read_one(file, &mut out, mode) } else { read_now(file, &mut out, mode.after(done)) }
    })
}

fn write_vector(file: &File, vector: UserAddr, count: usize, mode: Mode) -> Result<usize> {
    let segments = Segments::read(vector, count)?;
    let total = segments.total();
    if total == 0 {
        return write_one(file, &mut InBuf::Kernel(&[]), mode);
    }
    // A pipe takes up to PIPE_BUF bytes in one piece, whatever they are scattered over.
    if total <= PIPE_BUF && segments.len() > 1 && file.as_pipe().is_some() {
        let mut gathered = Vec::new();
        gathered.try_reserve_exact(total).map_err(|_| Errno::ENOMEM)?;
        gathered.resize(total, 0);
        let arrived = segments.gather(&mut gathered);
        if arrived == 0 {
            return Err(Errno::EFAULT);
        }
        return write_one(file, &mut InBuf::Kernel(gathered.get(..arrived).unwrap_or_default()), mode);
    }
    each(&segments, |base, len, done| write_one(file, &mut InBuf::User(base, len), mode.after(done)))
}

fn readv(fd: i32, vector: UserAddr, count: usize) -> Result<usize> {
    read_vector(&*file(fd)?, vector, count, Mode::default())
}

fn writev(fd: i32, vector: UserAddr, count: usize) -> Result<usize> {
    write_vector(&*file(fd)?, vector, count, Mode::default())
}

/// The offset of preadv(2): none of them means the file's own position.
fn offset(at: i64) -> Result<Mode> {
    if at < 0 { Err(Errno::EINVAL) } else { Ok(Mode { at: Some(at), no_wait: false }) }
}

fn preadv(fd: i32, vector: UserAddr, count: usize, at: i64) -> Result<usize> {
    let mode = offset(at)?;
    read_vector(&*file(fd)?, vector, count, mode)
}

fn pwritev(fd: i32, vector: UserAddr, count: usize, at: i64) -> Result<usize> {
    let mode = offset(at)?;
    write_vector(&*file(fd)?, vector, count, mode)
}

/// The offset and flags of preadv2(2): -1 is the file's own position.
fn mode(at: i64, flags: u32, known: u32) -> Result<Mode> {
    if flags & !known != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    let mode = if at == -1 { Mode::default() } else { offset(at)? };
    Ok(Mode { no_wait: flags & RWF_NOWAIT != 0, ..mode })
}

/// `EOPNOTSUPP` for `RWF_NOWAIT` on a regular file: tmpfs does not offer it, as it never waits for a disk anyway.
fn may_not_wait(file: &File, mode: Mode) -> Result<()> {
    if mode.no_wait && file.inode().file_type() == S_IFREG { Err(Errno::EOPNOTSUPP) } else { Ok(()) }
}

fn preadv2(fd: i32, vector: UserAddr, count: usize, at: i64, _high: usize, flags: u32) -> Result<usize> {
    let mode = mode(at, flags, RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_NOWAIT)?;
    let file = file(fd)?;
    may_not_wait(&file, mode)?;
    read_vector(&file, vector, count, mode)
}

fn pwritev2(fd: i32, vector: UserAddr, count: usize, at: i64, _high: usize, flags: u32) -> Result<usize> {
    let mut mode = mode(at, flags, RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_NOWAIT | RWF_APPEND)?;
    let file = file(fd)?;
    may_not_wait(&file, mode)?;
    if flags & RWF_APPEND != 0 && file.inode().file_type() == S_IFREG {
        mode.at = Some(i64::try_from(file.inode().size()).map_err(|_| Errno::EFBIG)?);
    }
    write_vector(&file, vector, count, mode)
}

fn lseek(fd: i32, offset: i64, whence: u32) -> Result<u64> {
    let file = file(fd)?;
    if whence > uapi::open::SEEK_HOLE {
        return Err(Errno::EINVAL);
    }
    file.seek(offset, whence)
}
