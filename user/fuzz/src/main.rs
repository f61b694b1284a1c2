//! Hostile input: mutated ELF files, random system calls, bad signal frames, by processes without privilege. Each may
//! die or get an error; the kernel goes on, and the memory it uses afterwards is what it used before.
//!
//! `fuzz [--elves N] [--calls N] [--frames N] [--seed N]`. The parent stays privileged, so that no child can harm it;
//! the children are user 1000, with nothing open but /dev/null, in a tmpfs of their own. What survives a child is killed
//! by another of that user.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod calls;
#[cfg(target_os = "none")]
mod elves;
#[cfg(target_os = "none")]
mod frames;
#[cfg(target_os = "none")]
mod sandbox;

rt::program!(run);

#[cfg(target_os = "none")]
fn run(args: rt::Args) -> u8 {
    // This program's own image is what `elves` mutates: as a child's program it does nothing.
    if args.iter().any(|word| word == elves::EXECUTED) {
        return 0;
    }
    let option = |name: &str, default: u64| {
        let mut words = args.iter().filter_map(|word| word.to_str().ok());
        words
            .find(|word| *word == name)
            .and_then(|_| words.next())
            .and_then(|word| word.parse().ok())
            .unwrap_or(default)
    };
    let (elves, calls, frames) = (option("--elves", 300), option("--calls", 20_000), option("--frames", 300));
    let seed = option("--seed", 1);
    let all = |elves: u64, calls: u64, frames: u64, seed: u64| -> kit::check::Outcome {
        sandbox::enter()?;
        elves::run(elves, seed)?;
        calls::run(calls, seed)?;
        frames::run(frames, seed)?;
        sandbox::leave()
    };
    let result = (|| {
        // Caches and tables grow to their size first.
        all(elves.min(50), calls.min(2_000), frames.min(50), seed + 1_000_000)?;
        let before = kit::usage::now();
        all(elves, calls, frames, seed)?;
        kit::usage::compare(&before)
    })();
    match result {
        Ok(()) => {
            rt::println!("fuzz: {elves} programs, {calls} calls, {frames} frames");
            0
        }
        Err(reason) => {
            rt::println!("fuzz: {reason}");
            1
        }
    }
}
