//! Test programs: each test in a process of its own, with a time limit, reported in the Test Anything Protocol.

use crate::process::{self, Ended, Fork};
use core::time::Duration;

/// One test. It fails by returning an error, by a panic, by dying of a signal or by not ending in time.
#[derive(Clone, Copy)]
pub struct Test {
    /// Its name in the report.
    pub name: &'static str,
    /// The test; the error is a reason in a few words.
    pub run: fn() -> Result<(), &'static str>,
    /// How it must end; [`Ended::Exited`] with 0 but for tests of dying.
    pub ends: Ended,
    /// Seconds until it counts as hung.
    pub limit: u64,
}

impl Test {
    /// A test that must return `Ok` within a minute: the host may be busy.
    pub const fn new(name: &'static str, run: fn() -> Result<(), &'static str>) -> Self {
        Self { name, run, ends: Ended::Exited(0), limit: 60 }
    }

    /// A test that must die of this signal.
    pub const fn dies(name: &'static str, run: fn() -> Result<(), &'static str>, signal: u8) -> Self {
        Self { ends: Ended::Killed(signal), ..Self::new(name, run) }
    }

    /// With this many seconds at most.
    pub const fn limit(self, seconds: u64) -> Self {
        Self { limit: seconds, ..self }
    }
}

/// Runs the tests of all groups whose name contains one of the arguments, or all where there is none; with `--list` only
/// names them, with `--times` says how long each took, with `--limit=SECONDS` lets each take so long. Tests named in
/// `lacking` are skipped, with the reason that stands there. The program's status is 0 only if all others passed.
pub fn run(groups: &[&[Test]], lacking: &[(&str, &str)], args: crate::Args) -> u8 {
    let words = || args.iter().skip(1).filter_map(|word| word.to_str().ok());
    let list = words().any(|word| word == "--list");
    let times = words().any(|word| word == "--times");
    let limit = words().find_map(|word| word.strip_prefix("--limit=")?.parse().ok());
    let filters = || words().filter(|word| !word.starts_with("--"));
    let wanted = |test: &&Test| filters().next().is_none() || filters().any(|filter| test.name.contains(filter));
    let chosen = || groups.iter().flat_map(|group| group.iter()).filter(wanted);
    if list {
        chosen().for_each(|test| crate::println!("{}", test.name));
        return 0;
    }
    crate::println!("1..{}", chosen().count());
    let mut failures = 0_usize;
    for (index, test) in chosen().enumerate() {
        if let Some((_, reason)) = lacking.iter().find(|(name, _)| *name == test.name) {
            crate::println!("ok {} - {} # SKIP {reason}", index + 1, test.name);
            continue;
        }
        let start = process::now();
        let passed = one(&test.limit(limit.unwrap_or(test.limit)));
        if times {
            crate::println!("# {} ms", (process::now() - start).as_millis());
        }
        failures += usize::from(!passed);
        crate::println!("{} {} - {}", if passed { "ok" } else { "not ok" }, index + 1, test.name);
    }
    u8::from(failures != 0)
}

fn one(test: &Test) -> bool {
    let child = match process::fork() {
        Ok(Fork::Parent(child)) => child,
        Ok(Fork::Child) => {
            let _ = process::set_group(0, 0);
            match (test.run)() {
                Ok(()) => process::exit(0),
                Err(reason) => {
                    crate::println!("# {}: {reason}", test.name);
                    process::exit(1)
                }
            }
        }
        Err(error) => {
            crate::println!("# fork failed: errno {}", error.code());
            return false;
        }
    };
    // The child is the leader of a group, so that what it leaves behind ends with it; whoever comes first makes the group.
    let _ = process::set_group(child, child);
    let passed = watch(test, child);
    let _ = process::kill(-child, uapi::signal::SIGKILL as i32);
    passed
}

/// Waits for the test's end, or ends it.
fn watch(test: &Test, child: i32) -> bool {
    let deadline = process::now() + Duration::from_secs(test.limit);
    let mut pause = Duration::from_micros(100);
    loop {
        match process::try_wait(child) {
            Ok(Some((_, ended))) if ended == test.ends => return true,
            Ok(Some((_, ended))) => {
                crate::println!("# {}: {ended:?}, expected {:?}", test.name, test.ends);
                return false;
            }
            Ok(None) if process::now() < deadline => process::sleep(pause),
            Ok(None) => {
                crate::println!("# {}: no end within {} s", test.name, test.limit);
                let _ = process::kill(child, uapi::signal::SIGKILL as i32);
                let _ = process::wait(child);
                return false;
            }
            Err(error) => {
                crate::println!("# wait failed: errno {}", error.code());
                return false;
            }
        }
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}
