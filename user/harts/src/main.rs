//! Many harts at once: interrupts between them, idle ones that must wake, memory that changes under others, memory that
//! ends. The report is in the Test Anything Protocol; the program runs on Linux as well and passes there.
//!
//! `harts [--list] [--times] [--long] [TEXT…]`: all tests, or those whose name contains one of the texts, and 20 times as
//! long. `harts --console`: asks for input (`?`) again and again while all harts are idle, or all but one, and ends well if each question is answered.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod code;
#[cfg(target_os = "none")]
mod forks;
#[cfg(target_os = "none")]
mod idle;
#[cfg(target_os = "none")]
mod memory_ends;
#[cfg(target_os = "none")]
mod slices;
#[cfg(target_os = "none")]
mod storm;
#[cfg(target_os = "none")]
mod team;
#[cfg(target_os = "none")]
mod truncation;
#[cfg(target_os = "none")]
mod truncation_races;
#[cfg(target_os = "none")]
mod windows;

rt::program!(run);

#[cfg(target_os = "none")]
fn run(args: rt::Args) -> u8 {
    kit::signal::set_mask(0);
    if args.iter().any(|word| word == c"--console") {
        return match idle::console() {
            Ok(()) => 0,
            Err(reason) => {
                rt::println!("console: {reason}");
                1
            }
        };
    }
    code::remember(args);
    let long = args.iter().any(|word| word == c"--long");
    team::set_scale(if long { 20 } else { 1 });
    const GROUPS: &[&[rt::tap::Test]] = &[
        storm::TESTS,
        idle::TESTS,
        code::TESTS,
        truncation::TESTS,
        truncation_races::TESTS,
        windows::TESTS,
        slices::TESTS,
        forks::TESTS,
        memory_ends::TESTS,
    ];
    rt::tap::run(GROUPS, &[], args)
}
