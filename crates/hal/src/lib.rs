//! The hardware abstraction layer of Limen: the only kernel crate with `unsafe` code and assembly.
//!
//! Everything a module of this crate exports is safe to call: the audit boundary is the crate. On the host the crate
//! builds with software stand-ins (an arena for physical memory, a fake user space), so that the crates above it run
//! their tests on the developer's machine; what needs a hart is compiled for the target only.
#![cfg_attr(not(test), no_std)]

extern crate alloc;
#[cfg(not(target_os = "none"))]
extern crate std;

pub mod addr;
#[cfg(target_os = "none")]
pub(crate) mod arch;
pub mod boot;
pub mod calls;
pub mod console;
pub mod hart;
pub mod isa;
pub mod machine;
pub mod mem;
pub mod mmio;
#[cfg(target_os = "none")]
mod panic;
pub mod probe;
#[cfg(target_os = "none")]
pub(crate) mod sbi;
pub mod sync;
pub mod task;
pub mod time;
#[cfg(target_os = "none")]
mod unwind;
pub mod user;
