use std::string::String;
use std::vec::Vec;

use hal::mem::host::boot_memory;
use proptest::prelude::*;
use uapi::fs::{S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG, S_IFSOCK};
use uapi::{Errno, open::*};

use super::*;
use crate::testing::{Process, read, write};
use crate::vfs;

/// Makes an archive: (number, links, mode, name, data).
fn archive(entries: &[(u32, u32, u32, &str, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (ino, nlink, mode, name, data) in entries.iter().chain([&(0, 1, 0, "TRAILER!!!", &b""[..])]) {
        let fields = [*ino, *mode, 7, 8, *nlink, 1234, data.len() as u32, 0, 0, 1, 3, name.len() as u32 + 1, 0];
        let header: String = fields.iter().map(|f| std::format!("{f:08X}")).collect();
        out.extend(b"070701");
        out.extend(header.bytes());
        out.extend(name.bytes());
        out.push(0);
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend(*data);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    out
}

#[test]
fn an_archive_becomes_a_tree() {
    let p = Process::new();
    let bytes = archive(&[
        (1, 2, S_IFDIR | 0o755, ".", b""),
        (2, 2, S_IFDIR | 0o700, "./dir", b""),
        (3, 1, S_IFREG | 0o4755, "dir/file", b"content"),
        (4, 1, S_IFLNK | 0o777, "link", b"dir/file"),
        (5, 1, S_IFCHR | 0o666, "null", b""),
        (6, 1, S_IFIFO | 0o600, "fifo", b""),
        (7, 1, S_IFSOCK | 0o600, "socket", b""),
        (8, 2, S_IFREG | 0o644, "one", b""),
        (8, 2, S_IFREG | 0o644, "dir/two", b"linked"),
        (9, 1, S_IFREG | 0o644, "made/on/the/way", b"x"),
        (3, 1, S_IFREG | 0o600, "dir/file", b"newer"),
    ]);
    assert_eq!(populate_from_cpio(&p.fs.root(), &bytes, None), Ok(11));
    assert_eq!(p.read_file("/link").unwrap(), "newer");
    let stat = p.stat("/dir/file").unwrap();
    assert_eq!((stat.st_mode, stat.st_uid, stat.st_gid, stat.st_mtime), (S_IFREG | 0o600, 7, 8, 1234));
    assert_eq!(p.read_file("/one").unwrap(), "linked");
    assert_eq!(p.stat("/one").unwrap().st_nlink, 2);
    assert_eq!(p.stat("/null").unwrap().st_rdev, 0x103);
    assert_eq!(p.stat("/socket").err(), Some(Errno::ENOENT));
    assert_eq!(p.read_file("/made/on/the/way").unwrap(), "x");
    assert_eq!(p.stat("/").unwrap().st_nlink, 4);
    assert_eq!(p.stat("/dir").unwrap().st_mode, S_IFDIR | 0o700);
}

#[test]
fn data_at_a_page_boundary_is_used_in_place() {
    let p = Process::new();
    let page = [b'p'; 5000];
    // Header and name of the second entry are stretched to reach the boundary.
    let probe = archive(&[(1, 1, S_IFREG | 0o644, "first", b"")]).len() - 124;
    let name: String = std::iter::repeat_n("d/", (4096 - probe - 110) / 2 - 2).chain(["aligned"]).collect();
    let name = &name[name.len() - (4096 - probe - 110 - 1)..];
    let bytes = archive(&[(1, 1, S_IFREG | 0o644, "first", b""), (2, 1, S_IFREG | 0o644, name, &page)]);
    assert_eq!(&bytes[4096..4097], b"p");
    let phys = boot_memory(0, &bytes);
    populate_from_cpio(&p.fs.root(), &bytes, Some(phys)).unwrap();
    let file = p.open(name, O_RDWR).unwrap();
    assert_eq!(file.inode().regular().unwrap().object().resident_pages(), 0, "nothing was copied");
    assert_eq!(read(&file, 9999).unwrap(), page);
    write(&file, b"new").unwrap();
    assert_eq!(p.stat(name).unwrap().st_size, 5003);
}

#[test]
fn mount_options() {
    let sb = (TMPFS.open)(&TMPFS, b"mode=700,uid=5,gid=6,size=10%").unwrap();
    let root = sb.root().unwrap();
    assert_eq!((root.inode().mode(), root.inode().uid(), root.inode().gid()), (S_IFDIR | 0o700, 5, 6));
    assert_eq!((TMPFS.open)(&TMPFS, b"mode=9").err(), Some(Errno::EINVAL));
}

#[test]
fn memory_files_holes_and_allocation() {
    let p = Process::new();
    let file = memfd_create(&p.cred, b"scratch", 0).unwrap();
    write(&file, b"data").unwrap();
    assert_eq!(file.path().unwrap().display(&p.fs.root()).unwrap(), b"/memfd:scratch (deleted)");
    file.allocate(0, 0, 8192).unwrap();
    assert_eq!(vfs::fstat(&file).st_size, 8192);
    assert_eq!(vfs::fstat(&file).st_blocks, 16);
    file.allocate(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096).unwrap();
    assert_eq!(file.seek(0, SEEK_DATA), Ok(4096));
    assert_eq!(file.seek(4096, SEEK_HOLE), Ok(8192));
    assert_eq!(file.seek(8192, SEEK_DATA), Err(Errno::ENXIO));
    assert_eq!(file.allocate(0, 0, 0), Err(Errno::EINVAL));
    assert_eq!(file.allocate(0, i64::MAX, 1), Err(Errno::EFBIG));
    assert_eq!(file.allocate(1 << 20, 0, 1), Err(Errno::EOPNOTSUPP));
    assert_eq!(memfd_create(&p.cred, &[b'x'; 250], 0).err(), Some(Errno::EINVAL));
}

#[test]
fn limits_of_size_and_names() {
    let p = Process::new();
    p.mkdir("/m").unwrap();
    vfs::mount(&p.who(), b"", b"/m", b"tmpfs", 0, b"size=40k,nr_inodes=5").unwrap();
    let statfs = || vfs::statfs(&p.who(), b"/m").unwrap();
    assert_eq!((statfs().f_blocks, statfs().f_bfree, statfs().f_files, statfs().f_ffree), (10, 10, 5, 4));
    let file = p.open("/m/f", O_CREAT | O_RDWR).unwrap();
    assert_eq!(write(&file, &[1; 30_000]), Ok(30_000));
    assert_eq!(write(&file, &[1; 30_000]), Ok(40_960 - 30_000), "up to the last page");
    assert_eq!(write(&file, &[1; 1]), Err(Errno::ENOSPC));
    assert_eq!(statfs().f_bfree, 0);
    file.seek(0, SEEK_SET).unwrap();
    assert_eq!(write(&file, &[2; 9000]), Ok(9000), "what is there can be written over");
    assert_eq!(file.allocate(0, 0, 50_000), Err(Errno::ENOSPC));
    file.truncate(5000).unwrap();
    assert_eq!(statfs().f_bfree, 8);
    for name in ["/m/a", "/m/b"] {
        p.mkdir(name).unwrap();
    }
    vfs::link(&p.who(), AT_FDCWD, b"/m/f", AT_FDCWD, b"/m/g", 0).unwrap();
    assert_eq!(p.mkdir("/m/c"), Err(Errno::ENOSPC));
    assert_eq!(vfs::link(&p.who(), AT_FDCWD, b"/m/f", AT_FDCWD, b"/m/h", 0), Err(Errno::ENOSPC), "a name counts");
    vfs::unlink(&p.who(), AT_FDCWD, b"/m/g").unwrap();
    vfs::unlink(&p.who(), AT_FDCWD, b"/m/f").unwrap();
    vfs::rmdir(&p.who(), AT_FDCWD, b"/m/a").unwrap();
    assert_eq!((statfs().f_ffree, statfs().f_bfree), (2, 8), "an open file counts until it is closed");
    drop(file);
    assert_eq!((statfs().f_ffree, statfs().f_bfree), (3, 10));
    vfs::rmdir(&p.who(), AT_FDCWD, b"/m/b").unwrap();
    assert_eq!(statfs().f_ffree, 4);
}

proptest! {
    /// A damaged archive gives an error or a tree, never a panic.
    #[test]
    fn damage_is_survived(at in 0usize..600, byte in any::<u8>(), cut in 0usize..700) {
        let p = Process::new();
        let mut bytes = archive(&[
            (2, 2, S_IFDIR | 0o700, "dir", b""),
            (3, 2, S_IFREG | 0o755, "dir/file", b"content"),
            (3, 2, S_IFREG | 0o755, "dir/again", b"content"),
        ]);
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
        bytes.truncate(cut);
        let _ = populate_from_cpio(&p.fs.root(), &bytes, None);
    }
}
