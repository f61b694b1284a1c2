//! What a run works with besides kernels: the plugin, the program in the guest, and how to name them exactly.

use crate::compile::{self, Program};
use crate::process;
use crate::root;
use crate::setup::Tools;
use crate::vm;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The instrument, built and tried.
#[derive(Clone, Debug)]
pub struct Instrument {
    /// The plugin.
    pub plugin: PathBuf,
    /// The workloads.
    pub program: Program,
    /// Our init.
    pub init: PathBuf,
    /// Versions, see [`super::document::Document`].
    pub versions: BTreeMap<String, String>,
    /// Hashes, see [`super::document::Document`].
    pub hashes: BTreeMap<String, String>,
    /// The repository's commit.
    pub revision: String,
}

/// Builds everything.
///
/// # Errors
/// Something does not build, or QEMU does not take the plugin.
pub fn prepare(workspace: &Workspace, tools: &Tools) -> Result<Instrument> {
    let plugin = match std::env::var_os("LIMEN_LAB_PLUGIN") {
        Some(other) => other.into(),
        None => compile::plugin(workspace)?,
    };
    try_plugin(tools, &plugin)?;
    let program = compile::workloads(workspace, &tools.toolchain)?;
    let init = compile::init(workspace, &tools.toolchain)?;
    let hash = |file: &Path| fs::read(file).map(|bytes| vm::hash(&bytes));
    let mut hashes = BTreeMap::new();
    for (name, file) in [
        ("plugin", &plugin),
        ("workloads", &program.file),
        ("init", &init),
        ("busybox", &root::prefetch(workspace)?),
        ("firmware", &tools.firmware),
    ] {
        hashes.insert(name.into(), hash(file).with_context(|| format!("cannot read {}", file.display()))?);
    }
    let qemu = process::capture(Command::new(&tools.qemu).arg("--version"))?;
    let mut versions = BTreeMap::new();
    versions.insert("qemu".into(), qemu.lines().next().unwrap_or_default().to_owned());
    versions.insert("compiler".into(), format!("rustc {}", tools.toolchain.compiler.release));
    Ok(Instrument { plugin, program, init, versions, hashes, revision: revision(workspace) })
}

/// Starts QEMU without a machine to see whether it takes the plugin.
fn try_plugin(tools: &Tools, plugin: &Path) -> Result<()> {
    let shown = plugin.display();
    if !plugin.is_file() {
        bail!("the plugin {shown} does not exist");
    }
    let mut qemu = Command::new(&tools.qemu);
    qemu.args(["-machine", "none", "-nodefaults", "-display", "none", "-serial", "none", "-monitor", "stdio"]);
    qemu.arg("-plugin").arg(format!("{shown},out=/dev/null"));
    let mut child =
        qemu.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().context("cannot start QEMU")?;
    if let Some(mut monitor) = child.stdin.take() {
        let _ = monitor.write_all(b"quit\n");
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = process::text(&output.stderr);
    let reason = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it says nothing");
    bail!("QEMU cannot load the plugin {shown}: {reason}")
}

/// The commit, as far as the repository knows.
fn revision(workspace: &Workspace) -> String {
    let git = |words: &[&str]| {
        process::capture(Command::new("git").current_dir(&workspace.root).args(words))
            .map(|text| text.trim().to_owned())
    };
    match (git(&["rev-parse", "HEAD"]), git(&["status", "--porcelain", "--untracked-files=no"])) {
        (Ok(commit), Ok(changes)) => commit + if changes.is_empty() { "" } else { "-dirty" },
        _ => "unknown".into(),
    }
}
