//! riscv_hwprobe(2): what the harts can do.
//!
//! The rules are the `riscv-hwprobe` crate's, the answers lie in the vDSO's data page, where programs find them without a
//! call; here is what a program gets that makes the call nevertheless, or that has passed the vDSO a bad pointer.

use hal::addr::UserAddr;
use hal::hart;
use hal::task::Work;
use hal::user::{copy_in, copy_out};
use riscv_hwprobe::rules::{self, Error, Fault, Memory, Request, SET};
use task::current;
use uapi::{Errno, Result};

use crate::table::calls;

calls! {
    fast {
        RISCV_HWPROBE = riscv_hwprobe;
    }
}

const _: () = assert!(hart::MAX_HARTS == uapi::vdso::HARTS, "each hart has its place in the vDSO's page");

/// Fills the page from what the harts have found out about themselves. Once at boot, when all harts are up and before the
/// first program runs.
pub fn publish() {
    let possible = u64::MAX.checked_shl(hart::count() as u32).map_or(u64::MAX, |beyond| !beyond);
    vdso::ANSWERS.publish(possible, hart::online_mask() as u64, hal::probe::words);
}

/// Pairs after which interrupts, and whoever else wants the hart, get a chance.
const PAUSE: usize = 256;

struct User;

fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

impl Memory for User {
    #[inline(always)]
    fn key(&mut self, at: usize) -> core::result::Result<u64, Fault> {
        let mut key = [0; 8];
        copy_in(&mut key, UserAddr(at)).map_err(|_| Fault)?;
        Ok(u64::from_le_bytes(key))
    }

    #[inline(always)]
    fn pair(&mut self, at: usize) -> core::result::Result<(u64, u64), Fault> {
        let mut words = [[0; 8]; 2];
        copy_in(words.as_flattened_mut(), UserAddr(at)).map_err(|_| Fault)?;
        Ok((u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1])))
    }

    #[inline(always)]
    fn put_pair(&mut self, at: usize, key: u64, value: u64) -> core::result::Result<(), Fault> {
        let words = [key.to_le_bytes(), value.to_le_bytes()];
        copy_out(UserAddr(at), words.as_flattened()).map_err(|_| Fault)
    }

    #[inline(always)]
    fn set(&mut self, at: usize, size: usize) -> core::result::Result<u64, Fault> {
        let mut set = [0; SET];
        let set = set.get_mut(..size.min(SET)).unwrap_or_default();
        copy_in(set, UserAddr(at)).map_err(|_| Fault)?;
        Ok(word(set))
    }

    #[inline(always)]
    fn put_set(&mut self, at: usize, size: usize, set: u64) -> core::result::Result<(), Fault> {
        let set = set.to_le_bytes();
        copy_out(UserAddr(at), set.get(..size.min(SET)).unwrap_or_default()).map_err(|_| Fault)
    }

    #[inline(always)]
    fn pause(&mut self, left: usize) {
        if left % PAUSE == PAUSE - 1 {
            give_way();
        }
    }
}

#[cold]
fn give_way() {
    hart::window();
    if current().context.has(Work::RESCHED) {
        task::sched::yield_now();
    }
}

fn riscv_hwprobe(pairs: usize, count: usize, size: usize, cpus: usize, flags: u32) -> Result<()> {
    rules::answer(&*vdso::ANSWERS, &mut User, Request { pairs, count, size, cpus, flags }).map_err(
        |error| match error {
            Error::Invalid => Errno::EINVAL,
            Error::Fault => Errno::EFAULT,
        },
    )
}
