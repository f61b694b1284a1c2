//! Files: stat(2), statx(2), statfs(2), getdents64(2), readv(2), fcntl(2) locks, inode(7), mount(2).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// stat(2): the generic 64-bit layout.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Stat {
    pub st_dev: u64,
    pub st_ino: u64,
    pub st_mode: u32,
    pub st_nlink: u32,
    pub st_uid: u32,
    pub st_gid: u32,
    pub st_rdev: u64,
    pub pad1: u64,
    pub st_size: i64,
    pub st_blksize: i32,
    pub pad2: i32,
    /// In units of 512 bytes.
    pub st_blocks: i64,
    pub st_atime: i64,
    pub st_atime_nsec: u64,
    pub st_mtime: i64,
    pub st_mtime_nsec: u64,
    pub st_ctime: i64,
    pub st_ctime_nsec: u64,
    pub unused: [u32; 2],
}
layout!(Stat: 128, st_mode @ 16, st_rdev @ 32, st_size @ 48, st_blksize @ 56, st_blocks @ 64, st_atime @ 72, st_ctime_nsec @ 112);

/// A time in statx(2).
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StatxTimestamp {
    pub tv_sec: i64,
    pub tv_nsec: u32,
    pub pad: i32,
}

/// statx(2).
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Statx {
    pub stx_mask: u32,
    pub stx_blksize: u32,
    pub stx_attributes: u64,
    pub stx_nlink: u32,
    pub stx_uid: u32,
    pub stx_gid: u32,
    pub stx_mode: u16,
    pub pad1: u16,
    pub stx_ino: u64,
    pub stx_size: u64,
    pub stx_blocks: u64,
    pub stx_attributes_mask: u64,
    pub stx_atime: StatxTimestamp,
    pub stx_btime: StatxTimestamp,
    pub stx_ctime: StatxTimestamp,
    pub stx_mtime: StatxTimestamp,
    pub stx_rdev_major: u32,
    pub stx_rdev_minor: u32,
    pub stx_dev_major: u32,
    pub stx_dev_minor: u32,
    pub stx_mnt_id: u64,
    pub stx_dio_mem_align: u32,
    pub stx_dio_offset_align: u32,
    pub stx_subvol: u64,
    pub stx_atomic_write_unit_min: u32,
    pub stx_atomic_write_unit_max: u32,
    pub stx_atomic_write_segments_max: u32,
    pub stx_dio_read_offset_align: u32,
    pub stx_atomic_write_unit_max_opt: u32,
    pub pad2: u32,
    pub spare: [u64; 8],
}
layout!(Statx: 256, stx_ino @ 0x20, stx_atime @ 0x40, stx_rdev_major @ 0x80, stx_mnt_id @ 0x90, stx_subvol @ 0xa0, spare @ 0xc0);

pub const STATX_TYPE: u32 = 0x1;
pub const STATX_MODE: u32 = 0x2;
pub const STATX_NLINK: u32 = 0x4;
pub const STATX_UID: u32 = 0x8;
pub const STATX_GID: u32 = 0x10;
pub const STATX_ATIME: u32 = 0x20;
pub const STATX_MTIME: u32 = 0x40;
pub const STATX_CTIME: u32 = 0x80;
pub const STATX_INO: u32 = 0x100;
pub const STATX_SIZE: u32 = 0x200;
pub const STATX_BLOCKS: u32 = 0x400;
pub const STATX_BASIC_STATS: u32 = 0x7ff;
pub const STATX_BTIME: u32 = 0x800;
pub const STATX_MNT_ID: u32 = 0x1000;
/// Reserved for an extension of the structure: EINVAL.
pub const STATX_RESERVED: u32 = 0x8000_0000;
pub const STATX_ATTR_MOUNT_ROOT: u64 = 0x2000;

/// statfs(2).
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Statfs {
    pub f_type: i64,
    pub f_bsize: i64,
    pub f_blocks: u64,
    pub f_bfree: u64,
    pub f_bavail: u64,
    pub f_files: u64,
    pub f_ffree: u64,
    pub f_fsid: [i32; 2],
    pub f_namelen: i64,
    pub f_frsize: i64,
    pub f_flags: i64,
    pub f_spare: [i64; 4],
}
layout!(Statfs: 120, f_fsid @ 56, f_namelen @ 64, f_flags @ 80);

pub const TMPFS_MAGIC: i64 = 0x0102_1994;
pub const RAMFS_MAGIC: i64 = 0x8584_58f6;
pub const PROC_SUPER_MAGIC: i64 = 0x9fa0;
pub const SYSFS_MAGIC: i64 = 0x6265_6572;
pub const DEVPTS_SUPER_MAGIC: i64 = 0x1cd1;
pub const PIPEFS_MAGIC: i64 = 0x5049_5045;
pub const ANON_INODE_FS_MAGIC: i64 = 0x0904_1934;

/// The fixed part of an entry of getdents64(2); the name and a NUL follow, the whole padded to 8 bytes.
///
/// The real record's name begins at [`Dirent64::NAME_OFFSET`], inside this structure's tail padding.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Dirent64 {
    pub d_ino: u64,
    pub d_off: i64,
    pub d_reclen: u16,
    pub d_type: u8,
    /// Where the name begins.
    pub d_name: [u8; 5],
}
layout!(Dirent64: 24, d_reclen @ 16, d_type @ 18, d_name @ 19);

impl Dirent64 {
    /// Offset of the name in a record.
    pub const NAME_OFFSET: usize = 19;

    /// Length of the record of a name of `len` bytes: header, name, NUL, rounded up to 8.
    #[inline]
    pub const fn record_len(len: usize) -> usize {
        (Self::NAME_OFFSET + len + 1).next_multiple_of(8)
    }
}

pub const DT_UNKNOWN: u8 = 0;
pub const DT_FIFO: u8 = 1;
pub const DT_CHR: u8 = 2;
pub const DT_DIR: u8 = 4;
pub const DT_BLK: u8 = 6;
pub const DT_REG: u8 = 8;
pub const DT_LNK: u8 = 10;
pub const DT_SOCK: u8 = 12;

/// readv(2).
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Iovec {
    pub iov_base: usize,
    pub iov_len: usize,
}
layout!(Iovec: 16, iov_len @ 8);

/// Most elements of a vector in readv(2).
pub const UIO_MAXIOV: usize = 1024;
/// Most bytes one read or write moves.
pub const MAX_RW_COUNT: usize = 0x7fff_f000;

/// preadv2(2).
pub const RWF_HIPRI: u32 = 1;
pub const RWF_DSYNC: u32 = 2;
pub const RWF_SYNC: u32 = 4;
pub const RWF_NOWAIT: u32 = 8;
pub const RWF_APPEND: u32 = 16;

/// Record locks of fcntl(2).
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Flock {
    pub l_type: i16,
    pub l_whence: i16,
    pub pad1: i32,
    pub l_start: i64,
    pub l_len: i64,
    pub l_pid: i32,
    pub pad2: i32,
}
layout!(Flock: 32, l_start @ 8, l_pid @ 24);

pub const F_RDLCK: i16 = 0;
pub const F_WRLCK: i16 = 1;
pub const F_UNLCK: i16 = 2;
/// flock(2).
pub const LOCK_SH: u32 = 1;
pub const LOCK_EX: u32 = 2;
pub const LOCK_NB: u32 = 4;
pub const LOCK_UN: u32 = 8;

/// openat2(2).
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct OpenHow {
    pub flags: u64,
    pub mode: u64,
    pub resolve: u64,
}
layout!(OpenHow: 24);

/// File types and mode bits of inode(7).
pub const S_IFMT: u32 = 0o170000;
pub const S_IFSOCK: u32 = 0o140000;
pub const S_IFLNK: u32 = 0o120000;
pub const S_IFREG: u32 = 0o100000;
pub const S_IFBLK: u32 = 0o060000;
pub const S_IFDIR: u32 = 0o040000;
pub const S_IFCHR: u32 = 0o020000;
pub const S_IFIFO: u32 = 0o010000;
pub const S_ISUID: u32 = 0o4000;
pub const S_ISGID: u32 = 0o2000;
pub const S_ISVTX: u32 = 0o1000;
pub const S_IRWXU: u32 = 0o700;
pub const S_IRUSR: u32 = 0o400;
pub const S_IWUSR: u32 = 0o200;
pub const S_IXUSR: u32 = 0o100;
pub const S_IRWXG: u32 = 0o070;
pub const S_IXGRP: u32 = 0o010;
pub const S_IRWXO: u32 = 0o007;
pub const S_IXOTH: u32 = 0o001;
/// All bits chmod(2) can change.
pub const S_IALLUGO: u32 = 0o7777;

pub const PATH_MAX: usize = 4096;
pub const NAME_MAX: usize = 255;
pub const MAX_SYMLINKS: u32 = 40;
pub const PIPE_BUF: usize = 4096;

/// mount(2), statfs(2).
pub const MS_RDONLY: u64 = 1;
pub const MS_NOSUID: u64 = 2;
pub const MS_NODEV: u64 = 4;
pub const MS_NOEXEC: u64 = 8;
pub const MS_REMOUNT: u64 = 32;
pub const MS_BIND: u64 = 4096;
pub const MS_MOVE: u64 = 8192;
pub const MS_REC: u64 = 16384;
pub const MS_SILENT: u64 = 32768;
pub const MS_PRIVATE: u64 = 1 << 18;
pub const MS_SLAVE: u64 = 1 << 19;
pub const MS_SHARED: u64 = 1 << 20;
pub const MS_RELATIME: u64 = 1 << 21;
pub const MNT_FORCE: u32 = 1;
pub const MNT_DETACH: u32 = 2;
pub const UMOUNT_NOFOLLOW: u32 = 8;
pub const ST_VALID: i64 = 0x20;
pub const ST_RELATIME: i64 = 0x1000;

/// memfd_create(2).
pub const MFD_CLOEXEC: u32 = 1;
pub const MFD_ALLOW_SEALING: u32 = 2;
/// setxattr(2).
pub const XATTR_CREATE: u32 = 1;
pub const XATTR_REPLACE: u32 = 2;

/// A device number in the encoding of stat(2) and mknod(2): 12 bits of major, 20 of minor.
#[inline]
pub const fn makedev(major: u32, minor: u32) -> u64 {
    ((minor & 0xff) | ((major & 0xfff) << 8) | ((minor & 0xfff00) << 12)) as u64
}

/// The major number in a 32-bit device number.
#[inline]
pub const fn major(dev: u64) -> u32 {
    ((dev >> 8) & 0xfff) as u32
}

/// The minor number in a 32-bit device number.
#[inline]
pub const fn minor(dev: u64) -> u32 {
    ((dev & 0xff) | ((dev >> 12) & 0xfff00)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_round_trip() {
        assert_eq!(makedev(1, 3), 0x103);
        for (a, b) in [(5, 1), (136, 0), (0xfff, 0xfffff), (8, 0x12345)] {
            assert_eq!((major(makedev(a, b)), minor(makedev(a, b))), (a, b));
        }
    }

    #[test]
    fn directory_records_are_padded_to_eight() {
        assert_eq!(Dirent64::record_len(1), 24);
        assert_eq!(Dirent64::record_len(4), 24);
        assert_eq!(Dirent64::record_len(5), 32);
    }
}
