//! A kernel whose trap entry spoils the return-address stack: `la ra` and `jr t0`.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod guest;
#[cfg(target_os = "none")]
core::arch::global_asm!(include_str!("start.S"), include_str!("entry.S"), BALANCED = const 0);

#[cfg(not(target_os = "none"))]
fn main() {}
