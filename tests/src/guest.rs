//! The programs that test from inside: `/tests/tests` reports each of its own, the others say whether all went well.

use crate::{BootTest, Expect, Outcome};

/// The tests.
pub const TESTS: &[BootTest] = &[
    BootTest::new("boot/guest", &["/tests/tests"], Expect::Tap).timeout(900),
    BootTest::new("boot/guest-one-hart", &["/tests/tests"], Expect::Tap).smp(1).timeout(900),
    BootTest::new("boot/stress", &["/tests/stress"], Expect::Holds(stress)).smp(4).timeout(300).repeat(3),
    BootTest::new("boot/fuzz", &["/tests/fuzz"], Expect::Holds(fuzz)).timeout(600),
];

/// The long forms of the same, for `cargo limen test --soak`.
pub const SOAK: &[BootTest] = &[
    BootTest::new("soak/stress", &["/tests/stress", "--seed", "0"], Expect::Holds(stress))
        .smp(4)
        .timeout(300)
        .repeat(100),
    BootTest::new(
        "soak/fuzz",
        &["/tests/fuzz", "--elves", "1000", "--calls", "100000", "--frames", "1000", "--seed", "2"],
        Expect::Holds(fuzz),
    )
    .timeout(7_200),
    BootTest::new("soak/stress-ng", &["sh", "-c", STRESS_NG], Expect::Holds(stress_ng))
        .smp(4)
        .mem("2G")
        .packages(&["stress-ng"])
        .timeout(600),
    boots("soak/boots-1", 1),
    boots("soak/boots-2", 2),
    boots("soak/boots-4", 4),
    boots("soak/boots-8", 8),
];

/// Debian's stress-ng on everything that changes mappings, with the kernel's pages by kind before and after.
const STRESS_NG: &str = "cd /tmp; pages() { grep ^pages /proc/limen/boundary; }; pages >/dev/null; pages; \
    stress-ng --mmap 1 --mmap-bytes 32M --vm 1 --vm-bytes 32M --fork 1 --mremap 1 --mprotect 1 --madvise 1 --switch 1 \
    --quiet --timeout 60 || exit 1; sleep 1; pages";

/// Pages that may be a little more afterwards: what the shell has grown, stacks and objects that are freed lazily.
const SLACK: u64 = 64;

fn stress_ng(outcome: &Outcome) -> Result<(), String> {
    if outcome.status != 0 {
        return Err(format!("stress-ng: status {}", outcome.status));
    }
    let text = String::from_utf8_lossy(&outcome.stdout);
    let numbers: Vec<u64> = text
        .lines()
        .filter(|line| line.starts_with("pages "))
        .flat_map(|line| line.split_ascii_whitespace().filter_map(|word| word.parse().ok()))
        .collect();
    let (before, after) = numbers.split_at(numbers.len() / 2);
    println!("pages before {before:?}, after {after:?}");
    let all = before.len() == 7 && after.len() == 7;
    // The second is what is free.
    let kept = before.iter().zip(after).enumerate().any(|(at, (b, a))| at != 1 && *a > b + SLACK);
    if all && !kept { Ok(()) } else { Err("memory was kept".into()) }
}

/// 50 boots in a row that start all harts, have each run something, and end.
const fn boots(name: &'static str, harts: u32) -> BootTest {
    const SCRIPT: &str = "for i in 1 2 3 4 5 6 7 8; do (true | cat | cat) & done; wait; echo done";
    BootTest::new(name, &["sh", "-c", SCRIPT], Expect::Exactly(0, "done\n")).smp(harts).repeat(50)
}

fn ends_well(outcome: &Outcome, word: &str) -> Result<(), String> {
    let text = String::from_utf8_lossy(&outcome.stdout);
    let last = text.lines().last().unwrap_or_default();
    text.lines().filter(|line| line.starts_with('#')).for_each(|line| println!("{line}"));
    if outcome.status == 0 && last.starts_with(word) { Ok(()) } else { Err(format!("the last line is {last:?}")) }
}

fn stress(outcome: &Outcome) -> Result<(), String> {
    ends_well(outcome, "stress: ")
}

fn fuzz(outcome: &Outcome) -> Result<(), String> {
    ends_well(outcome, "fuzz: ")
}
