//! A file tree in memory: later additions replace earlier ones, and paths go through symbolic links already there.

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Modification time of what has no file on the host: 2026-01-01, as the fixed clock of a counted run.
pub const MADE_AT: u32 = 1_767_225_600;
/// Links followed in one path before it counts as a loop.
const MAX_LINKS: u32 = 16;

/// Where a regular file's bytes are.
#[derive(Clone, Debug)]
pub enum Source {
    /// In memory.
    Bytes(Vec<u8>),
    /// In a file of the host.
    File(PathBuf),
}

/// What a name stands for.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Directory.
    Directory,
    /// Regular file; `Some` names an inode of the host that has several names.
    File(Source, Option<(u64, u64)>),
    /// Symbolic link and its text.
    Link(Vec<u8>),
    /// Character device.
    Device(u32, u32),
    /// Named pipe.
    Fifo,
}

/// One entry; everything belongs to root.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is.
    pub kind: Kind,
    /// Permission bits, without the type.
    pub mode: u32,
    /// Seconds since 1970.
    pub mtime: u32,
}

/// The tree, by path without leading slash. Parents come before children, since they sort before them.
#[derive(Debug, Default)]
pub struct Tree {
    nodes: BTreeMap<Vec<u8>, Node>,
}

impl Tree {
    /// All entries, parents first.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &Node)> {
        self.nodes.iter().map(|(path, node)| (path.as_slice(), node))
    }

    /// Whether `path` names something, symbolic links followed but for the last component.
    pub fn contains(&self, path: &str) -> bool {
        self.resolve(path.as_bytes()).is_ok_and(|path| self.nodes.contains_key(&path))
    }

    /// Adds a directory, or only its missing parents if it is there.
    ///
    /// # Errors
    /// The path leads through something that is no directory, or through a loop of links.
    pub fn directory(&mut self, path: &str, mode: u32) -> Result<()> {
        self.add(path.as_bytes(), Node { kind: Kind::Directory, mode, mtime: MADE_AT })
    }

    /// Adds a file of given contents.
    ///
    /// # Errors
    /// As [`Tree::directory`].
    pub fn file(&mut self, path: &str, mode: u32, bytes: impl Into<Vec<u8>>) -> Result<()> {
        self.add(path.as_bytes(), Node { kind: Kind::File(Source::Bytes(bytes.into()), None), mode, mtime: MADE_AT })
    }

    /// Adds a symbolic link.
    ///
    /// # Errors
    /// As [`Tree::directory`].
    pub fn link(&mut self, path: &str, to: &str) -> Result<()> {
        self.add(path.as_bytes(), Node { kind: Kind::Link(to.into()), mode: 0o777, mtime: MADE_AT })
    }

    /// Adds a character device.
    ///
    /// # Errors
    /// As [`Tree::directory`].
    pub fn device(&mut self, path: &str, mode: u32, major: u32, minor: u32) -> Result<()> {
        self.add(path.as_bytes(), Node { kind: Kind::Device(major, minor), mode, mtime: MADE_AT })
    }

    /// Adds a file or directory of the host with all below it. Modes are kept; sockets and block devices are left out.
    ///
    /// # Errors
    /// Something cannot be read, or as [`Tree::directory`].
    pub fn copy(&mut self, host: &Path, guest: &[u8]) -> Result<()> {
        let meta = host.symlink_metadata().with_context(|| format!("cannot read {}", host.display()))?;
        let kind = if meta.is_dir() {
            Kind::Directory
        } else if meta.is_file() {
            fs::File::open(host).with_context(|| format!("cannot read {}", host.display()))?;
            Kind::File(Source::File(host.to_path_buf()), (meta.nlink() > 1).then(|| (meta.dev(), meta.ino())))
        } else if meta.is_symlink() {
            Kind::Link(fs::read_link(host)?.as_os_str().as_bytes().to_vec())
        } else if meta.file_type().is_char_device() {
            let number = meta.rdev();
            Kind::Device(rustix::fs::major(number), rustix::fs::minor(number))
        } else if meta.file_type().is_fifo() {
            Kind::Fifo
        } else {
            return Ok(());
        };
        let mtime = u32::try_from(meta.mtime()).unwrap_or(MADE_AT);
        self.add(guest, Node { kind, mode: meta.permissions().mode() & 0o7777, mtime })?;
        if meta.is_dir() {
            let mut entries = fs::read_dir(host)
                .with_context(|| format!("cannot read {}", host.display()))?
                .collect::<Result<Vec<_>, _>>()?;
            entries.sort_by_key(fs::DirEntry::file_name);
            for entry in entries {
                self.copy(&entry.path(), &[guest, b"/", entry.file_name().as_bytes()].concat())?;
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &[u8], node: Node) -> Result<()> {
        let path = self.resolve(path)?;
        if path.is_empty() {
            return Ok(()); // the root itself
        }
        let mut end = 0;
        while let Some(slash) = path[end..].iter().position(|byte| *byte == b'/') {
            let parent = &path[..end + slash];
            let there = self.nodes.entry(parent.to_vec()).or_insert(Node {
                kind: Kind::Directory,
                mode: 0o755,
                mtime: MADE_AT,
            });
            if !matches!(there.kind, Kind::Directory) {
                bail!("/{} is not a directory", String::from_utf8_lossy(parent));
            }
            end += slash + 1;
        }
        let is_directory = |node: &Node| matches!(node.kind, Kind::Directory);
        match (self.nodes.get(&path), is_directory(&node)) {
            // A link that stands for a directory stays what it is (merged /usr), the other way round a directory stays too.
            (Some(there), true) if matches!(there.kind, Kind::Link(_)) => {}
            (Some(there), false) if is_directory(there) => {}
            _ => {
                self.nodes.insert(path, node);
            }
        }
        Ok(())
    }

    /// `path` with the symbolic links among its parents followed, `.` and `..` taken out, no slash at either end.
    fn resolve(&self, path: &[u8]) -> Result<Vec<u8>> {
        let mut rest: Vec<Vec<u8>> = components(path);
        rest.reverse();
        let mut done: Vec<Vec<u8>> = Vec::new();
        let mut links = 0;
        while let Some(part) = rest.pop() {
            if part == b".." {
                done.pop();
                continue;
            }
            done.push(part);
            if rest.is_empty() {
                break;
            }
            if let Some(Node { kind: Kind::Link(to), .. }) = self.nodes.get(&done.join(&b'/')) {
                links += 1;
                if links > MAX_LINKS {
                    bail!("too many symbolic links in {}", String::from_utf8_lossy(path));
                }
                if to.starts_with(b"/") {
                    done.clear();
                } else {
                    done.pop();
                }
                rest.extend(components(to).into_iter().rev());
            }
        }
        Ok(done.join(&b'/'))
    }
}

fn components(path: &[u8]) -> Vec<Vec<u8>> {
    path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".").map(<[u8]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tree: &Tree) -> Vec<String> {
        tree.iter().map(|(path, _)| String::from_utf8_lossy(path).into_owned()).collect()
    }

    #[test]
    fn paths_go_through_links() {
        let mut tree = Tree::default();
        tree.link("/bin", "usr/bin").unwrap();
        tree.file("/bin/tool", 0o755, "x").unwrap();
        tree.directory("/bin", 0o755).unwrap();
        assert_eq!(names(&tree), ["bin", "usr", "usr/bin", "usr/bin/tool"]);
        assert!(tree.contains("/bin/tool"));
    }

    #[test]
    fn loops_and_files_as_parents_are_refused() {
        let mut tree = Tree::default();
        tree.link("/a", "b").unwrap();
        tree.link("/b", "a").unwrap();
        assert!(tree.file("/a/x", 0o644, "").is_err());
        tree.file("/f", 0o644, "").unwrap();
        assert!(tree.file("/f/x", 0o644, "").is_err());
    }
}
