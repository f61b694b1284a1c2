//! What may be done in a directory: the checks before an entry is made or taken away.

use uapi::fs::{MS_NODEV, S_IFDIR, S_ISGID, S_ISVTX};
use uapi::open::{W_OK, X_OK};
use uapi::{Errno, Result};

use crate::cred::{Credentials, cap};
use crate::vfs::{Caller, Dentry, Inode, Path};

/// Whether an entry may be made in `dir`, an existing directory. `ENOENT` removed, `EROFS`, `EACCES`, `ENOSPC`,
/// and what a file system with a fixed tree answers.
pub(crate) fn may_create(cred: &Credentials, dir: &Path) -> Result<()> {
    if dir.inode().dir().ok_or(Errno::ENOTDIR)?.is_dead() {
        return Err(Errno::ENOENT);
    }
    dir.mount.writable()?;
    match dir.mount.sb().fs.fixed {
        Some(Errno::ENOENT) => return Err(Errno::ENOENT),
        Some(_) => return Err(Errno::EPERM),
        None => {}
    }
    if !dir.inode().permits(cred, W_OK | X_OK) {
        return Err(Errno::EACCES);
    }
    dir.mount.sb().usage().map_or(Ok(()), |usage| usage.check_inodes())
}

/// Whether the entry `victim` of `dir` may be taken away, as a directory or as something else.
pub(crate) fn may_delete(cred: &Credentials, dir: &Path, victim: &Dentry, as_dir: bool) -> Result<()> {
    dir.mount.writable()?;
    if dir.mount.sb().fs.fixed.is_some() {
        return Err(Errno::EPERM);
    }
    if !dir.inode().permits(cred, W_OK | X_OK) {
        return Err(Errno::EACCES);
    }
    if sticky(cred, dir.inode(), victim.inode()) {
        return Err(Errno::EPERM);
    }
    match (as_dir, victim.inode().is_dir()) {
        (true, false) => Err(Errno::ENOTDIR),
        (false, true) => Err(Errno::EISDIR),
        _ if victim.is_mountpoint() => Err(Errno::EBUSY),
        _ => Ok(()),
    }
}

/// Whether the sticky bit of `dir` keeps `cred` from removing `victim`.
fn sticky(cred: &Credentials, dir: &Inode, victim: &Inode) -> bool {
    dir.mode() & S_ISVTX != 0 && cred.fsuid != victim.uid() && cred.fsuid != dir.uid() && !cred.has(cap::FOWNER)
}

/// Owner and mode of a file made in `dir`: the mask applied, the group inherited from a set-group-id directory.
pub(crate) fn new_owner(who: &Caller<'_>, dir: &Inode, mode: u32) -> (u32, u32, u32) {
    let mut mode = mode & !(who.fs.umask() & 0o777);
    let mut gid = who.cred.fsgid;
    if dir.mode() & S_ISGID != 0 {
        gid = dir.gid();
        if mode & uapi::fs::S_IFMT == S_IFDIR {
            mode |= S_ISGID;
        } else if mode & 0o2010 == 0o2010 && !who.cred.in_group(gid) && !who.cred.has(cap::FSETID) {
            mode &= !S_ISGID;
        }
    }
    (mode, who.cred.fsuid, gid)
}

/// `EACCES` for a device node on a mount without devices.
pub(crate) fn devices_allowed(path: &Path) -> Result<()> {
    if path.mount.flags() & MS_NODEV != 0 { Err(Errno::EACCES) } else { Ok(()) }
}
