//! An apt of our own: options, lists, downloads, unpacking.

use super::sources::{self, Source};
use crate::process;
use crate::say;
use crate::workspace::{Workspace, appear};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Which packages an [`Apt`] sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// The host's own release and architecture with its backports, installed against the host's real status.
    Host,
    /// Debian 13 for riscv64, against an empty status.
    Trixie,
    /// Debian unstable for riscv64, against an empty status.
    Sid,
}

impl Release {
    fn name(self) -> &'static str {
        match self {
            Release::Host => "host",
            Release::Trixie => "trixie",
            Release::Sid => "sid",
        }
    }
}

/// An apt with its own lists and sources.
#[derive(Debug)]
pub struct Apt {
    release: Release,
    dir: PathBuf,
    debs: PathBuf,
}

impl Apt {
    /// Prepares the directories and fetches the package lists if that was never done.
    ///
    /// # Errors
    /// The host has no apt or names no Debian mirror, or the lists cannot be fetched.
    pub fn open(workspace: &Workspace, release: Release) -> Result<Self> {
        if process::find_program("apt-get").is_none() {
            bail!("this host has no apt-get, from which Debian's packages are fetched");
        }
        let dir = workspace.cache.join("apt").join(release.name());
        for part in ["lists/partial", "cache/archives/partial", "closures"] {
            fs::create_dir_all(dir.join(part))?;
        }
        fs::write(dir.join("status"), "")?;
        let apt = Self { release, dir, debs: workspace.cache.join("debs") };
        let text = apt.sources()?;
        let file = apt.dir.join("apt.sources");
        if fs::read_to_string(&file).ok().as_deref() != Some(&text) || !apt.dir.join("updated").exists() {
            fs::write(&file, text)?;
            apt.update()?;
        }
        Ok(apt)
    }

    /// What the sources file holds.
    fn sources(&self) -> Result<String> {
        let host = sources::host(Path::new("/etc/apt"));
        let codename = host_codename();
        let archive = sources::archive(&host, &codename)?;
        let signed_by = archive.signed_by.clone().or_else(|| Path::new(KEYRING).exists().then(|| KEYRING.to_owned()));
        let stanza = |suites: Vec<String>| {
            Source { uri: archive.uri.clone(), suites, components: vec!["main".into()], signed_by: signed_by.clone() }
                .stanza()
        };
        Ok(match self.release {
            Release::Trixie => stanza(vec!["trixie".into()]),
            Release::Sid => stanza(vec!["sid".into()]),
            Release::Host => {
                let mut text: String = host.iter().map(Source::stanza).collect();
                if !["sid", "unstable", "testing", ""].contains(&codename.as_str()) {
                    text += &stanza(vec![format!("{codename}-backports")]);
                }
                text
            }
        })
    }

    /// Fetches the package lists.
    ///
    /// # Errors
    /// The mirror cannot be reached.
    pub fn update(&self) -> Result<()> {
        say!("fetching package lists ({})", self.release.name());
        process::run(self.get().args(["update", "-q"])).context("cannot fetch Debian's package lists")?;
        let _ = fs::remove_dir_all(self.dir.join("closures"));
        fs::create_dir_all(self.dir.join("closures"))?;
        fs::write(self.dir.join("updated"), "")?;
        Ok(())
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(process::find_program(program).unwrap_or_else(|| program.into()));
        let at = |part: &str| self.dir.join(part).display().to_string();
        let mut options = vec![
            format!("Dir::Etc::sourcelist={}", at("apt.sources")),
            "Dir::Etc::sourceparts=/dev/null".into(),
            "Dir::Etc::preferencesparts=/dev/null".into(),
            "Dir::Etc::preferences=/dev/null".into(),
            format!("Dir::State::lists={}", at("lists")),
            format!("Dir::Cache={}", at("cache")),
            "APT::Sandbox::User=root".into(),
            "Acquire::Languages=none".into(),
            "Acquire::Retries=3".into(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".into(),
        ];
        if self.release != Release::Host {
            options.extend([
                format!("Dir::State::status={}", at("status")),
                format!("Dir::State::extended_states={}", at("extended")),
                "APT::Architecture=riscv64".into(),
                "APT::Architectures=riscv64".into(),
                "Debug::NoLocking=true".into(),
                "APT::Install-Recommends=false".into(),
            ]);
        }
        for option in options {
            command.arg("-o").arg(option);
        }
        command.env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C");
        command
    }

    fn get(&self) -> Command {
        self.command("apt-get")
    }

    /// Installs `packages` on the host; a name may carry `=version`.
    ///
    /// # Errors
    /// This is not root, or apt refused.
    pub fn install(&self, packages: &[String], suite: Option<&str>) -> Result<()> {
        let install = || {
            let mut command = self.get();
            command.args(["install", "-y", "-q", "--no-install-recommends"]);
            if let Some(suite) = suite {
                command.args(["-t", suite]);
            }
            process::run(command.args(packages))
        };
        // Old lists name files that the mirror no longer has.
        install().or_else(|_| self.update().and_then(|()| install()))
    }

    /// The versions of `package` on offer, newest first, each with the suites that carry it.
    ///
    /// # Errors
    /// apt could not be asked.
    pub fn versions(&self, package: &str) -> Result<Vec<String>> {
        let text = process::capture(self.command("apt-cache").args(["madison", package]))?;
        Ok(text.lines().filter_map(|line| line.split('|').nth(1)).map(|version| version.trim().to_owned()).collect())
    }

    /// Names of all packages that begin with `prefix`.
    ///
    /// # Errors
    /// apt could not be asked.
    pub fn names(&self, prefix: &str) -> Result<Vec<String>> {
        let text = process::capture(self.command("apt-cache").args(["pkgnames", prefix]))?;
        let mut names: Vec<String> = text.lines().map(str::to_owned).collect();
        names.sort();
        Ok(names)
    }

    /// `packages` with all they depend on, unpacked; one directory a package.
    ///
    /// # Errors
    /// A package does not exist or cannot be fetched.
    pub fn unpack_closure(&self, packages: &[String]) -> Result<Vec<PathBuf>> {
        let mut wanted = packages.to_vec();
        wanted.sort();
        let memo = self.dir.join("closures").join(wanted.join(","));
        let files = match fs::read_to_string(&memo) {
            Ok(text) => text.lines().map(str::to_owned).collect(),
            Err(_) => {
                let files = self.closure(packages)?;
                fs::write(&memo, files.join("\n"))?;
                files
            }
        };
        let archives = self.dir.join("cache/archives");
        let absent = |file: &String| !self.debs.join(file).exists() && !archives.join(file).exists();
        if files.iter().any(absent) {
            say!("fetching {} and what it needs: {} packages", packages.join(", "), files.len());
            let download = || process::run(self.get().args(["install", "-y", "-q", "--download-only"]).args(packages));
            download().or_else(|_| self.update().and_then(|()| download()))?;
        }
        files.iter().map(|file| self.unpack(file)).collect()
    }

    /// One package without what it depends on, unpacked. Once unpacked it stays.
    ///
    /// # Errors
    /// As [`Apt::unpack_closure`].
    pub fn unpack_one(&self, package: &str) -> Result<PathBuf> {
        let memo = self.dir.join("closures").join(format!("{package} alone"));
        let kept = fs::read_to_string(&memo).map(|file| self.debs.join(file));
        if let Some(dir) = kept.ok().filter(|dir| dir.is_dir()) {
            return Ok(dir);
        }
        let dir = self.fetch_one(package)?;
        fs::write(&memo, dir.file_name().unwrap_or_default().as_encoded_bytes())?;
        Ok(dir)
    }

    fn fetch_one(&self, package: &str) -> Result<PathBuf> {
        let (_, version) = self.newest(package)?;
        let matching = |file: &String| file.starts_with(&format!("{package}_{}_", version.replace(':', "%3a")));
        let archives = self.dir.join("cache/archives");
        let present = |dir: &Path| {
            fs::read_dir(dir)
                .ok()?
                .flatten()
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .find(matching)
        };
        if let Some(file) = present(&self.debs).or_else(|| present(&archives)) {
            return self.unpack(&file);
        }
        say!("fetching {package} {version}");
        let download = || process::run(self.get().args(["download", "-q", package]).current_dir(&archives));
        download().or_else(|_| self.update().and_then(|()| download()))?;
        let file =
            present(&archives).with_context(|| format!("apt-get download left no file for {package} {version}"))?;
        self.unpack(&file)
    }

    fn newest(&self, package: &str) -> Result<(String, String)> {
        let version = self
            .versions(package)?
            .into_iter()
            .next()
            .with_context(|| format!("Debian {} has no package {package}", self.release.name()))?;
        Ok((package.to_owned(), version))
    }

    /// File names of the closure's archives.
    fn closure(&self, packages: &[String]) -> Result<Vec<String>> {
        let output = process::output(self.get().args(["-s", "-q", "install"]).args(packages))?;
        let (text, complaints) = (process::text(&output.stdout), process::text(&output.stderr));
        if !output.status.success() {
            bail!("apt cannot install {}: {}", packages.join(", "), complaints.trim());
        }
        Ok(text.lines().filter_map(archive_name).collect())
    }

    fn unpack(&self, file: &str) -> Result<PathBuf> {
        let target = self.debs.join(file);
        if !target.exists() {
            let archive = self.dir.join("cache/archives").join(file);
            appear(&target, |part| process::run(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(part)))?;
        }
        Ok(target)
    }
}

/// `Inst name (version origin [arch])` as apt -s prints it, to the archive's file name.
fn archive_name(line: &str) -> Option<String> {
    let rest = line.strip_prefix("Inst ")?;
    let name = rest.split(' ').next()?.split(':').next()?;
    let inside = rest.split_once('(')?.1.rsplit_once(')')?.0;
    let version = inside.split(' ').next()?.replace(':', "%3a");
    let arch = inside.rsplit_once('[')?.1.split(']').next()?;
    Some(format!("{name}_{version}_{arch}.deb"))
}

/// Code name of the host's release, empty if it does not say.
pub fn host_codename() -> String {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))
        .unwrap_or_default()
        .trim_matches('"')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archive_names_from_a_simulated_install() {
        assert_eq!(
            archive_name("Inst libc6 (2.41-12 Debian:13.1/stable [riscv64])").unwrap(),
            "libc6_2.41-12_riscv64.deb"
        );
        assert_eq!(
            archive_name("Inst login (1:4.16.0-2 Debian:13/stable, Debian:sid [riscv64]) []").unwrap(),
            "login_1%3a4.16.0-2_riscv64.deb"
        );
        assert_eq!(archive_name("Conf libc6 (2.41-12 Debian:13.1/stable [riscv64])"), None);
    }
}
