//! Open file descriptions: open(2), "Open file descriptions".
//!
//! A [`File`] is what descriptors share after dup or fork: status flags, the offset, and the operations behind it. The
//! operations are a trait object, found by one load: static for what needs no state of its own (regular files,
//! directories, `/dev/zero`), so that opening and closing them touches no shared counter; counted for the rest.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};

use bitflags::bitflags;
use hal::sync::{SpinLock, WaitQueue};
use hal::user::{InBuf, OutBuf};
use uapi::open::{O_ACCMODE, O_PATH, O_RDONLY, O_RDWR, O_WRONLY, SETFL_MASK};
use uapi::poll;
use uapi::{Errno, Result};

use crate::vfs::{Inode, Path};

bitflags! {
    /// Readiness as poll(2) reports it.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct PollEvents: u16 {
        /// Data to read.
        const IN = poll::POLLIN;
        /// An exceptional condition.
        const PRI = poll::POLLPRI;
        /// Room to write.
        const OUT = poll::POLLOUT;
        /// An error condition.
        const ERR = poll::POLLERR;
        /// The other side is gone.
        const HUP = poll::POLLHUP;
        /// Normal data to read.
        const RDNORM = poll::POLLRDNORM;
        /// Room for normal data.
        const WRNORM = poll::POLLWRNORM;
        /// The other side writes no more.
        const RDHUP = poll::POLLRDHUP;
        /// What a readable file reports.
        const READABLE = poll::POLLIN | poll::POLLRDNORM;
        /// What a writable file reports.
        const WRITABLE = poll::POLLOUT | poll::POLLWRNORM;
    }
}

/// An entry that [`FileOps::readdir`] hands out.
pub struct RawEntry<'a> {
    /// Inode number.
    pub ino: u64,
    /// Type in the bits of `S_IFMT`.
    pub mode: u32,
    /// The name, without NUL.
    pub name: &'a [u8],
    /// The position after this entry, for d_off and lseek.
    pub next: u64,
}

/// What a kind of file does. The defaults are those of a file that cannot do it, with Linux's error numbers.
///
/// Access modes are checked by [`File`] before a call arrives here. Calls that would wait answer `EAGAIN`.
pub trait FileOps: Send + Sync {
    /// Reads at the current position into `out` and advances it. 0 is the end of the file.
    fn read(&self, _file: &File, _out: &mut OutBuf<'_>) -> Result<usize> {
        Err(Errno::EINVAL)
    }

    /// Writes at the current position and advances it. A short count means that more would have to wait: call again.
    fn write(&self, _file: &File, _input: &mut InBuf<'_>) -> Result<usize> {
        Err(Errno::EINVAL)
    }

    /// pread(2): reads at `off`, leaves the position.
    fn read_at(&self, _file: &File, _off: u64, _out: &mut OutBuf<'_>) -> Result<usize> {
        Err(Errno::ESPIPE)
    }

    /// pwrite(2): writes at `off`, leaves the position.
    fn write_at(&self, _file: &File, _off: u64, _input: &mut InBuf<'_>) -> Result<usize> {
        Err(Errno::ESPIPE)
    }

    /// lseek(2): the new position.
    fn seek(&self, _file: &File, _off: i64, _whence: u32) -> Result<u64> {
        Err(Errno::ESPIPE)
    }

    /// Readiness now. Register on [`FileOps::wait_queue`] first, then look.
    fn poll(&self, _file: &File) -> PollEvents {
        PollEvents::READABLE.union(PollEvents::WRITABLE)
    }

    /// ioctl(2): `arg` is a value or a user address.
    fn ioctl(&self, _file: &File, _cmd: u32, _arg: usize) -> Result<usize> {
        Err(Errno::ENOTTY)
    }

    /// Hands entries to `emit` from the file's position on, until it answers false; advances the position past those taken.
    fn readdir(&self, _file: &File, _emit: &mut dyn FnMut(RawEntry<'_>) -> bool) -> Result<()> {
        Err(Errno::ENOTDIR)
    }

    /// The memory object behind a mapping of this file; `ENODEV` when it cannot be mapped.
    fn mmap_object(&self, _file: &File) -> Result<Arc<crate::object::Object>> {
        Err(Errno::ENODEV)
    }

    /// True when a mapping is anonymous memory, as of `/dev/zero`.
    fn mmap_is_anonymous(&self) -> bool {
        false
    }

    /// ftruncate(2).
    fn truncate(&self, _file: &File, _len: u64) -> Result<()> {
        Err(Errno::EINVAL)
    }

    /// fallocate(2) of `off..off + len`, `len` not 0.
    fn allocate(&self, _file: &File, _mode: u32, _off: u64, _len: u64) -> Result<()> {
        Err(Errno::ENODEV)
    }

    /// Who is told when readiness may have changed; `None`: it never does.
    fn wait_queue(&self, _file: &File) -> Option<&WaitQueue> {
        None
    }

    /// True while an open(2) without `O_NONBLOCK` of this fresh file has to wait: a FIFO with no other end.
    fn open_waits(&self, _file: &File) -> bool {
        false
    }

    /// The last reference is gone.
    fn close(&self, _file: &File) {}

    /// This object, when it is a pipe: for `F_SETPIPE_SZ` and its kind.
    fn as_pipe(&self) -> Option<&crate::pipe::Pipe> {
        None
    }

    /// This object, when it is a terminal.
    fn as_tty(&self) -> Option<&crate::tty::Tty> {
        None
    }
}

/// The operations behind a file.
#[derive(Clone)]
pub enum Ops {
    /// Stateless: shared by all files of a kind.
    Static(&'static dyn FileOps),
    /// With state of its own.
    Shared(Arc<dyn FileOps>),
}

/// Everything on an `O_PATH` descriptor fails by the access check; what does not look at the mode gives `EBADF`.
struct PathOps;

impl FileOps for PathOps {
    fn seek(&self, _: &File, _: i64, _: u32) -> Result<u64> {
        Err(Errno::EBADF)
    }
    fn ioctl(&self, _: &File, _: u32, _: usize) -> Result<usize> {
        Err(Errno::EBADF)
    }
    fn readdir(&self, _: &File, _: &mut dyn FnMut(RawEntry<'_>) -> bool) -> Result<()> {
        Err(Errno::EBADF)
    }
    fn mmap_object(&self, _: &File) -> Result<Arc<crate::object::Object>> {
        Err(Errno::EBADF)
    }
    fn truncate(&self, _: &File, _: u64) -> Result<()> {
        Err(Errno::EBADF)
    }
    fn poll(&self, _: &File) -> PollEvents {
        PollEvents::from_bits_retain(poll::POLLNVAL)
    }
}

const READABLE: u32 = 1;
const WRITABLE: u32 = 2;
const PATH_ONLY: u32 = 4;
/// The opener had `CAP_FSETID`: its writes keep the set-id bits.
const KEEPS_SETID: u32 = 8;
/// Opened by execve: keeps writers away.
const EXECUTING: u32 = 16;

/// An open file description.
pub struct File {
    ops: Ops,
    access: u32,
    flags: AtomicU32,
    /// Offset in bytes (a directory: the cookie of the next entry; a FIFO: see [`crate::pipe`]).
    pub(crate) pos: SpinLock<u64>,
    inode: Arc<Inode>,
    path: Option<Path>,
}

impl File {
    /// A description of `inode` with the flags of open(2). `path` is where it was found; `None` for a pipe.
    pub fn new(ops: Ops, inode: Arc<Inode>, path: Option<Path>, flags: u32) -> Self {
        let (access, ops) = if flags & O_PATH != 0 {
            (PATH_ONLY, Ops::Static(&PathOps))
        } else {
            let access = match flags & O_ACCMODE {
                O_RDONLY => READABLE,
                O_WRONLY => WRITABLE,
                O_RDWR => READABLE | WRITABLE,
                _ => 0,
            };
            (access, ops)
        };
        Self { ops, access, flags: AtomicU32::new(flags), pos: SpinLock::new(0), inode, path }
    }

    /// The same, for an opener whose writes keep the set-id bits (`CAP_FSETID`).
    pub(crate) fn keeping_setid(mut self, keeps: bool) -> Self {
        if keeps {
            self.access |= KEEPS_SETID;
        }
        self
    }

    pub(crate) fn executing(mut self) -> Self {
        self.access |= EXECUTING;
        self
    }

    pub(crate) fn is_executing(&self) -> bool {
        self.access & EXECUTING != 0
    }

    #[inline]
    fn ops(&self) -> &dyn FileOps {
        match &self.ops {
            Ops::Static(ops) => *ops,
            Ops::Shared(ops) => &**ops,
        }
    }

    /// Opened for reading.
    #[inline]
    pub fn readable(&self) -> bool {
        self.access & READABLE != 0
    }

    /// Opened for writing.
    #[inline]
    pub fn writable(&self) -> bool {
        self.access & WRITABLE != 0
    }

    /// Opened with `O_PATH`: it names a file, and no more.
    #[inline]
    pub fn is_path_only(&self) -> bool {
        self.access & PATH_ONLY != 0
    }

    pub(crate) fn keeps_setid(&self) -> bool {
        self.access & KEEPS_SETID != 0
    }

    /// The flags for `F_GETFL`: access mode and status flags.
    #[inline]
    pub fn flags(&self) -> u32 {
        self.flags.load(Ordering::Relaxed)
    }

    /// `F_SETFL`: changes the bits of [`SETFL_MASK`], ignores the others.
    pub fn set_flags(&self, flags: u32) {
        let kept = self.flags() & !SETFL_MASK;
        self.flags.store(kept | flags & SETFL_MASK, Ordering::Relaxed);
    }

    /// Sets or clears one status flag (`FIONBIO`).
    pub fn set_flag(&self, flag: u32, on: bool) {
        if on {
            self.flags.fetch_or(flag & SETFL_MASK, Ordering::Relaxed);
        } else {
            self.flags.fetch_and(!(flag & SETFL_MASK), Ordering::Relaxed);
        }
    }

    /// The file's inode.
    #[inline]
    pub fn inode(&self) -> &Arc<Inode> {
        &self.inode
    }

    /// Where it was opened; `None` for pipes and their kind.
    #[inline]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_ref()
    }

    /// read(2). `EBADF` if not open for reading, `EAGAIN` if it would have to wait.
    #[inline]
    pub fn read(&self, out: &mut OutBuf<'_>) -> Result<usize> {
        if !self.readable() {
            return Err(Errno::EBADF);
        }
        self.ops().read(self, out)
    }

    /// write(2). A short count without an error means that the rest would have to wait, or that the copy faulted: call
    /// again while `input` is not empty, and report an error only if nothing was written at all.
    #[inline]
    pub fn write(&self, input: &mut InBuf<'_>) -> Result<usize> {
        if !self.writable() {
            return Err(Errno::EBADF);
        }
        self.ops().write(self, input)
    }

    /// pread(2): `EINVAL` for a negative offset, `ESPIPE` for what has no position.
    pub fn read_at(&self, off: i64, out: &mut OutBuf<'_>) -> Result<usize> {
        let off = u64::try_from(off).map_err(|_| Errno::EINVAL)?;
        if !self.readable() {
            return Err(Errno::EBADF);
        }
        self.ops().read_at(self, off, out)
    }

    /// pwrite(2).
    pub fn write_at(&self, off: i64, input: &mut InBuf<'_>) -> Result<usize> {
        let off = u64::try_from(off).map_err(|_| Errno::EINVAL)?;
        if !self.writable() {
            return Err(Errno::EBADF);
        }
        self.ops().write_at(self, off, input)
    }

    /// lseek(2).
    pub fn seek(&self, off: i64, whence: u32) -> Result<u64> {
        self.ops().seek(self, off, whence)
    }

    /// poll(2): what is ready now.
    #[inline]
    pub fn poll(&self) -> PollEvents {
        self.ops().poll(self)
    }

    /// ioctl(2), but for the requests on the descriptor or the status flags, which are the system call layer's.
    pub fn ioctl(&self, cmd: u32, arg: usize) -> Result<usize> {
        self.ops().ioctl(self, cmd, arg)
    }

    /// See [`FileOps::readdir`]; `ENOTDIR` if not a directory, `ENOENT` if it was removed.
    pub fn readdir(&self, emit: &mut dyn FnMut(RawEntry<'_>) -> bool) -> Result<()> {
        self.ops().readdir(self, emit)
    }

    /// The object to map, `ENODEV` or `EACCES` (not readable) otherwise.
    pub fn mmap_object(&self) -> Result<Arc<crate::object::Object>> {
        if !self.readable() && !self.is_path_only() {
            return Err(Errno::EACCES);
        }
        self.ops().mmap_object(self)
    }

    /// True when mapping this file gives anonymous memory.
    pub fn mmap_is_anonymous(&self) -> bool {
        self.ops().mmap_is_anonymous()
    }

    /// ftruncate(2): `EINVAL` if not a regular file open for writing, or `len` is negative.
    pub fn truncate(&self, len: i64) -> Result<()> {
        if self.is_path_only() {
            return Err(Errno::EBADF);
        }
        let len = u64::try_from(len).map_err(|_| Errno::EINVAL)?;
        if !self.writable() {
            return Err(Errno::EINVAL);
        }
        self.ops().truncate(self, len)
    }

    /// fallocate(2). `EINVAL` for negative numbers or no length, `EOPNOTSUPP` for a mode that is not supported,
    /// `ESPIPE` and `ENODEV` for what is no regular file.
    pub fn allocate(&self, mode: u32, off: i64, len: i64) -> Result<()> {
        let (Ok(off), Ok(len @ 1..)) = (u64::try_from(off), u64::try_from(len)) else { return Err(Errno::EINVAL) };
        if !self.writable() {
            return Err(Errno::EBADF);
        }
        if self.as_pipe().is_some() {
            return Err(Errno::ESPIPE);
        }
        self.ops().allocate(self, mode, off, len)
    }

    /// Where to wait for a change of readiness; `None` if it never changes.
    #[inline]
    pub fn wait_queue(&self) -> Option<&WaitQueue> {
        self.ops().wait_queue(self)
    }

    /// True while open(2) without `O_NONBLOCK` has to wait on [`File::wait_queue`] before it returns this file.
    pub fn open_waits(&self) -> bool {
        self.ops().open_waits(self)
    }

    /// The pipe behind this file.
    pub fn as_pipe(&self) -> Option<&crate::pipe::Pipe> {
        self.ops().as_pipe()
    }

    /// The terminal behind this file.
    pub fn as_tty(&self) -> Option<&crate::tty::Tty> {
        self.ops().as_tty()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.ops().close(self);
        self.inode.release_flock(self.lock_owner());
    }
}

impl File {
    /// Names this description as the owner of flock(2) and open-file-description locks.
    pub fn lock_owner(&self) -> u64 {
        core::ptr::from_ref(self).addr() as u64
    }
}
