//! Inodes: inode(7).

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use hal::sync::SpinLock;
use uapi::fs::{S_IFDIR, S_IFLNK, S_IFMT, S_IFREG};
use uapi::{Result, Timespec};

use crate::clock::now;
use crate::cred::Credentials;
use crate::file::{File, Ops};
use crate::lock::{LockSlot, Locks};
use crate::pipe::Pipe;
use crate::tmpfs::{Regular, Usage};
use crate::vfs::{Directory, Path};

/// The time stamps of a file.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Last access.
    pub atime: Timespec,
    /// Last modification of the content.
    pub mtime: Timespec,
    /// Last change of the inode.
    pub ctime: Timespec,
    /// Creation.
    pub btime: Timespec,
}

/// A file that makes its operations when it is opened: text in `/proc` and `/sys`.
pub trait OpenNode: Send + Sync {
    /// The operations for a new open file description with these flags of open(2).
    fn open(&self, flags: u32) -> Result<Ops>;

    /// The size that stat(2) shows, in bytes.
    fn size(&self) -> u64 {
        0
    }

    /// The whole content, if it never changes.
    fn constant(&self) -> Option<&'static [u8]> {
        None
    }
}

/// A symbolic link whose text is made when it is read, or that leads to a file without going through a text:
/// `/proc/self`, `/proc/PID/exe`.
pub trait MagicLink: Send + Sync {
    /// What readlink(2) shows.
    fn text(&self) -> Result<Vec<u8>>;

    /// Where a walk goes; `None`: it follows the text.
    fn target(&self) -> Result<Option<Path>> {
        Ok(None)
    }

    /// For a link to an open file that has no path, as a pipe in `/proc/self/fd`: the file.
    fn file(&self) -> Option<Arc<File>> {
        None
    }
}

/// What an inode is.
pub enum Node {
    /// A directory.
    Dir(Directory),
    /// A regular file with pages.
    Regular(Regular),
    /// A symbolic link.
    Symlink(Box<[u8]>),
    /// A made-up symbolic link.
    Magic(Box<dyn MagicLink>),
    /// A regular file whose content is made when it is opened.
    Text(Box<dyn OpenNode>),
    /// A character or block device; the number is the inode's `rdev`.
    Device,
    /// A named pipe, or the one behind pipe(2).
    Fifo(Arc<Pipe>),
    /// A socket's name.
    Socket,
}

/// A file, whatever its names. Fields that change are atomic; a change of several is made under the tree lock.
pub struct Inode {
    /// Number, unique in its file system.
    pub ino: u64,
    /// Device number of its file system (`st_dev`).
    pub dev: u64,
    /// Device that a device node stands for (`st_rdev`).
    pub rdev: u64,
    mode: AtomicU32,
    uid: AtomicU32,
    gid: AtomicU32,
    nlink: AtomicU32,
    /// Content or inode changed since the last access: then a read has to write the access time (relatime, mount(8)).
    atime_due: AtomicBool,
    times: SpinLock<Times>,
    locks: SpinLock<LockSlot>,
    has_locks: AtomicBool,
    usage: Option<Arc<Usage>>,
    /// The content.
    pub node: Node,
}

/// What a new inode is made of.
pub(crate) struct NewInode {
    pub ino: u64,
    pub dev: u64,
    pub rdev: u64,
    /// Type and permissions.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub time: Timespec,
    pub node: Node,
    /// The accounts it is counted in.
    pub usage: Option<Arc<Usage>>,
}

impl NewInode {
    pub fn build(self) -> Arc<Inode> {
        let t = self.time;
        if let Some(usage) = &self.usage {
            usage.add_inode();
        }
        Arc::new(Inode {
            ino: self.ino,
            dev: self.dev,
            rdev: self.rdev,
            mode: AtomicU32::new(self.mode),
            uid: AtomicU32::new(self.uid),
            gid: AtomicU32::new(self.gid),
            nlink: AtomicU32::new(if self.mode & S_IFMT == S_IFDIR { 2 } else { 1 }),
            atime_due: AtomicBool::new(true),
            times: SpinLock::new(Times { atime: t, mtime: t, ctime: t, btime: t }),
            locks: SpinLock::new(None),
            has_locks: AtomicBool::new(false),
            usage: self.usage,
            node: self.node,
        })
    }
}

impl Drop for Inode {
    fn drop(&mut self) {
        if let Some(usage) = &self.usage {
            usage.remove_inode();
            if let Node::Regular(file) = &self.node {
                file.uncharge(usage);
            }
        }
    }
}

impl Inode {
    /// Type and permission bits.
    #[inline]
    pub fn mode(&self) -> u32 {
        self.mode.load(Ordering::Relaxed)
    }

    /// The type, as bits of `S_IFMT`.
    #[inline]
    pub fn file_type(&self) -> u32 {
        self.mode() & S_IFMT
    }

    /// Owner.
    #[inline]
    pub fn uid(&self) -> u32 {
        self.uid.load(Ordering::Relaxed)
    }

    /// Group.
    #[inline]
    pub fn gid(&self) -> u32 {
        self.gid.load(Ordering::Relaxed)
    }

    /// Number of names (a directory: 2 and its subdirectories).
    #[inline]
    pub fn nlink(&self) -> u32 {
        self.nlink.load(Ordering::Relaxed)
    }

    /// True for a directory.
    #[inline]
    pub fn is_dir(&self) -> bool {
        matches!(self.node, Node::Dir(_))
    }

    /// True for a symbolic link, made up or not.
    #[inline]
    pub fn is_symlink(&self) -> bool {
        matches!(self.node, Node::Symlink(_) | Node::Magic(_))
    }

    /// The directory's table.
    #[inline]
    pub fn dir(&self) -> Option<&Directory> {
        match &self.node {
            Node::Dir(dir) => Some(dir),
            _ => None,
        }
    }

    /// The regular file with pages.
    #[inline]
    pub fn regular(&self) -> Option<&Regular> {
        match &self.node {
            Node::Regular(file) => Some(file),
            _ => None,
        }
    }

    /// Size in bytes as stat(2) shows it.
    pub fn size(&self) -> u64 {
        match &self.node {
            Node::Dir(dir) => dir.size(),
            Node::Regular(file) => file.size(),
            Node::Symlink(text) => text.len() as u64,
            Node::Text(text) => text.size(),
            _ => 0,
        }
    }

    /// Whether `cred` may do `want` (`R_OK`, `W_OK`, `X_OK` added up).
    #[inline]
    pub fn permits(&self, cred: &Credentials, want: u32) -> bool {
        cred.permits(self.mode(), self.uid(), self.gid(), want)
    }

    /// The time stamps.
    pub fn times(&self) -> Times {
        *self.times.lock()
    }

    /// Sets access and modification times where given, and the change time.
    pub(crate) fn set_times(&self, atime: Option<Timespec>, mtime: Option<Timespec>) {
        let mut times = self.times.lock();
        times.atime = atime.unwrap_or(times.atime);
        times.mtime = mtime.unwrap_or(times.mtime);
        times.ctime = now();
        self.atime_due.store(true, Ordering::Relaxed);
    }

    /// Dates everything back to `t`, for what comes out of an archive.
    pub(crate) fn backdate(&self, t: Timespec) {
        *self.times.lock() = Times { atime: t, mtime: t, ctime: t, btime: t };
    }

    /// Content was read.
    #[inline]
    pub fn accessed(&self) {
        if self.atime_due.load(Ordering::Relaxed) {
            self.atime_due.store(false, Ordering::Relaxed);
            self.times.lock().atime = now();
        }
    }

    /// Content was written.
    #[inline]
    pub fn modified(&self) {
        let t = now();
        let mut times = self.times.lock();
        times.mtime = t;
        times.ctime = t;
        self.atime_due.store(true, Ordering::Relaxed);
    }

    /// The inode was changed.
    pub(crate) fn changed(&self) {
        self.times.lock().ctime = now();
        self.atime_due.store(true, Ordering::Relaxed);
    }

    /// Sets the permission bits; the type stays.
    pub(crate) fn set_permissions(&self, bits: u32) {
        self.mode.store(self.file_type() | bits & 0o7777, Ordering::Relaxed);
    }

    pub(crate) fn set_owner(&self, uid: Option<u32>, gid: Option<u32>) {
        if let Some(uid) = uid {
            self.uid.store(uid, Ordering::Relaxed);
        }
        if let Some(gid) = gid {
            self.gid.store(gid, Ordering::Relaxed);
        }
    }

    /// Takes away the set-id bits, as a write or a change of owner does.
    #[inline]
    pub(crate) fn drop_setid(&self) {
        let mode = self.mode();
        if mode & 0o6000 != 0 && mode & S_IFMT == S_IFREG {
            let group = if mode & 0o010 != 0 { 0o2000 } else { 0 };
            self.set_permissions(mode & !(0o4000 | group));
        }
    }

    /// The accounts of its file system.
    #[inline]
    pub(crate) fn usage(&self) -> Option<&Usage> {
        self.usage.as_deref()
    }

    /// A file got another name.
    pub(crate) fn name_added(&self) {
        self.link_added();
        if let Some(usage) = &self.usage {
            usage.add_inode();
        }
    }

    /// A file lost a name.
    pub(crate) fn name_removed(&self) {
        self.link_removed();
        // The last one is counted until the file itself is gone.
        if let (Some(usage), true) = (&self.usage, self.nlink() != 0) {
            usage.remove_inode();
        }
    }

    /// A directory got a subdirectory.
    pub(crate) fn link_added(&self) {
        self.nlink.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn link_removed(&self) {
        // Never below zero: a directory's count goes to 0 at once.
        let _ = self.nlink.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
    }

    pub(crate) fn no_links(&self) {
        self.nlink.store(0, Ordering::Relaxed);
    }

    /// Runs `f` on the lock state, which is made if need be.
    pub(crate) fn with_locks<R>(&self, f: impl FnOnce(&mut Locks) -> R) -> R {
        let mut slot = self.locks.lock();
        self.has_locks.store(true, Ordering::Relaxed);
        f(slot.get_or_insert_default())
    }

    /// True once anyone has locked the file: then a close has to look.
    #[inline]
    pub(crate) fn has_locks(&self) -> bool {
        self.has_locks.load(Ordering::Relaxed)
    }

    /// Drops what the open file description `owner` holds.
    #[inline]
    pub(crate) fn release_flock(&self, owner: u64) {
        if self.has_locks() {
            self.with_locks(|locks| locks.release_description(owner));
        }
    }

    /// True for a link that stores its text.
    pub(crate) fn mode_of_link() -> u32 {
        S_IFLNK | 0o777
    }
}
