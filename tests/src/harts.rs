//! Several harts: interrupts between them, idle ones, memory that is shared, memory that ends.

use crate::{BootTest, Expect};

const ALL: &[&str] = &["/tests/harts"];
const STORM: &[&str] = &["/tests/harts", "storm/", "idle/"];
const LONG: &[&str] = &["/tests/harts", "--long", "--limit=1200"];

const fn harts(name: &'static str, program: &'static [&'static str], smp: u32) -> BootTest {
    // Little memory, so that it is soon used up.
    BootTest::new(name, program, Expect::Tap).smp(smp).mem("256M").timeout(300)
}

/// Input while all harts are idle, or all but one.
const fn console(name: &'static str, smp: u32) -> BootTest {
    BootTest::new(name, &["/tests/harts", "--console"], Expect::Status(0)).smp(smp).answer(b"here\n")
}

/// The tests.
pub const TESTS: &[BootTest] = &[
    harts("boot/harts", ALL, 4),
    harts("boot/harts-by-firmware", STORM, 4).append("limen.rfence=sbi"),
    console("boot/console-wakes-harts", 4),
];

/// The same on other numbers of harts, longer, and with other ways to fence.
pub const SOAK: &[BootTest] = &[
    harts("soak/harts-2", ALL, 2),
    harts("soak/harts-8", ALL, 8),
    harts("soak/harts-long", LONG, 4).timeout(3_600),
    harts("soak/harts-long-by-firmware", LONG, 4).append("limen.rfence=sbi").timeout(3_600),
    harts("soak/harts-inject", ALL, 4).append("limen.tlb=inject"),
    harts("soak/harts-no-asids", ALL, 4).append("limen.asid_bits=0"),
    console("soak/console-wakes-harts-2", 2),
    console("soak/console-wakes-harts-8", 8),
];
