//! The system call handlers, one file a family.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod exec;
#[allow(dead_code, unused)]
mod table;
