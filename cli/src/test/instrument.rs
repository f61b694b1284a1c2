//! The tests of the lab's plugin: bare guests whose counts are known, and arguments that it must refuse.

use super::tally::Tally;
use crate::compile;
use crate::process;
use crate::say;
use crate::setup::Tools;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use limen_tests::instrument::{InstrumentTest, REFUSED};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// The test of refused arguments, by name.
pub const ARGUMENTS: &str = "lab/plugin-arguments";
/// A guest that has not powered off by then is stuck.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs `tests`, and the arguments if `arguments` says so.
pub fn run(workspace: &Workspace, tools: &Tools, tests: &[&InstrumentTest], arguments: bool, tally: &Tally) {
    if tests.is_empty() && !arguments {
        return;
    }
    say!("the lab's plugin under known guests");
    let built = compile::plugin(workspace)
        .and_then(|plugin| Ok((plugin, compile::bare(workspace, &tools.toolchain)?)))
        .map_err(|error| format!("{error:#}"));
    let (plugin, guests) = match built {
        Ok(built) => built,
        Err(error) => return tally.result("lab/plugin-build", Some(&error)),
    };
    for test in tests {
        let started = Instant::now();
        let result = count(workspace, tools, &plugin, &guests.join(test.guest), test);
        let failure = result.unwrap_or_else(|error| Some(format!("{error:#}")));
        tally.timed(test.name, started.elapsed().as_secs_f32(), failure.as_deref());
    }
    if arguments {
        let failure = refused(tools, &plugin).unwrap_or_else(|error| Some(format!("{error:#}")));
        tally.result(ARGUMENTS, failure.as_deref());
    }
}

/// Runs the guest twice. What is wrong with its counts, if anything.
fn count(
    workspace: &Workspace,
    tools: &Tools,
    plugin: &Path,
    guest: &Path,
    test: &InstrumentTest,
) -> Result<Option<String>> {
    let dir = workspace.target().join("limen-run").join(test.name.replace('/', "-"));
    std::fs::create_dir_all(&dir)?;
    let mut texts = Vec::new();
    for round in ["first.json", "second.json"] {
        let file = dir.join(round);
        let mut command = Command::new(&tools.qemu);
        command.args(["-machine", "virt", "-nodefaults", "-display", "none", "-no-reboot", "-monitor", "none"]);
        command.args([
            "-serial",
            "null",
            "-bios",
            "none",
            "-cpu",
            "rv64,v=true,svinval=true",
            "-smp",
            "1",
            "-m",
            "128M",
        ]);
        command.args(["-icount", "shift=0,sleep=off", "-seed", "1", "-rtc", "base=2026-01-01,clock=vm"]);
        command.arg("-kernel").arg(guest);
        command.arg("-plugin").arg(format!("{},out={}", plugin.display(), file.display()));
        finish(&mut command)?;
        texts.push(std::fs::read_to_string(&file)?);
    }
    let report = serde_json::from_str(&texts[0]).context("the plugin's document")?;
    if let Err(difference) = (test.check)(&report) {
        return Ok(Some(difference));
    }
    Ok((texts[0] != texts[1]).then(|| format!("{}/first.json and second.json differ", dir.display())))
}

fn finish(command: &mut Command) -> Result<()> {
    let started = Instant::now();
    let mut child = command.spawn().context("cannot start QEMU")?;
    loop {
        if let Some(status) = child.try_wait()? {
            return if status.success() { Ok(()) } else { bail!("QEMU ended with {status}") };
        }
        if started.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            bail!("no end within {} s", LIMIT.as_secs());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn refused(tools: &Tools, plugin: &Path) -> Result<Option<String>> {
    for (arguments, says) in REFUSED {
        let mut command = Command::new(&tools.qemu);
        command.args(["-machine", "virt", "-nodefaults", "-display", "none"]);
        let output = process::output(command.arg("-plugin").arg(format!("{}{arguments}", plugin.display())))?;
        let text = process::text(&output.stderr);
        if output.status.success() || text.lines().count() != 1 || !text.contains(says) {
            return Ok(Some(format!("{arguments:?}: {}, expected one line with {says:?}, got\n{text}", output.status)));
        }
    }
    Ok(None)
}
