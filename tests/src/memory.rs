//! Memory at its limits: ranges that are none, and pressure.

use crate::{BootTest, Expect, Outcome};

/// The tests.
pub const TESTS: &[BootTest] = &[
    BootTest::new("boot/ranges", &["/tests/ranges"], Expect::Holds(ranges)),
    BootTest::new("boot/faults-on-4-harts", FAULTS, Expect::Holds(locks_are_free)).smp(4),
];

const FAULTS: &[&str] = &["/tests/work", "--no-settle", "faults_4", "faults_4", "faults_4", "faults_4"];

/// Four threads of one program on four harts, which run in parallel here, write to new pages: less than one in a hundred of
/// their faults finds a lock taken, by the kernel's count.
fn locks_are_free(outcome: &Outcome) -> Result<(), String> {
    const FAULTS: u64 = 4 * 8_192;
    let text = String::from_utf8_lossy(&outcome.stdout);
    let waits = |line: &str| line.strip_prefix("# faults_4: lock waits ")?.trim().parse::<u64>().ok();
    let waits: Vec<u64> = text.lines().filter_map(waits).collect();
    let all: u64 = waits.iter().sum();
    println!("locks found taken by {FAULTS} faults on 4 harts: {waits:?}");
    match (outcome.status, waits.len()) {
        (0, 4) if all * 100 < FAULTS => Ok(()),
        _ => Err(format!(
            "status {}, locks found taken {waits:?}, in all less than {} expected",
            outcome.status,
            FAULTS / 100
        )),
    }
}

/// The same as Linux, by Linux itself.
pub const SOAK: &[BootTest] = &[
    as_linux("soak/ranges-as-linux", &["/tests/ranges"]),
    as_linux("soak/ranges-as-linux-2", &["/tests/ranges", "--random", "--seed", "2", "--steps", "20000"]),
    as_linux("soak/ranges-as-linux-3", &["/tests/ranges", "--random", "--seed", "3", "--steps", "20000"]),
];

const fn as_linux(name: &'static str, program: &'static [&'static str]) -> BootTest {
    BootTest::new(name, program, Expect::SameAsLinux).timeout(300)
}

/// What `/tests/ranges` prints on Debian's Linux 6.12, as a sum: `cargo limen test --soak ranges` shows the first line that
/// differs, and is what gives the sum anew when the program is changed.
const RANGES: u64 = 0x1e47_33d5_1c76_5563;

fn ranges(outcome: &Outcome) -> Result<(), String> {
    // FNV-1a.
    let sum = outcome
        .stdout
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    if outcome.status == 0 && sum == RANGES {
        return Ok(());
    }
    let lines = outcome.stdout.split(|byte| *byte == b'\n').count();
    Err(format!("status {}, {lines} lines, sum {sum:#x}, on Linux {RANGES:#x}", outcome.status))
}
