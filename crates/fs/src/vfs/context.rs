//! Who makes a call, and where it starts.

use core::sync::atomic::{AtomicU32, Ordering};

use hal::sync::SpinLock;
use uapi::{Errno, Result};

use crate::cred::Credentials;
use crate::fdtable::FdTable;
use crate::file::File;
use crate::vfs::Path;
use alloc::sync::Arc;

struct Places {
    root: Path,
    cwd: Path,
}

/// A process's root and working directories and file mode mask; threads share it (`CLONE_FS`).
pub struct FsContext {
    places: SpinLock<Places>,
    umask: AtomicU32,
}

impl FsContext {
    /// The first process's: everything at `root`, mask 022.
    pub fn new(root: Path) -> Self {
        Self { places: SpinLock::new(Places { cwd: root.clone(), root }), umask: AtomicU32::new(0o022) }
    }

    /// A copy, for fork and `unshare(CLONE_FS)`.
    pub fn copy(&self) -> Self {
        let places = self.places.lock();
        let copy = Places { root: places.root.clone(), cwd: places.cwd.clone() };
        Self { places: SpinLock::new(copy), umask: AtomicU32::new(self.umask()) }
    }

    /// The root directory.
    pub fn root(&self) -> Path {
        self.places.lock().root.clone()
    }

    /// The working directory.
    pub fn cwd(&self) -> Path {
        self.places.lock().cwd.clone()
    }

    /// The file mode mask.
    #[inline]
    pub fn umask(&self) -> u32 {
        self.umask.load(Ordering::Relaxed)
    }

    /// umask(2): sets the mask and gives the old one.
    pub fn set_umask(&self, mask: u32) -> u32 {
        self.umask.swap(mask & 0o777, Ordering::Relaxed)
    }

    pub(crate) fn set_cwd(&self, cwd: Path) {
        let old = core::mem::replace(&mut self.places.lock().cwd, cwd);
        drop(old);
    }

    pub(crate) fn set_root(&self, root: Path) {
        let old = core::mem::replace(&mut self.places.lock().root, root);
        drop(old);
    }
}

/// The process on whose behalf a call on paths runs.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// Where paths start, and the mask.
    pub fs: &'a FsContext,
    /// What is permitted.
    pub cred: &'a Credentials,
    /// What `dirfd` arguments mean.
    pub fds: &'a FdTable,
}

impl Caller<'_> {
    /// The directory (or with `AT_EMPTY_PATH` the file) that `dirfd` names. `EBADF`.
    pub(crate) fn file(&self, dirfd: i32) -> Result<Arc<File>> {
        self.fds.get(dirfd)
    }

    /// The place that `dirfd` names, `AT_FDCWD` included. `EBADF`; `ENOTDIR` for what has no place.
    pub(crate) fn base(&self, dirfd: i32) -> Result<Path> {
        if dirfd == uapi::open::AT_FDCWD {
            return Ok(self.fs.cwd());
        }
        self.file(dirfd)?.path().cloned().ok_or(Errno::ENOTDIR)
    }
}
