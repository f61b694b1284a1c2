//! The `limen` command on the host: set-up, build, run, test, lab.
#![forbid(unsafe_code)]

mod apt;
mod args;
mod compile;
mod hosted;
mod lab;
mod process;
mod report;
mod root;
mod run;
mod setup;
mod test;
mod toolchain;
mod vm;
mod workspace;

use anyhow::Result;
use args::{Cli, Verb};
use clap::Parser;
use std::process::ExitCode;
use workspace::Workspace;

/// Status when the command itself failed, as with other tools that pass a program's status on.
const OWN_FAILURE: u8 = 125;

fn main() -> ExitCode {
    let cli = Cli::parse();
    report::set_level(if cli.verbose { 2 } else { 1 });
    match execute(&cli) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("limen: error: {error:#}");
            ExitCode::from(OWN_FAILURE)
        }
    }
}

fn execute(cli: &Cli) -> Result<u8> {
    let workspace = Workspace::open()?;
    match &cli.verb {
        Verb::Setup(args) if args.check => setup::check(&workspace).map(|()| 0),
        Verb::Setup(_) => {
            setup::tools(&workspace)?;
            setup::check(&workspace)?;
            root::prefetch(&workspace)?;
            Ok(0)
        }
        Verb::Run(args) => {
            run::set_level(args, cli.verbose);
            run::run(&workspace, args)
        }
        Verb::Test(args) => test::test(&workspace, args),
        Verb::Lab(args) => lab::lab(&workspace, &args.verb),
    }
}
