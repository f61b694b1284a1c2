//! `cargo limen setup`: what building and booting needs, found or installed.

use crate::apt::{Apt, Release, host_codename};
use crate::process;
use crate::say;
use crate::toolchain::{TARGET, Toolchain};
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Oldest QEMU whose machine and options are known to serve.
const QEMU_MINIMUM: u32 = 10;
const QEMU: &str = "qemu-system-riscv64";
const FIRMWARE: &str = "opensbi-riscv64-generic-fw_dynamic.bin";

/// What the other verbs work with.
#[derive(Clone, Debug)]
pub struct Tools {
    /// Compiler, library, linker.
    pub toolchain: Toolchain,
    /// The emulator.
    pub qemu: PathBuf,
    /// The firmware it loads.
    pub firmware: PathBuf,
}

/// Says what is there and what is missing, changing nothing.
///
/// # Errors
/// Something is missing.
pub fn check(workspace: &Workspace) -> Result<()> {
    let toolchain = Toolchain::find(workspace);
    let qemu = find_qemu();
    match &toolchain {
        Ok(found) => say!(
            "compiler: {} ({}){}",
            found.compiler.rustc.display(),
            found.compiler.release,
            if found.wants_library() { ", library to be built" } else { "" }
        ),
        Err(error) => say!("missing: {error:#}"),
    }
    match &qemu {
        Ok((qemu, _)) => say!("emulator: {}", qemu.display()),
        Err(error) => say!("missing: {error:#}"),
    }
    toolchain.and(qemu).map(|_| ()).context("run `cargo limen setup`")
}

/// Finds or installs everything; quick when all is there.
///
/// # Errors
/// What cannot be installed, with what to install by hand.
pub fn tools(workspace: &Workspace) -> Result<Tools> {
    if let (Ok(toolchain), Ok((qemu, firmware))) = (Toolchain::find(workspace), find_qemu())
        && !toolchain.wants_library()
    {
        return Ok(Tools { toolchain, qemu, firmware });
    }
    let _lock = workspace.lock()?;
    let toolchain = match Toolchain::find(workspace) {
        Ok(found) => found,
        Err(missing) => {
            install_compiler(workspace).with_context(|| format!("{missing:#}"))?;
            Toolchain::find(workspace)?
        }
    };
    let (qemu, firmware) = match find_qemu() {
        Ok(found) => found,
        Err(missing) => {
            install_qemu(workspace).with_context(|| format!("{missing:#}"))?;
            find_qemu()?
        }
    };
    toolchain.make_library(workspace)?;
    Ok(Tools { toolchain, qemu, firmware })
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// rustup's target where rustup can fetch it, else Debian's compiler with library source.
fn install_compiler(workspace: &Workspace) -> Result<()> {
    let without_target = std::env::var_os("LIMEN_RUSTC").is_some();
    if !without_target && let Some(rustup) = process::find_program("rustup") {
        say!("asking rustup for {TARGET}");
        match process::run(Command::new(rustup).args(["target", "add", TARGET])) {
            Ok(()) if Toolchain::find(workspace).is_ok() => return Ok(()),
            Ok(()) => say!("rustup's compiler does not serve"),
            Err(error) => say!("rustup cannot: {}", format!("{error:#}").lines().last().unwrap_or_default()),
        }
    }
    let wanted = "rustc-web, rust-web-src, libstd-rust-web-dev (1.95 or newer, all of one version) and lld";
    let by_hand = format!("install by hand either the target (`rustup target add {TARGET}`) or Debian's {wanted}");
    if !is_root() {
        bail!("this is not root; {by_hand}");
    }
    let apt = Apt::open(workspace, Release::Host).with_context(|| by_hand.clone())?;
    let versions = apt.versions("rustc-web")?;
    let version = versions.first().with_context(|| format!("this release offers no rustc-web; {by_hand}"))?;
    let mut packages: Vec<String> =
        ["rustc-web", "libstd-rust-web-dev", "rust-web-src"].iter().map(|name| format!("{name}={version}")).collect();
    let linker = (18..=30)
        .rev()
        .map(|number| format!("lld-{number}"))
        .find(|name| apt.versions(name).is_ok_and(|found| !found.is_empty()));
    packages.push(linker.unwrap_or_else(|| "lld".into()));
    say!("installing {} (about 150 MB to fetch)", packages.join(" "));
    apt.install(&packages, None).with_context(|| by_hand)
}

/// QEMU with firmware, from the release's backports if the release itself is too old.
fn install_qemu(workspace: &Workspace) -> Result<()> {
    let by_hand = format!(
        "install by hand QEMU {QEMU_MINIMUM} or newer for riscv64 with OpenSBI (Debian: qemu-system-riscv or qemu-system-misc, and opensbi; on Debian 12 from backports)"
    );
    if !is_root() {
        bail!("this is not root; {by_hand}");
    }
    let apt = Apt::open(workspace, Release::Host).with_context(|| by_hand.clone())?;
    let major = |version: &String| {
        version.split(':').next_back().and_then(|text| text.split('.').next()).and_then(|text| text.parse::<u32>().ok())
    };
    let package = "qemu-system-riscv";
    let versions = apt.versions(package)?;
    if !versions.iter().filter_map(major).any(|found| found >= QEMU_MINIMUM) {
        bail!("this release offers no {package} {QEMU_MINIMUM}; {by_hand}");
    }
    // The newest may stand in backports, which apt takes only when told to.
    let backports = format!("{}-backports", host_codename());
    let suite = versions.iter().any(|version| version.contains("~bpo")).then_some(backports.as_str());
    say!("installing {package} and opensbi (about 30 MB to fetch)");
    apt.install(&[package.into(), "opensbi".into()], suite).with_context(|| by_hand)
}

/// The emulator and its firmware, if it is new enough.
fn find_qemu() -> Result<(PathBuf, PathBuf)> {
    let qemu = process::find_program(QEMU).with_context(|| format!("no {QEMU}"))?;
    let text = process::capture(Command::new(&qemu).arg("--version"))?;
    let version = text
        .split("version ")
        .nth(1)
        .and_then(|rest| rest.split('.').next())
        .and_then(|major| major.parse::<u32>().ok());
    if version.is_none_or(|major| major < QEMU_MINIMUM) {
        bail!("{QEMU} is older than {QEMU_MINIMUM}: {}", text.lines().next().unwrap_or_default());
    }
    let dirs = process::capture(Command::new(&qemu).args(["-L", "help"]))?;
    let firmware = dirs.lines().map(|dir| Path::new(dir.trim()).join(FIRMWARE)).find(|file| file.exists());
    let firmware = firmware.with_context(|| format!("{QEMU} has no firmware ({FIRMWARE})"))?;
    Ok((qemu, firmware))
}
