//! Directory entries: a name in a place, and the file it names.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use hal::sync::SpinLock;
use uapi::{Errno, Result};

use crate::vfs::{Inode, Mount};

struct Place {
    parent: Option<Arc<Dentry>>,
    name: Arc<[u8]>,
}

/// A name of a file. A directory has one, a file one per hard link; an entry outlives its removal as long as somebody
/// has it open, works in it, or is below it.
pub struct Dentry {
    inode: Arc<Inode>,
    /// How many mounts lie on it.
    mounts: AtomicU32,
    unlinked: AtomicBool,
    place: SpinLock<Place>,
}

impl Dentry {
    /// A root: an entry without a parent.
    pub(crate) fn root(inode: Arc<Inode>) -> Arc<Self> {
        Self::make(None, Arc::from(&b"/"[..]), inode)
    }

    /// An entry in `parent`, not yet in its table.
    pub(crate) fn child(parent: &Arc<Dentry>, name: Arc<[u8]>, inode: Arc<Inode>) -> Arc<Self> {
        Self::make(Some(parent.clone()), name, inode)
    }

    fn make(parent: Option<Arc<Dentry>>, name: Arc<[u8]>, inode: Arc<Inode>) -> Arc<Self> {
        Arc::new(Self {
            inode,
            mounts: AtomicU32::new(0),
            unlinked: AtomicBool::new(false),
            place: SpinLock::new(Place { parent, name }),
        })
    }

    /// The file.
    #[inline]
    pub fn inode(&self) -> &Arc<Inode> {
        &self.inode
    }

    /// The directory it is in; `None` for a root.
    pub fn parent(&self) -> Option<Arc<Dentry>> {
        self.place.lock().parent.clone()
    }

    /// Its name.
    pub fn name(&self) -> Arc<[u8]> {
        self.place.lock().name.clone()
    }

    pub(crate) fn set_place(&self, parent: Arc<Dentry>, name: Arc<[u8]>) {
        let old = core::mem::replace(&mut *self.place.lock(), Place { parent: Some(parent), name });
        drop(old);
    }

    /// True when something is mounted on it.
    #[inline]
    pub fn is_mountpoint(&self) -> bool {
        self.mounts.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn mounted(&self) {
        self.mounts.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn unmounted(&self) {
        self.mounts.fetch_sub(1, Ordering::Relaxed);
    }

    /// True once the name is gone.
    pub fn is_unlinked(&self) -> bool {
        self.unlinked.load(Ordering::Relaxed)
    }

    pub(crate) fn set_unlinked(&self, gone: bool) {
        self.unlinked.store(gone, Ordering::Relaxed);
    }

    /// True when `self` is `other` or lies below it.
    pub(crate) fn is_within(self: &Arc<Self>, other: &Arc<Dentry>) -> bool {
        let mut at = self.clone();
        loop {
            if Arc::ptr_eq(&at, other) {
                return true;
            }
            match at.parent() {
                Some(parent) => at = parent,
                None => return false,
            }
        }
    }
}

impl Drop for Dentry {
    /// The last reference to a chain of removed directories takes the chain apart in a loop: recursion could be as deep
    /// as a program likes.
    fn drop(&mut self) {
        let mut parent = self.place.get_mut().parent.take();
        while let Some(mut dentry) = parent.and_then(Arc::into_inner) {
            parent = dentry.place.get_mut().parent.take();
        }
    }
}

/// A place in the name space: an entry as seen through a mount.
#[derive(Clone)]
pub struct Path {
    /// The mount.
    pub mount: Arc<Mount>,
    /// The entry in its file system.
    pub dentry: Arc<Dentry>,
}

impl Path {
    /// The file.
    #[inline]
    pub fn inode(&self) -> &Arc<Inode> {
        &self.dentry.inode
    }

    /// The same place?
    pub fn same(&self, other: &Path) -> bool {
        Arc::ptr_eq(&self.dentry, &other.dentry) && Arc::ptr_eq(&self.mount, &other.mount)
    }

    /// The place one step up, through mounts, not above `root`.
    pub(crate) fn up(&self, root: &Path) -> Path {
        let mut at = self.clone();
        loop {
            if at.same(root) {
                return at;
            }
            if !Arc::ptr_eq(&at.dentry, at.mount.root()) {
                if let Some(parent) = at.dentry.parent() {
                    let up = Path { mount: at.mount, dentry: parent };
                    return up.topmost();
                }
                return at;
            }
            match at.mount.mountpoint() {
                Some(below) => at = below,
                None => return at,
            }
        }
    }

    /// The absolute path name as seen from `root`, and whether it is reachable from there.
    pub fn absolute(&self, root: &Path) -> Result<(Vec<u8>, bool)> {
        let mut names: Vec<Arc<[u8]>> = Vec::new();
        let mut at = self.clone();
        let reachable = loop {
            if at.same(root) {
                break true;
            }
            if Arc::ptr_eq(&at.dentry, at.mount.root()) {
                match at.mount.mountpoint() {
                    Some(below) => at = below,
                    None => break false,
                }
                continue;
            }
            names.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
            names.push(at.dentry.name());
            match at.dentry.parent() {
                Some(parent) => at.dentry = parent,
                None => break false,
            }
        };
        let len = names.iter().map(|name| name.len() + 1).sum::<usize>().max(1);
        let mut text = Vec::new();
        text.try_reserve_exact(len).map_err(|_| Errno::ENOMEM)?;
        for name in names.iter().rev() {
            text.push(b'/');
            text.extend_from_slice(name);
        }
        if text.is_empty() {
            text.push(b'/');
        }
        Ok((text, reachable))
    }

    /// The path name from the root of its file system, as mountinfo shows what a bind mount shows.
    pub(crate) fn within_fs(&self) -> Vec<u8> {
        let mut names: Vec<Arc<[u8]>> = Vec::new();
        let mut at = self.dentry.clone();
        while let Some(parent) = at.parent() {
            names.push(at.name());
            at = parent;
        }
        let mut text = Vec::new();
        for name in names.iter().rev() {
            text.push(b'/');
            text.extend_from_slice(name);
        }
        if text.is_empty() { b"/".to_vec() } else { text }
    }

    /// As [`Path::absolute`] with Linux's mark for a removed file, as `/proc/PID/fd` shows it.
    pub fn display(&self, root: &Path) -> Result<Vec<u8>> {
        let (mut text, _) = self.absolute(root)?;
        if self.dentry.is_unlinked() {
            text.extend_from_slice(b" (deleted)");
        }
        Ok(text)
    }
}
