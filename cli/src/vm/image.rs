//! Which kernel is booted.

use super::format;
use crate::apt::{Apt, Release};
use crate::compile;
use crate::say;
use crate::toolchain::Toolchain;
use crate::workspace::Workspace;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// A kernel as the user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// The one in this repository.
    Limen,
    /// Debian's Linux.
    Linux {
        /// Its version, such as `6.12`.
        version: String,
        /// With the hardening off that Debian's defaults put on the path of each call.
        lean: bool,
    },
    /// An image file.
    File(PathBuf),
}

impl Kernel {
    /// Reads the value of `--kernel`.
    pub fn parse(text: Option<&str>) -> Self {
        match text {
            None | Some("limen") => Kernel::Limen,
            Some(text) => match text.strip_prefix("linux-") {
                Some(version) if !PathBuf::from(text).exists() => {
                    let plain = version.strip_suffix("-lean");
                    Kernel::Linux { version: plain.unwrap_or(version).to_owned(), lean: plain.is_some() }
                }
                _ => Kernel::File(text.into()),
            },
        }
    }
}

/// A kernel ready to boot.
#[derive(Clone, Debug)]
pub struct Image {
    /// The file for QEMU.
    pub file: PathBuf,
    /// Symbols for panics, if the kernel is ours.
    pub is_limen: bool,
    /// What init needs on the command line.
    pub command_line: String,
}

/// Linux: its messages off but for a panic; a panic ends the machine; our init.
const LINUX: &str = "console=ttyS0 quiet loglevel=1 panic=-1 rdinit=/init";

/// What takes the hardening off.
const LEAN: &str = "randomize_kstack_offset=off init_on_alloc=0";

/// Builds or fetches `kernel`.
///
/// # Errors
/// The build fails, or the image does not exist, is for another machine, or cannot be fetched.
pub fn prepare(workspace: &Workspace, toolchain: &Toolchain, kernel: &Kernel) -> Result<Image> {
    let linux = |file: PathBuf, more: &str| Image {
        file,
        is_limen: false,
        command_line: [LINUX, more].join(" ").trim_end().to_owned(),
    };
    let limen = |file| Image { file, is_limen: true, command_line: String::new() };
    Ok(match kernel {
        Kernel::Limen => limen(compile::kernel(workspace, toolchain)?),
        Kernel::Linux { version, lean } => linux(debian(workspace, version)?, if *lean { LEAN } else { "" }),
        Kernel::File(file) => {
            let file = format::bootable(workspace, file)?;
            // Another build of ours is known by its name.
            let is_limen = file.file_name().is_some_and(|name| name.to_string_lossy().contains("limen"));
            if is_limen { limen(file) } else { linux(file, "") }
        }
    })
}

/// Debian's image: trixie's if it has the version, else sid's. Once fetched it stays, so that figures stay comparable.
fn debian(workspace: &Workspace, version: &str) -> Result<PathBuf> {
    let kept = workspace.cache.join(format!("linux-{version}"));
    if let Ok(text) = std::fs::read_to_string(&kept)
        && Path::new(text.trim()).exists()
    {
        return Ok(text.trim().into());
    }
    let _lock = workspace.lock()?;
    for release in [Release::Trixie, Release::Sid] {
        let apt = Apt::open(workspace, release)?;
        // Newer packaging keeps the image itself in a package of its own.
        for prefix in [format!("linux-binary-{version}"), format!("linux-image-{version}")] {
            let fits = |name: &String| {
                let rest = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix("-riscv64"));
                rest.is_some_and(|rest| rest.starts_with(['.', '+', '-']))
            };
            let mut names: Vec<String> = apt.names(&prefix)?.into_iter().filter(fits).collect();
            names.sort_by_key(|name| numbers(name));
            while let Some(name) = names.pop() {
                let Ok(dir) = apt.unpack_one(&name) else { continue };
                let Some(image) = image_in(&dir) else { continue };
                say!("{name} is ready");
                std::fs::write(&kept, image.display().to_string())?;
                return Ok(image);
            }
        }
    }
    bail!("Debian offers no Linux {version} for riscv64 in trixie or sid")
}

/// The kernel image that an unpacked package holds: in `boot`, or beside the modules.
fn image_in(package: &Path) -> Option<PathBuf> {
    let is_image = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinu"));
    let entries = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let modules = entries(&package.join("usr/lib/modules")).flat_map(|dir| entries(&dir));
    entries(&package.join("boot")).chain(modules).find(is_image)
}

/// The numbers in a name, to order versions by.
fn numbers(name: &str) -> Vec<u64> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}
