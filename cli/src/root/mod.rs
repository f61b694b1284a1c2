//! The guest's root file system: assembled as a tree in memory, written as a cpio archive.

mod base;
mod cpio;
mod tree;

pub use base::{Settings, assemble, prefetch};
