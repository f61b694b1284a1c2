//! Mounted file systems, and the kinds there are.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hal::sync::{Once, SpinLock};
use uapi::{Errno, Result};

use crate::clock::now;
use crate::tmpfs::Usage;
use crate::vfs::inode::NewInode;
use crate::vfs::{Dentry, DirOps, Directory, Inode, Node};

/// A kind of file system, as mount(2) names it.
pub struct FsType {
    /// The name for mount(2) and `/proc/filesystems`.
    pub name: &'static str,
    /// `f_type` of statfs(2).
    pub magic: i64,
    /// `None`: files can be made and removed. Else the error for making (open with `O_CREAT`; the rest gives `EPERM`
    /// or, if this is `ENOENT`, the same).
    pub fixed: Option<Errno>,
    /// Gives the file system to mount, with the data string of mount(2).
    pub open: fn(&'static FsType, &[u8]) -> Result<Arc<SuperBlock>>,
}

/// One file system. Its tree is taken apart when the last mount and the last open file of it are gone.
pub struct SuperBlock {
    /// The kind.
    pub fs: &'static FsType,
    /// Device number (`st_dev`).
    pub dev: u64,
    next_ino: AtomicU64,
    root: Once<Arc<Dentry>>,
    /// Limits, of a tmpfs.
    usage: Option<Arc<Usage>>,
}

impl SuperBlock {
    /// A file system with an empty root directory of `mode` and owner.
    pub fn new(fs: &'static FsType, mode: u32, uid: u32, gid: u32) -> Arc<Self> {
        let root = if fs.fixed.is_none() { Directory::sized() } else { Directory::default() };
        Self::build(fs, mode, (uid, gid), root, None)
    }

    /// A tmpfs with limits.
    pub(crate) fn limited(fs: &'static FsType, mode: u32, uid: u32, gid: u32, usage: Usage) -> Arc<Self> {
        Self::build(fs, mode, (uid, gid), Directory::sized(), Some(Arc::new(usage)))
    }

    /// A file system of root's with entries in its root that come and go by themselves.
    pub(crate) fn with_ops(fs: &'static FsType, mode: u32, ops: &'static dyn DirOps) -> Arc<Self> {
        Self::build(fs, mode, (0, 0), Directory::with_ops(ops), None)
    }

    fn build(
        fs: &'static FsType,
        mode: u32,
        (uid, gid): (u32, u32),
        root: Directory,
        usage: Option<Arc<Usage>>,
    ) -> Arc<Self> {
        /// Minor numbers of unnamed devices (major 0).
        static NEXT_DEV: AtomicU32 = AtomicU32::new(1);
        let dev = u64::from(NEXT_DEV.fetch_add(1, Ordering::Relaxed));
        let sb =
            Self { fs, dev: uapi::fs::makedev(0, dev as u32), next_ino: AtomicU64::new(1), root: Once::new(), usage };
        let root = sb.inode(uapi::fs::S_IFDIR | mode, uid, gid, 0, Node::Dir(root));
        let _ = sb.root.set(Dentry::root(root));
        Arc::new(sb)
    }

    /// The root directory.
    pub fn root(&self) -> Result<Arc<Dentry>> {
        self.root.get().cloned().ok_or(Errno::ENODEV)
    }

    /// A new inode with the next number.
    pub fn inode(&self, mode: u32, uid: u32, gid: u32, rdev: u64, node: Node) -> Arc<Inode> {
        let ino = self.next_ino.fetch_add(1, Ordering::Relaxed);
        self.inode_numbered(ino, mode, uid, gid, rdev, node)
    }

    /// A new inode with a number that the file system computes.
    pub fn inode_numbered(&self, ino: u64, mode: u32, uid: u32, gid: u32, rdev: u64, node: Node) -> Arc<Inode> {
        let usage = self.usage.clone();
        NewInode { ino, dev: self.dev, rdev, mode, uid, gid, time: now(), node, usage }.build()
    }

    /// The limits, if it has any.
    pub(crate) fn usage(&self) -> Option<&Usage> {
        self.usage.as_deref()
    }
}

impl Drop for SuperBlock {
    /// Entries hold their parents and tables their entries: empties the tables, without recursion and without memory.
    fn drop(&mut self) {
        let Some(mut at) = self.root.get().cloned() else { return };
        loop {
            match at.inode().dir().and_then(Directory::pop) {
                Some(child) if child.inode().dir().is_some_and(|dir| !dir.is_empty()) => at = child,
                Some(_) => {}
                None => match at.parent() {
                    Some(parent) => at = parent,
                    None => return,
                },
            }
        }
    }
}

static TYPES: SpinLock<Vec<&'static FsType>> = SpinLock::new(Vec::new());

/// Makes a kind of file system known to mount(2).
pub fn register_fs(fs: &'static FsType) {
    let mut types = TYPES.lock();
    if !types.iter().any(|known| known.name == fs.name) {
        types.push(fs);
    }
}

/// The kinds known, in the order of registration.
pub fn registered_fs() -> Vec<&'static FsType> {
    TYPES.lock().clone()
}

/// The kind called `name`; `ENODEV`.
pub(crate) fn find_fs(name: &[u8]) -> Result<&'static FsType> {
    TYPES.lock().iter().find(|fs| fs.name.as_bytes() == name).copied().ok_or(Errno::ENODEV)
}

/// An inode that no directory shows: behind a pipe, an event descriptor, a socket. `mode` has its type.
pub fn anon_inode(mode: u32, uid: u32, gid: u32, node: Node) -> Arc<Inode> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    /// The device number of pipefs and its kind.
    const ANON_DEV: u64 = 0xfffff;
    let ino = NEXT.fetch_add(1, Ordering::Relaxed);
    let dev = uapi::fs::makedev(0, ANON_DEV as u32);
    NewInode { ino, dev, rdev: 0, mode, uid, gid, time: now(), node, usage: None }.build()
}
