//! What the command says about its own work: always on standard error, so that standard output is the program's alone.

use std::sync::atomic::{AtomicU8, Ordering};

static LEVEL: AtomicU8 = AtomicU8::new(1);

/// Sets how much is said: 0 errors only, 1 progress, 2 also every command that is started.
pub fn set_level(level: u8) {
    LEVEL.store(level, Ordering::Relaxed);
}

/// The level set by [`set_level`].
pub fn level() -> u8 {
    LEVEL.load(Ordering::Relaxed)
}

/// One progress line.
#[macro_export]
macro_rules! say {
    ($($arg:tt)*) => { if $crate::report::level() >= 1 { eprintln!("limen: {}", format_args!($($arg)*)) } };
}
