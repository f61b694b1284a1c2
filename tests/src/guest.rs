//! The tests that run inside: `/tests/tests` reports each of its own.

use crate::{BootTest, Expect};

/// The tests.
pub const TESTS: &[BootTest] = &[
    BootTest::new("boot/guest", &["/tests/tests"], Expect::Tap).timeout(600),
    BootTest::new("boot/guest-one-hart", &["/tests/tests"], Expect::Tap).smp(1).timeout(600),
];
