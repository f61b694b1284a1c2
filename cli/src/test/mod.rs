//! `cargo limen test`: host tests, checks of the image, boots.

mod boot;
mod host;
mod tally;

use crate::args::TestArgs;
use crate::compile;
use crate::setup;
use crate::workspace::Workspace;
use anyhow::Result;
use tally::Tally;

/// Runs what `args` selects; the status is 0 only if all passed and something ran.
///
/// # Errors
/// The tests could not be started at all.
pub fn test(workspace: &Workspace, args: &TestArgs) -> Result<u8> {
    let filter = args.filter.as_deref().unwrap_or_default();
    let checks: Vec<_> = limen_tests::image::CHECKS.iter().filter(|check| check.name.contains(filter)).collect();
    let boots: Vec<_> = limen_tests::boots().into_iter().filter(|test| test.name.contains(filter)).collect();
    if args.list {
        host::list(workspace, filter)?;
        checks
            .iter()
            .map(|check| check.name)
            .chain(boots.iter().map(|test| test.name))
            .for_each(|name| println!("{name}"));
        return Ok(0);
    }
    let tally = Tally::default();
    let tools = setup::tools(workspace)?;
    host::run(workspace, filter, &tally)?;
    if !checks.is_empty() {
        match compile::kernel(workspace, &tools.toolchain) {
            Ok(kernel) => {
                checks.iter().for_each(|check| tally.result(check.name, (check.check)(&kernel).err().as_deref()))
            }
            Err(error) => tally.result("image/build", Some(&format!("{error:#}"))),
        }
    }
    if !boots.is_empty() {
        boot::run(workspace, &tools, &boots, &tally)?;
    }
    Ok(tally.close())
}
