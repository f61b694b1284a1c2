//! What the lab says while it works: a line when a boot begins and ends, and on a terminal what it is at.

use crate::report;
use crate::say;
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::time::Instant;

/// One boot's progress.
pub struct Progress {
    what: String,
    total: usize,
    state: Mutex<usize>,
    started: Instant,
    terminal: bool,
}

impl Progress {
    /// A boot of which `total` answers are expected.
    pub fn start(what: String, total: usize) -> Self {
        let terminal = report::level() == 1 && std::io::stderr().is_terminal();
        Self { what, total, state: Mutex::new(0), started: Instant::now(), terminal }
    }

    /// The program said a line.
    pub fn line(&self, line: &str) {
        if report::level() >= 2 {
            say!("{}: {line}", self.what);
        }
        let Ok(mut done) = self.state.lock() else { return };
        if line.starts_with("# this program") {
            return;
        }
        *done += 1;
        if self.terminal {
            let name = line.trim_start_matches("# ").split([' ', ':']).next().unwrap_or_default();
            let text = format!("\r\x1b[Klimen: {}: {}/{} {name}", self.what, *done, self.total);
            let _ = std::io::stderr().write_all(text.as_bytes());
        }
    }

    /// The boot is over.
    pub fn end(&self, how: &str) {
        if self.terminal {
            let _ = std::io::stderr().write_all(b"\r\x1b[K");
        }
        say!("{}: {how} ({:.0} s)", self.what, self.started.elapsed().as_secs_f32());
    }
}
