//! Everything at once, for a bounded number of rounds: processes, threads, pipes, signals and mappings, in several
//! workers that check what they get.
//!
//! `stress [--rounds N] [--workers N] [--seed N]`: the order in which a worker does what is the same for a seed; seed 0
//! takes one from the clock and says which. It ends
//! with `stress: N rounds` and 0; with 1 if anything came out wrong; and with 1 and a report if it takes too long.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod processes;
#[cfg(target_os = "none")]
mod sharing;
#[cfg(target_os = "none")]
mod signals;

rt::program!(run);

#[cfg(target_os = "none")]
use kit::check::{Must, Outcome};
#[cfg(target_os = "none")]
use kit::random::Random;

/// An action and its name.
#[cfg(target_os = "none")]
type Action = (&'static str, fn(&mut Random) -> Outcome);

#[cfg(target_os = "none")]
const ACTIONS: &[Action] = &[
    ("fork", processes::fork_and_wait),
    ("tree", processes::tree),
    ("exec", processes::exec),
    ("pipe", processes::pipe),
    ("kill", processes::kill_blocked),
    ("mutex", sharing::mutex),
    ("copy-on-write", sharing::copy_on_write),
    ("mappings", sharing::mappings),
    ("thread-exit", sharing::threads_end_with_process),
    ("timer", signals::timer_storm),
    ("signals", signals::exchange),
    ("floats", signals::floats),
];

/// Nanoseconds after which something hangs.
#[cfg(target_os = "none")]
const LIMIT: u64 = 120_000_000_000;

#[cfg(target_os = "none")]
fn run(args: rt::Args) -> u8 {
    if let Some(status) = processes::executed(args) {
        return status;
    }
    kit::signal::set_mask(0);
    let option = |name: &str, default: u64| {
        let mut words = args.iter().filter_map(|word| word.to_str().ok());
        words
            .find(|word| *word == name)
            .and_then(|_| words.next())
            .and_then(|word| word.parse().ok())
            .unwrap_or(default)
    };
    let (rounds, workers, mut seed) = (option("--rounds", 12), option("--workers", 8), option("--seed", 1));
    if seed == 0 {
        seed = kit::clock::ticks() % 1_000_000_000;
        rt::println!("# seed {seed}");
    }
    match work(rounds, workers, seed) {
        Ok(()) => {
            rt::println!("stress: {} rounds", rounds * workers);
            0
        }
        Err(reason) => {
            rt::println!("stress: {reason}");
            1
        }
    }
}

#[cfg(target_os = "none")]
fn work(rounds: u64, workers: u64, seed: u64) -> Outcome {
    // What each worker is doing, for the report of a hang.
    let doing = kit::memory::shared_value::<[core::sync::atomic::AtomicU32; 64]>().must("mmap")?;
    let workers = workers.min(doing.len() as u64);
    for worker in 0..workers {
        kit::child::start(|| {
            let mut random = Random::new(seed * 1_000 + worker);
            for _ in 0..rounds {
                let index = random.below(ACTIONS.len() as u64) as usize;
                doing[worker as usize].store(index as u32 + 1, core::sync::atomic::Ordering::Relaxed);
                let (name, action) = ACTIONS[index];
                if let Err(reason) = action(&mut random) {
                    rt::println!("# {name}: {reason}");
                    return Err("an action failed");
                }
            }
            doing[worker as usize].store(0, core::sync::atomic::Ordering::Relaxed);
            Ok(())
        })?;
    }
    let end = kit::clock::now() + LIMIT;
    let mut left = workers;
    while left > 0 {
        match rt::process::try_wait(-1).must("wait")? {
            Some((_, rt::process::Ended::Exited(0))) => left -= 1,
            Some((_, ended)) => {
                rt::println!("# a worker: {ended:?}");
                return Err("a worker failed");
            }
            None if kit::clock::now() < end => drop(kit::clock::sleep(1_000_000)),
            None => {
                for (worker, index) in doing.iter().enumerate() {
                    let index = index.load(core::sync::atomic::Ordering::Relaxed) as usize;
                    if index > 0 {
                        rt::println!("# worker {worker} hangs in {}", ACTIONS[index - 1].0);
                    }
                }
                return Err("no end in time");
            }
        }
    }
    Ok(())
}
