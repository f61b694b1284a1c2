//! The riscv64 signal frame: what lies on the user stack when a handler starts.
//!
//! From sp upward: siginfo (128), ucontext (960) whose mcontext has the integer registers, the FP registers and,
//! aliased with the end of the quad-precision FP format, the header of the first extension record {magic, size}.
//! An END record (magic 0, size 0) closes the frame. rt_sigreturn reads the same layout back.

use crate::siginfo::Siginfo;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// sigaltstack(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StackT {
    pub ss_sp: usize,
    pub ss_flags: u32,
    pub pad: u32,
    pub ss_size: usize,
}
layout!(StackT: 24, ss_flags @ 8, ss_size @ 16);

/// An extension record's header. `size` counts the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ExtHeader {
    pub magic: u32,
    pub size: u32,
}
layout!(ExtHeader: 8);

/// The magic of a vector record.
pub const RISCV_V_MAGIC: u32 = 0x5346_5457;
/// The magic of a shadow-stack record.
pub const RISCV_ZICFISS_MAGIC: u32 = 0x9487;
/// The magic of the record that ends the list.
pub const END_MAGIC: u32 = 0;

/// The registers in a frame.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Mcontext {
    /// pc, then x1 to x31.
    pub gregs: [u64; 32],
    /// f0 to f31.
    pub fpregs: [u64; 32],
    pub fcsr: u32,
    pub pad: [u32; 64],
    /// Must be zero.
    pub reserved: u32,
    /// The first extension record's header; END without extensions.
    pub ext: ExtHeader,
}
layout!(Mcontext: 784, fpregs @ 256, fcsr @ 512, reserved @ 772, ext @ 776);

/// The third argument of a handler.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Ucontext {
    pub uc_flags: u64,
    pub uc_link: u64,
    pub uc_stack: StackT,
    pub uc_sigmask: u64,
    pub unused: [u64; 15],
    pub pad: u64,
    pub uc_mcontext: Mcontext,
}
layout!(Ucontext: 960, uc_stack @ 16, uc_sigmask @ 40, uc_mcontext @ 176);

/// The whole frame, without extension records. Its address is a multiple of [`FRAME_ALIGN`].
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SigFrame {
    pub info: Siginfo,
    pub uc: Ucontext,
}
layout!(SigFrame: 1088, uc @ 128);

/// Alignment of a frame and of the stack pointer at a handler's entry.
pub const FRAME_ALIGN: usize = 16;

impl Default for SigFrame {
    fn default() -> Self {
        FromZeros::new_zeroed()
    }
}
