//! The registers of a program: what the trap path saves, and what the crates above see of it.

use core::mem::offset_of;

/// The registers of a program, in the order of `struct user_regs_struct` (`pc` first, then x1 to x31).
#[derive(Clone, Copy, Default, Debug)]
#[repr(C, align(16))]
#[allow(missing_docs)]
pub struct UserFrame {
    pub pc: usize,
    pub ra: usize,
    pub sp: usize,
    pub gp: usize,
    pub tp: usize,
    pub t0: usize,
    pub t1: usize,
    pub t2: usize,
    pub s0: usize,
    pub s1: usize,
    pub a0: usize,
    pub a1: usize,
    pub a2: usize,
    pub a3: usize,
    pub a4: usize,
    pub a5: usize,
    pub a6: usize,
    pub a7: usize,
    pub s2: usize,
    pub s3: usize,
    pub s4: usize,
    pub s5: usize,
    pub s6: usize,
    pub s7: usize,
    pub s8: usize,
    pub s9: usize,
    pub s10: usize,
    pub s11: usize,
    pub t3: usize,
    pub t4: usize,
    pub t5: usize,
    pub t6: usize,
    /// The first argument of the system call, which its result has replaced in `a0`. Meaningful in a call frame.
    pub orig_a0: usize,
    kind: usize,
}

const KIND_TRAP: usize = 0;
const KIND_CALL: usize = 1;

const _: () = assert!(size_of::<UserFrame>() == 272, "a multiple of 16, so that the kernel's sp is aligned below it");
const _: () = assert!(offset_of!(UserFrame, a0) == 10 * 8 && offset_of!(UserFrame, t6) == 31 * 8);
const _: () = assert!(offset_of!(UserFrame, orig_a0) == 256, "the first 32 words are the ABI's register block");

impl UserFrame {
    /// The registers of a program that begins: all zero but these two.
    pub fn start(pc: usize, sp: usize) -> Self {
        Self { pc, sp, ..Self::default() }
    }

    /// True when the frame is a system call's whose result is in `a0`: only such a frame can be restarted.
    #[inline]
    pub fn is_call(&self) -> bool {
        self.kind == KIND_CALL
    }

    /// Makes the frame an ordinary one: nothing will be restarted from it.
    #[inline]
    pub fn forget_call(&mut self) {
        self.kind = KIND_TRAP;
    }

    /// Rewinds to the `ecall`, with the first argument back in place (the other registers still hold theirs).
    #[inline]
    pub fn restart_call(&mut self) {
        self.a0 = self.orig_a0;
        self.pc = self.pc.wrapping_sub(4);
        self.kind = KIND_TRAP;
    }

    /// The 32 words of the user ABI's register block: `pc`, x1 … x31.
    pub fn words(&self) -> [usize; 32] {
        [
            self.pc, self.ra, self.sp, self.gp, self.tp, self.t0, self.t1, self.t2, self.s0, self.s1, self.a0, self.a1,
            self.a2, self.a3, self.a4, self.a5, self.a6, self.a7, self.s2, self.s3, self.s4, self.s5, self.s6, self.s7,
            self.s8, self.s9, self.s10, self.s11, self.t3, self.t4, self.t5, self.t6,
        ]
    }

    /// A frame from the 32 words of the user ABI's register block; nothing in it is privileged.
    pub fn from_words(w: &[usize; 32]) -> Self {
        Self {
            pc: w[0],
            ra: w[1],
            sp: w[2],
            gp: w[3],
            tp: w[4],
            t0: w[5],
            t1: w[6],
            t2: w[7],
            s0: w[8],
            s1: w[9],
            a0: w[10],
            a1: w[11],
            a2: w[12],
            a3: w[13],
            a4: w[14],
            a5: w[15],
            a6: w[16],
            a7: w[17],
            s2: w[18],
            s3: w[19],
            s4: w[20],
            s5: w[21],
            s6: w[22],
            s7: w[23],
            s8: w[24],
            s9: w[25],
            s10: w[26],
            s11: w[27],
            t3: w[28],
            t4: w[29],
            t5: w[30],
            t6: w[31],
            orig_a0: w[10],
            kind: KIND_TRAP,
        }
    }

    #[cfg(target_os = "none")]
    pub(crate) fn finish_call(&mut self, result: usize) {
        self.orig_a0 = self.a0;
        self.a0 = result;
        self.kind = KIND_CALL;
    }
}

/// The floating-point registers f0 … f31 as 64-bit words, and fcsr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct FpState {
    /// f0 … f31.
    pub f: [u64; 32],
    /// The control and status register; only its low 8 bits exist.
    pub fcsr: u64,
}

impl FpState {
    /// What a program finds after execve(2): all zero.
    pub const ZERO: Self = Self { f: [0; 32], fcsr: 0 };
}
