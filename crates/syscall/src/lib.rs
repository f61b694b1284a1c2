//! The system call handlers, one file a family.
//!
//! [`TABLE`] is what the trap path dispatches through; [`FAMILIES`] says, from the same source, how far each call is
//! supported. A handler is a typed function over user addresses and plain numbers that asks the crates below and turns
//! what they answer into what Linux answers. It decides three things itself: the order in which bad arguments are found
//! out, whether to wait, and what is copied to the program.
//!
//! `table` has the machinery, `caller` what nearly every handler begins with, `exec` the program loader.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod caller;
mod exec;
mod file;
mod futex;
pub mod hwprobe;
mod memory;
pub mod proc;
mod process;
mod signal;
mod system;
mod table;
pub mod time;

use hal::calls::CallTable;

pub use exec::spawn_init;
pub use table::{Call, Family, Support};

/// Lists the families once, for the table of handlers and that of what is supported.
macro_rules! families {
    ($($name:literal = $($module:ident)::+;)*) => {
        /// All handlers. Every number that no family lists answers ENOSYS.
        pub const TABLE: CallTable = {
            let table = CallTable::new(table::unknown);
            $(let table = $($module)::+::add(table);)*
            table
        };

        /// What is supported, family by family.
        pub static FAMILIES: &[Family] = &[$(Family { name: $name, calls: $($module)::+::CALLS }),*];
    };
}

families! {
    "Reading and writing" = file::rw;
    "Between files" = file::copy;
    "Descriptors" = file::fd;
    "Waiting for files" = file::poll;
    "Paths" = file::path;
    "Attributes of files" = file::attr;
    "Extended attributes" = file::xattr;
    "Memory" = memory;
    "Processes and threads" = process::life;
    "Programs" = exec;
    "Identity" = process::identity;
    "Limits and scheduling" = process::limits;
    "Process control" = process::prctl;
    "Signals" = signal;
    "Time" = time;
    "Futexes" = futex;
    "Harts" = hwprobe;
    "The system" = system;
}

/// Connects the crates below with each other. Once at boot, before the first program.
pub fn init() {
    task::signal::set_trampoline(exec::vdso::trampoline);
    task::fault::set_resume(exec::vdso::resume);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_call_is_listed_once_and_has_a_name() {
        let mut seen = BTreeSet::new();
        for call in FAMILIES.iter().flat_map(|family| family.calls) {
            let name = uapi::nr::name(call.number);
            assert!(name.is_some(), "{}", call.number);
            assert!(seen.insert(call.number), "{name:?} is listed twice");
            assert_eq!(call.support == Support::Full, call.note.is_empty(), "{name:?}");
        }
        assert!(seen.len() > 180, "{}", seen.len());
    }
}
