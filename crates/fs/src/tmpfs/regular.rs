//! Regular files with pages: read(2), write(2), lseek(2), ftruncate(2).
//!
//! The position is locked while a read or write runs, so that two processes that share a description do not write over
//! each other. A write with `O_APPEND` also locks the file: end and write are one step.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicI32, Ordering};

use hal::addr::{PAGE_SIZE, PhysAddr, UserAddr};
use hal::sync::SpinLock;
use hal::user::{InBuf, OutBuf, copy_out};
use uapi::ioctl::{FIONREAD, FIOQSIZE};
use uapi::open::{
    FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE, O_APPEND, O_NOATIME, SEEK_CUR, SEEK_DATA, SEEK_END, SEEK_HOLE, SEEK_SET,
};
use uapi::{Errno, Result};

use crate::file::{File, FileOps};
use crate::object::Object;
use crate::tmpfs::Usage;
use crate::vfs::Inode;

/// Largest offset: Linux's `loff_t` (bytes).
const MAX_SIZE: u64 = i64::MAX as u64;

/// A regular file's content.
pub struct Regular {
    object: Arc<Object>,
    append: SpinLock<()>,
    /// Descriptions open for writing, or if negative the programs running from it.
    writers: AtomicI32,
    /// Pages counted in the file system's accounts.
    charged: SpinLock<u64>,
}

impl Regular {
    /// An empty file. `ENOMEM`.
    pub fn new() -> Result<Self> {
        Ok(Self::of(Object::new()?))
    }

    /// A file whose first content lies in memory that nobody else uses, at a page boundary.
    pub(crate) fn from_boot_memory(at: PhysAddr, len: usize) -> Result<Self> {
        Ok(Self::of(Object::from_boot_memory(at, len)?))
    }

    fn of(object: Arc<Object>) -> Self {
        Self { object, append: SpinLock::new(()), writers: AtomicI32::new(0), charged: SpinLock::new(0) }
    }

    /// The object that is mapped.
    pub fn object(&self) -> &Arc<Object> {
        &self.object
    }

    /// Size in bytes.
    #[inline]
    pub fn size(&self) -> u64 {
        self.object.size() as u64
    }

    /// Bytes that the content takes in memory.
    pub fn allocated(&self) -> u64 {
        (self.object.resident_pages() * PAGE_SIZE) as u64
    }

    /// Sets the size; what is gained reads as zeroes.
    pub(crate) fn truncate(&self, inode: &Inode, len: u64) -> Result<()> {
        if len > MAX_SIZE {
            return Err(Errno::EFBIG);
        }
        let _append = self.append.lock();
        self.object.truncate(len as usize);
        self.charge(inode);
        inode.modified();
        Ok(())
    }

    /// Writes what the file system has room for. `ENOSPC`: nothing.
    #[cold]
    fn write_to_limit(&self, off: u64, limit: u64, input: &mut InBuf<'_>) -> Result<usize> {
        let room = limit.saturating_sub(off) as usize;
        if room == 0 {
            return Err(Errno::ENOSPC);
        }
        let mut part = match input {
            InBuf::User(at, len) => InBuf::User(*at, room.min(*len)),
            InBuf::Kernel(bytes) => InBuf::Kernel(bytes.get(..room).unwrap_or(bytes)),
        };
        let written = self.object.write(off as usize, &mut part)?;
        input.skip(written);
        Ok(written)
    }

    /// Brings the accounts up to date.
    fn charge(&self, inode: &Inode) {
        if let Some(usage) = inode.usage() {
            let mut charged = self.charged.lock();
            let now = self.object.resident_pages() as u64;
            usage.change_pages(core::mem::replace(&mut *charged, now), now);
        }
    }

    /// Takes the file out of the accounts: it is gone.
    pub(crate) fn uncharge(&self, usage: &Usage) {
        usage.change_pages(core::mem::take(&mut *self.charged.lock()), 0);
    }

    /// Counts a description for writing. `ETXTBSY` while it is executed.
    pub(crate) fn add_writer(&self) -> Result<()> {
        let more = |n: i32| if n < 0 { None } else { n.checked_add(1) };
        self.writers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).map(drop).map_err(|_| Errno::ETXTBSY)
    }

    /// Counts an execution. `ETXTBSY` while it is open for writing.
    pub(crate) fn add_execution(&self) -> Result<()> {
        let more = |n: i32| if n > 0 { None } else { n.checked_sub(1) };
        self.writers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).map(drop).map_err(|_| Errno::ETXTBSY)
    }

    pub(crate) fn check_not_executing(&self) -> Result<()> {
        if self.writers.load(Ordering::Relaxed) < 0 { Err(Errno::ETXTBSY) } else { Ok(()) }
    }

    fn write(&self, file: &File, off: u64, input: &mut InBuf<'_>) -> Result<usize> {
        if input.is_empty() {
            return Ok(0);
        }
        if off.checked_add(input.len() as u64).is_none_or(|end| end > MAX_SIZE) {
            return Err(Errno::EINVAL);
        }
        let limit = file.inode().usage().map_or(u64::MAX, |usage| usage.limit(self.size(), off));
        let written = if off + input.len() as u64 <= limit {
            self.object.write(off as usize, input)
        } else {
            self.write_to_limit(off, limit, input)
        };
        self.charge(file.inode());
        let written = written?;
        if !file.keeps_setid() {
            file.inode().drop_setid();
        }
        file.inode().modified();
        Ok(written)
    }
}

/// The operations of every open regular file.
pub(crate) struct RegularOps;

/// The one instance.
pub(crate) static REGULAR: RegularOps = RegularOps;

#[inline]
fn content(file: &File) -> Result<&Regular> {
    file.inode().regular().ok_or(Errno::EIO)
}

#[inline]
fn accessed(file: &File) {
    if file.flags() & O_NOATIME == 0 {
        file.inode().accessed();
    }
}

impl FileOps for RegularOps {
    fn read(&self, file: &File, out: &mut OutBuf<'_>) -> Result<usize> {
        let regular = content(file)?;
        let mut pos = file.pos.lock();
        if *pos + out.len() as u64 > MAX_SIZE {
            return Err(Errno::EINVAL);
        }
        let n = regular.object.read(*pos as usize, out)?;
        *pos += n as u64;
        accessed(file);
        Ok(n)
    }

    fn write(&self, file: &File, input: &mut InBuf<'_>) -> Result<usize> {
        let regular = content(file)?;
        let mut pos = file.pos.lock();
        let append = (file.flags() & O_APPEND != 0).then(|| regular.append.lock());
        let off = if append.is_some() { regular.size() } else { *pos };
        let n = regular.write(file, off, input)?;
        *pos = off + n as u64;
        Ok(n)
    }

    fn read_at(&self, file: &File, off: u64, out: &mut OutBuf<'_>) -> Result<usize> {
        if off.checked_add(out.len() as u64).is_none_or(|end| end > MAX_SIZE) {
            return Err(Errno::EINVAL);
        }
        let n = content(file)?.object.read(off as usize, out)?;
        accessed(file);
        Ok(n)
    }

    /// As Linux does it, `O_APPEND` wins over the offset: pwrite(2), "Bugs".
    fn write_at(&self, file: &File, off: u64, input: &mut InBuf<'_>) -> Result<usize> {
        let regular = content(file)?;
        let append = (file.flags() & O_APPEND != 0).then(|| regular.append.lock());
        let off = if append.is_some() { regular.size() } else { off };
        regular.write(file, off, input)
    }

    fn seek(&self, file: &File, off: i64, whence: u32) -> Result<u64> {
        let regular = content(file)?;
        let mut pos = file.pos.lock();
        *pos = match whence {
            SEEK_DATA | SEEK_HOLE => {
                let from = usize::try_from(off).map_err(|_| Errno::ENXIO)?;
                regular.object.seek(from, whence == SEEK_DATA).ok_or(Errno::ENXIO)? as u64
            }
            _ => seek_to(*pos, regular.size(), off, whence)?,
        };
        Ok(*pos)
    }

    fn ioctl(&self, file: &File, cmd: u32, arg: usize) -> Result<usize> {
        let size = content(file)?.size();
        match cmd {
            FIONREAD => {
                let left = size.saturating_sub(*file.pos.lock()).min(i32::MAX as u64) as i32;
                copy_out(UserAddr(arg), &left.to_le_bytes())?;
            }
            FIOQSIZE => copy_out(UserAddr(arg), &size.to_le_bytes())?,
            _ => return Err(Errno::ENOTTY),
        }
        Ok(0)
    }

    fn mmap_object(&self, file: &File) -> Result<Arc<Object>> {
        accessed(file);
        Ok(content(file)?.object.clone())
    }

    fn truncate(&self, file: &File, len: u64) -> Result<()> {
        content(file)?.truncate(file.inode(), len)?;
        if !file.keeps_setid() {
            file.inode().drop_setid();
        }
        Ok(())
    }

    fn allocate(&self, file: &File, mode: u32, off: u64, len: u64) -> Result<()> {
        let regular = content(file)?;
        let end = off.checked_add(len).filter(|end| *end <= MAX_SIZE).ok_or(Errno::EFBIG)?;
        let _append = regular.append.lock();
        match mode {
            0 | FALLOC_FL_KEEP_SIZE => {
                if let Some(usage) = file.inode().usage() {
                    usage.check_allocation(len)?;
                }
                regular.object.allocate(off as usize, end as usize)?;
                if mode == 0 && end > regular.size() {
                    regular.object.truncate(end as usize);
                }
            }
            m if m == FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE => regular.object.punch(off as usize, end as usize)?,
            _ => return Err(Errno::EOPNOTSUPP),
        }
        regular.charge(file.inode());
        file.inode().modified();
        Ok(())
    }

    fn close(&self, file: &File) {
        let Ok(regular) = content(file) else { return };
        if file.writable() {
            regular.writers.fetch_sub(1, Ordering::Relaxed);
        } else if file.is_executing() {
            regular.writers.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// lseek(2) without `SEEK_DATA` and `SEEK_HOLE`, in a file of `size` bytes. `EINVAL` below zero or past the largest offset.
pub(crate) fn seek_to(pos: u64, size: u64, off: i64, whence: u32) -> Result<u64> {
    let base = match whence {
        SEEK_SET => 0,
        SEEK_CUR => pos,
        SEEK_END => size,
        _ => return Err(Errno::EINVAL),
    };
    base.checked_add_signed(off).filter(|to| *to <= MAX_SIZE).ok_or(Errno::EINVAL)
}
