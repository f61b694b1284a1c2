//! From one file to another inside the kernel: sendfile(2), copy_file_range(2).

use alloc::sync::Arc;
use alloc::vec::Vec;

use fs::File;
use hal::addr::UserAddr;
use hal::user::{InBuf, OutBuf};
use task::current;
use uapi::fs::{MAX_RW_COUNT, S_IFDIR, S_IFREG};
use uapi::open::{O_APPEND, SEEK_CUR, SEEK_SET};
use uapi::{Errno, Result};

use super::rw::{Mode, read_now, read_one, write_one};
use crate::caller::{file, get_opt, put};
use crate::table::calls;

calls! {
    fast {
        SENDFILE = sendfile;
        COPY_FILE_RANGE = copy_file_range;
    }
    absent {
        SPLICE = EINVAL, "as for files that cannot be spliced; programs then copy";
        TEE = EINVAL, "as for files that cannot be spliced; programs then copy";
        VMSPLICE = EINVAL, "as for files that cannot be spliced; programs then copy";
    }
}

/// At most 2 GiB at a time; `EINVAL` for a negative number.
fn transfer_length(len: usize) -> Result<usize> {
    if (len as isize) < 0 { Err(Errno::EINVAL) } else { Ok(len.min(MAX_RW_COUNT)) }
}

/// Bytes moved at a time.
const CHUNK: usize = 16 * 1024;

/// A place in a file that a copy moves along: an offset that the program keeps, or the file's own position.
struct Cursor<'a> {
    file: &'a File,
    at: Option<i64>,
}

impl Cursor<'_> {
    fn mode(&self) -> Mode {
        Mode { at: self.at, no_wait: false }
    }

    fn advance(&mut self, bytes: usize) {
        self.at = self.mode().after(bytes).at;
    }
}

/// Moves up to `len` bytes through a buffer. What was read and could not be written is given back to a file that has
/// positions.
fn copy(from: &mut Cursor<'_>, to: &mut Cursor<'_>, len: usize) -> Result<usize> {
    let size = len.min(CHUNK);
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(size).map_err(|_| Errno::ENOMEM)?;
    buffer.resize(size, 0);
    let mut done = 0;
    while done < len && !(done > 0 && current().interrupted()) {
        let mut out = OutBuf::Kernel(buffer.get_mut(..size.min(len - done)).unwrap_or_default());
        let read = if done == 0 {
            read_one(from.file, &mut out, from.mode())
        } else {
            read_now(from.file, &mut out, from.mode())
        };
        let got = match read {
            Ok(0) => break,
            Ok(got) => got,
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        };
        let written = write_one(to.file, &mut InBuf::Kernel(buffer.get(..got).unwrap_or_default()), to.mode());
        let n = written.unwrap_or(0);
        if n < got && from.at.is_none() {
            // A pipe cannot take it back: then the rest is lost, as the reader would have lost it.
            let _ = from.file.seek(-((got - n) as i64), SEEK_CUR);
        }
        from.advance(n);
        to.advance(n);
        done += n;
        match written {
            Err(error) if done == 0 => return Err(error),
            _ if n < got => break,
            _ => {}
        }
    }
    Ok(done)
}

fn sendfile(out_fd: i32, in_fd: i32, offset: UserAddr, count: usize) -> Result<usize> {
    let at: Option<i64> = get_opt(offset)?;
    let input = file(in_fd)?;
    if !input.readable() {
        return Err(Errno::EBADF);
    }
    if at.is_some_and(|at| at < 0) {
        return Err(Errno::EINVAL);
    }
    let output = file(out_fd)?;
    if !output.writable() {
        return Err(Errno::EBADF);
    }
    if input.inode().is_dir() || output.flags() & O_APPEND != 0 {
        return Err(Errno::EINVAL);
    }
    // Not from a terminal or pipe: what was read and cannot be written could not be given back, nor an end of file.
    input.seek(0, SEEK_CUR).map_err(|_| Errno::EINVAL)?;
    let mut from = Cursor { file: &input, at };
    let done = copy(&mut from, &mut Cursor { file: &output, at: None }, transfer_length(count)?)?;
    if let Some(at) = from.at {
        put(offset, &at)?;
    }
    Ok(done)
}

fn copy_file_range(
    in_fd: i32,
    off_in: UserAddr,
    out_fd: i32,
    off_out: UserAddr,
    len: usize,
    flags: u32,
) -> Result<usize> {
    let input = file(in_fd)?;
    let output = file(out_fd)?;
    let (at_in, at_out) = (get_opt::<i64>(off_in)?, get_opt::<i64>(off_out)?);
    if flags != 0 {
        return Err(Errno::EINVAL);
    }
    let kinds = [input.inode().file_type(), output.inode().file_type()];
    if kinds.contains(&S_IFDIR) {
        return Err(Errno::EISDIR);
    }
    if kinds != [S_IFREG; 2] {
        return Err(Errno::EINVAL);
    }
    if !input.readable() || !output.writable() || output.flags() & O_APPEND != 0 {
        return Err(Errno::EBADF);
    }
    let len = len.min(MAX_RW_COUNT);
    let place = |file: &File, at: Option<i64>| match at {
        Some(at) => Ok(at),
        None => file.seek(0, SEEK_CUR).map(|at| at as i64),
    };
    let (from, to) = (place(&input, at_in)?, place(&output, at_out)?);
    if from < 0 || to < 0 {
        return Err(Errno::EINVAL);
    }
    if from.checked_add(len as i64).is_none() || to.checked_add(len as i64).is_none() {
        return Err(Errno::EOVERFLOW);
    }
    if Arc::ptr_eq(input.inode(), output.inode()) && from.abs_diff(to) < len as u64 {
        return Err(Errno::EINVAL);
    }
    let (mut from, mut to) = (Cursor { file: &input, at: Some(from) }, Cursor { file: &output, at: Some(to) });
    let done = copy(&mut from, &mut to, len)?;
    for (cursor, user) in [(from, off_in), (to, off_out)] {
        let at = cursor.at.unwrap_or(0);
        if user.is_null() {
            cursor.file.seek(at, SEEK_SET)?;
        } else {
            put(user, &at)?;
        }
    }
    Ok(done)
}
