//! mmap(2) and its family with ranges that overlap, wrap, end in holes, are not aligned or are larger than any address
//! space. The program judges nothing: it prints what each call gave and what was left, to be compared with what it prints on
//! Linux.
//!
//! `ranges [--random] [--steps N] [--seed N]`: first, unless only random ones are wanted, each call with each of a list of
//! awkward ranges on the same few mappings; then N random calls in a row on mappings that change.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod arena;
#[cfg(target_os = "none")]
mod matrix;
#[cfg(target_os = "none")]
mod sequence;

rt::program!(run);

#[cfg(target_os = "none")]
fn run(args: rt::Args) -> u8 {
    let option = |name: &str, default: u64| {
        let mut words = args.iter().filter_map(|word| word.to_str().ok());
        words
            .find(|word| *word == name)
            .and_then(|_| words.next())
            .and_then(|word| word.parse().ok())
            .unwrap_or(default)
    };
    let result = arena::Arena::new().and_then(|arena| {
        if !args.iter().any(|word| word == c"--random") {
            matrix::run(&arena)?;
        }
        sequence::run(&arena, option("--steps", 1_500), option("--seed", 1))
    });
    match result {
        Ok(()) => 0,
        Err(reason) => {
            rt::println!("ranges: {reason}");
            1
        }
    }
}
