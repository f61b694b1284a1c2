//! What nearly every handler begins with: the caller's files, places and identity.

use alloc::sync::Arc;

use fs::{Caller, Credentials, FdTable, File, FsContext};
use hal::addr::UserAddr;
use hal::user;
use task::current;
use uapi::resource::RLIMIT_NOFILE;
use uapi::{Errno, Result};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The open file description at `fd` of the running thread. `EBADF`.
#[inline]
pub(crate) fn file(fd: i32) -> Result<Arc<File>> {
    current().files_slot().with(|files| files.ok_or(Errno::EBADF)?.get(fd))
}

/// The descriptors of the running thread.
pub(crate) fn files() -> Arc<FdTable> {
    current().files()
}

/// Gives the running thread a descriptor table of its own, if it shares one; gives the table.
pub(crate) fn unshare_files() -> Result<Arc<FdTable>> {
    let table = files();
    // One reference is the thread's, one is `table`.
    if Arc::strong_count(&table) <= 2 {
        return Ok(table);
    }
    let own = Arc::new(table.try_clone()?);
    drop(current().files_slot().replace(Some(own.clone())));
    Ok(own)
}

/// Who the running process is.
pub(crate) fn credentials() -> Arc<Credentials> {
    current().process.credentials()
}

/// `EPERM` without capability number `cap`.
pub(crate) fn need(cap: u32) -> Result<()> {
    if credentials().has(cap) { Ok(()) } else { Err(Errno::EPERM) }
}

/// First number that a new descriptor may not have: `RLIMIT_NOFILE`.
pub(crate) fn descriptor_limit() -> u64 {
    current().process.limit(RLIMIT_NOFILE)
}

/// References to what calls on paths look at, held for the length of a call.
pub(crate) struct Me {
    fs: Arc<FsContext>,
    cred: Arc<Credentials>,
    /// The descriptors.
    pub fds: Arc<FdTable>,
}

impl Me {
    /// The running thread's.
    pub fn new() -> Self {
        let me = current();
        Self { fs: me.fs(), cred: me.process.credentials(), fds: me.files() }
    }

    /// As the file system wants it.
    pub fn caller(&self) -> Caller<'_> {
        Caller { fs: &self.fs, cred: &self.cred, fds: &self.fds }
    }

    /// Installs a new file at the lowest free descriptor.
    pub fn install(&self, file: Arc<File>, cloexec: bool) -> Result<i32> {
        self.fds.install(file, cloexec, descriptor_limit())
    }
}

/// Reads a structure from user memory.
#[inline]
pub(crate) fn get<T: FromBytes + IntoBytes>(at: UserAddr) -> Result<T> {
    let mut value = T::new_zeroed();
    user::copy_in(value.as_mut_bytes(), at)?;
    Ok(value)
}

/// Reads a structure from user memory unless the pointer is null.
#[inline]
pub(crate) fn get_opt<T: FromBytes + IntoBytes>(at: UserAddr) -> Result<Option<T>> {
    if at.is_null() { Ok(None) } else { get(at).map(Some) }
}

/// Writes a structure to user memory.
#[inline]
pub(crate) fn put<T: IntoBytes + Immutable + ?Sized>(at: UserAddr, value: &T) -> Result<()> {
    user::copy_out(at, value.as_bytes())
}

/// Writes a structure to user memory unless the pointer is null.
#[inline]
pub(crate) fn put_opt<T: IntoBytes + Immutable + ?Sized>(at: UserAddr, value: &T) -> Result<()> {
    if at.is_null() { Ok(()) } else { put(at, value) }
}

/// For structures that grow with versions: `E2BIG` unless bytes `known..size` at `at` are zero or `size` is too large.
pub(crate) fn rest_is_zero(at: UserAddr, known: usize, size: usize) -> Result<()> {
    if size > hal::addr::PAGE_SIZE {
        return Err(Errno::E2BIG);
    }
    for offset in (known..size).step_by(8) {
        let mut rest = [0; 8];
        let rest = rest.get_mut(..(size - offset).min(8)).unwrap_or_default();
        user::copy_in(rest, at.add(offset))?;
        if rest.iter().any(|&b| b != 0) {
            return Err(Errno::E2BIG);
        }
    }
    Ok(())
}
