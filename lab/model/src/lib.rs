//! What the lab counts and how it is written down: the part of the instrument that needs no emulator.
//!
//! The QEMU plugin (`lab/plugin`) sees blocks of guest code being translated and run. Everything it concludes from that
//! is decided here, in safe code tested on the host, and the one document it prints at the end has the form of
//! [`Report`]; the command that reads it uses the same types.
#![forbid(unsafe_code)]

mod block;
mod counts;
pub mod decode;
mod hart;
mod names;
mod ras;
mod report;
mod slots;
mod tally;

pub use block::{Block, Blocks};
pub use counts::{Counts, CsrCount, Event};
pub use hart::{Hart, Machine, Open, Register, regions};
pub use names::{csr_name, trap_name};
pub use ras::Ras;
pub use report::{Bucket, Cause, Context, Mode, Modes, Region, Report, Returns};

/// The modelled depths of the return-address stack, in the order of every `mispredicted` array. `None`: unbounded (in
/// fact [`UNBOUNDED`] entries).
pub const DEPTHS: [Option<u32>; 5] = [Some(4), Some(8), Some(16), Some(32), None];

/// Entries of the stack that counts as unbounded; a deeper chain of calls wraps around as in any other.
pub const UNBOUNDED: u32 = 1 << 20;

/// The largest region number; 1 and up are begun by a program, 0 is [`BOOT`].
pub const REGIONS: u16 = 1023;

/// The region that is counted without a marker: from reset to the first instruction in user mode.
pub const BOOT: u16 = 0;

/// The most instructions from one `pause` to the next for a loop that waits: more are work between two waits.
pub const TURN: u64 = 40;
