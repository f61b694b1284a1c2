//! What only the target has: the assembly, with its offsets handed over from the Rust definitions, and the Rust
//! functions it calls.

pub(crate) mod boot;
pub(crate) mod csr;
pub(crate) mod fp;
pub(crate) mod kernel_map;
pub(crate) mod probe;
pub(crate) mod switch;
pub(crate) mod trap;
pub(crate) mod usercopy;

use core::arch::{asm, global_asm};
use core::mem::offset_of;

use crate::calls::{CallTable, SLOTS};
use crate::hart::{Hart, MAX_HARTS};
use crate::task::{FRAME_SIZE, HEAD_SIZE, Head, LOCAL_RELOAD_PC, LOCAL_REPLACED, STACK_SIZE, UserFrame};
use trap::KernelFrame;

/// Offset of a user-frame field from `tp`.
const fn frame(offset: usize) -> isize {
    offset as isize - FRAME_SIZE as isize
}

/// Bytes of stack that must be free below an interrupted kernel `sp`: the frame and room for its handler.
const KERNEL_TRAP_ROOM: usize = size_of::<KernelFrame>() + 1536;
const _: () = assert!(KERNEL_TRAP_ROOM < 2048, "an immediate of addi");

global_asm!(
    include_str!("entry.S"),
    include_str!("spill.S"),
    include_str!("kernel_trap.S"),
    include_str!("switch.S"),
    F_PC = const frame(offset_of!(UserFrame, pc)),
    F_RA = const frame(offset_of!(UserFrame, ra)),
    F_SP = const frame(offset_of!(UserFrame, sp)),
    F_GP = const frame(offset_of!(UserFrame, gp)),
    F_TP = const frame(offset_of!(UserFrame, tp)),
    F_T0 = const frame(offset_of!(UserFrame, t0)),
    F_T1 = const frame(offset_of!(UserFrame, t1)),
    F_T2 = const frame(offset_of!(UserFrame, t2)),
    F_S0 = const frame(offset_of!(UserFrame, s0)),
    F_S1 = const frame(offset_of!(UserFrame, s1)),
    F_A0 = const frame(offset_of!(UserFrame, a0)),
    F_A1 = const frame(offset_of!(UserFrame, a1)),
    F_A2 = const frame(offset_of!(UserFrame, a2)),
    F_A3 = const frame(offset_of!(UserFrame, a3)),
    F_A4 = const frame(offset_of!(UserFrame, a4)),
    F_A5 = const frame(offset_of!(UserFrame, a5)),
    F_A6 = const frame(offset_of!(UserFrame, a6)),
    F_A7 = const frame(offset_of!(UserFrame, a7)),
    F_S2 = const frame(offset_of!(UserFrame, s2)),
    F_S3 = const frame(offset_of!(UserFrame, s3)),
    F_S4 = const frame(offset_of!(UserFrame, s4)),
    F_S5 = const frame(offset_of!(UserFrame, s5)),
    F_S6 = const frame(offset_of!(UserFrame, s6)),
    F_S7 = const frame(offset_of!(UserFrame, s7)),
    F_S8 = const frame(offset_of!(UserFrame, s8)),
    F_S9 = const frame(offset_of!(UserFrame, s9)),
    F_S10 = const frame(offset_of!(UserFrame, s10)),
    F_S11 = const frame(offset_of!(UserFrame, s11)),
    F_T3 = const frame(offset_of!(UserFrame, t3)),
    F_T4 = const frame(offset_of!(UserFrame, t4)),
    F_T5 = const frame(offset_of!(UserFrame, t5)),
    F_T6 = const frame(offset_of!(UserFrame, t6)),
    FRAME = const FRAME_SIZE,
    H_WORK = const offset_of!(Head, work),
    H_LOCAL = const offset_of!(Head, local),
    H_CALLS = const offset_of!(Head, calls),
    H_FULL = const offset_of!(Head, full_calls),
    H_HART = const offset_of!(Head, hart),
    H_CONTEXT_SP = const offset_of!(Head, context_sp),
    H_ON_HART = const offset_of!(Head, on_hart),
    H_SCRATCH = const offset_of!(Head, scratch),
    HART_EMERGENCY_SP = const offset_of!(Hart, emergency_sp),
    LOCAL_RELOAD_PC = const LOCAL_RELOAD_PC,
    LOCAL_REPLACED = const LOCAL_REPLACED,
    SLOTS = const SLOTS,
    FULL_TABLE = const offset_of!(CallTable, full),
    K_FRAME = const size_of::<KernelFrame>(),
    K_ROOM = const KERNEL_TRAP_ROOM,
    STACK_SHIFT = const STACK_SIZE.trailing_zeros(),
    K_RA = const offset_of!(KernelFrame, ra),
    K_T0 = const offset_of!(KernelFrame, t) ,
    K_T1 = const offset_of!(KernelFrame, t) + 8,
    K_T2 = const offset_of!(KernelFrame, t) + 16,
    K_T3 = const offset_of!(KernelFrame, t) + 24,
    K_T4 = const offset_of!(KernelFrame, t) + 32,
    K_T5 = const offset_of!(KernelFrame, t) + 40,
    K_T6 = const offset_of!(KernelFrame, t) + 48,
    K_A0 = const offset_of!(KernelFrame, a),
    K_A1 = const offset_of!(KernelFrame, a) + 8,
    K_A2 = const offset_of!(KernelFrame, a) + 16,
    K_A3 = const offset_of!(KernelFrame, a) + 24,
    K_A4 = const offset_of!(KernelFrame, a) + 32,
    K_A5 = const offset_of!(KernelFrame, a) + 40,
    K_A6 = const offset_of!(KernelFrame, a) + 48,
    K_A7 = const offset_of!(KernelFrame, a) + 56,
    K_PC = const offset_of!(KernelFrame, pc),
    K_STATUS = const offset_of!(KernelFrame, status),
    SUM = const csr::SUM,
    SPP_SPIE_SUM = const csr::SPP | csr::SPIE | csr::SUM,
    C_SIZE = const switch::CONTEXT_SIZE,
);

global_asm!(include_str!("usercopy.S"), SUM = const csr::SUM);

global_asm!(
    include_str!("boot.S"),
    SSTATUS_OFF = const csr::SIE | csr::SUM | csr::FS | csr::VS,
    RWX = const 0xcf,
    RW = const 0xc7,
    IMAGE_LEAVES = const kernel_map::IMAGE_LEAVES,
    HEAD_OFFSET = const STACK_SIZE - HEAD_SIZE,
    FRAME = const FRAME_SIZE,
    MAX_HARTS = const MAX_HARTS,
);

global_asm!(include_str!("fp.S"));
global_asm!(include_str!("lock.S"));

global_asm!(include_str!("probe.S"));
global_asm!(include_str!("memory_copy.S"));
global_asm!(include_str!("memory_set.S"));

/// The running task's head, which `tp` points at in the kernel.
#[inline]
pub(crate) fn head_pointer() -> *mut Head {
    let head;
    // SAFETY: reads a register. Not `pure`: another task runs after a switch, on perhaps another hart; the compiler
    // sees the same value before and after, as it is the same task's.
    unsafe { asm!("mv {}, tp", out(reg) head, options(nomem, nostack, preserves_flags)) };
    head
}

unsafe extern "C" {
    static limen_boot_blocks: [[u8; STACK_SIZE]; MAX_HARTS];
}

/// The head in the boot block of hart `index`.
pub(crate) fn boot_head(index: usize) -> *mut Head {
    // SAFETY: only an address is formed; index is below MAX_HARTS, which the indexing checks.
    let block = unsafe { (&raw const limen_boot_blocks[index]).cast_mut().cast::<u8>() };
    // SAFETY: the head lies at the end of the block.
    unsafe { block.add(STACK_SIZE - HEAD_SIZE).cast() }
}
