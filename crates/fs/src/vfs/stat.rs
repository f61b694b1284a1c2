//! stat(2), statx(2), statfs(2).

use uapi::fs::{
    S_IFMT, STATX_ATTR_MOUNT_ROOT, STATX_BASIC_STATS, STATX_BTIME, STATX_MNT_ID, STATX_RESERVED, StatxTimestamp, major,
    minor,
};
use uapi::open::{AT_EMPTY_PATH, AT_NO_AUTOMOUNT, AT_STATX_SYNC_TYPE, AT_SYMLINK_NOFOLLOW};
use uapi::{Errno, Result, Stat, Statfs, Statx, Timespec};

use crate::file::File;
use crate::tmpfs::Room;
use crate::vfs::attr::Target;
use crate::vfs::{Caller, Inode, Mount};

/// `st_blksize`, in bytes.
const BLOCK: u64 = 4096;

fn fill(inode: &Inode) -> Stat {
    let times = inode.times();
    let blocks = inode.regular().map_or(0, |file| file.allocated().div_ceil(512));
    Stat {
        st_dev: inode.dev,
        st_ino: inode.ino,
        st_mode: inode.mode(),
        st_nlink: inode.nlink(),
        st_uid: inode.uid(),
        st_gid: inode.gid(),
        st_rdev: inode.rdev,
        st_size: inode.size() as i64,
        st_blksize: BLOCK as i32,
        st_blocks: blocks as i64,
        st_atime: times.atime.tv_sec,
        st_atime_nsec: times.atime.tv_nsec as u64,
        st_mtime: times.mtime.tv_sec,
        st_mtime_nsec: times.mtime.tv_nsec as u64,
        st_ctime: times.ctime.tv_sec,
        st_ctime_nsec: times.ctime.tv_nsec as u64,
        ..Stat::default()
    }
}

/// newfstatat(2) with `AT_SYMLINK_NOFOLLOW`, `AT_EMPTY_PATH`, `AT_NO_AUTOMOUNT`.
pub fn stat(who: &Caller<'_>, dirfd: i32, path: &[u8], flags: u32) -> Result<Stat> {
    if flags & !(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT) != 0 {
        return Err(Errno::EINVAL);
    }
    Ok(fill(&Target::find(who, dirfd, path, flags)?.inode))
}

/// fstat(2).
pub fn fstat(file: &File) -> Stat {
    fill(file.inode())
}

/// statx(2). `EINVAL` for unknown flags or the reserved bit of the mask.
pub fn statx(who: &Caller<'_>, dirfd: i32, path: &[u8], flags: u32, mask: u32) -> Result<Statx> {
    let known = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_SYNC_TYPE;
    if flags & !known != 0 || flags & AT_STATX_SYNC_TYPE == AT_STATX_SYNC_TYPE || mask & STATX_RESERVED != 0 {
        return Err(Errno::EINVAL);
    }
    Ok(fill_x(&Target::find(who, dirfd, path, flags)?))
}

/// statx(2) of an open file.
pub fn fstatx(file: &File) -> Statx {
    fill_x(&Target::of_file(file))
}

fn stamp(t: Timespec) -> StatxTimestamp {
    StatxTimestamp { tv_sec: t.tv_sec, tv_nsec: t.tv_nsec as u32, pad: 0 }
}

fn fill_x(target: &Target) -> Statx {
    let stat = fill(&target.inode);
    let times = target.inode.times();
    let root = if target.is_mount_root { STATX_ATTR_MOUNT_ROOT } else { 0 };
    let mount = target.mount.as_ref();
    Statx {
        stx_mask: STATX_BASIC_STATS | STATX_BTIME | mount.map_or(0, |_| STATX_MNT_ID),
        stx_blksize: BLOCK as u32,
        stx_attributes: root,
        stx_attributes_mask: STATX_ATTR_MOUNT_ROOT,
        stx_nlink: stat.st_nlink,
        stx_uid: stat.st_uid,
        stx_gid: stat.st_gid,
        stx_mode: stat.st_mode as u16,
        stx_ino: stat.st_ino,
        stx_size: stat.st_size as u64,
        stx_blocks: stat.st_blocks as u64,
        stx_atime: stamp(times.atime),
        stx_btime: stamp(times.btime),
        stx_ctime: stamp(times.ctime),
        stx_mtime: stamp(times.mtime),
        stx_rdev_major: major(stat.st_rdev),
        stx_rdev_minor: minor(stat.st_rdev),
        stx_dev_major: major(stat.st_dev),
        stx_dev_minor: minor(stat.st_dev),
        stx_mnt_id: mount.map_or(0, |mount| u64::from(mount.id)),
        ..Statx::default()
    }
}

/// statfs(2).
pub fn statfs(who: &Caller<'_>, path: &[u8]) -> Result<Statfs> {
    let place = super::resolve(who, uapi::open::AT_FDCWD, path, true)?;
    Ok(fill_fs(&place.mount))
}

/// fstatfs(2); a pipe and its kind report the file system of nameless inodes.
pub fn fstatfs(file: &File) -> Result<Statfs> {
    match file.path() {
        Some(path) => Ok(fill_fs(&path.mount)),
        None => {
            let fifo = file.inode().mode() & S_IFMT == uapi::fs::S_IFIFO;
            let magic = if fifo { uapi::fs::PIPEFS_MAGIC } else { uapi::fs::ANON_INODE_FS_MAGIC };
            Ok(Statfs { f_type: magic, f_bsize: 4096, f_frsize: 4096, f_namelen: 255, ..Statfs::default() })
        }
    }
}

fn fill_fs(mount: &Mount) -> Statfs {
    let sb = mount.sb();
    let room = sb.usage().map(|usage| usage.room());
    let room = |field: fn(&Room) -> u64| room.as_ref().map_or(0, field);
    let dev = sb.dev as u32 as i32;
    // The flags of statfs(2) have the values of mount(2)'s for what a mount can have here, and two of their own.
    let flags = mount.flags() & 0xf;
    Statfs {
        f_type: sb.fs.magic,
        f_bsize: BLOCK as i64,
        f_blocks: room(|room| room.pages),
        f_bfree: room(|room| room.free_pages),
        f_bavail: room(|room| room.free_pages),
        f_files: room(|room| room.inodes),
        f_ffree: room(|room| room.free_inodes),
        f_fsid: [dev, 0],
        f_namelen: uapi::fs::NAME_MAX as i64,
        f_frsize: BLOCK as i64,
        f_flags: flags as i64 | uapi::fs::ST_VALID | uapi::fs::ST_RELATIME,
        f_spare: [0; 4],
    }
}
