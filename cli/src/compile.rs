//! Building what runs in the guest: the kernel and the programs in `user/`.

use crate::report;
use crate::toolchain::{TARGET, Toolchain, cargo_command};
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program of `user/`, built.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name in the guest.
    pub name: String,
    /// The ELF file on the host.
    pub file: PathBuf,
}

/// Builds the kernel and gives its ELF file.
///
/// # Errors
/// The compiler's.
pub fn kernel(workspace: &Workspace, toolchain: &Toolchain) -> Result<PathBuf> {
    build(toolchain.cargo(workspace, "build").args(["-p", "limen-kernel"]))?;
    Ok(output(workspace, "limen-kernel"))
}

/// Builds `user/init`.
///
/// # Errors
/// The compiler's.
pub fn init(workspace: &Workspace, toolchain: &Toolchain) -> Result<PathBuf> {
    build(toolchain.cargo(workspace, "build").args(["-p", "limen-user-init"]))?;
    Ok(output(workspace, "limen-user-init"))
}

/// The program of `user/` that is of use outside tests, too.
pub const COMMAND: &str = "hwprobe";

/// Builds [`COMMAND`].
///
/// # Errors
/// The compiler's.
pub fn command(workspace: &Workspace, toolchain: &Toolchain) -> Result<Program> {
    build(toolchain.cargo(workspace, "build").args(["-p", "limen-user-hwprobe"]))?;
    Ok(Program { name: COMMAND.into(), file: output(workspace, "limen-user-hwprobe") })
}

/// Builds the lab's workloads, the program `work`.
///
/// # Errors
/// The compiler's.
pub fn workloads(workspace: &Workspace, toolchain: &Toolchain) -> Result<Program> {
    build(toolchain.cargo(workspace, "build").args(["-p", "limen-user-work"]))?;
    Ok(Program { name: "work".into(), file: output(workspace, "limen-user-work") })
}

/// Builds the lab's plugin for QEMU, a library of this host.
///
/// # Errors
/// The compiler's.
pub fn plugin(workspace: &Workspace) -> Result<PathBuf> {
    let mut cargo = cargo_command();
    build(cargo.current_dir(&workspace.root).args(["build", "--quiet", "--release", "-p", "limen-lab-plugin"]))?;
    Ok(workspace.target().join("release/liblimen_lab_plugin.so"))
}

/// Builds the guests without an operating system, which the plugin is tested with, and gives their directory.
///
/// # Errors
/// The compiler's.
pub fn bare(workspace: &Workspace, toolchain: &Toolchain) -> Result<PathBuf> {
    build(toolchain.cargo(workspace, "build").args(["-p", "limen-user-bare"]))?;
    Ok(workspace.target().join(TARGET).join("release"))
}

/// Builds every other program of `user/`: each package there with a `src/main.rs`, named in the guest after its directory,
/// and each `src/bin/NAME.rs`.
///
/// # Errors
/// The compiler's, or a package cannot be read.
pub fn programs(workspace: &Workspace, toolchain: &Toolchain) -> Result<Vec<Program>> {
    let mut found = Vec::new();
    let mut cargo = toolchain.cargo(workspace, "build");
    let mut dirs: Vec<PathBuf> =
        fs::read_dir(workspace.root.join("user"))?.flatten().map(|entry| entry.path()).collect();
    dirs.sort();
    for dir in dirs {
        let name = file_name(&dir);
        let Ok(manifest) = fs::read_to_string(dir.join("Cargo.toml")) else {
            continue;
        };
        let package = manifest
            .lines()
            .find_map(|line| line.strip_prefix("name = "))
            .map(|text| text.trim().trim_matches('"').to_owned());
        let package = package.with_context(|| format!("user/{name} has no package name"))?;
        let before = found.len();
        if name != "init" && dir.join("src/main.rs").exists() {
            found.push(Program { name: name.clone(), file: output(workspace, &package) });
        }
        for source in fs::read_dir(dir.join("src/bin")).into_iter().flatten().flatten() {
            let stem = source.path().file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            found.push(Program { file: output(workspace, &stem), name: stem });
        }
        if found.len() > before {
            cargo.args(["-p", &package]);
        }
    }
    if !found.is_empty() {
        build(&mut cargo)?;
    }
    Ok(found)
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn output(workspace: &Workspace, name: &str) -> PathBuf {
    workspace.target().join(TARGET).join("release").join(name)
}

/// Runs cargo with its own progress shown, or, when nothing is to be said, only its complaints.
fn build(cargo: &mut Command) -> Result<()> {
    if report::level() == 0 {
        return crate::process::run(cargo);
    }
    if report::level() >= 2 {
        eprintln!("limen: + {cargo:?}");
    }
    let status = cargo.status().context("cannot start cargo")?;
    if !status.success() {
        bail!("the build failed");
    }
    Ok(())
}
