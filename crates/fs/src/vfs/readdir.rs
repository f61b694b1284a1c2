//! Open directories, and getdents64(2).

use hal::user::OutBuf;
use uapi::fs::Dirent64;
use uapi::open::{SEEK_CUR, SEEK_SET};
use uapi::{Errno, Result};

use crate::file::{File, FileOps, RawEntry};
use crate::vfs::Inode;

/// The operations of every open directory.
pub(crate) struct DirectoryOps;

/// The one instance.
pub(crate) static DIRECTORY: DirectoryOps = DirectoryOps;

/// Linux's name for the position behind the last entry that an offset may have.
const MAX_POSITION: i64 = i64::MAX;

impl FileOps for DirectoryOps {
    fn read(&self, _: &File, _: &mut OutBuf<'_>) -> Result<usize> {
        Err(Errno::EISDIR)
    }

    fn read_at(&self, _: &File, _: u64, _: &mut OutBuf<'_>) -> Result<usize> {
        Err(Errno::EISDIR)
    }

    fn seek(&self, file: &File, off: i64, whence: u32) -> Result<u64> {
        let mut pos = file.pos.lock();
        let to = match whence {
            SEEK_SET => Some(off),
            SEEK_CUR => (*pos as i64).checked_add(off),
            _ => None,
        };
        match to {
            Some(to @ 0..=MAX_POSITION) => {
                *pos = to as u64;
                Ok(*pos)
            }
            _ => Err(Errno::EINVAL),
        }
    }

    fn readdir(&self, file: &File, emit: &mut dyn FnMut(RawEntry<'_>) -> bool) -> Result<()> {
        let path = file.path().ok_or(Errno::ENOTDIR)?;
        let inode = file.inode();
        let dir = inode.dir().ok_or(Errno::ENOTDIR)?;
        if dir.is_dead() {
            return Err(Errno::ENOENT);
        }
        let mut pos = file.pos.lock();
        let mut dot = |name: &'static [u8], inode: &Inode, next: u64, pos: &mut u64| {
            let more = emit(RawEntry { ino: inode.ino, mode: inode.mode(), name, next });
            *pos = if more { next } else { *pos };
            more
        };
        if *pos == 0 && !dot(b".", inode, 1, &mut pos) {
            return Ok(());
        }
        if *pos == 1 {
            let up = path.dentry.parent();
            let up = up.as_ref().map_or(inode, |parent| parent.inode());
            if !dot(b"..", up, 2, &mut pos) {
                return Ok(());
            }
        }
        let mut reached = *pos;
        dir.list(*pos, &mut |entry| {
            let next = entry.next;
            let more = emit(entry);
            reached = if more { next } else { reached };
            more
        });
        *pos = reached;
        inode.accessed();
        Ok(())
    }
}

/// getdents64(2): as many whole records as fit. 0 at the end, `EINVAL` if not even the first fits, `EFAULT`.
pub fn getdents64(file: &File, out: &mut OutBuf<'_>) -> Result<usize> {
    let mut done = 0;
    let mut failed = None;
    file.readdir(&mut |entry| {
        let len = Dirent64::record_len(entry.name.len());
        let mut record = [0; Dirent64::record_len(uapi::fs::NAME_MAX)];
        let Some(record) = record.get_mut(..len).filter(|_| len <= out.len()) else {
            failed = Some(Errno::EINVAL);
            return false;
        };
        encode(&entry, record);
        match out.write(record) {
            Ok(n) if n == len => {
                done += len;
                true
            }
            _ => {
                failed = Some(Errno::EFAULT);
                false
            }
        }
    })?;
    match failed {
        Some(error) if done == 0 => Err(error),
        _ => Ok(done),
    }
}

/// Fills a zeroed record of the right length.
fn encode(entry: &RawEntry<'_>, record: &mut [u8]) {
    let len = record.len() as u16;
    let kind = (entry.mode >> 12 & 0xf) as u8;
    let fields: [(usize, &[u8]); 5] = [
        (0, &entry.ino.to_le_bytes()),
        (8, &entry.next.to_le_bytes()),
        (16, &len.to_le_bytes()),
        (18, &[kind]),
        (Dirent64::NAME_OFFSET, entry.name),
    ];
    for (at, bytes) in fields {
        if let Some(place) = record.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }
}
