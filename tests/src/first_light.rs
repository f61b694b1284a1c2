//! A program runs, its status comes back, a shell does what it does on Linux.

use crate::{BootTest, Expect, GuestFile};

const SHELL: GuestFile = ("/tests/shell.sh", 0o755, include_bytes!("../scripts/shell.sh"));

/// The tests.
pub const TESTS: &[BootTest] = &[
    BootTest::new("boot/uname", &["busybox", "uname", "-sm"], Expect::Exactly(0, "Linux riscv64\n")),
    BootTest::new("boot/uname-icount", &["busybox", "uname", "-sm"], Expect::Exactly(0, "Linux riscv64\n")).icount(),
    BootTest::new("boot/exit-status", &["sh", "-c", "exit 7"], Expect::Exactly(7, "")),
    BootTest::new("boot/killed-status", &["sh", "-c", "kill -9 $$"], Expect::Exactly(137, "")),
    BootTest::new("boot/not-found-status", &["no-such-program"], Expect::Status(127)),
    BootTest::new("boot/input", &["cat"], Expect::Exactly(0, "one\ntwo")).input(b"one\ntwo"),
    BootTest::new("boot/one-hart", &["sh", "-c", "echo $((6 * 7))"], Expect::Exactly(0, "42\n")).smp(1),
    BootTest::new("boot/eight-harts", &["sh", "-c", "echo $((6 * 7))"], Expect::Exactly(0, "42\n")).smp(8),
    BootTest::new("boot/shell-as-linux", &["sh", "/tests/shell.sh"], Expect::SameAsLinux).files(&[SHELL]).timeout(120),
];
