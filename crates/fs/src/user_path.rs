//! Path names that a program passed.
//!
//! Nearly all are short, and each costs a copy and a search for its end before anything else happens. So the first
//! bytes go into an array of words, where the end is found eight bytes at a time.

use alloc::vec::Vec;

use hal::addr::{PAGE_SIZE, UserAddr};
use hal::user::{copy_in_partial, copy_in_str};
use uapi::fs::PATH_MAX;
use uapi::{Errno, Result};
use zerocopy::IntoBytes;

/// Bytes copied at a time, and the most that are kept on the stack.
const STEP: usize = 32;
const SHORT: usize = 2 * STEP;

/// Reads the path at `at` and runs `f` on it. `EFAULT`; `ENAMETOOLONG` when it has no end within `PATH_MAX`.
pub fn with_user_path<R>(at: UserAddr, f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
    let mut words = [0; SHORT / size_of::<u64>()];
    match read_short(&mut words, at) {
        Some(len) => f(words.as_bytes().get(..len).unwrap_or_default()),
        None => f(&read_long(at)?),
    }
}

/// As [`with_user_path`] for two paths.
pub fn with_user_paths<R>(a: UserAddr, b: UserAddr, f: impl FnOnce(&[u8], &[u8]) -> Result<R>) -> Result<R> {
    with_user_path(a, |a| with_user_path(b, |b| f(a, b)))
}

/// Reads a path that ends within `words` and the page it begins in; gives its length. `None` for any other.
fn read_short(words: &mut [u64; SHORT / 8], at: UserAddr) -> Option<usize> {
    if at.0 % PAGE_SIZE > PAGE_SIZE - SHORT {
        return None;
    }
    for (n, words) in words.chunks_exact_mut(STEP / 8).enumerate() {
        if copy_in_partial(words.as_mut_bytes(), at.add(n * STEP)) != STEP {
            return None;
        }
        if let Some(end) = find_nul(words) {
            return Some(n * STEP + end);
        }
    }
    None
}

/// Where the first zero byte is.
#[inline]
fn find_nul(words: &[u64]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    words.iter().enumerate().find_map(|(n, word)| {
        // Subtracting one borrows into bit 7 of the lowest zero byte; higher bits may be set for nothing.
        let zeros = word.to_le().wrapping_sub(ONES) & !word.to_le() & (ONES << 7);
        (zeros != 0).then(|| n * 8 + zeros.trailing_zeros() as usize / 8)
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use hal::user::host::{install, poke};

    #[test]
    fn paths_of_all_lengths_at_all_places() {
        let base = install(3 * PAGE_SIZE);
        for start in [0, 1, 7, 100, PAGE_SIZE - 65, PAGE_SIZE - 30, PAGE_SIZE - 1] {
            for len in [0, 1, 7, 8, 31, 32, 33, 63, 64, 65, 200, PATH_MAX - 1] {
                let mut path = std::vec![b'\xff'; len];
                path.push(0);
                poke(base.add(start), &path);
                let read = with_user_path(base.add(start), |read| Ok(read.to_vec()));
                assert_eq!(read, Ok(path[..len].to_vec()), "{len} bytes at {start}");
            }
        }
        poke(base, &[b'x'; PATH_MAX]);
        assert_eq!(with_user_path(base, |_| Ok(())), Err(Errno::ENAMETOOLONG));
        poke(base.add(3 * PAGE_SIZE - 5), b"short");
        assert_eq!(
            with_user_path(base.add(3 * PAGE_SIZE - 5), |_| Ok(())),
            Err(Errno::EFAULT),
            "no end before the edge"
        );
        assert_eq!(with_user_path(UserAddr(0), |_| Ok(())), Err(Errno::EFAULT));
        poke(base.add(3 * PAGE_SIZE - 5), b"end\0");
        assert_eq!(with_user_path(base.add(3 * PAGE_SIZE - 5), |path| Ok(path.to_vec())), Ok(b"end".to_vec()));
    }
}
