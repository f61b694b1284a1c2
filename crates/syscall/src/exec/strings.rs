//! The strings of a new program: argv and envp of execve(2), copied in before the old program goes.

use alloc::vec::Vec;

use hal::addr::UserAddr;
use hal::user;
use uapi::{Errno, Result};

/// Longest single string, NUL included: execve(2), `MAX_ARG_STRLEN`.
const STRING_MAX: usize = 32 * hal::addr::PAGE_SIZE;
/// What may be used for strings whatever the stack limit says (Linux's `ARG_MAX`), and at most.
const TOTAL_MIN: usize = 32 * hal::addr::PAGE_SIZE;
const TOTAL_MAX: usize = 6 << 20;

/// Bytes that argv and envp may take together, pointers included, under a stack limit: a quarter of it within bounds.
pub fn budget(stack_limit: u64) -> usize {
    usize::try_from(stack_limit / 4).unwrap_or(TOTAL_MAX).clamp(TOTAL_MIN, TOTAL_MAX)
}

/// A list of strings, each with its NUL.
#[derive(Default, Debug)]
pub struct Strings {
    bytes: Vec<u8>,
    /// Where each ends in `bytes`, behind its NUL.
    ends: Vec<u32>,
}

impl Strings {
    /// How many.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// All strings with their NULs, one after the other.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Offsets in [`Strings::bytes`] at which they begin.
    pub fn starts(&self) -> impl Iterator<Item = usize> {
        let behind = self.ends.iter().map(|&end| end as usize);
        core::iter::once(0).chain(behind).take(self.ends.len())
    }

    fn spend(budget: &mut usize, bytes: usize) -> Result<()> {
        *budget = budget.checked_sub(bytes).ok_or(Errno::E2BIG)?;
        Ok(())
    }

    /// Appends a copy of `string`. `E2BIG` when it does not fit into `budget`, `ENOMEM`.
    pub fn push(&mut self, string: &[u8], budget: &mut usize) -> Result<()> {
        Self::spend(budget, string.len() + 1 + size_of::<usize>())?;
        self.bytes.try_reserve(string.len() + 1).map_err(|_| Errno::ENOMEM)?;
        self.bytes.extend_from_slice(string);
        self.finish()
    }

    fn finish(&mut self) -> Result<()> {
        self.bytes.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        self.ends.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        self.bytes.push(0);
        self.ends.push(self.bytes.len() as u32);
        Ok(())
    }

    /// Reads the array of pointers at `array`, ended by a null pointer, and its strings; a null `array` has none.
    /// `EFAULT`, `E2BIG`, `ENOMEM`.
    pub fn read(array: UserAddr, budget: &mut usize) -> Result<Self> {
        let mut strings = Self::default();
        let mut at = array;
        while !at.is_null() {
            let mut word = [0; size_of::<usize>()];
            user::copy_in(&mut word, at)?;
            let string = UserAddr(usize::from_ne_bytes(word));
            if string.is_null() {
                break;
            }
            strings.read_one(string, budget)?;
            at = at.add(size_of::<usize>());
        }
        Ok(strings)
    }

    fn read_one(&mut self, at: UserAddr, budget: &mut usize) -> Result<()> {
        let start = self.bytes.len();
        let mut chunk = 32;
        loop {
            let len = self.bytes.len();
            self.bytes.try_reserve(chunk).map_err(|_| Errno::ENOMEM)?;
            self.bytes.resize(len + chunk, 0);
            let room = self.bytes.get_mut(len..).unwrap_or_default();
            match user::copy_in_str(room, at.add(len - start)) {
                Ok(read) => {
                    self.bytes.truncate(len + read);
                    break;
                }
                Err(Errno::ENAMETOOLONG) => chunk = (chunk * 4).min(hal::addr::PAGE_SIZE),
                Err(e) => return Err(e),
            }
            let so_far = self.bytes.len() - start;
            if so_far >= STRING_MAX || so_far > *budget {
                return Err(Errno::E2BIG);
            }
        }
        let len = self.bytes.len() - start + 1;
        if len > STRING_MAX {
            return Err(Errno::E2BIG);
        }
        Self::spend(budget, len + size_of::<usize>())?;
        self.finish()
    }

    /// Replaces the first string by those of `with`: what an interpreter script does to argv.
    pub fn replace_first(&mut self, with: &[&[u8]], budget: &mut usize) -> Result<()> {
        let mut new = Self::default();
        for string in with {
            new.push(string, budget)?;
        }
        let cut = self.ends.first().map_or(0, |&end| end as usize);
        let rest = self.bytes.get(cut..).unwrap_or_default();
        new.bytes.try_reserve(rest.len()).map_err(|_| Errno::ENOMEM)?;
        new.ends.try_reserve(self.ends.len()).map_err(|_| Errno::ENOMEM)?;
        let shift = new.bytes.len() as u32;
        new.bytes.extend_from_slice(rest);
        new.ends.extend(self.ends.iter().skip(1).map(|&end| end - cut as u32 + shift));
        *self = new;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    fn list(strings: &[&[u8]]) -> Strings {
        let mut list = Strings::default();
        for s in strings {
            list.push(s, &mut 10_000).unwrap();
        }
        list
    }

    #[test]
    fn a_script_replaces_the_first_argument() {
        let mut argv = list(&[b"old", b"a", b""]);
        argv.replace_first(&[b"/bin/sh", b"-e", b"./script"], &mut 1000).unwrap();
        assert_eq!(argv.bytes(), b"/bin/sh\0-e\0./script\0a\0\0");
        assert_eq!(argv.starts().collect::<Vec<_>>(), vec![0, 8, 11, 20, 22]);
        let mut none = list(&[]);
        none.replace_first(&[b"x"], &mut 1000).unwrap();
        assert_eq!((none.len(), none.bytes()), (1, &b"x\0"[..]));
    }

    #[test]
    fn the_budget_counts_pointers() {
        let mut budget = 12;
        let mut strings = Strings::default();
        assert_eq!(strings.push(b"abcd", &mut budget), Err(Errno::E2BIG));
        assert_eq!(strings.push(b"abc", &mut budget), Ok(()));
        assert_eq!(budget, 0);
        assert_eq!(super::budget(8 << 20), 2 << 20);
        assert_eq!(super::budget(0), 128 << 10);
        assert_eq!(super::budget(u64::MAX), 6 << 20);
    }
}
