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
    boots("soak/boots-1", 1),
    boots("soak/boots-2", 2),
    boots("soak/boots-4", 4),
    boots("soak/boots-8", 8),
];

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
