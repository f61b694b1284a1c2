//! Starting other programs and judging how they ended.

use crate::report;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn trace(command: &Command) {
    if report::level() >= 2 {
        eprintln!("limen: + {command:?}");
    }
}

/// Runs `command` to its end. Its output goes to standard error when verbose and is shown only on failure otherwise.
///
/// # Errors
/// It could not be started or ended with a status other than 0.
pub fn run(command: &mut Command) -> Result<()> {
    trace(command);
    if report::level() >= 2 {
        command.stdout(Stdio::from(std::io::stderr()));
        let status = command.status().with_context(|| format!("cannot start {:?}", command.get_program()))?;
        if !status.success() {
            bail!("{:?} failed: {status}", command.get_program());
        }
        return Ok(());
    }
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {:?}", command.get_program()))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}\n{}{}", output.status, text(&output.stdout), text(&output.stderr));
    }
    Ok(())
}

/// Runs `command` and gives its standard output as text.
///
/// # Errors
/// As [`run`].
pub fn capture(command: &mut Command) -> Result<String> {
    let output = output(command)?;
    if !output.status.success() {
        bail!("{command:?} failed: {}\n{}", output.status, text(&output.stderr));
    }
    Ok(text(&output.stdout))
}

/// Runs `command` and gives status and both outputs.
///
/// # Errors
/// It could not be started.
pub fn output(command: &mut Command) -> Result<Output> {
    trace(command);
    command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {:?}", command.get_program()))
}

/// Bytes as text, for messages.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The file that `name` means on this host: searched in PATH and in the administrator's directories.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/bin", "/usr/sbin", "/usr/local/bin"].map(PathBuf::from))
        .map(|dir| dir.join(name))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
