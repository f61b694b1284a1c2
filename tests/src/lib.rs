//! What is booted and checked: a list to read, run by `cargo limen test`.
//!
//! A [`BootTest`] names a machine, a program and what must come of it. An [`ImageCheck`] looks at the built kernel
//! without booting it. To add one, write it in the file of its subject and, for a new file, name it in [`boots`] or
//! [`image::CHECKS`]. Names are `boot/…`, `image/…` and `lab/…`; tests on the host are `host/…`.
#![forbid(unsafe_code)]

pub mod budget;
mod detection;
mod first_light;
mod guest;
mod harts;
mod hwprobe;
pub mod image;
pub mod instrument;
pub mod lab;
mod memory;
mod tlb;

pub use image::ImageCheck;

/// The boot tests, in the order in which they are started.
pub fn boots() -> Vec<BootTest> {
    [
        first_light::TESTS,
        guest::TESTS,
        hwprobe::TESTS,
        hwprobe::COMMAND,
        detection::TESTS,
        tlb::TESTS,
        memory::TESTS,
        harts::TESTS,
    ]
    .concat()
}

/// The long boot tests, hours on a small machine.
pub fn soaks() -> Vec<BootTest> {
    let mut soaks = [guest::SOAK, hwprobe::SOAK, memory::SOAK, harts::SOAK].concat();
    soaks.extend(tlb::matrix());
    soaks
}

/// What a boot left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The program's status, as a shell would give it.
    pub status: u8,
    /// What the program said.
    pub stdout: Vec<u8>,
}

/// What must come of a boot.
#[derive(Clone, Copy, Debug)]
pub enum Expect {
    /// This status and exactly this output.
    Exactly(u8, &'static str),
    /// This status.
    Status(u8),
    /// Status and output of Debian's Linux, booted with the same root; the status must be 0.
    SameAsLinux,
    /// Status 0 and lines `ok N - name`, `not ok N - name`: each is a test of its own.
    Tap,
    /// Whatever the function says.
    Holds(fn(&Outcome) -> Result<(), String>),
}

/// A file of the guest made for one test: path, mode, contents.
pub type GuestFile = (&'static str, u32, &'static [u8]);

/// One boot and what must come of it.
#[derive(Clone, Copy, Debug)]
pub struct BootTest {
    /// `boot/…`
    pub name: &'static str,
    /// Program and arguments.
    pub program: &'static [&'static str],
    /// What must come of it.
    pub expect: Expect,
    /// Harts.
    pub smp: u32,
    /// Memory as QEMU takes it.
    pub mem: &'static str,
    /// CPU properties.
    pub cpu: Option<&'static str>,
    /// Kernel command line.
    pub append: &'static str,
    /// Edits of the device tree, as `cargo limen run --tree` takes them.
    pub tree: &'static [&'static str],
    /// The Linux that results are compared with.
    pub linux: &'static str,
    /// Time counts in instructions.
    pub icount: bool,
    /// Seconds until it counts as hung.
    pub timeout: u64,
    /// Debian packages in the root.
    pub packages: &'static [&'static str],
    /// Debian packages without what they depend on; `NAME/sid` is taken from unstable.
    pub parts: &'static [&'static str],
    /// Files in the root.
    pub files: &'static [GuestFile],
    /// The console's input.
    pub input: &'static [u8],
    /// What is typed for each question mark that the program writes, instead of [`input`](Self::input); nothing if empty.
    pub answer: &'static [u8],
    /// How many boots in a row must do the same.
    pub repeat: u32,
}

impl BootTest {
    /// A boot with the defaults of `cargo limen run`.
    pub const fn new(name: &'static str, program: &'static [&'static str], expect: Expect) -> Self {
        Self {
            name,
            program,
            expect,
            smp: 2,
            mem: "1G",
            cpu: None,
            append: "",
            tree: &[],
            linux: "6.12",
            icount: false,
            timeout: 60,
            packages: &[],
            parts: &[],
            files: &[],
            input: b"",
            answer: b"",
            repeat: 1,
        }
    }

    /// With so many harts.
    pub const fn smp(mut self, harts: u32) -> Self {
        self.smp = harts;
        self
    }

    /// With so much memory.
    pub const fn mem(mut self, size: &'static str) -> Self {
        self.mem = size;
        self
    }

    /// With these CPU properties.
    pub const fn cpu(mut self, properties: &'static str) -> Self {
        self.cpu = Some(properties);
        self
    }

    /// With this on the kernel command line.
    pub const fn append(mut self, text: &'static str) -> Self {
        self.append = text;
        self
    }

    /// With the device tree edited.
    pub const fn tree(mut self, edits: &'static [&'static str]) -> Self {
        self.tree = edits;
        self
    }

    /// Compared with this version of Linux.
    pub const fn linux(mut self, version: &'static str) -> Self {
        self.linux = version;
        self
    }

    /// With time counted in instructions, on one hart.
    pub const fn icount(mut self) -> Self {
        self.icount = true;
        self.smp = 1;
        self
    }

    /// With this many seconds at most.
    pub const fn timeout(mut self, seconds: u64) -> Self {
        self.timeout = seconds;
        self
    }

    /// With these Debian packages.
    pub const fn packages(mut self, names: &'static [&'static str]) -> Self {
        self.packages = names;
        self
    }

    /// With these Debian packages, and nothing that they depend on.
    pub const fn parts(mut self, names: &'static [&'static str]) -> Self {
        self.parts = names;
        self
    }

    /// With these files.
    pub const fn files(mut self, files: &'static [GuestFile]) -> Self {
        self.files = files;
        self
    }

    /// With this typed at the console.
    pub const fn input(mut self, bytes: &'static [u8]) -> Self {
        self.input = bytes;
        self
    }

    /// With this typed whenever the program writes a question mark.
    pub const fn answer(mut self, bytes: &'static [u8]) -> Self {
        self.answer = bytes;
        self
    }

    /// Booted so many times.
    pub const fn repeat(mut self, times: u32) -> Self {
        self.repeat = times;
        self
    }
}
