//! Changing what an inode says: chmod(2), chown(2), utimensat(2), truncate(2); and access(2).

use alloc::sync::Arc;

use uapi::fs::{MS_RDONLY, S_IFLNK, S_ISGID};
use uapi::open::{AT_EACCESS, AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW, R_OK, W_OK, X_OK};
use uapi::time::{NSEC_PER_SEC, UTIME_NOW, UTIME_OMIT};
use uapi::{Errno, Result, Timespec};

use crate::clock::now;
use crate::cred::cap;
use crate::file::File;
use crate::vfs::walk::Walk;
use crate::vfs::{Caller, Inode, Mount, Node};

/// What an `…at` call works on: an inode, and the mount it was reached through if it has a place.
pub(crate) struct Target {
    pub inode: Arc<Inode>,
    pub mount: Option<Arc<Mount>>,
    pub is_mount_root: bool,
}

impl Target {
    pub fn of_file(file: &File) -> Self {
        let mount = file.path().map(|path| path.mount.clone());
        let is_mount_root = file.path().is_some_and(|path| Arc::ptr_eq(path.mount.root(), &path.dentry));
        Self { inode: file.inode().clone(), mount, is_mount_root }
    }

    /// Resolves `path` by the flags `AT_EMPTY_PATH` and `AT_SYMLINK_NOFOLLOW`.
    pub fn find(who: &Caller<'_>, dirfd: i32, path: &[u8], flags: u32) -> Result<Self> {
        let place = if path.is_empty() && flags & AT_EMPTY_PATH != 0 {
            if dirfd != AT_FDCWD {
                return Ok(Self::of_file(&*who.file(dirfd)?));
            }
            who.fs.cwd()
        } else {
            let mut walk = Walk::new(who, dirfd, path)?;
            walk.walk_to_end(flags & AT_SYMLINK_NOFOLLOW == 0)?;
            if let Some(file) = walk.take_file() {
                return Ok(Self::of_file(&file));
            }
            walk.into_here()
        };
        let is_mount_root = Arc::ptr_eq(place.mount.root(), &place.dentry);
        Ok(Self { inode: place.inode().clone(), mount: Some(place.mount), is_mount_root })
    }

    fn writable(&self) -> Result<()> {
        self.mount.as_ref().map_or(Ok(()), |mount| mount.writable())
    }
}

fn only(flags: u32, known: u32) -> Result<()> {
    if flags & !known != 0 { Err(Errno::EINVAL) } else { Ok(()) }
}

/// faccessat2(2): checks for the real user and group, or with `AT_EACCESS` as open(2) would.
pub fn access(who: &Caller<'_>, dirfd: i32, path: &[u8], mode: u32, flags: u32) -> Result<()> {
    only(flags, AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)?;
    if mode & !(R_OK | W_OK | X_OK) != 0 {
        return Err(Errno::EINVAL);
    }
    let real;
    let mut who = *who;
    // The usual case needs no second identity.
    let same = who.cred.uid == who.cred.fsuid && who.cred.gid == who.cred.fsgid;
    if flags & AT_EACCESS == 0 && !(same && (who.cred.uid == 0 || who.cred.effective == 0)) {
        real = who.cred.for_access();
        who.cred = &real;
    }
    let target = Target::find(&who, dirfd, path, flags)?;
    if mode == 0 {
        return Ok(());
    }
    let inode = &target.inode;
    if !inode.permits(who.cred, mode) {
        return Err(Errno::EACCES);
    }
    let flags = target.mount.as_ref().map_or(0, |mount| mount.flags());
    if mode & X_OK != 0 && flags & uapi::fs::MS_NOEXEC != 0 && !inode.is_dir() {
        return Err(Errno::EACCES);
    }
    if mode & W_OK != 0 && flags & MS_RDONLY != 0 && !matches!(inode.node, Node::Device | Node::Fifo(_) | Node::Socket)
    {
        return Err(Errno::EROFS);
    }
    Ok(())
}

fn set_mode(who: &Caller<'_>, target: &Target, mode: u32) -> Result<()> {
    target.writable()?;
    let inode = &target.inode;
    if !who.cred.owns(inode.uid()) {
        return Err(Errno::EPERM);
    }
    if inode.file_type() == S_IFLNK {
        return Err(Errno::EOPNOTSUPP);
    }
    let keeps_group = who.cred.in_group(inode.gid()) || who.cred.has(cap::FSETID);
    inode.set_permissions(if keeps_group { mode } else { mode & !S_ISGID });
    inode.changed();
    Ok(())
}

/// fchmodat2(2). `EPERM` not the owner, `EOPNOTSUPP` a symbolic link itself.
pub fn chmod(who: &Caller<'_>, dirfd: i32, path: &[u8], mode: u32, flags: u32) -> Result<()> {
    only(flags, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)?;
    set_mode(who, &Target::find(who, dirfd, path, flags)?, mode)
}

/// fchmod(2).
pub fn fchmod(who: &Caller<'_>, file: &File, mode: u32) -> Result<()> {
    if file.is_path_only() {
        return Err(Errno::EBADF);
    }
    set_mode(who, &Target::of_file(file), mode)
}

fn set_owner(who: &Caller<'_>, target: &Target, uid: u32, gid: u32) -> Result<()> {
    target.writable()?;
    let inode = &target.inode;
    let uid = Some(uid).filter(|uid| *uid != u32::MAX);
    let gid = Some(gid).filter(|gid| *gid != u32::MAX);
    if !who.cred.has(cap::CHOWN) {
        let owner = who.cred.fsuid == inode.uid();
        let uid_stays = uid.is_none_or(|uid| owner && uid == inode.uid());
        let gid_allowed = gid.is_none_or(|gid| owner && (who.cred.in_group(gid) || gid == inode.gid()));
        if !uid_stays || !gid_allowed {
            return Err(Errno::EPERM);
        }
    }
    inode.set_owner(uid, gid);
    inode.drop_setid();
    inode.changed();
    Ok(())
}

/// fchownat(2); `u32::MAX` leaves an id as it is.
pub fn chown(who: &Caller<'_>, dirfd: i32, path: &[u8], uid: u32, gid: u32, flags: u32) -> Result<()> {
    only(flags, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)?;
    set_owner(who, &Target::find(who, dirfd, path, flags)?, uid, gid)
}

/// fchown(2).
pub fn fchown(who: &Caller<'_>, file: &File, uid: u32, gid: u32) -> Result<()> {
    if file.is_path_only() {
        return Err(Errno::EBADF);
    }
    set_owner(who, &Target::of_file(file), uid, gid)
}

fn set_times(who: &Caller<'_>, target: &Target, times: Option<[Timespec; 2]>) -> Result<()> {
    let time = |t: Timespec| match t.tv_nsec {
        UTIME_NOW => Ok(Some(now())),
        UTIME_OMIT => Ok(None),
        0..NSEC_PER_SEC => Ok(Some(t)),
        _ => Err(Errno::EINVAL),
    };
    let [atime, mtime] = match times {
        Some([a, m]) => [time(a)?, time(m)?],
        None => [Some(now()); 2],
    };
    let explicit = times.is_some_and(|both| both.iter().any(|t| t.tv_nsec != UTIME_NOW));
    if atime.is_none() && mtime.is_none() {
        return Ok(());
    }
    target.writable()?;
    let inode = &target.inode;
    if !who.cred.owns(inode.uid()) {
        if explicit {
            return Err(Errno::EPERM);
        }
        if !inode.permits(who.cred, W_OK) {
            return Err(Errno::EACCES);
        }
    }
    inode.set_times(atime, mtime);
    Ok(())
}

/// utimensat(2) with a path; `times` are access and modification, `None` means now.
pub fn utimens(who: &Caller<'_>, dirfd: i32, path: &[u8], times: Option<[Timespec; 2]>, flags: u32) -> Result<()> {
    only(flags, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)?;
    set_times(who, &Target::find(who, dirfd, path, flags)?, times)
}

/// utimensat(2) without a path: futimens(3).
pub fn futimens(who: &Caller<'_>, file: &File, times: Option<[Timespec; 2]>) -> Result<()> {
    if file.is_path_only() {
        return Err(Errno::EBADF);
    }
    set_times(who, &Target::of_file(file), times)
}

/// truncate(2).
pub fn truncate(who: &Caller<'_>, path: &[u8], len: i64) -> Result<()> {
    let len = u64::try_from(len).map_err(|_| Errno::EINVAL)?;
    let target = Target::find(who, AT_FDCWD, path, 0)?;
    let inode = &target.inode;
    if inode.is_dir() {
        return Err(Errno::EISDIR);
    }
    if !matches!(inode.node, Node::Regular(_) | Node::Text(_)) {
        return Err(Errno::EINVAL);
    }
    target.writable()?;
    if !inode.permits(who.cred, W_OK) {
        return Err(Errno::EACCES);
    }
    let Some(file) = inode.regular() else { return Ok(()) };
    file.check_not_executing()?;
    file.truncate(inode, len)?;
    if !who.cred.has(cap::FSETID) {
        inode.drop_setid();
    }
    Ok(())
}
