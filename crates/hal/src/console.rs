//! Kernel messages: to the console driver once there is one, to the firmware before.

use core::fmt::{self, Write};

use crate::sync::{Once, SpinLock};

/// Writes bytes to the console. Must not take a lock that can be held when it is called.
pub type Sink = fn(&[u8]);

static SINK: Once<Sink> = Once::new();
static LINE: SpinLock<()> = SpinLock::new(());

/// Sends kernel messages to `sink` from now on; the first caller wins.
pub fn set_sink(sink: Sink) {
    // A second console driver is not an error: the messages stay where they are.
    let _ = SINK.set(sink);
}

struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        match SINK.get() {
            Some(sink) => sink(text.as_bytes()),
            None => firmware(text.as_bytes()),
        }
        Ok(())
    }
}

#[cfg(target_os = "none")]
fn firmware(bytes: &[u8]) {
    crate::sbi::console_write(bytes);
}

#[cfg(not(target_os = "none"))]
fn firmware(bytes: &[u8]) {
    std::print!("{}", std::string::String::from_utf8_lossy(bytes));
}

/// Writes a message as a line of its own; used by [`crate::log`].
#[doc(hidden)]
pub fn print(message: fmt::Arguments) {
    let _line = LINE.lock();
    // The sinks do not fail.
    let _ = writeln!(Console, "{message}\r");
}

/// As [`print`], but takes no lock: for a panic, which may have interrupted its holder.
#[cfg(target_os = "none")]
pub(crate) fn print_unlocked(message: fmt::Arguments) {
    let _ = writeln!(Console, "{message}\r");
}

/// Writes a line to the kernel's console.
#[macro_export]
macro_rules! log {
    ($($arg:tt)*) => { $crate::console::print(format_args!($($arg)*)) };
}
