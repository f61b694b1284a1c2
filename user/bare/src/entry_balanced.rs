//! A kernel whose trap entry has a return for each call.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod guest;
#[cfg(target_os = "none")]
core::arch::global_asm!(include_str!("start.S"), include_str!("entry.S"), BALANCED = const 1);

#[cfg(not(target_os = "none"))]
fn main() {}
