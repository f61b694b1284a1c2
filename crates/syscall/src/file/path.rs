//! Calls on paths: making, naming, removing and finding files, and where a process stands among them.

use fs::user_path::{with_user_path, with_user_paths};
use fs::vfs;
use hal::addr::UserAddr;
use hal::user;
use task::{Sleep, current, wait_on};
use uapi::fs::{PATH_MAX, S_IFMT, S_IFREG};
use uapi::open::*;
use uapi::{Errno, OpenHow, Result};

use crate::caller::{Me, get};
use crate::table::calls;

calls! {
    fast {
        OPENAT = openat;
        OPENAT2 = openat2;
        MKDIRAT = mkdirat;
        MKNODAT = mknodat;
        UNLINKAT = unlinkat;
        SYMLINKAT = symlinkat;
        LINKAT = linkat;
        RENAMEAT2 = renameat2, lacks "RENAME_WHITEOUT";
        READLINKAT = readlinkat;
        CHDIR = chdir;
        FCHDIR = fchdir;
        CHROOT = chroot;
        GETCWD = getcwd;
        UMASK = umask;
        MOUNT = mount, lacks "shared and slave mounts";
        UMOUNT2 = umount2;
    }
}

/// Flags that openat2(2) knows; openat(2) ignores others.
const OPEN_FLAGS: u32 = O_ACCMODE
    | O_CREAT
    | O_EXCL
    | O_NOCTTY
    | O_TRUNC
    | O_APPEND
    | O_NONBLOCK
    | O_SYNC
    | O_ASYNC
    | O_DIRECT
    | O_LARGEFILE
    | O_DIRECTORY
    | O_NOFOLLOW
    | O_NOATIME
    | O_CLOEXEC
    | O_PATH
    | O_TMPFILE;
/// The bit of `O_TMPFILE` that is its own.
const TMPFILE: u32 = O_TMPFILE & !O_DIRECTORY;
const RESOLVE_FLAGS: u64 =
    RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH | RESOLVE_IN_ROOT | RESOLVE_CACHED;

fn open(dirfd: i32, path: UserAddr, flags: u32, mode: u32, resolve: u64) -> Result<i32> {
    let me = Me::new();
    let file = with_user_path(path, |path| vfs::open_with(&me.caller(), dirfd, path, flags, mode, resolve))?;
    if flags & O_NONBLOCK == 0 && file.open_waits() {
        let queue = file.wait_queue().ok_or(Errno::ENXIO)?;
        wait_on(queue, Sleep::Interruptible, None, || (!file.open_waits()).then_some(()))?;
    }
    me.install(file, flags & O_CLOEXEC != 0)
}

fn openat(dirfd: i32, path: UserAddr, flags: u32, mode: u32) -> Result<i32> {
    open(dirfd, path, flags & OPEN_FLAGS | O_LARGEFILE, mode & 0o7777, 0)
}

/// openat2(2): `E2BIG` when the structure is longer than known and the rest is not zero.
fn openat2(dirfd: i32, path: UserAddr, how: UserAddr, size: usize) -> Result<i32> {
    let known = size_of::<OpenHow>();
    if size < known {
        return Err(Errno::EINVAL);
    }
    crate::caller::rest_is_zero(how, known, size)?;
    let how: OpenHow = get(how)?;
    let flags = u32::try_from(how.flags).map_err(|_| Errno::EINVAL)?;
    let creates = flags & (O_CREAT | TMPFILE) != 0;
    let scoped = how.resolve & (RESOLVE_BENEATH | RESOLVE_IN_ROOT) == RESOLVE_BENEATH | RESOLVE_IN_ROOT;
    let bad_path = flags & O_PATH != 0 && flags & !(O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) != 0;
    let unknown = flags & !OPEN_FLAGS != 0 || how.resolve & !RESOLVE_FLAGS != 0 || how.mode & !0o7777 != 0;
    if unknown || how.mode != 0 && !creates || scoped || bad_path {
        return Err(Errno::EINVAL);
    }
    if how.resolve & RESOLVE_CACHED != 0 && flags & (O_TRUNC | O_CREAT | TMPFILE) != 0 {
        return Err(Errno::EAGAIN);
    }
    // Every entry is in memory: RESOLVE_CACHED holds always.
    open(dirfd, path, flags | O_LARGEFILE, how.mode as u32, how.resolve & !RESOLVE_CACHED)
}

fn mkdirat(dirfd: i32, path: UserAddr, mode: u32) -> Result<()> {
    with_user_path(path, |path| vfs::mkdir(&Me::new().caller(), dirfd, path, mode))
}

fn mknodat(dirfd: i32, path: UserAddr, mode: u32, dev: u32) -> Result<()> {
    let mode = if mode & S_IFMT == 0 { mode | S_IFREG } else { mode };
    with_user_path(path, |path| vfs::mknod(&Me::new().caller(), dirfd, path, mode, u64::from(dev)))
}

fn unlinkat(dirfd: i32, path: UserAddr, flags: u32) -> Result<()> {
    if flags & !AT_REMOVEDIR != 0 {
        return Err(Errno::EINVAL);
    }
    with_user_path(path, |path| {
        let me = Me::new();
        if flags == 0 { vfs::unlink(&me.caller(), dirfd, path) } else { vfs::rmdir(&me.caller(), dirfd, path) }
    })
}

fn symlinkat(target: UserAddr, dirfd: i32, path: UserAddr) -> Result<()> {
    with_user_paths(target, path, |target, path| vfs::symlink(&Me::new().caller(), target, dirfd, path))
}

fn linkat(olddir: i32, old: UserAddr, newdir: i32, new: UserAddr, flags: u32) -> Result<()> {
    if flags & !(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL);
    }
    with_user_paths(old, new, |old, new| vfs::link(&Me::new().caller(), olddir, old, newdir, new, flags))
}

fn renameat2(olddir: i32, old: UserAddr, newdir: i32, new: UserAddr, flags: u32) -> Result<()> {
    with_user_paths(old, new, |old, new| vfs::rename(&Me::new().caller(), olddir, old, newdir, new, flags))
}

fn readlinkat(dirfd: i32, path: UserAddr, buf: UserAddr, size: i32) -> Result<usize> {
    let size = usize::try_from(size).ok().filter(|&size| size != 0).ok_or(Errno::EINVAL)?;
    let text = with_user_path(path, |path| vfs::readlink(&Me::new().caller(), dirfd, path))?;
    let text = text.get(..text.len().min(size)).unwrap_or_default();
    user::copy_out(buf, text)?;
    Ok(text.len())
}

fn chdir(path: UserAddr) -> Result<()> {
    with_user_path(path, |path| vfs::chdir(&Me::new().caller(), path))
}

fn fchdir(fd: i32) -> Result<()> {
    vfs::fchdir(&Me::new().caller(), fd)
}

fn chroot(path: UserAddr) -> Result<()> {
    with_user_path(path, |path| vfs::chroot(&Me::new().caller(), path))
}

fn getcwd(buf: UserAddr, size: usize) -> Result<usize> {
    let mut text = vfs::getcwd(&Me::new().caller())?;
    text.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
    text.push(0);
    if text.len() > PATH_MAX {
        return Err(Errno::ENAMETOOLONG);
    }
    if text.len() > size {
        return Err(Errno::ERANGE);
    }
    user::copy_out(buf, &text)?;
    Ok(text.len())
}

fn umask(mask: u32) -> u32 {
    current().fs().set_umask(mask)
}

/// A string that may be missing.
fn with_optional<R>(at: UserAddr, f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
    if at.is_null() { f(b"") } else { with_user_path(at, f) }
}

fn mount(source: UserAddr, target: UserAddr, kind: UserAddr, flags: u64, data: UserAddr) -> Result<()> {
    // A magic number that old programs put into the upper half means nothing (mount(2), MS_MGC_VAL).
    let flags = if flags & 0xffff_0000 == 0xc0ed_0000 { flags & 0xffff } else { flags };
    let no_kind = kind.is_null();
    with_optional(kind, |kind| {
        with_optional(source, |source| {
            with_user_path(target, |target| {
                let mounted =
                    with_optional(data, |data| vfs::mount(&Me::new().caller(), source, target, kind, flags, data));
                // No kind at all is not an unknown one.
                mounted.map_err(|error| if error == Errno::ENODEV && no_kind { Errno::EINVAL } else { error })
            })
        })
    })
}

fn umount2(target: UserAddr, flags: u32) -> Result<()> {
    with_user_path(target, |target| vfs::umount(&Me::new().caller(), target, flags))
}
