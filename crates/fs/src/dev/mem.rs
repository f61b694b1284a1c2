//! null(4), zero(4), full(4), random(4).

use alloc::sync::Arc;

use hal::addr::UserAddr;
use hal::user::{InBuf, OutBuf, copy_out};
use uapi::fs::S_IFCHR;
use uapi::ioctl::RNDGETENTCNT;
use uapi::{Errno, Result};

use super::{Device, register};
use crate::file::{File, FileOps, Ops};
use crate::random;

struct Null;
struct Zero;
struct Full;
struct Random;

/// Bytes cleared before interrupts are let in.
const BETWEEN_WINDOWS: usize = 64 << 10;

/// A device whose opened file has no state.
struct Stateless(&'static dyn FileOps);

impl Device for Stateless {
    fn open(&self, _: u32) -> Result<Ops> {
        Ok(Ops::Static(self.0))
    }
}

/// Takes everything.
#[inline]
fn swallow(input: &mut InBuf<'_>) -> Result<usize> {
    let n = input.len();
    input.skip(n);
    Ok(n)
}

#[cold]
fn many_zeroes(out: &mut OutBuf<'_>) -> Result<usize> {
    let mut done = out.write_zeroes(BETWEEN_WINDOWS)?;
    while !out.is_empty() {
        hal::hart::window();
        match out.write_zeroes(BETWEEN_WINDOWS) {
            Ok(more) if more != 0 => done += more,
            _ => break,
        }
    }
    Ok(done)
}

impl FileOps for Null {
    fn read(&self, _: &File, _: &mut OutBuf<'_>) -> Result<usize> {
        Ok(0)
    }
    fn write(&self, _: &File, input: &mut InBuf<'_>) -> Result<usize> {
        swallow(input)
    }
    fn read_at(&self, _: &File, _: u64, _: &mut OutBuf<'_>) -> Result<usize> {
        Ok(0)
    }
    fn write_at(&self, _: &File, _: u64, input: &mut InBuf<'_>) -> Result<usize> {
        swallow(input)
    }
    fn seek(&self, _: &File, _: i64, _: u32) -> Result<u64> {
        Ok(0)
    }
}

impl FileOps for Zero {
    #[inline]
    fn read(&self, _: &File, out: &mut OutBuf<'_>) -> Result<usize> {
        let n = out.len();
        if n <= BETWEEN_WINDOWS { out.write_zeroes(n) } else { many_zeroes(out) }
    }
    fn write(&self, _: &File, input: &mut InBuf<'_>) -> Result<usize> {
        swallow(input)
    }
    fn read_at(&self, file: &File, _: u64, out: &mut OutBuf<'_>) -> Result<usize> {
        self.read(file, out)
    }
    fn write_at(&self, _: &File, _: u64, input: &mut InBuf<'_>) -> Result<usize> {
        swallow(input)
    }
    fn seek(&self, _: &File, _: i64, _: u32) -> Result<u64> {
        Ok(0)
    }
    fn mmap_is_anonymous(&self) -> bool {
        true
    }
}

impl FileOps for Full {
    fn read(&self, file: &File, out: &mut OutBuf<'_>) -> Result<usize> {
        Zero.read(file, out)
    }
    fn write(&self, _: &File, _: &mut InBuf<'_>) -> Result<usize> {
        Err(Errno::ENOSPC)
    }
    fn read_at(&self, file: &File, _: u64, out: &mut OutBuf<'_>) -> Result<usize> {
        Zero.read(file, out)
    }
    fn write_at(&self, _: &File, _: u64, _: &mut InBuf<'_>) -> Result<usize> {
        Err(Errno::ENOSPC)
    }
    fn seek(&self, _: &File, _: i64, _: u32) -> Result<u64> {
        Ok(0)
    }
}

impl FileOps for Random {
    fn read(&self, _: &File, out: &mut OutBuf<'_>) -> Result<usize> {
        random::read(out)
    }
    /// What is written is mixed in; it is not trusted to be random.
    fn write(&self, _: &File, input: &mut InBuf<'_>) -> Result<usize> {
        let mut done = 0;
        let mut chunk = [0; 64];
        while !input.is_empty() {
            match input.read(&mut chunk) {
                Ok(n) => {
                    random::seed(chunk.get(..n).unwrap_or_default());
                    done += n;
                    if n < chunk.len() {
                        break;
                    }
                }
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }
    fn read_at(&self, _: &File, _: u64, out: &mut OutBuf<'_>) -> Result<usize> {
        random::read(out)
    }
    fn seek(&self, _: &File, _: i64, _: u32) -> Result<u64> {
        Ok(0)
    }
    fn ioctl(&self, _: &File, cmd: u32, arg: usize) -> Result<usize> {
        match cmd {
            RNDGETENTCNT => copy_out(UserAddr(arg), &random::ENTROPY_BITS.to_le_bytes()).map(|()| 0),
            _ => Err(Errno::EINVAL),
        }
    }
}

pub(super) fn init() -> Result<()> {
    /// The major number of memory devices: Linux's devices.txt.
    const MEM: u32 = 1;
    let nodes: [(u32, &str, &'static dyn FileOps); 5] =
        [(3, "null", &Null), (5, "zero", &Zero), (7, "full", &Full), (8, "random", &Random), (9, "urandom", &Random)];
    for (minor, name, ops) in nodes {
        register(S_IFCHR | 0o666, MEM, minor, name, Arc::new(Stateless(ops)))?;
    }
    Ok(())
}
