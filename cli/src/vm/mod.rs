//! The virtual machine: which kernel, how QEMU is called, what its console says.

mod console;
mod image;
mod machine;
mod session;
mod symbols;

pub use image::{Image, Kernel, prepare};
pub use machine::{Machine, archive_name};
pub use session::{End, Input, Output, run};
