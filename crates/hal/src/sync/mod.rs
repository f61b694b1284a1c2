//! Locks and wait queues.
//!
//! The kernel runs with interrupts off but at named windows, and no lock is held across a window; so a spin lock needs
//! no interrupt bookkeeping. Nothing sleeps with a spin lock held.

mod once;
mod readers;
mod spin;
mod wait;

pub use once::Once;
pub use readers::{Parts, ReadGuard, ReadersLock, WriteGuard};
pub(crate) use spin::contended;
pub use spin::{SpinGuard, SpinLock};
pub use wait::{WaitEntry, WaitQueue};
