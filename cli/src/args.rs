//! The command line.

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Build, boot and test Limen.
#[derive(Debug, Parser)]
#[command(
    name = "limen",
    bin_name = "cargo limen",
    version,
    arg_required_else_help = true,
    args_override_self = true,
    max_term_width = 100
)]
pub struct Cli {
    /// Show every command that is started, with its output
    #[arg(short, long, global = true, display_order = 900)]
    pub verbose: bool,
    /// What to do
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Find or install what building and booting needs (safe to repeat)
    Setup(SetupArgs),
    /// Build, boot, run a program, exit with its status; without a program, a shell
    Run(Box<RunArgs>),
    /// Run host tests, checks of the image, boot tests, those of the lab
    Test(TestArgs),
    /// Count what the boundary costs on any riscv64 kernel, side by side
    Lab(LabArgs),
}

/// Arguments of `setup`.
#[derive(Debug, Args)]
pub struct SetupArgs {
    /// Only say what is there and what is missing
    #[arg(long)]
    pub check: bool,
}

/// Arguments of `run`.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// Number of harts [default: 2; with --icount 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8))]
    pub smp: Option<u32>,
    /// Memory of the machine, as QEMU takes it
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    pub mem: String,
    /// Properties of the CPU, as v=true,vlen=256; a leading name replaces the model rv64
    #[arg(long, value_name = "PROPS")]
    pub cpu: Option<String>,
    /// Set a property of the device tree, as '/cpus/cpu@1 riscv,isa-extensions = "i", "m"'; without a value, take it out
    /// (repeatable)
    #[arg(long, value_name = "EDIT")]
    pub tree: Vec<String>,
    /// Text added to the kernel command line
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    pub append: Option<String>,
    /// Use this directory as the root file system, packed on the fly
    #[arg(long, value_name = "DIR")]
    pub rootfs: Option<PathBuf>,
    /// Add Debian riscv64 packages and all they depend on
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    pub packages: Vec<String>,
    /// Copy a file or directory of the host into the guest, modes kept (repeatable)
    #[arg(long = "copy", value_name = "HOST:GUEST")]
    pub copies: Vec<String>,
    /// Count time in instructions (1 instruction = 1 ns), with fixed seed and clock: runs repeat exactly
    #[arg(long)]
    pub icount: bool,
    /// Give up after this many seconds (status 124)
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,
    /// Another kernel: linux-6.12, linux-7.2 (Debian's, fetched once) or an image file
    #[arg(long, value_name = "IMAGE")]
    pub kernel: Option<String>,
    /// Wait for a debugger on TCP port 1234 before the first instruction
    #[arg(long)]
    pub gdb: bool,
    /// Say nothing but what the program says
    #[arg(short, long)]
    pub quiet: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    pub program: Vec<String>,
}

/// Arguments of `test`.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// Only tests whose name contains this text
    pub filter: Option<String>,
    /// Name the tests instead of running them
    #[arg(long)]
    pub list: bool,
    /// Run the long tests instead: 100 boots under stress, 100 000 random calls
    #[arg(long)]
    pub soak: bool,
    /// Run the boot tests, and only these, on another kernel: linux-6.12, linux-7.2 or an image file
    #[arg(long, value_name = "IMAGE")]
    pub kernel: Option<String>,
}

/// Arguments of `lab`.
#[derive(Debug, Args)]
pub struct LabArgs {
    /// What to do there
    #[command(subcommand)]
    pub verb: LabVerb,
}

/// The verbs of the lab.
#[derive(Debug, Subcommand)]
pub enum LabVerb {
    /// Count every workload on every kernel
    Run(LabRunArgs),
    /// Show what changed between two results of `lab run --json`
    Compare(LabCompareArgs),
    /// Name the workloads, the kernels and the counts
    List,
    /// Count a program of your own, by system call, fault and interrupt
    Profile(LabProfileArgs),
    /// Count the table of the README anew and write it there
    Readme(LabReadmeArgs),
}

/// What is booted, for all verbs that boot.
#[derive(Clone, Debug, Args)]
pub struct LabMachineArgs {
    /// Kernels side by side: limen, linux-6.12, linux-6.12-lean, linux-7.2, or files (Image, gzipped Image, ELF)
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    pub kernels: Vec<String>,
    /// Properties of the CPU, as v=true,vlen=256; a leading name replaces the model rv64
    #[arg(long, value_name = "PROPS", default_value = "v=true")]
    pub cpu: String,
    /// Number of harts; workloads that need more get a machine of their own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=8))]
    pub smp: u32,
    /// Memory of the machine, as QEMU takes it
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    pub mem: String,
    /// Set a property of the device tree, as '/cpus/cpu@1 riscv,isa-extensions = "i", "m"'; without a value, take it out
    /// (repeatable)
    #[arg(long, value_name = "EDIT")]
    pub tree: Vec<String>,
    /// Do not wait for 20 seconds of the guest's time after boot
    #[arg(long)]
    pub no_settle: bool,
    /// Seconds of your time that a boot may take
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub timeout: u64,
}

/// Arguments of `lab run`.
#[derive(Clone, Debug, Args)]
pub struct LabRunArgs {
    /// The machine and its kernels
    #[command(flatten)]
    pub machine: LabMachineArgs,
    /// Only these workloads (default: all; see `lab list`)
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    pub workloads: Vec<String>,
    /// What the table shows, per operation (see `lab list`)
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', default_value = "instructions,sfence,csr")]
    pub count: Vec<String>,
    /// Write all counts, and all that is needed to repeat them, to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Arguments of `lab compare`.
#[derive(Clone, Debug, Args)]
pub struct LabCompareArgs {
    /// The result to compare with
    pub before: PathBuf,
    /// The result that is compared
    pub after: PathBuf,
    /// End with status 1 if a count has grown by more than this many per cent, or a workload is lost
    #[arg(long, value_name = "PERCENT")]
    pub fail_above: Option<f64>,
    /// What is compared, per operation
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', default_value = "instructions")]
    pub count: Vec<String>,
    /// Show equal rows as well
    #[arg(long)]
    pub all: bool,
}

/// Arguments of `lab profile`.
#[derive(Clone, Debug, Args)]
pub struct LabProfileArgs {
    /// The machine and its kernels
    #[command(flatten)]
    pub machine: LabMachineArgs,
    /// Add Debian riscv64 packages and all they depend on
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    pub packages: Vec<String>,
    /// Copy a file or directory of the host into the guest, modes kept (repeatable)
    #[arg(long = "copy", value_name = "HOST:GUEST")]
    pub copies: Vec<String>,
    /// What the table shows
    #[arg(long, value_name = "COUNT", default_value = "instructions")]
    pub count: String,
    /// Write all counts to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub program: Vec<String>,
}

/// Arguments of `lab readme`.
#[derive(Clone, Debug, Args)]
pub struct LabReadmeArgs {
    /// Take the counts from this file of `lab run --json` instead of counting
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Change nothing; end with status 1 if the README's table is not what would be written
    #[arg(long)]
    pub check: bool,
}
