//! `cargo limen test`: host tests, checks of the image, boots, the lab.

mod boot;
mod host;
mod instrument;
mod lab;
mod tally;

use crate::args::TestArgs;
use crate::compile;
use crate::setup;
use crate::toolchain::Toolchain;
use crate::vm::Kernel;
use crate::workspace::Workspace;
use anyhow::Result;
use limen_tests::ImageCheck;
use tally::Tally;

/// Runs what `args` selects; the status is 0 only if all passed and something ran.
///
/// # Errors
/// The tests could not be started at all.
pub fn test(workspace: &Workspace, args: &TestArgs) -> Result<u8> {
    let filter = args.filter.as_deref().unwrap_or_default();
    let checks: Vec<_> =
        limen_tests::image::CHECKS.iter().filter(|check| !args.soak && check.name.contains(filter)).collect();
    let boots = if args.soak { limen_tests::soaks() } else { limen_tests::boots() };
    let boots: Vec<_> = boots.into_iter().filter(|test| test.name.contains(filter)).collect();
    let matching = |name: &str| !args.soak && name.contains(filter);
    let bad_input: Vec<_> = limen_tests::lab::TESTS.iter().filter(|test| matching(test.name)).collect();
    let counted: Vec<_> = lab::COUNTED.into_iter().filter(|name| matching(name)).collect();
    let instruments: Vec<_> = limen_tests::instrument::TESTS.iter().filter(|test| matching(test.name)).collect();
    if args.list {
        if !args.soak {
            host::list(workspace, &setup::tools(workspace)?.toolchain, filter)?;
        }
        checks
            .iter()
            .map(|check| check.name)
            .chain(boots.iter().map(|test| test.name))
            .chain(bad_input.iter().map(|test| test.name))
            .chain(counted.iter().copied())
            .chain(instruments.iter().map(|test| test.name))
            .chain(matching(instrument::ARGUMENTS).then_some(instrument::ARGUMENTS))
            .for_each(|name| println!("{name}"));
        return Ok(0);
    }
    let tally = Tally::default();
    let tools = setup::tools(workspace)?;
    let kernel = Kernel::parse(args.kernel.as_deref());
    if kernel == Kernel::Limen && !args.soak {
        host::run(workspace, &tools.toolchain, filter, &tally)?;
        image(workspace, &tools.toolchain, &checks, &tally);
    }
    if !boots.is_empty() {
        boot::run(workspace, &tools, &kernel, &boots, &tally)?;
    }
    if kernel == Kernel::Limen {
        instrument::run(workspace, &tools, &instruments, matching(instrument::ARGUMENTS), &tally);
        lab::bad_input(workspace, &bad_input, &tally);
        lab::counted(workspace, &counted, &tally);
    }
    Ok(tally.close(filter))
}

fn image(workspace: &Workspace, toolchain: &Toolchain, checks: &[&ImageCheck], tally: &Tally) {
    if checks.is_empty() {
        return;
    }
    match compile::kernel(workspace, toolchain) {
        Ok(kernel) => {
            checks.iter().for_each(|check| tally.result(check.name, (check.check)(&kernel).err().as_deref()));
        }
        Err(error) => tally.result("image/build", Some(&format!("{error:#}"))),
    }
}
