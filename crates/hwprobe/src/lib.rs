//! `riscv_hwprobe` of riscv64 Linux: what the harts can do, as data, as rules, and as typed queries.
//!
//! - [`keys`] lists every key and bit of Linux 7.2 with its name and a text for people.
//! - [`isa`] knows the extensions: their order, what they imply and need, how device trees and `/proc/cpuinfo` write them.
//! - [`rules`] turns words of single harts into the answer to any query, over any kind of memory: what a kernel and its vDSO
//!   need. [`words`] makes those words.
#![cfg_attr(
    feature = "std",
    doc = "- With the feature `std` (the default), [`features`], [`probe`] and [`which`] ask the running riscv64 Linux."
)]
#![cfg_attr(not(feature = "std"), doc = "- With the feature `std` the running riscv64 Linux can be asked.")]
//! - [`command`] is the command `hwprobe`, for whoever can read files and make the call.
//!
//! The crate needs neither `std` nor an allocator, and has no unsafe code but in one file of the half that asks the
//! running kernel.
#![cfg_attr(not(any(test, feature = "std")), no_std)]
#![deny(unsafe_code)]

pub mod command;
pub mod isa;
pub mod keys;
#[cfg(feature = "std")]
mod linux;
pub mod pair;
#[cfg(any(test, feature = "reference"))]
pub mod reference;
pub mod rules;
pub mod words;

#[cfg(feature = "std")]
pub use linux::{Errno, Features, Misaligned, Source, features, probe, which};

#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// A number as people write it: decimal, or hexadecimal behind `0x`; `-1` is the word of ones.
pub fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None => text.parse::<u64>().ok().or_else(|| text.parse::<i64>().ok().map(i64::cast_unsigned)),
    }
}
