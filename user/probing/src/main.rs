//! riscv_hwprobe(2), tested from inside.
//!
//! - `probing [TEXT…]`: the tests, reported in the Test Anything Protocol. What Linux's own tests of the call ask for
//!   (tools/testing/selftests/riscv/hwprobe: `hwprobe`, `which-cpus`, `cbo`) is asked here too, in our words, and more.
//! - `probing --queries N [--seed S]`: random queries, good and bad, to the call, the vDSO and the slow reference of the
//!   `riscv-hwprobe` crate: results and memory must be the same.
//! - `probing --print [--queries N] [--seed S]`: what the call says of each hart, and a sum over random legal queries, to be
//!   compared with what another kernel says on the same machine.
//!
//! On Linux only the call is held to the rules: its vDSO differs from it (the book has the list).

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod blocks;
#[cfg(target_os = "none")]
mod entry;
#[cfg(target_os = "none")]
mod errors;
#[cfg(target_os = "none")]
mod print;
#[cfg(target_os = "none")]
mod queries;
#[cfg(target_os = "none")]
mod random;
#[cfg(target_os = "none")]
mod whole;

rt::program!(run);

#[cfg(target_os = "none")]
fn run(args: rt::Args) -> u8 {
    kit::signal::set_mask(0);
    entry::find(args);
    let number = |name: &str, default: u64| {
        let at = args.iter().position(|word| word.to_bytes() == name.as_bytes());
        let text = at.and_then(|at| args.get(at + 1)).and_then(|word| word.to_str().ok());
        text.and_then(riscv_hwprobe::number).unwrap_or(default)
    };
    let given = |name: &str| args.iter().skip(1).any(|word| word.to_bytes() == name.as_bytes());
    if given("--print") {
        return print::print(number("--queries", 10_000), number("--seed", 1));
    }
    if given("--queries") {
        return random::compare(number("--queries", 0), number("--seed", 1));
    }
    rt::tap::run(&[queries::TESTS, errors::TESTS, blocks::TESTS, whole::TESTS], &[], args)
}
