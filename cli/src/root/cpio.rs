//! Writing a tree as an uncompressed cpio archive ("newc") that can be used in place.
//!
//! A kernel that keeps the archive in memory can map a file's pages where they lie only if they begin on a page
//! boundary of the archive. So the *name* before each file's data is followed by as many zero bytes as are needed; the
//! name's size in the header counts them. Readers take names up to the first zero byte, Linux among them; its limit for
//! the size is PATH_MAX, so a gap larger than that is first made smaller by entries for the root directory.

use super::tree::{Kind, MADE_AT, Node, Source, Tree};
use anyhow::{Context, Result, bail};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

const PAGE: usize = 4096;
const HEADER: usize = 110;
const PATH_MAX: usize = 4096;

/// Writes `tree` to `file`.
///
/// # Errors
/// A file of the host cannot be read, is 4 GiB or larger, or the archive cannot be written.
pub fn write(tree: &Tree, file: &Path) -> Result<()> {
    let output = File::create(file).with_context(|| format!("cannot write {}", file.display()))?;
    let mut writer = Writer { output: BufWriter::with_capacity(1 << 20, output), at: 0, inode: 0 };
    writer.root_directory()?;
    let mut names: HashMap<(u64, u64), u32> = HashMap::new();
    for (_, node) in tree.iter() {
        if let Kind::File(_, Some(key)) = node.kind {
            *names.entry(key).or_default() += 1;
        }
    }
    let mut seen: HashMap<(u64, u64), u32> = HashMap::new();
    for (path, node) in tree.iter() {
        let (inode, links, first) = match node.kind {
            Kind::File(_, Some(key)) => {
                let first = !seen.contains_key(&key);
                let inode = *seen.entry(key).or_insert_with(|| writer.next_inode());
                (inode, names.get(&key).copied().unwrap_or(1), first)
            }
            Kind::Directory => (writer.next_inode(), 2, true),
            _ => (writer.next_inode(), 1, true),
        };
        writer.node(path, node, inode, links, first)?;
    }
    writer.entry(&Entry { name: b"TRAILER!!!", links: 1, ..Entry::default() }, &[])?;
    writer.pad(512)?;
    writer.output.flush().with_context(|| format!("cannot write {}", file.display()))
}

#[derive(Clone, Copy, Default)]
struct Entry<'a> {
    name: &'a [u8],
    inode: u32,
    mode: u32,
    links: u32,
    mtime: u32,
    device: (u32, u32),
}

struct Writer<W> {
    output: W,
    at: usize,
    inode: u32,
}

impl<W: Write> Writer<W> {
    fn next_inode(&mut self) -> u32 {
        self.inode += 1;
        self.inode
    }

    fn node(&mut self, path: &[u8], node: &Node, inode: u32, links: u32, first: bool) -> Result<()> {
        let (kind, device) = match node.kind {
            Kind::Directory => (0o040_000, (0, 0)),
            Kind::File(..) => (0o100_000, (0, 0)),
            Kind::Link(_) => (0o120_000, (0, 0)),
            Kind::Device(major, minor) => (0o020_000, (major, minor)),
            Kind::Fifo => (0o010_000, (0, 0)),
        };
        let entry = Entry { name: path, inode, mode: kind | node.mode, links, mtime: node.mtime, device };
        match &node.kind {
            // The data of a file with several names goes with the first.
            Kind::File(Source::Bytes(bytes), _) if first => self.entry(&entry, bytes),
            Kind::File(Source::File(file), _) if first => {
                let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
                self.entry(&entry, &bytes)
            }
            Kind::Link(text) => self.entry(&entry, text),
            _ => self.entry(&entry, &[]),
        }
    }

    fn root_directory(&mut self) -> Result<()> {
        let entry = Entry { name: b".", mode: 0o040_755, links: 2, mtime: MADE_AT, ..Entry::default() };
        self.entry(&entry, &[])
    }

    fn entry(&mut self, entry: &Entry<'_>, data: &[u8]) -> Result<()> {
        let Ok(size) = u32::try_from(data.len()) else {
            bail!("{} is too large for the archive", String::from_utf8_lossy(entry.name))
        };
        let least = entry.name.len() + 1;
        let mut name_size = least;
        if size > 0 && entry.mode & 0o170_000 == 0o100_000 {
            loop {
                name_size = (self.at + HEADER + least).next_multiple_of(PAGE) - self.at - HEADER;
                if name_size <= PATH_MAX {
                    break;
                }
                self.root_directory()?;
            }
        }
        let Entry { inode, mode, links, mtime, device: (major, minor), .. } = *entry;
        let header = format!(
            "070701{inode:08X}{mode:08X}{:08X}{:08X}{links:08X}{mtime:08X}{size:08X}{:08X}{:08X}{major:08X}{minor:08X}{name_size:08X}{:08X}",
            0, 0, 0, 0, 0
        );
        self.put(header.as_bytes())?;
        self.put(entry.name)?;
        self.put(&vec![0; name_size - entry.name.len()])?;
        self.pad(4)?;
        self.put(data)?;
        self.pad(4)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.at += bytes.len();
        self.output.write_all(bytes).context("cannot write the archive")
    }

    fn pad(&mut self, to: usize) -> Result<()> {
        let zeros = self.at.next_multiple_of(to) - self.at;
        self.put(&vec![0; zeros])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_begins_on_pages_and_names_stay_below_the_limit() {
        let mut writer = Writer { output: Vec::new(), at: 0, inode: 0 };
        for index in 0..300 {
            let name = vec![b'n'; 1 + index % 200];
            let data = vec![b'd'; 1 + index * 37 % 9000];
            writer.entry(&Entry { name: &name, mode: 0o100_644, links: 1, ..Entry::default() }, &data).unwrap();
        }
        let archive = writer.output;
        let mut at = 0;
        let mut files = 0;
        while at < archive.len() {
            let field = |index: usize| {
                usize::from_str_radix(std::str::from_utf8(&archive[at + 6 + 8 * index..][..8]).unwrap(), 16).unwrap()
            };
            let (mode, size, name_size) = (field(1), field(6), field(11));
            assert!(
                archive[at..].starts_with(b"070701")
                    && name_size <= PATH_MAX
                    && archive[at + HEADER + name_size - 1] == 0
            );
            let data = (at + HEADER + name_size).next_multiple_of(4);
            if mode == 0o100_644 {
                files += 1;
                assert_eq!(data % PAGE, 0);
                assert!(archive[data..data + size].iter().all(|byte| *byte == b'd'));
            }
            at = (data + size).next_multiple_of(4);
        }
        assert_eq!(files, 300);
    }
}
