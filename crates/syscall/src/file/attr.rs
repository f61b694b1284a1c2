//! What files say of themselves, and changing it: stat(2), chmod(2), chown(2), utimensat(2), truncate(2), statfs(2),
//! and the calls that would make it lasting if there were a disk.

use fs::user_path::with_user_path;
use fs::vfs;
use hal::addr::UserAddr;
use uapi::fs::S_IFIFO;
use uapi::open::*;
use uapi::time::UTIME_OMIT;
use uapi::{Errno, Result, Timespec};

use crate::caller::{Me, file, get_opt, put};
use crate::table::calls;

calls! {
    fast {
        FSTAT = fstat;
        NEWFSTATAT = newfstatat;
        STATX = statx;
        FACCESSAT = faccessat;
        FACCESSAT2 = faccessat2;
        FCHMOD = fchmod;
        FCHMODAT = fchmodat;
        FCHMODAT2 = fchmodat2;
        FCHOWN = fchown;
        FCHOWNAT = fchownat;
        UTIMENSAT = utimensat;
        TRUNCATE = truncate;
        FTRUNCATE = ftruncate;
        STATFS = statfs;
        FSTATFS = fstatfs;
        SYNC = sync;
        FSYNC = fsync;
        FDATASYNC = fsync;
        SYNCFS = syncfs;
        SYNC_FILE_RANGE = sync_file_range;
        FADVISE64 = fadvise64, lacks "advice is checked and not followed";
        READAHEAD = readahead;
    }
}

/// A path; with `AT_EMPTY_PATH` and a descriptor a null pointer stands for an empty one.
fn with_path_or_empty<R>(dirfd: i32, path: UserAddr, flags: u32, f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
    if path.is_null() && flags == AT_EMPTY_PATH && dirfd >= 0 { f(b"") } else { with_user_path(path, f) }
}

fn fstat(fd: i32, out: UserAddr) -> Result<()> {
    put(out, &vfs::fstat(&*file(fd)?))
}

fn newfstatat(dirfd: i32, path: UserAddr, out: UserAddr, flags: u32) -> Result<()> {
    if flags & !(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT) != 0 {
        return Err(Errno::EINVAL);
    }
    let stat = with_path_or_empty(dirfd, path, flags, |path| {
        if path.is_empty() && flags & AT_EMPTY_PATH != 0 && dirfd != AT_FDCWD {
            return Ok(vfs::fstat(&*file(dirfd)?));
        }
        vfs::stat(&Me::new().caller(), dirfd, path, flags)
    })?;
    put(out, &stat)
}

fn statx(dirfd: i32, path: UserAddr, flags: u32, mask: u32, out: UserAddr) -> Result<()> {
    let statx =
        with_path_or_empty(dirfd, path, flags, |path| vfs::statx(&Me::new().caller(), dirfd, path, flags, mask))?;
    put(out, &statx)
}

fn faccessat(dirfd: i32, path: UserAddr, mode: u32) -> Result<()> {
    faccessat2(dirfd, path, mode, 0)
}

fn faccessat2(dirfd: i32, path: UserAddr, mode: u32, flags: u32) -> Result<()> {
    if mode & !7 != 0 {
        return Err(Errno::EINVAL);
    }
    with_user_path(path, |path| vfs::access(&Me::new().caller(), dirfd, path, mode, flags))
}

fn fchmod(fd: i32, mode: u32) -> Result<()> {
    let file = file(fd)?;
    vfs::fchmod(&Me::new().caller(), &file, mode)
}

fn fchmodat(dirfd: i32, path: UserAddr, mode: u32) -> Result<()> {
    fchmodat2(dirfd, path, mode, 0)
}

fn fchmodat2(dirfd: i32, path: UserAddr, mode: u32, flags: u32) -> Result<()> {
    if flags & !(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL);
    }
    with_user_path(path, |path| vfs::chmod(&Me::new().caller(), dirfd, path, mode, flags))
}

fn fchown(fd: i32, uid: u32, gid: u32) -> Result<()> {
    let file = file(fd)?;
    vfs::fchown(&Me::new().caller(), &file, uid, gid)
}

fn fchownat(dirfd: i32, path: UserAddr, uid: u32, gid: u32, flags: u32) -> Result<()> {
    if flags & !(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL);
    }
    with_user_path(path, |path| vfs::chown(&Me::new().caller(), dirfd, path, uid, gid, flags))
}

/// utimensat(2): without a path the times of `dirfd` itself are set.
fn utimensat(dirfd: i32, path: UserAddr, times: UserAddr, flags: u32) -> Result<()> {
    let times: Option<[Timespec; 2]> = get_opt(times)?;
    // Nothing to do: the path is not looked at, either.
    if times.is_some_and(|times| times.iter().all(|time| time.tv_nsec == UTIME_OMIT)) {
        return Ok(());
    }
    if flags & !(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL);
    }
    let me = Me::new();
    if path.is_null() && dirfd != AT_FDCWD {
        if flags != 0 {
            return Err(Errno::EINVAL);
        }
        return vfs::futimens(&me.caller(), &*file(dirfd)?, times);
    }
    with_user_path(path, |path| vfs::utimens(&me.caller(), dirfd, path, times, flags))
}

fn truncate(path: UserAddr, len: i64) -> Result<()> {
    if len < 0 {
        return Err(Errno::EINVAL);
    }
    with_user_path(path, |path| vfs::truncate(&Me::new().caller(), path, len))
}

fn ftruncate(fd: i32, len: i64) -> Result<()> {
    if len < 0 {
        return Err(Errno::EINVAL);
    }
    file(fd)?.truncate(len)
}

fn statfs(path: UserAddr, out: UserAddr) -> Result<()> {
    let statfs = with_user_path(path, |path| vfs::statfs(&Me::new().caller(), path))?;
    put(out, &statfs)
}

fn fstatfs(fd: i32, out: UserAddr) -> Result<()> {
    put(out, &vfs::fstatfs(&*file(fd)?)?)
}

/// Nothing is kept anywhere else than in memory.
fn sync() {}

fn fsync(fd: i32) -> Result<()> {
    let file = file(fd)?;
    let kind = file.inode().file_type();
    match kind {
        _ if file.is_path_only() => Err(Errno::EBADF),
        uapi::fs::S_IFREG | uapi::fs::S_IFDIR | uapi::fs::S_IFBLK => Ok(()),
        _ => Err(Errno::EINVAL),
    }
}

fn syncfs(fd: i32) -> Result<()> {
    if file(fd)?.is_path_only() { Err(Errno::EBADF) } else { Ok(()) }
}

fn sync_file_range(fd: i32, offset: i64, bytes: i64, flags: u32) -> Result<()> {
    let file = file(fd)?;
    if flags & !7 != 0 || offset < 0 || bytes < 0 || offset.checked_add(bytes).is_none() {
        return Err(Errno::EINVAL);
    }
    if file.inode().file_type() == S_IFIFO { Err(Errno::ESPIPE) } else { Ok(()) }
}

fn fadvise64(fd: i32, _offset: i64, len: i64, advice: u32) -> Result<()> {
    let file = file(fd)?;
    if file.is_path_only() {
        return Err(Errno::EBADF);
    }
    if file.inode().file_type() == S_IFIFO {
        return Err(Errno::ESPIPE);
    }
    if len < 0 || advice > POSIX_FADV_NOREUSE { Err(Errno::EINVAL) } else { Ok(()) }
}

/// readahead(2): everything is in memory already.
fn readahead(fd: i32, _offset: i64, _count: usize) -> Result<()> {
    let file = file(fd)?;
    if !file.readable() {
        return Err(Errno::EBADF);
    }
    if matches!(file.inode().file_type(), uapi::fs::S_IFREG | uapi::fs::S_IFBLK) { Ok(()) } else { Err(Errno::EINVAL) }
}
