//! Drivers of the few devices that every machine needs: serial port, interrupt controller, clock of day.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod plic;
pub mod rtc;
pub mod uart;
