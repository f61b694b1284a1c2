//! What is in the root: Debian's busybox with its names, a few files of `/etc`, what the user added, and our init.

use super::cpio;
use super::tree::Tree;
use crate::apt::{Apt, Release};
use crate::compile::{COMMAND, Program};
use crate::workspace::{Workspace, appear};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// Names of busybox that belong in /sbin.
const ADMIN: [&str; 24] = [
    "acpid",
    "adjtimex",
    "arp",
    "blockdev",
    "brctl",
    "depmod",
    "freeramdisk",
    "fsfreeze",
    "getty",
    "halt",
    "hwclock",
    "ifconfig",
    "init",
    "insmod",
    "ip",
    "losetup",
    "modprobe",
    "pivot_root",
    "poweroff",
    "reboot",
    "route",
    "swapoff",
    "swapon",
    "syslogd",
];

/// What the user wants in the root, and what init is to do there.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// A directory that is the root, instead of busybox's.
    pub rootfs: Option<PathBuf>,
    /// Debian packages.
    pub packages: Vec<String>,
    /// Debian packages without what they depend on; `NAME/sid` is taken from unstable.
    pub parts: Vec<String>,
    /// Pairs of host path and guest path.
    pub copies: Vec<(PathBuf, String)>,
    /// Programs of `user/`, put in `/tests`, the command in `/usr/bin`.
    pub programs: Vec<Program>,
    /// Names of busybox that are left out.
    pub without: &'static [&'static str],
    /// Program and arguments; empty for a shell.
    pub argv: Vec<String>,
    /// Lines of `key=value` for init.
    pub settings: Vec<String>,
}

/// Makes the archive `file` with `init` as `/init`.
///
/// # Errors
/// A package cannot be fetched, a file not read, or the archive not written.
pub fn assemble(workspace: &Workspace, init: &Path, wanted: &Settings, file: &Path) -> Result<()> {
    let mut tree = Tree::default();
    match &wanted.rootfs {
        Some(dir) if dir.is_dir() => tree.copy(dir, b"")?,
        Some(dir) => bail!("{} is not a directory", dir.display()),
        None => {
            skeleton(&mut tree)?;
            busybox(workspace, &mut tree, wanted.without)?;
        }
    }
    if !wanted.packages.is_empty() {
        let dirs = {
            let _lock = workspace.lock()?;
            Apt::open(workspace, Release::Trixie)?.unpack_closure(&wanted.packages)?
        };
        for dir in dirs {
            tree.copy(&dir, b"")?;
        }
    }
    for part in &wanted.parts {
        let (name, release) = match part.strip_suffix("/sid") {
            Some(name) => (name, Release::Sid),
            None => (part.as_str(), Release::Trixie),
        };
        let dir = {
            let _lock = workspace.lock()?;
            Apt::open(workspace, release)?.unpack_one(name)?
        };
        tree.copy(&dir, b"")?;
    }
    for program in &wanted.programs {
        let dir = if program.name == COMMAND { "/usr/bin" } else { "/tests" };
        tree.copy(&program.file, format!("{dir}/{}", program.name).as_bytes())?;
    }
    for (host, guest) in &wanted.copies {
        tree.copy(
            &fs::canonicalize(host).with_context(|| format!("cannot copy {}", host.display()))?,
            guest.as_bytes(),
        )?;
    }
    mount_points(&mut tree)?;
    tree.copy(init, b"/init")?;
    let argv: Vec<u8> = wanted.argv.iter().flat_map(|word| word.bytes().chain([0])).collect();
    tree.file("/.limen/run", 0o644, argv)?;
    tree.file("/.limen/env", 0o644, wanted.settings.iter().map(|line| format!("{line}\n")).collect::<String>())?;
    cpio::write(&tree, file)
}

/// What every root must have for init, whatever the user brings.
fn mount_points(tree: &mut Tree) -> Result<()> {
    for dir in ["/dev", "/proc", "/sys"] {
        tree.directory(dir, 0o755)?;
    }
    tree.directory("/tmp", 0o1777)?;
    if !tree.contains("/dev/console") {
        tree.device("/dev/console", 0o600, 5, 1)?;
    }
    if !tree.contains("/dev/null") {
        tree.device("/dev/null", 0o666, 1, 3)?;
    }
    Ok(())
}

fn skeleton(tree: &mut Tree) -> Result<()> {
    for dir in
        ["/usr/bin", "/usr/sbin", "/usr/lib", "/etc", "/home", "/mnt", "/run", "/var/log", "/var/cache", "/var/lib"]
    {
        tree.directory(dir, 0o755)?;
    }
    tree.directory("/root", 0o700)?;
    tree.directory("/var/tmp", 0o1777)?;
    for name in ["bin", "sbin", "lib"] {
        tree.link(&format!("/{name}"), &format!("usr/{name}"))?;
    }
    tree.file("/etc/passwd", 0o644, "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/usr/sbin:/bin/false\nuser:x:1000:1000:user:/home:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n")?;
    tree.file("/etc/group", 0o644, "root:x:0:\ndaemon:x:1:\ntty:x:5:\nuser:x:1000:\nnogroup:x:65534:\n")?;
    tree.file("/etc/hostname", 0o644, "limen\n")?;
    tree.file("/etc/hosts", 0o644, "127.0.0.1\tlocalhost\n127.0.1.1\tlimen\n")?;
    tree.file("/etc/os-release", 0o644, "NAME=\"Limen\"\nID=limen\nPRETTY_NAME=\"Limen\"\n")
}

/// Fetches what every root is made of and gives the busybox executable. Once fetched it stays.
///
/// # Errors
/// The package cannot be fetched.
pub fn prefetch(workspace: &Workspace) -> Result<PathBuf> {
    let kept = workspace.cache.join("busybox");
    if kept.is_file() {
        return Ok(kept);
    }
    let _lock = workspace.lock()?;
    let package = Apt::open(workspace, Release::Trixie)?.unpack_one("busybox-static")?;
    let file = ["usr/bin/busybox", "bin/busybox"].iter().map(|name| package.join(name)).find(|path| path.is_file());
    let file = file.context("the package busybox-static holds no busybox")?;
    appear(&kept, |part| fs::copy(&file, part).map(|_| ()).context("cannot keep busybox"))?;
    Ok(kept)
}

/// Debian's static busybox under each of its names, but for a few.
fn busybox(workspace: &Workspace, tree: &mut Tree, without: &[&str]) -> Result<()> {
    let file = prefetch(workspace)?;
    tree.copy(&file, b"/usr/bin/busybox")?;
    let names = applets(&fs::read(&file)?);
    if !names.iter().any(|name| name == "sh") {
        bail!("busybox names no applet `sh`: its table of names has changed");
    }
    for name in names.iter().filter(|name| !without.contains(&name.as_str())) {
        let (dir, to) = if ADMIN.contains(&name.as_str()) { ("sbin", "../bin/busybox") } else { ("bin", "busybox") };
        tree.link(&format!("/usr/{dir}/{name}"), to)?;
    }
    Ok(())
}

/// The names in busybox's own table: a run of strings, each ended by a zero byte, that begins with `[` and `[[`.
fn applets(elf: &[u8]) -> Vec<String> {
    let start = b"[\0[[\0";
    let begins = |window: &[u8]| window.starts_with(start) && window[start.len()].is_ascii_alphabetic();
    let Some(at) = elf.windows(start.len() + 1).position(begins) else {
        return Vec::new();
    };
    let names = elf[at..].split(|byte| *byte == 0);
    let is_name = |name: &&[u8]| !name.is_empty() && name.len() < 32 && name.iter().all(|byte| byte.is_ascii_graphic());
    let mut found: Vec<String> = Vec::new();
    for name in names.take_while(is_name).map(|name| String::from_utf8_lossy(name).into_owned()) {
        // The table is sorted, so its end shows.
        if found.last().is_some_and(|last| *last >= name) {
            break;
        }
        found.push(name);
    }
    found.retain(|name| name != "busybox");
    found
}

#[cfg(test)]
mod tests {
    use super::applets;

    #[test]
    fn applet_names_end_where_the_order_does() {
        assert_eq!(applets(b"2[\0[[\0\0junk [\0[[\0ash\0sh\0zcat\0another\0"), ["[", "[[", "ash", "sh", "zcat"]);
        assert!(applets(b"nothing here").is_empty());
    }
}
