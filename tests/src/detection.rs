//! Programs that know nothing of Limen find out what the harts can do: glibc, Go's runtime, Rust's standard library.
//!
//! Each is asked on two machines, so that a constant answer would show.

use crate::{BootTest, Expect, GuestFile};

const GLIBC: GuestFile = ("/tests/glibc.py", 0o644, include_bytes!("../scripts/glibc.py"));

/// Python with its `ctypes`, and no more: 9 MB.
const PYTHON: &[&str] =
    &["libc6", "libexpat1", "libffi8", "libpython3.13-minimal", "libpython3.13-stdlib", "python3.13-minimal", "zlib1g"];

/// A program of 600 kB, made by Go 1.26: its runtime says what it was told to use and did not find.
const GO: &[&str] = &["envsubst/sid"];
const ASK_GO: &[&str] = &["sh", "-c", "echo '$HOME' | GODEBUG=cpu.zbb=on,cpu.fastmisaligned=on envsubst-go 2>&1"];

const ASK_RUST: &[&str] = &["/tests/detect", "c", "d", "zba", "zbb", "zicboz", "zfa", "zacas"];

/// A machine with less than `rv64` has.
const LESS: &str = "zba=false,zbb=false,zicboz=false,zfa=false,zacas=true";
const SLOW: &str = "unaligned_scalar_speed=slow";

/// The tests.
pub const TESTS: &[BootTest] = &[
    glibc(
        "boot/detection-glibc",
        "0 FD C ZBA ZBB ZICBOZ\nmisaligned 3 unknown -1 0\nwrong flags 22\nmemcpy by words\n",
    ),
    glibc("boot/detection-glibc-less", "0 FD C\nmisaligned 2 unknown -1 0\nwrong flags 22\nmemcpy by bytes\n")
        .cpu(LESS)
        .append(SLOW),
    BootTest::new("boot/detection-go", ASK_GO, Expect::Exactly(0, "/root\n")).parts(GO),
    BootTest::new(
        "boot/detection-go-less",
        ASK_GO,
        Expect::Exactly(
            0,
            "GODEBUG: can not enable \"fastmisaligned\", missing CPU support\n\
             GODEBUG: can not enable \"zbb\", missing CPU support\n/root\n",
        ),
    )
    .parts(GO)
    .cpu(LESS)
    .append(SLOW),
    BootTest::new(
        "boot/detection-rust",
        ASK_RUST,
        Expect::Exactly(0, "c d zba zbb zfa zicboz\nmisaligned Fast, true, by Vdso\n"),
    )
    .append("unaligned_scalar_speed=fast"),
    BootTest::new(
        "boot/detection-rust-less",
        ASK_RUST,
        Expect::Exactly(0, "c d zacas\nmisaligned Slow, false, by Vdso\n"),
    )
    .cpu(LESS)
    .append(SLOW),
];

const fn glibc(name: &'static str, says: &'static str) -> BootTest {
    // The clock counts instructions, and the same hart boots always.
    BootTest::new(name, &["python3.13", "/tests/glibc.py"], Expect::Exactly(0, says))
        .parts(PYTHON)
        .files(&[GLIBC])
        .icount()
}
