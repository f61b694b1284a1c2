//! What programs may rely on, tested from inside: the report is in the Test Anything Protocol.
//!
//! `tests [--list] [TEXT…]`: all tests, or those whose name contains one of the texts. Each runs in a process of its own
//! with a time limit. The program runs on Linux as well and passes there: where it does not, the test is wrong.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod copies;
#[cfg(target_os = "none")]
mod entry;
#[cfg(target_os = "none")]
mod files;
#[cfg(target_os = "none")]
mod floats;
#[cfg(target_os = "none")]
mod limits;
#[cfg(target_os = "none")]
mod memory;
#[cfg(target_os = "none")]
mod pipes;
#[cfg(target_os = "none")]
mod processes;
#[cfg(target_os = "none")]
mod registers;
#[cfg(target_os = "none")]
mod signals;
#[cfg(target_os = "none")]
mod start;
#[cfg(target_os = "none")]
mod system;
#[cfg(target_os = "none")]
mod threads;
#[cfg(target_os = "none")]
mod time;
#[cfg(target_os = "none")]
mod traps;

rt::program!(run);

/// Tests of what Linux has and Limen has not yet, with the reason.
#[cfg(target_os = "none")]
const LACKING: &[(&str, &str)] = &[];

#[cfg(target_os = "none")]
fn run(args: rt::Args) -> u8 {
    // Whatever started us may have left signals blocked or ignored.
    kit::signal::set_mask(0);
    if let Some(status) = start::helper(args) {
        return status;
    }
    start::remember(args);
    const GROUPS: &[&[rt::tap::Test]] = &[
        registers::TESTS,
        floats::TESTS,
        traps::TESTS,
        entry::TESTS,
        signals::TESTS,
        memory::TESTS,
        limits::TESTS,
        start::TESTS,
        copies::TESTS,
        pipes::TESTS,
        threads::TESTS,
        processes::TESTS,
        time::TESTS,
        files::TESTS,
        files::names::TESTS,
        files::edges::TESTS,
        system::TESTS,
    ];
    let lacking = if entry::is_linux() { &[] } else { LACKING };
    rt::tap::run(GROUPS, lacking, args)
}
