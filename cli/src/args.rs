//! The command line.

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Build, boot and test Limen.
#[derive(Debug, Parser)]
#[command(name = "limen", bin_name = "cargo limen", version, arg_required_else_help = true, args_override_self = true)]
pub struct Cli {
    /// Show every command that is started, with its output
    #[arg(short, long, global = true)]
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
    /// Run host, disassembly and boot tests
    Test(TestArgs),
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
