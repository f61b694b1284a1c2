//! The first root file system, from an archive in the "newc" format of cpio(5), used in place.
//!
//! Headers are ASCII: a magic number and 13 fields of eight hexadecimal digits; name and data follow, each padded to
//! four bytes. Data that begins at a page boundary (the packer arranges that for all but small files) becomes the
//! file's pages as it lies; the rest is copied. Entries of one directory stand together, so the directory of the
//! entry before is remembered, which saves the walk.

use alloc::sync::Arc;
use alloc::vec::Vec;

use hal::addr::{PAGE_SIZE, PhysAddr};
use hal::user::InBuf;
use uapi::fs::{S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG, makedev};
use uapi::{Errno, Result, Timespec};

use super::Regular;
use crate::vfs::dir_entry::{NameKey, is_name, node_of};
use crate::vfs::{Dentry, Directory, Inode, Node, Path, SuperBlock};

const HEADER: usize = 110;
const END: &[u8] = b"TRAILER!!!";

struct Entry<'a> {
    /// 0 for a file of one name: nobody asks.
    ino: u32,
    mode: u32,
    uid: u32,
    gid: u32,
    nlink: u32,
    mtime: u32,
    /// 0 for what is no device.
    rdev: u64,
    name: &'a [u8],
    data: &'a [u8],
    /// Offset of the data in the archive.
    offset: usize,
}

/// The value of a field: eight digits at once. `EINVAL` for what is no digit (some neighbours of the digits pass: the
/// magic number is what tells a header).
fn hex(digits: &[u8]) -> Result<u32> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let digits = <[u8; 8]>::try_from(digits).map_err(|_| Errno::EINVAL)?;
    let chars = u64::from_be_bytes(digits);
    // A letter has bit 6 set and the low nibble 1 for ten.
    let nibbles = (chars & (ONES * 0x0f)) + (chars >> 6 & ONES) * 9;
    if nibbles & (ONES * 0xf0) != 0 || chars & (ONES * 0x80) != 0 {
        return Err(Errno::EINVAL);
    }
    let pairs = (nibbles | nibbles >> 4) & 0x00ff_00ff_00ff_00ff;
    let quads = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    Ok((quads | quads >> 16) as u32)
}

/// The entry at `at` and the offset of the next. `EINVAL` for a broken archive.
fn entry(archive: &[u8], at: usize) -> Result<(Entry<'_>, usize)> {
    let header = archive.get(at..at + HEADER).ok_or(Errno::EINVAL)?;
    if !matches!(header.get(..6), Some(b"070701" | b"070702")) {
        return Err(Errno::EINVAL);
    }
    let field = |n: usize| hex(header.get(6 + 8 * n..14 + 8 * n).unwrap_or_default());
    let (size, name_len) = (field(6)? as usize, field(11)? as usize);
    let name_at = at + HEADER;
    let with_nul = archive.get(name_at..name_at + name_len).ok_or(Errno::EINVAL)?;
    let offset = (name_at + name_len).next_multiple_of(4);
    let data = archive.get(offset..offset + size).ok_or(Errno::EINVAL)?;
    let (mode, nlink) = (field(1)?, field(4)?);
    let entry = Entry {
        ino: if nlink > 1 { field(0)? } else { 0 },
        mode,
        uid: field(2)?,
        gid: field(3)?,
        nlink,
        mtime: field(5)?,
        rdev: if matches!(mode & S_IFMT, S_IFCHR | S_IFBLK) { makedev(field(9)?, field(10)?) } else { 0 },
        name: with_nul.split(|byte| *byte == 0).next().unwrap_or_default(),
        data,
        offset,
    };
    Ok((entry, (offset + size).next_multiple_of(4)))
}

struct Builder<'a> {
    root: &'a Path,
    sb: &'a SuperBlock,
    phys: Option<PhysAddr>,
    /// The directory of the entry before, with its name.
    dir: (Vec<u8>, Arc<Dentry>),
    /// Files with more than one name, by their number in the archive.
    links: Vec<(u32, Arc<Inode>)>,
}

/// Unpacks `archive` below `root`. `phys` is its physical address, when its pages may become file pages: nobody writes
/// to it or frees it afterwards. Directories that are missing are made. Gives the number of entries.
///
/// `EINVAL` for a broken archive (what came before stays), `ENOMEM`.
pub fn populate_from_cpio(root: &Path, archive: &[u8], phys: Option<PhysAddr>) -> Result<usize> {
    let dir = (Vec::new(), root.dentry.clone());
    let mut builder = Builder { root, sb: root.mount.sb(), phys, dir, links: Vec::new() };
    let (mut at, mut count) = (0, 0);
    while let Some(first) = archive.get(at) {
        // Archives may follow each other, with zeroes between.
        if *first == 0 {
            at += 4;
            continue;
        }
        let (entry, next) = entry(archive, at)?;
        at = next;
        if entry.name == END {
            builder.links.clear();
            continue;
        }
        builder.add(&entry)?;
        count += 1;
    }
    Ok(count)
}

/// Takes leading slashes and `./` off.
fn relative(mut name: &[u8]) -> &[u8] {
    while let Some(rest) = name.strip_prefix(b"/").or_else(|| name.strip_prefix(b"./")) {
        name = rest;
    }
    if name == b"." { b"" } else { name }
}

impl Builder<'_> {
    fn add(&mut self, entry: &Entry<'_>) -> Result<()> {
        let name = relative(entry.name);
        if name.is_empty() {
            self.root.inode().set_permissions(entry.mode);
            self.root.inode().set_owner(Some(entry.uid), Some(entry.gid));
            return Ok(());
        }
        let (dir, base) = match name.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (name.get(..slash).unwrap_or_default(), name.get(slash + 1..).unwrap_or_default()),
            None => (&b""[..], name),
        };
        if !is_name(base) {
            return Err(Errno::EINVAL);
        }
        let parent = self.directory(dir)?;
        let key = NameKey::of(base);
        let table = parent.inode().dir().ok_or(Errno::ENOTDIR)?;
        if let Some(old) = table.find(&key, base) {
            match (entry.mode & S_IFMT == S_IFDIR, old.inode().is_dir()) {
                (true, true) => {
                    old.inode().set_permissions(entry.mode);
                    old.inode().set_owner(Some(entry.uid), Some(entry.gid));
                    return Ok(());
                }
                (false, true) => return Err(Errno::EISDIR),
                _ => {
                    table.remove(&key, base);
                    old.inode().name_removed();
                }
            }
        }
        let Some(inode) = self.inode(entry)? else { return Ok(()) };
        inode.backdate(Timespec { tv_sec: i64::from(entry.mtime), tv_nsec: 0 });
        if inode.is_dir() {
            parent.inode().link_added();
        }
        let name: Arc<[u8]> = Arc::from(base);
        table.insert(&key, name.clone(), Dentry::child(&parent, name, inode))
    }

    /// The inode of an entry; `None` for a socket, which means nothing without its process.
    fn inode(&mut self, entry: &Entry<'_>) -> Result<Option<Arc<Inode>>> {
        let linked = entry.nlink > 1 && entry.mode & S_IFMT != S_IFDIR;
        if linked && let Some((_, known)) = self.links.iter().find(|(ino, _)| *ino == entry.ino) {
            // The data comes with any of the names, by custom with the last.
            if let (Some(file), false) = (known.regular(), entry.data.is_empty()) {
                fill(file, entry.data)?;
            }
            known.name_added();
            return Ok(Some(known.clone()));
        }
        let kind = entry.mode & S_IFMT;
        let node = match kind {
            S_IFREG => Node::Regular(self.content(entry)?),
            S_IFDIR => Node::Dir(Directory::sized()),
            S_IFLNK => Node::Symlink(entry.data.into()),
            S_IFCHR | S_IFBLK | S_IFIFO => node_of(kind, &crate::Credentials::root())?,
            _ => return Ok(None),
        };
        let inode = self.sb.inode(entry.mode & (S_IFMT | 0o7777), entry.uid, entry.gid, entry.rdev, node);
        if linked {
            self.links.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
            self.links.push((entry.ino, inode.clone()));
        }
        Ok(Some(inode))
    }

    fn content(&self, entry: &Entry<'_>) -> Result<Regular> {
        if let Some(PhysAddr(base)) = self.phys
            && !entry.data.is_empty()
            && (base + entry.offset).is_multiple_of(PAGE_SIZE)
        {
            return Regular::from_boot_memory(PhysAddr(base + entry.offset), entry.data.len());
        }
        let file = Regular::new()?;
        fill(&file, entry.data)?;
        Ok(file)
    }

    /// The directory called `name`, made if it is not there.
    fn directory(&mut self, name: &[u8]) -> Result<Arc<Dentry>> {
        if name == self.dir.0 {
            return Ok(self.dir.1.clone());
        }
        let mut at = self.root.dentry.clone();
        for part in name.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".") {
            if !is_name(part) {
                return Err(Errno::EINVAL);
            }
            let table = at.inode().dir().ok_or(Errno::ENOTDIR)?;
            let key = NameKey::of(part);
            at = match table.find(&key, part) {
                Some(below) => below,
                None => {
                    let inode = self.sb.inode(S_IFDIR | 0o755, 0, 0, 0, Node::Dir(Directory::sized()));
                    let name: Arc<[u8]> = Arc::from(part);
                    let below = Dentry::child(&at, name.clone(), inode);
                    table.insert(&key, name, below.clone())?;
                    at.inode().link_added();
                    below
                }
            };
        }
        self.dir = (name.to_vec(), at.clone());
        Ok(at)
    }
}

/// Copies `data` into an empty file.
fn fill(file: &Regular, data: &[u8]) -> Result<()> {
    let mut input = InBuf::Kernel(data);
    while !input.is_empty() {
        let done = data.len() - input.len();
        if file.object().write(done, &mut input)? == 0 {
            return Err(Errno::ENOSPC);
        }
    }
    Ok(())
}
