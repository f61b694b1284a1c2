//! Asking the system about itself: by the vDSO, by the call that says the same, by a file.

use crate::meter::{Lack, Meter, Outcome, holds};
use kit::uapi::{Errno, Timespec, nr, open};
use kit::{attempt, vdso};
use rt::io;

const FILE: &core::ffi::CStr = c"/sys/kernel/cpu_byteorder";

pub fn clock_gettime(meter: &mut Meter) -> Outcome {
    let image = vdso::Vdso::find(meter.args).ok_or(Lack::Because("no vDSO"))?;
    let read = vdso::clock_gettime(&image).ok_or(Lack::Because("not in the vDSO"))?;
    let mut now = Timespec::default();
    meter.each(|| holds(read(1, &raw mut now) == 0, "the vDSO's function failed"))
}

/// `struct riscv_hwprobe` of asm/hwprobe.h.
#[repr(C)]
#[derive(Clone, Copy)]
struct Pair {
    key: i64,
    value: u64,
}

/// RISCV_HWPROBE_KEY_IMA_EXT_0: what every C library's start-up asks.
const EXTENSIONS: Pair = Pair { key: 4, value: 0 };
const WHICH_CPUS: u32 = 1;

type Hwprobe = extern "C" fn(*mut Pair, usize, usize, *mut u64, u32) -> isize;

fn in_vdso(meter: &Meter) -> Option<Hwprobe> {
    // SAFETY: that symbol is a function of this signature.
    vdso::Vdso::find(meter.args)?
        .function(c"__vdso_riscv_hwprobe")
        .map(|address| unsafe { core::mem::transmute::<usize, Hwprobe>(address) })
}

fn call(pairs: *mut Pair, count: usize, size: usize, harts: *mut u64, flags: u32) -> Result<usize, Errno> {
    attempt!(nr::RISCV_HWPROBE, pairs, count, size, harts, flags)
}

/// The vDSO's function, or what the call says where there is none.
fn function(meter: &Meter) -> Result<Hwprobe, Lack> {
    if let Some(function) = in_vdso(meter) {
        return Ok(function);
    }
    let mut pair = EXTENSIONS;
    call(&raw mut pair, 1, 0, core::ptr::null_mut(), 0)?;
    Err(Lack::Because("not in the vDSO"))
}

fn well(result: isize) -> Result<(), Lack> {
    Errno::from_ret(result).map_or(Ok(()), |error| Err(error.into()))
}

pub fn hwprobe_vdso(meter: &mut Meter) -> Outcome {
    let function = function(meter)?;
    let mut pair = EXTENSIONS;
    meter.each(|| well(function(&raw mut pair, 1, 0, core::ptr::null_mut(), 0)))
}

pub fn hwprobe_call(meter: &mut Meter) -> Outcome {
    let mut pair = EXTENSIONS;
    meter.each(|| Ok(call(&raw mut pair, 1, 0, core::ptr::null_mut(), 0).map(|_| ())?))
}

pub fn hwprobe_set(meter: &mut Meter) -> Outcome {
    set(meter, 1)
}

/// Where harts differ, the set that takes longest: neither all of them nor few.
pub fn hwprobe_others(meter: &mut Meter) -> Outcome {
    let all = allowed()?;
    set(meter, if all == 1 { 1 } else { all & !1 })
}

/// The set that sched_getaffinity(2) gives to a program that may run anywhere.
pub fn hwprobe_all_set(meter: &mut Meter) -> Outcome {
    set(meter, allowed()?)
}

fn allowed() -> Result<u64, Errno> {
    let mut harts = 0_u64;
    attempt!(nr::SCHED_GETAFFINITY, 0, 8, &raw mut harts).map(|_| harts)
}

fn set(meter: &Meter, mut harts: u64) -> Outcome {
    let function = function(meter)?;
    let mut pair = EXTENSIONS;
    meter.each(|| well(function(&raw mut pair, 1, 8, &raw mut harts, 0)))
}

/// What a program asks that chooses among its routines: extensions, misaligned accesses, block sizes.
pub fn hwprobe_six(meter: &mut Meter) -> Outcome {
    let function = function(meter)?;
    let mut pairs = [3, 4, 5, 6, 9, 12].map(|key| Pair { key, value: 0 });
    meter.each(|| well(function(pairs.as_mut_ptr(), pairs.len(), 0, core::ptr::null_mut(), 0)))
}

pub fn hwprobe_which(meter: &mut Meter) -> Outcome {
    which(meter, 1, 1)
}

/// An empty set stands for all harts.
pub fn hwprobe_which_all(meter: &mut Meter) -> Outcome {
    which(meter, 0, allowed()?)
}

/// Which of the harts `asked` about have what all have: `found`.
#[inline(always)]
fn which(meter: &Meter, asked: u64, found: u64) -> Outcome {
    let function = function(meter)?;
    let mut pair = EXTENSIONS;
    call(&raw mut pair, 1, 0, core::ptr::null_mut(), 0)?;
    meter.each(|| {
        let mut harts = asked;
        well(function(&raw mut pair, 1, 8, &raw mut harts, WHICH_CPUS))?;
        holds(harts == found, "a hart lacks what it said it has")
    })
}

pub fn open_read_close(meter: &mut Meter) -> Outcome {
    meter.each(|| {
        let mut text = [0_u8; 64];
        let file = io::open(FILE, open::O_RDONLY, 0)?;
        holds(io::read(file, &mut text)? == 7, "another text than expected")?;
        Ok(io::close(file)?)
    })
}

pub fn access(meter: &mut Meter) -> Outcome {
    const READ: u32 = 4;
    meter.each(|| Ok(attempt!(nr::FACCESSAT, open::AT_FDCWD, FILE.as_ptr(), READ).map(|_| ())?))
}
