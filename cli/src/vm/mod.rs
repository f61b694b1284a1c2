//! The virtual machine: which kernel, how QEMU is called, what its console says.

mod console;
mod format;
mod image;
mod machine;
mod session;
mod symbols;
pub mod tree;

pub use image::{Image, Kernel, prepare};
pub use machine::{Machine, archive_name};
pub use session::{End, Input, Output, run};

/// The SHA-256 of some bytes, in hexadecimal.
pub fn hash(bytes: &[u8]) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
