//! The code of the vDSO: what a program may ask of the kernel without entering it.
//!
//! `build.rs` compiles this file alone into one position-independent object and links it by `image.ld` into a shared
//! object of one read-only, executable segment: no relocation, no writable byte, no thread-local storage. The
//! kernel's data pages lie right below the image, at the linker's symbols `vvar` and `answers`, reached pc-relatively.
//!
//! Each function does what its system call does, and makes the call for whatever it cannot answer. Results are
//! written straight through the caller's pointers: a bad one faults here, in the program, as under Linux.

#![no_std]
#![allow(non_snake_case)]

use core::arch::{asm, global_asm};
use data::VdsoData;

#[path = "../../crates/uapi/src/vdso.rs"]
#[allow(dead_code)]
mod data;
mod hwprobe;
#[path = "../../crates/hwprobe/src/rules.rs"]
#[allow(dead_code)]
mod rules;

const NR_CLOCK_GETTIME: usize = 113;
const NR_CLOCK_GETRES: usize = 114;
const NR_GETCPU: usize = 168;
const NR_GETTIMEOFDAY: usize = 169;
const NR_RISCV_FLUSH_ICACHE: usize = 259;
const LOCAL: usize = 1;

const CLOCK_REALTIME: i32 = 0;
const NSEC_PER_SEC: u64 = 1_000_000_000;

/// timespec and timeval: seconds, and nano- or microseconds.
#[repr(C)]
pub struct Time {
    seconds: u64,
    fraction: u64,
}

/// gettimeofday(2)'s second argument.
#[repr(C)]
pub struct Timezone {
    minuteswest: i32,
    dsttime: i32,
}

/// The kernel's data page.
#[inline(always)]
fn vvar() -> &'static VdsoData {
    let page: *const VdsoData;
    // SAFETY: materialises an address; touches no memory.
    unsafe { asm!("lla {}, vvar", out(reg) page, options(pure, nomem, nostack, preserves_flags)) };
    // SAFETY: the kernel maps the page below the image for the life of the program, page-aligned, readable and
    // initialised; its fields are atomics, so that the kernel's stores are no data race.
    unsafe { &*page }
}

/// The `time` CSR. Without `nomem`, so that it stays between the loads around it.
#[inline(always)]
fn ticks() -> u64 {
    let ticks;
    // SAFETY: reading the counter has no effect; the kernel lets user mode read it.
    unsafe { asm!("csrr {}, time", out(reg) ticks, options(nostack, preserves_flags)) };
    ticks
}

/// A system call of up to three arguments.
#[inline(always)]
fn syscall(nr: usize, a: usize, b: usize, c: usize) -> isize {
    let result;
    // SAFETY: the caller's own call, made on its behalf with its own arguments. The kernel preserves every register
    // but a0 and the vector state, which this image does not use; memory is clobbered by default.
    unsafe {
        asm!("ecall", in("a7") nr, inlateout("a0") a => result, in("a1") b, in("a2") c, options(nostack));
    }
    result
}

/// clock_gettime(2).
///
/// # Safety
/// `time` must be writable, else the program faults.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __vdso_clock_gettime(clock: i32, time: *mut Time) -> i32 {
    match vvar().now(clock, ticks) {
        Some(ns) => {
            // SAFETY: by the caller's duty.
            unsafe { time.write(Time { seconds: ns / NSEC_PER_SEC, fraction: ns % NSEC_PER_SEC }) };
            0
        }
        None => syscall(NR_CLOCK_GETTIME, clock as usize, time as usize, 0) as i32,
    }
}

/// gettimeofday(2). Both pointers may be null.
///
/// # Safety
/// What is not null must be writable, else the program faults.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __vdso_gettimeofday(time: *mut Time, zone: *mut Timezone) -> i32 {
    let vvar = vvar();
    let Some(ns) = vvar.now(CLOCK_REALTIME, ticks) else {
        return syscall(NR_GETTIMEOFDAY, time as usize, zone as usize, 0) as i32;
    };
    if !time.is_null() {
        // SAFETY: by the caller's duty.
        unsafe { time.write(Time { seconds: ns / NSEC_PER_SEC, fraction: ns % NSEC_PER_SEC / 1000 }) };
    }
    if !zone.is_null() {
        let (minuteswest, dsttime) = vvar.timezone();
        // SAFETY: by the caller's duty.
        unsafe { zone.write(Timezone { minuteswest, dsttime }) };
    }
    0
}

/// clock_getres(2). The pointer may be null.
///
/// # Safety
/// `resolution` must be null or writable, else the program faults.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __vdso_clock_getres(clock: i32, resolution: *mut Time) -> i32 {
    let Some(ns) = data::resolution_ns(clock) else {
        return syscall(NR_CLOCK_GETRES, clock as usize, resolution as usize, 0) as i32;
    };
    if !resolution.is_null() {
        // SAFETY: by the caller's duty.
        unsafe { resolution.write(Time { seconds: 0, fraction: ns as u64 }) };
    }
    0
}

/// getcpu(2).
#[unsafe(no_mangle)]
pub extern "C" fn __vdso_getcpu(cpu: *mut u32, node: *mut u32, unused: *mut ()) -> i32 {
    syscall(NR_GETCPU, cpu as usize, node as usize, unused as usize) as i32
}

/// riscv_flush_icache(2). With one hart online the instruction does what the call would do.
#[unsafe(no_mangle)]
pub extern "C" fn __vdso_flush_icache(start: *mut (), end: *mut (), flags: usize) -> i32 {
    if vvar().harts() == 1 && flags & !LOCAL == 0 {
        // SAFETY: orders the caller's stores before its later fetches; nothing else.
        unsafe { asm!(".option push", ".option arch, +zifencei", "fence.i", ".option pop", options(nostack)) };
        return 0;
    }
    syscall(NR_RISCV_FLUSH_ICACHE, start as usize, end as usize, flags) as i32
}

// Where a signal handler returns to. Unwinders know a signal frame by exactly these two uncompressed instructions;
// they look up the address *before* the return address, so the function comes first in the text and what precedes it
// belongs to no frame description. Its own description serves a lookup at the instruction itself (a signal that
// arrives here): sp points to the frame (`limen_uapi::sigframe`), where register n of
// DWARF (x1-x31 are 1-31, f0-f31 are 32-63) lies at 304 + 8n and pc, the alternate return column 64, at 304.
global_asm!(
    ".pushsection .text.sigreturn, \"ax\", @progbits",
    ".balign 16",
    ".globl __vdso_rt_sigreturn",
    ".type __vdso_rt_sigreturn, @function",
    ".cfi_startproc",
    ".cfi_signal_frame",
    ".cfi_return_column 64",
    ".cfi_def_cfa 2, 0",
    ".cfi_offset 64, 304",
    ".irp n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, \
        32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63",
    ".cfi_offset \\n, 304 + 8 * \\n",
    ".endr",
    ".option push",
    ".option norvc",
    "__vdso_rt_sigreturn:",
    "li a7, 139",
    "ecall",
    ".option pop",
    ".cfi_endproc",
    ".size __vdso_rt_sigreturn, . - __vdso_rt_sigreturn",
    ".popsection",
);

// The note by which a C library learns the ABI's release: name "Linux", type 0, a version code.
global_asm!(
    ".pushsection .note.linux, \"a\", @note",
    ".balign 4",
    ".word 6, 4, 0",
    ".asciz \"Linux\"",
    ".balign 4",
    ".word {version}",
    ".popsection",
    ".hidden vvar",
    ".hidden answers",
    version = const data::LINUX_VERSION_CODE,
);
