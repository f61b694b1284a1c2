//! The kernels of a run: named, prepared, each with what it says of itself.

use crate::setup::Tools;
use crate::vm::{self, Image, Kernel};
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::fs;

/// The kernels of a run that names none.
pub const DEFAULT: [&str; 4] = ["limen", "linux-6.12", "linux-6.12-lean", "linux-7.2"];

/// A kernel ready to boot.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its name in tables.
    pub name: String,
    /// The image.
    pub image: Image,
    /// What it says of itself.
    pub version: String,
    /// SHA-256 of the image.
    pub hash: String,
}

/// Builds, fetches or reads every kernel named; without names the usual four.
///
/// # Errors
/// A name says nothing, or a file is no kernel for riscv64.
pub fn prepare(workspace: &Workspace, tools: &Tools, names: &[String]) -> Result<Vec<Candidate>> {
    let usual = DEFAULT.map(str::to_owned);
    let names = if names.is_empty() { &usual[..] } else { names };
    let mut candidates: Vec<Candidate> = Vec::new();
    for text in names {
        if text.is_empty() {
            bail!("a kernel without a name");
        }
        let kernel = Kernel::parse(Some(text));
        let image = vm::prepare(workspace, &tools.toolchain, &kernel).with_context(|| format!("kernel {text}"))?;
        let bytes = fs::read(&image.file).with_context(|| format!("cannot read {}", image.file.display()))?;
        let version = linux_version(&bytes).unwrap_or_else(|| if image.is_limen { "limen" } else { "unknown" }.into());
        let mut name = match &kernel {
            Kernel::File(file) => file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            _ => text.clone(),
        };
        name.truncate(name.char_indices().nth(24).map_or(name.len(), |(at, _)| at));
        if candidates.iter().any(|other| other.name == name) {
            name = format!("{name}-{}", candidates.len() + 1);
        }
        candidates.push(Candidate { name, image, version, hash: vm::hash(&bytes) });
    }
    Ok(candidates)
}

/// The words after `Linux version ` in an image.
fn linux_version(bytes: &[u8]) -> Option<String> {
    let mark = b"Linux version ";
    let at = bytes.windows(mark.len()).position(|window| window == mark)? + mark.len();
    let rest = bytes[at..].iter().take(64).take_while(|byte| byte.is_ascii_graphic());
    let version: String = rest.map(|byte| char::from(*byte)).collect();
    version.starts_with(|first: char| first.is_ascii_digit()).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::linux_version;

    #[test]
    fn versions_are_found() {
        let image = b"\0\0Linux version 6.12.117+deb13-riscv64 (debian-kernel) #1\n";
        assert_eq!(linux_version(image).as_deref(), Some("6.12.117+deb13-riscv64"));
        assert_eq!(linux_version(b"Linux version %s"), None);
        assert_eq!(linux_version(b""), None);
    }
}
