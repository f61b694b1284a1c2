//! Translations and their fences on machines of many kinds.
//!
//! The kernel's own choice of fences is tried on the host, on harts that keep all they may (`limen-mm`, `adversary`).
//! Here the programs of the guest run on QEMU with and without the extensions that matter, in each of the three page-table
//! depths, with few ASIDs or none, and on a hart that is made to cache entries which are not valid
//! (`limen.tlb=inject`). The default list is a choice in which each value meets the others; the soak has all of them.

use crate::{BootTest, Expect, Outcome};

const SLICE: &[&str] = &["/tests/tests", "memory/", "start/", "signals/"];

const fn slice(name: &'static str, smp: u32, cpu: &'static str, append: &'static str) -> BootTest {
    BootTest::new(name, SLICE, Expect::Tap).smp(smp).cpu(cpu).append(append).timeout(300)
}

/// The tests.
pub const TESTS: &[BootTest] = &[
    slice("boot/tlb-inject-1", 1, "svvptc=false", "limen.tlb=inject"),
    slice("boot/tlb-inject-2", 2, "svinval=true,sv57=false", "limen.tlb=inject limen.rfence=sbi"),
    slice("boot/tlb-inject-4", 4, "svadu=false", "limen.tlb=inject"),
    slice(
        "boot/tlb-no-asids",
        4,
        "svvptc=false,svinval=true,sv48=false,sv57=false",
        "limen.asid_bits=0 limen.rfence=sbi",
    ),
    slice("boot/tlb-two-bits", 1, "svadu=false,sv57=false", "limen.asid_bits=2"),
    slice("boot/tlb-eight-harts", 8, "svinval=true,svadu=false", ""),
    slice("boot/tlb-preventive", 2, "svvptc=false,sv48=false,sv57=false", "limen.tlb=preventive limen.asid_bits=2"),
    BootTest::new("boot/fences-svvptc", &["/tests/fences"], Expect::Holds(fences)).smp(1),
    BootTest::new("boot/fences", &["/tests/fences"], Expect::Holds(fences)).smp(1).cpu("svvptc=false"),
    BootTest::new("boot/tlb-chain", &["/bin/busybox", "cat", "/proc/limen/boundary"], Expect::Holds(chain))
        .append("limen.tlb=inject"),
    BootTest::new("boot/latency", &["/tests/latency"], Expect::Holds(latency)).icount(),
];

/// The longest time in clock ticks, 100 instructions each, that interrupts may be kept out by operations on 64 MiB.
const LONGEST_OFF: u64 = 1_000;

fn latency(outcome: &Outcome) -> Result<(), String> {
    let text = String::from_utf8_lossy(&outcome.stdout);
    let figures = text.lines().filter_map(|line| line.split_once(' ').and_then(|(_, ticks)| ticks.parse().ok()));
    let figures = figures.collect::<Vec<u64>>();
    if outcome.status == 0 && figures.len() > 10 && figures.iter().all(|&ticks| ticks <= LONGEST_OFF) {
        return Ok(());
    }
    Err(format!("interrupts were kept out for more than {LONGEST_OFF} ticks"))
}

/// All of it: each extension on and off, each depth, few ASIDs and none, one to eight harts, with entries hidden at first and
/// without.
pub fn matrix() -> Vec<BootTest> {
    let mut tests = Vec::new();
    let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    for n in 0..16_u32 {
        let on = |bit: u32| n >> bit & 1 != 0;
        for (depth, sv) in [(39, "sv48=false,sv57=false"), (48, "sv57=false"), (57, "sv57=true")] {
            for bits in [0, 2, 16] {
                let mode = if on(3) { "inject" } else { "auto" };
                let harts = [1, 2, 4, 8][((n + depth + bits) % 4) as usize];
                let (svvptc, svadu, svinval) = (on(0), on(1), on(2));
                let cpu = format!("svvptc={svvptc},svadu={svadu},svinval={svinval},{sv}");
                let rfence = if on(0) == on(2) { "ipi" } else { "sbi" };
                let name = format!("soak/tlb-{n}-sv{depth}-{bits}-{harts}");
                let append = format!("limen.tlb={mode} limen.asid_bits={bits} limen.rfence={rfence}");
                tests.push(slice(leak(name), harts, leak(cpu), leak(append)));
            }
        }
    }
    tests
}

/// The most fences that an operation may cost on one hart; Linux's own counts stand in the book.
const FENCES: &[(&str, f64)] = &[
    ("start", 50.0),
    ("anonymous_fault", 0.0),
    ("map_write_unmap_16", 1.0),
    ("fork_exit_wait", 2.0),
    ("fork_exec_wait", 4.0),
];

fn fences(outcome: &Outcome) -> Result<(), String> {
    let text = String::from_utf8_lossy(&outcome.stdout);
    print!("{text}");
    for (name, most) in FENCES {
        let figure = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<f64>().ok());
        // A round that a timer interrupts may cost one more.
        if figure.is_none_or(|figure| figure > most + 0.05) {
            return Err(format!("{name}: {figure:?} fences, at most {most} are owed"));
        }
    }
    Ok(())
}

/// Two spurious faults in a row are the most, and there are some.
fn chain(outcome: &Outcome) -> Result<(), String> {
    let text = String::from_utf8_lossy(&outcome.stdout);
    let values = |key: &str| -> Vec<u64> {
        text.lines().filter_map(|line| line.trim_start().strip_prefix(key)?.trim().parse().ok()).collect()
    };
    let longest = values("longest_chain ").into_iter().max();
    let spurious: u64 = values("faults_spurious ").into_iter().sum();
    if longest == Some(2) && spurious > 50 {
        return Ok(());
    }
    Err(format!("the longest chain is {longest:?}, of {spurious} spurious faults"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_more_than_owed_fails() {
        let report = |forks: f64| {
            Outcome {
            status: 0,
            stdout: format!(
                "start 3\nanonymous_fault 0.00\nmap_write_unmap_16 1.00\nfork_exit_wait {forks:.2}\nfork_exec_wait 4.00\n"
            )
            .into_bytes(),
        }
        };
        assert_eq!(fences(&report(2.0)), Ok(()));
        assert!(fences(&report(3.0)).is_err());
    }

    #[test]
    fn chains_of_two_pass_and_longer_ones_fail() {
        let report = |longest| Outcome {
            status: 0,
            stdout: format!("hart 0 id 0\n  faults_spurious 99\n  longest_chain {longest}\n").into_bytes(),
        };
        assert_eq!(chain(&report(2)), Ok(()));
        assert!(chain(&report(3)).is_err() && chain(&report(0)).is_err());
    }
}
