//! `/proc/sys`, `/proc/version`, `/proc/cmdline`: what the system is called and how it is set up.
//!
//! Only what is true of this kernel is there. The host's and the domain's name can be set; nothing else can, and the
//! permissions say so.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use fs::TextSource;
use fs::proc::register;
use hal::sync::SpinLock;
use task::tree::PID_MAX;
use uapi::Result;
use uapi::system::{CAP_LAST_CAP, RELEASE};

use crate::system::{DOMAIN, HOST, Name, VERSION};

pub(super) fn version_text() -> String {
    alloc::format!("Linux version {RELEASE} (limen) {VERSION}\n")
}

pub(super) fn cmdline_text() -> String {
    alloc::format!("{}\n", hal::boot::info().command_line)
}

/// A name that can be set: sethostname(2), setdomainname(2).
struct Settable(&'static SpinLock<Name>);

impl TextSource for Settable {
    fn read(&self) -> Result<Vec<u8>> {
        let mut text = self.0.lock().text().to_vec();
        text.push(b'\n');
        Ok(text)
    }

    fn write(&self, text: &[u8]) -> Result<()> {
        self.0.lock().set(first_line(text));
        Ok(())
    }
}

/// What a write to a string of `/proc/sys` sets: up to a newline or NUL.
fn first_line(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|&b| b == b'\n' || b == 0).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

pub(super) fn init() -> Result<()> {
    register("sys/kernel/hostname", 0o644, Arc::new(Settable(&HOST)))?;
    register("sys/kernel/domainname", 0o644, Arc::new(Settable(&DOMAIN)))?;
    let lines: [super::Made; 7] = [
        ("kernel/osrelease", || alloc::format!("{RELEASE}\n")),
        ("kernel/version", || alloc::format!("{VERSION}\n")),
        ("kernel/pid_max", || alloc::format!("{PID_MAX}\n")),
        ("kernel/threads-max", || alloc::format!("{}\n", task::max_threads())),
        ("kernel/cap_last_cap", || alloc::format!("{CAP_LAST_CAP}\n")),
        ("vm/max_map_count", || alloc::format!("{}\n", mm::space::MAX_AREAS)),
        ("vm/mmap_min_addr", || alloc::format!("{}\n", mm::space::MIN_ADDR)),
    ];
    for (path, text) in lines {
        register(&alloc::format!("sys/{path}"), 0o444, fs::Content::Made(text))?;
    }
    for (path, text) in CONSTANTS {
        register(&alloc::format!("sys/{path}"), 0o444, *text)?;
    }
    Ok(())
}

const CONSTANTS: &[(&str, &str)] = &[
    ("kernel/ostype", "Linux\n"),
    ("kernel/arch", "riscv64\n"),
    ("kernel/ngroups_max", "65536\n"),
    ("kernel/overflowuid", "65534\n"),
    ("kernel/overflowgid", "65534\n"),
    ("kernel/randomize_va_space", "2\n"),
    ("kernel/tainted", "0\n"),
    ("kernel/sched_rr_timeslice_ms", "4\n"),
    // A mapping is refused only if it is larger than all memory; nothing is ever swapped out.
    ("vm/overcommit_memory", "0\n"),
    ("vm/overcommit_ratio", "50\n"),
    ("vm/overcommit_kbytes", "0\n"),
    ("vm/swappiness", "0\n"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_with_its_line() {
        assert_eq!(first_line(b"box\n"), b"box");
        assert_eq!(first_line(b"box"), b"box");
        assert_eq!(first_line(b"a\0b\n"), b"a");
        assert_eq!(first_line(b""), b"");
    }

    #[test]
    fn every_constant_is_one_line() {
        assert!(CONSTANTS.iter().all(|(_, text)| text.ends_with('\n') && text.lines().count() == 1));
    }
}
