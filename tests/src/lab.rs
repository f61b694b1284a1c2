//! The lab's command on bad input: one clear line and a status that is not 0, before anything is counted.

/// A call of `cargo limen lab` that must fail.
#[derive(Clone, Copy, Debug)]
pub struct LabTest {
    /// `lab/…`
    pub name: &'static str,
    /// Its words; `DIR` in them stands for the directory of the files.
    pub words: &'static [&'static str],
    /// Variables of its environment.
    pub environment: &'static [(&'static str, &'static str)],
    /// Files made for it, with their contents.
    pub files: &'static [(&'static str, &'static [u8])],
    /// The status it ends with.
    pub status: u8,
    /// What it says, in the last line of standard error or somewhere on standard output.
    pub says: &'static str,
}

const fn test(name: &'static str, words: &'static [&'static str], says: &'static str) -> LabTest {
    LabTest { name, words, environment: &[], files: &[], status: 125, says }
}

/// A kernel for riscv64 by its header (Documentation/arch/riscv/boot-image-header.rst) that never gets anywhere: its
/// first instruction jumps to itself.
const LOOP: &[u8] = &{
    let mut image = [0_u8; 4096];
    image[0] = 0x6f; // jal x0, 0
    image[10] = 0x20; // text_offset 0x200000
    image[17] = 0x10; // image_size 0x1000
    image[0x20] = 2; // version 0.2
    let (old, new) = (*b"RISCV", *b"RSC\x05");
    let mut index = 0;
    while index < old.len() {
        image[0x30 + index] = old[index];
        index += 1;
    }
    index = 0;
    while index < new.len() {
        image[0x38 + index] = new[index];
        index += 1;
    }
    image
};

/// The first bytes of an ELF file for x86-64.
const X86: &[u8] = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0\x01\0\0\0";

/// All of them.
pub const TESTS: &[LabTest] = &[
    test("lab/unknown-workload", &["run", "--workloads", "getppid,getpid"], "no workload \"getpid\""),
    test("lab/unknown-count", &["run", "--count", "lods"], "no count \"lods\""),
    test("lab/no-such-kernel", &["run", "--kernels", "DIR/none"], "no kernel image"),
    LabTest {
        files: &[("vmlinux", X86)],
        ..test(
            "lab/kernel-of-another-architecture",
            &["run", "--kernels", "DIR/vmlinux"],
            "an ELF file for x86-64, not riscv64",
        )
    },
    LabTest {
        files: &[("text", b"not a kernel\n")],
        ..test("lab/not-a-kernel", &["run", "--kernels", "DIR/text"], "no riscv64 kernel")
    },
    LabTest {
        files: &[("loop.img", LOOP)],
        status: 1,
        ..test(
            "lab/kernel-that-does-not-boot",
            &["run", "--kernels", "DIR/loop.img", "--workloads", "getppid", "--timeout", "5"],
            "loop: does not boot: no end within 5 s",
        )
    },
    LabTest {
        environment: &[("LIMEN_LAB_PLUGIN", "DIR/plugin.so")],
        files: &[("plugin.so", b"not a library\n")],
        ..test("lab/plugin-that-does-not-load", &["run", "--workloads", "getppid"], "QEMU cannot load the plugin")
    },
    LabTest {
        environment: &[("LIMEN_LAB_PLUGIN", "DIR/none.so")],
        ..test("lab/no-plugin", &["run", "--workloads", "getppid"], "does not exist")
    },
    LabTest {
        files: &[("a.json", b"{}")],
        ..test("lab/compare-other-files", &["compare", "DIR/a.json", "DIR/a.json"], "no result of `lab run --json`")
    },
];
