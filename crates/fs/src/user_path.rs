//! Path names that a program passed.

use alloc::vec::Vec;

use hal::addr::UserAddr;
use hal::user::copy_in_str;
use uapi::fs::PATH_MAX;
use uapi::{Errno, Result};

/// Paths up to this long are read to the stack; nearly all are.
const SHORT: usize = 128;

/// Reads the path at `at` and runs `f` on it. `EFAULT`; `ENAMETOOLONG` when it has no end within `PATH_MAX`.
pub fn with_user_path<R>(at: UserAddr, f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
    let mut short = [0; SHORT];
    match copy_in_str(&mut short, at) {
        Ok(len) => f(short.get(..len).unwrap_or_default()),
        Err(Errno::ENAMETOOLONG) => f(&read_long(at)?),
        Err(e) => Err(e),
    }
}

/// As [`with_user_path`] for two paths.
pub fn with_user_paths<R>(a: UserAddr, b: UserAddr, f: impl FnOnce(&[u8], &[u8]) -> Result<R>) -> Result<R> {
    with_user_path(a, |a| with_user_path(b, |b| f(a, b)))
}

#[cold]
fn read_long(at: UserAddr) -> Result<Vec<u8>> {
    let mut long = Vec::new();
    long.try_reserve_exact(PATH_MAX).map_err(|_| Errno::ENOMEM)?;
    long.resize(PATH_MAX, 0);
    let len = copy_in_str(&mut long, at)?;
    long.truncate(len);
    Ok(long)
}
