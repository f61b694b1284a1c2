//! Cases by hand.

use std::vec;

use hal::user::{InBuf, OutBuf};
use uapi::fs::{S_IFIFO, S_IFMT, S_IFREG};
use uapi::open::*;
use uapi::{Errno, Timespec};

use crate::testing::{Process, read, write};
use crate::vfs;
use crate::{Caller, Credentials, Result};

const CWD: i32 = AT_FDCWD;

fn link(p: &Process, target: &str, at: &str) -> Result<()> {
    vfs::symlink(&p.who(), target.as_bytes(), CWD, at.as_bytes())
}

fn mv(p: &Process, from: &str, to: &str, flags: u32) -> Result<()> {
    vfs::rename(&p.who(), CWD, from.as_bytes(), CWD, to.as_bytes(), flags)
}

fn rm(p: &Process, path: &str) -> Result<()> {
    vfs::unlink(&p.who(), CWD, path.as_bytes())
}

fn rmdir(p: &Process, path: &str) -> Result<()> {
    vfs::rmdir(&p.who(), CWD, path.as_bytes())
}

/// The error of a result, whatever it would have been.
fn err<T>(result: Result<T>) -> Option<Errno> {
    result.err()
}

#[test]
fn files_are_written_read_and_cut() {
    let p = Process::new();
    let file = p.open("/a", O_CREAT | O_RDWR).unwrap();
    assert_eq!(write(&file, b"hello world"), Ok(11));
    assert_eq!(file.seek(6, SEEK_SET), Ok(6));
    assert_eq!(read(&file, 100).unwrap(), b"world");
    assert_eq!(read(&file, 100).unwrap(), b"");
    let mut four = [0; 4];
    assert_eq!(file.read_at(1, &mut OutBuf::Kernel(&mut four)), Ok(4));
    assert_eq!(&four, b"ello");
    assert_eq!(file.write_at(20, &mut InBuf::Kernel(b"!")), Ok(1));
    assert_eq!(p.stat("/a").unwrap().st_size, 21);
    assert_eq!(file.seek(-1, SEEK_END), Ok(20));
    assert_eq!(err(file.seek(-22, SEEK_END)), Some(Errno::EINVAL));
    file.truncate(5).unwrap();
    assert_eq!(p.read_file("/a").unwrap(), "hello");
    p.write_file("/a", "x").unwrap();
    assert_eq!(p.read_file("/a").unwrap(), "x");
    let append = p.open("/a", O_WRONLY | O_APPEND).unwrap();
    append.seek(0, SEEK_SET).unwrap();
    write(&append, b"yz").unwrap();
    assert_eq!(p.read_file("/a").unwrap(), "xyz");
    assert_eq!(err(read(&append, 1)), Some(Errno::EBADF));
    assert_eq!(err(write(&p.open("/a", O_RDONLY).unwrap(), b"x")), Some(Errno::EBADF));
    assert_eq!(err(file.write_at(i64::MAX, &mut InBuf::Kernel(b"x"))), Some(Errno::EINVAL));
    assert_eq!(err(file.read_at(i64::MAX - 3, &mut OutBuf::Kernel(&mut four))), Some(Errno::EINVAL));
    assert_eq!(file.read_at(i64::MAX - 4, &mut OutBuf::Kernel(&mut four)), Ok(0));
    assert_eq!(err(file.read_at(-1, &mut OutBuf::Kernel(&mut four))), Some(Errno::EINVAL));
}

#[test]
fn open_flags() {
    let p = Process::new();
    assert_eq!(err(p.open("/a", O_RDONLY)), Some(Errno::ENOENT));
    assert_eq!(err(p.open("", O_CREAT)), Some(Errno::ENOENT));
    let file = p.open("/a", O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_TRUNC).unwrap();
    assert_eq!(file.flags(), O_RDWR | O_LARGEFILE);
    assert_eq!(p.stat("/a").unwrap().st_mode, S_IFREG | 0o644, "the mask applies");
    assert_eq!(err(p.open("/a", O_CREAT | O_EXCL)), Some(Errno::EEXIST));
    assert_eq!(err(p.open("/a", O_DIRECTORY)), Some(Errno::ENOTDIR));
    assert_eq!(err(p.open("/a/", O_RDONLY)), Some(Errno::ENOTDIR));
    assert_eq!(err(p.open("/a/b", O_RDONLY)), Some(Errno::ENOTDIR));
    p.mkdir("/d").unwrap();
    assert_eq!(err(p.open("/d", O_WRONLY)), Some(Errno::EISDIR));
    assert_eq!(err(p.open("/d", O_CREAT)), Some(Errno::EISDIR));
    assert_eq!(err(p.open("/new/", O_CREAT)), Some(Errno::EISDIR));
    assert_eq!(err(read(&p.open("/d", O_RDONLY).unwrap(), 1)), Some(Errno::EISDIR));
    link(&p, "a", "/l").unwrap();
    assert_eq!(err(p.open("/l", O_NOFOLLOW)), Some(Errno::ELOOP));
    assert_eq!(err(p.open("/l", O_CREAT | O_EXCL)), Some(Errno::EEXIST));
    assert!(p.open("/l", O_RDONLY).is_ok());
    let named = p.open("/l", O_PATH | O_NOFOLLOW).unwrap();
    assert!(named.inode().is_symlink());
    assert_eq!(err(read(&named, 1)), Some(Errno::EBADF));
    link(&p, "/made", "/dangling").unwrap();
    p.write_file("/dangling", "through").unwrap();
    assert_eq!(p.read_file("/made").unwrap(), "through");
    let nameless = p.open("/d", O_TMPFILE | O_RDWR).unwrap();
    assert_eq!(write(&nameless, b"x"), Ok(1));
    assert_eq!(vfs::fstat(&nameless).st_nlink, 0);
    assert_eq!(err(p.open("/d", O_TMPFILE)), Some(Errno::EINVAL));
}

#[test]
fn walks() {
    let p = Process::new();
    p.mkdir("/a").unwrap();
    p.mkdir("/a/b").unwrap();
    p.write_file("/a/b/f", "f").unwrap();
    for path in ["/a/b/f", "//a///b//f", "/a/./b/./f", "/a/b/../b/f", "/../../a/b/f"] {
        assert_eq!(p.read_file(path).unwrap(), "f", "{path}");
    }
    vfs::chdir(&p.who(), b"/a/b").unwrap();
    assert_eq!(p.read_file("f").unwrap(), "f");
    assert_eq!(p.read_file("../b/f").unwrap(), "f");
    assert_eq!(vfs::getcwd(&p.who()).unwrap(), b"/a/b");
    link(&p, "b", "/a/rel").unwrap();
    link(&p, "/a/b", "/abs").unwrap();
    link(&p, "../a/rel/", "/a/up").unwrap();
    for path in ["/a/rel/f", "/abs/f", "/a/up/f", "/abs/../b/f"] {
        assert_eq!(p.read_file(path).unwrap(), "f", "{path}");
    }
    link(&p, "/loop", "/loop").unwrap();
    assert_eq!(err(p.stat("/loop")), Some(Errno::ELOOP));
    assert_eq!(err(p.stat("/loop/x")), Some(Errno::ELOOP));
    for i in 0..50 {
        link(&p, &std::format!("/chain{}", i + 1), &std::format!("/chain{i}")).unwrap();
    }
    p.write_file("/chain50", "end").unwrap();
    assert!(p.stat("/chain10").is_ok(), "40 links are followed");
    assert_eq!(err(p.stat("/chain9")), Some(Errno::ELOOP));
    assert_eq!(err(p.stat(&"x".repeat(256))), Some(Errno::ENAMETOOLONG));
    assert_eq!(err(p.stat(&"x".repeat(255))), Some(Errno::ENOENT));
    assert_eq!(err(p.stat(&"/".repeat(4096))), Some(Errno::ENAMETOOLONG));
    assert!(p.stat(&"/".repeat(4095)).is_ok());
    let dir = p.open("/a", O_DIRECTORY).unwrap();
    let fd = p.fds.install(dir, false, 100).unwrap();
    assert!(vfs::stat(&p.who(), fd, b"b/f", 0).is_ok());
    assert!(vfs::stat(&p.who(), 77, b"/a/b/f", 0).is_ok(), "an absolute path does not look at the descriptor");
    assert_eq!(err(vfs::stat(&p.who(), 77, b"b", 0)), Some(Errno::EBADF));
    assert_eq!(vfs::stat(&p.who(), fd, b"", AT_EMPTY_PATH).unwrap().st_ino, p.stat("/a").unwrap().st_ino);
    let mut named = vfs::readlink(&p.who(), CWD, b"/a/up").unwrap();
    assert_eq!(named, b"../a/rel/");
    named.clear();
    assert_eq!(err(vfs::readlink(&p.who(), CWD, b"/a")), Some(Errno::EINVAL));
}

#[test]
fn resolve_rules_of_openat2() {
    let p = Process::new();
    p.mkdir("/jail").unwrap();
    p.write_file("/jail/f", "in").unwrap();
    p.write_file("/f", "out").unwrap();
    link(&p, "/f", "/jail/abs").unwrap();
    link(&p, "../f", "/jail/up").unwrap();
    let fd = p.fds.install(p.open("/jail", O_DIRECTORY).unwrap(), false, 9).unwrap();
    let open = |path: &str, rules| vfs::open_with(&p.who(), fd, path.as_bytes(), O_RDONLY, 0, rules);
    for path in ["abs", "up", "../f", "/f"] {
        assert_eq!(err(open(path, RESOLVE_BENEATH)), Some(Errno::EXDEV), "{path}");
        assert_eq!(read(&open(path, RESOLVE_IN_ROOT).unwrap(), 9).unwrap(), b"in", "{path}");
    }
    assert_eq!(err(open("abs", RESOLVE_NO_SYMLINKS)), Some(Errno::ELOOP));
    assert!(open("f", RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV).is_ok());
}

#[test]
fn names_come_and_go() {
    let p = Process::new();
    let who = p.who();
    p.mkdir("/d").unwrap();
    assert_eq!(err(p.mkdir("/d")), Some(Errno::EEXIST));
    assert_eq!(err(p.mkdir("/")), Some(Errno::EEXIST));
    assert_eq!(err(p.mkdir("/d/.")), Some(Errno::EEXIST));
    assert_eq!(err(p.mkdir("/x/y")), Some(Errno::ENOENT));
    p.mkdir("/d/sub/").unwrap();
    assert_eq!(p.stat("/d").unwrap().st_nlink, 3);
    assert_eq!(err(rmdir(&p, "/d")), Some(Errno::ENOTEMPTY));
    assert_eq!(err(rmdir(&p, "/d/.")), Some(Errno::EINVAL));
    assert_eq!(err(rmdir(&p, "/d/sub/..")), Some(Errno::ENOTEMPTY));
    assert_eq!(err(rmdir(&p, "/")), Some(Errno::EBUSY));
    assert_eq!(err(rm(&p, "/d")), Some(Errno::EISDIR));
    let open_dir = p.open("/d/sub", O_DIRECTORY).unwrap();
    let fd = p.fds.install(open_dir.clone(), false, 9).unwrap();
    rmdir(&p, "/d/sub").unwrap();
    assert_eq!(p.stat("/d").unwrap().st_nlink, 2);
    assert_eq!(err(open_dir.readdir(&mut |_| true)), Some(Errno::ENOENT));
    assert_eq!(err(vfs::open(&who, fd, b"new", O_CREAT, 0o600)), Some(Errno::ENOENT));
    assert_eq!(err(vfs::mkdir(&who, fd, b"new", 0o700)), Some(Errno::ENOENT));
    p.write_file("/f", "text").unwrap();
    assert_eq!(err(rmdir(&p, "/f")), Some(Errno::ENOTDIR));
    assert_eq!(err(rm(&p, "/f/")), Some(Errno::ENOTDIR));
    vfs::link(&who, CWD, b"/f", CWD, b"/d/g", 0).unwrap();
    assert_eq!(p.stat("/f").unwrap().st_nlink, 2);
    assert_eq!(p.stat("/f").unwrap().st_ino, p.stat("/d/g").unwrap().st_ino);
    assert_eq!(err(vfs::link(&who, CWD, b"/f", CWD, b"/d/g", 0)), Some(Errno::EEXIST));
    assert_eq!(err(vfs::link(&who, CWD, b"/d", CWD, b"/e", 0)), Some(Errno::EPERM));
    assert_eq!(err(vfs::link(&who, CWD, b"/f", CWD, b"/e/", 0)), Some(Errno::ENOENT));
    let file = p.open("/f", O_RDONLY).unwrap();
    rm(&p, "/f").unwrap();
    rm(&p, "/d/g").unwrap();
    assert_eq!(vfs::fstat(&file).st_nlink, 0);
    assert_eq!(read(&file, 9).unwrap(), b"text", "an open file outlives its names");
    assert_eq!(err(rm(&p, "/f")), Some(Errno::ENOENT));
    vfs::mknod(&who, CWD, b"/fifo", S_IFIFO | 0o600, 0).unwrap();
    assert_eq!(p.stat("/fifo").unwrap().st_mode & S_IFMT, S_IFIFO);
    assert_eq!(err(vfs::symlink(&who, b"", CWD, b"/l")), Some(Errno::ENOENT));
}

#[test]
fn rename_cases() {
    let p = Process::new();
    for dir in ["/a", "/a/b", "/c", "/c/full"] {
        p.mkdir(dir).unwrap();
    }
    p.write_file("/c/full/x", "x").unwrap();
    p.write_file("/f", "f").unwrap();
    p.write_file("/g", "g").unwrap();
    assert_eq!(err(mv(&p, "/a", "/a/b/a", 0)), Some(Errno::EINVAL));
    assert_eq!(err(mv(&p, "/a/b", "/a", 0)), Some(Errno::ENOTEMPTY));
    assert_eq!(err(mv(&p, "/a/b", "/a", RENAME_EXCHANGE)), Some(Errno::EINVAL));
    assert_eq!(err(mv(&p, "/none", "/x", 0)), Some(Errno::ENOENT));
    assert_eq!(err(mv(&p, "/a", "/f", 0)), Some(Errno::ENOTDIR));
    assert_eq!(err(mv(&p, "/f", "/a", 0)), Some(Errno::EISDIR));
    assert_eq!(err(mv(&p, "/a", "/c/full", 0)), Some(Errno::ENOTEMPTY));
    assert_eq!(err(mv(&p, "/f/", "/h", 0)), Some(Errno::ENOTDIR));
    assert_eq!(err(mv(&p, "/f", "/h/", 0)), Some(Errno::ENOTDIR));
    assert_eq!(err(mv(&p, "/a/.", "/x", 0)), Some(Errno::EBUSY));
    assert_eq!(err(mv(&p, "/f", "/g", RENAME_NOREPLACE)), Some(Errno::EEXIST));
    assert_eq!(err(mv(&p, "/f", "/none", RENAME_EXCHANGE)), Some(Errno::ENOENT));
    assert_eq!(err(mv(&p, "/f", "/g", 8)), Some(Errno::EINVAL));
    mv(&p, "/f", "/g", RENAME_EXCHANGE).unwrap();
    assert_eq!((p.read_file("/f").unwrap(), p.read_file("/g").unwrap()), ("g".into(), "f".into()));
    mv(&p, "/f", "/g", 0).unwrap();
    assert_eq!(p.read_file("/g").unwrap(), "g");
    let inside = p.open("/a/b", O_DIRECTORY).unwrap();
    mv(&p, "/a/b", "/c/moved", 0).unwrap();
    assert_eq!((p.stat("/a").unwrap().st_nlink, p.stat("/c").unwrap().st_nlink), (2, 4));
    assert_eq!(inside.path().unwrap().absolute(&p.fs.root()).unwrap().0, b"/c/moved");
    mv(&p, "/a", "/c/moved", 0).unwrap();
    assert_eq!(err(inside.readdir(&mut |_| true)), Some(Errno::ENOENT));
    assert_eq!((p.stat("/c").unwrap().st_nlink, p.stat("/").unwrap().st_nlink), (4, 3));
    vfs::link(&p.who(), CWD, b"/g", CWD, b"/g2", 0).unwrap();
    mv(&p, "/g", "/g2", 0).unwrap();
    assert!(p.stat("/g").is_ok(), "two names of one file stay");
    mv(&p, "/g", "/c/moved", RENAME_EXCHANGE).unwrap();
    assert_eq!((p.stat("/c").unwrap().st_nlink, p.stat("/").unwrap().st_nlink), (3, 4));
}

#[test]
fn permissions() {
    let p = Process::new();
    let user = Credentials::user(1000, 1000);
    let as_user = Caller { cred: &user, ..p.who() };
    p.mkdir("/private").unwrap();
    p.write_file("/private/f", "x").unwrap();
    vfs::chmod(&p.who(), CWD, b"/private", 0o700, 0).unwrap();
    assert_eq!(err(vfs::stat(&as_user, CWD, b"/private/f", 0)), Some(Errno::EACCES));
    assert_eq!(err(vfs::open(&as_user, CWD, b"/new", O_CREAT, 0o600)), Some(Errno::EACCES));
    assert_eq!(err(vfs::mkdir(&as_user, CWD, b"/new", 0o700)), Some(Errno::EACCES));
    p.mkdir("/tmp").unwrap();
    vfs::chmod(&p.who(), CWD, b"/tmp", 0o1777, 0).unwrap();
    let file = vfs::open(&as_user, CWD, b"/tmp/mine", O_CREAT | O_WRONLY, 0o4666).unwrap();
    let stat = vfs::fstat(&file);
    assert_eq!((stat.st_uid, stat.st_gid, stat.st_mode & 0o7777), (1000, 1000, 0o4644));
    write(&file, b"x").unwrap();
    assert_eq!(vfs::fstat(&file).st_mode & 0o7777, 0o644, "a write takes the set-id bit away");
    p.write_file("/tmp/roots", "r").unwrap();
    assert_eq!(err(vfs::unlink(&as_user, CWD, b"/tmp/roots")), Some(Errno::EPERM), "the sticky bit");
    assert_eq!(err(vfs::rename(&as_user, CWD, b"/tmp/mine", CWD, b"/tmp/roots", 0)), Some(Errno::EPERM));
    assert_eq!(err(vfs::chmod(&as_user, CWD, b"/tmp/roots", 0o777, 0)), Some(Errno::EPERM));
    assert_eq!(err(vfs::chown(&as_user, CWD, b"/tmp/mine", 0, 0, 0)), Some(Errno::EPERM));
    assert_eq!(err(vfs::open(&as_user, CWD, b"/tmp/roots", O_WRONLY, 0)), Some(Errno::EACCES));
    assert_eq!(err(vfs::access(&as_user, CWD, b"/tmp/roots", W_OK, 0)), Some(Errno::EACCES));
    assert!(vfs::access(&as_user, CWD, b"/tmp/roots", R_OK, 0).is_ok());
    assert_eq!(err(vfs::access(&p.who(), CWD, b"/tmp/roots", X_OK, 0)), Some(Errno::EACCES));
    assert_eq!(err(vfs::utimens(&as_user, CWD, b"/tmp/roots", None, 0)), Some(Errno::EACCES));
    let t = Timespec { tv_sec: 5, tv_nsec: 6 };
    assert_eq!(err(vfs::utimens(&as_user, CWD, b"/tmp/roots", Some([t, t]), 0)), Some(Errno::EPERM));
    vfs::utimens(&as_user, CWD, b"/tmp/mine", Some([t, Timespec { tv_nsec: uapi::time::UTIME_OMIT, ..t }]), 0).unwrap();
    assert_eq!(p.stat("/tmp/mine").unwrap().st_atime, 5);
    vfs::chown(&p.who(), CWD, b"/tmp", 0, 50, 0).unwrap();
    vfs::chmod(&p.who(), CWD, b"/tmp", 0o3777, 0).unwrap();
    vfs::mkdir(&as_user, CWD, b"/tmp/sub", 0o755).unwrap();
    let sub = p.stat("/tmp/sub").unwrap();
    assert_eq!((sub.st_gid, sub.st_mode & 0o7777), (50, 0o2755), "set-group-id is inherited");
    vfs::unlink(&as_user, CWD, b"/tmp/mine").unwrap();
}

#[test]
fn executing_keeps_writers_away() {
    let p = Process::new();
    p.write_file("/prog", "#!").unwrap();
    assert_eq!(err(vfs::open_exec(&p.who(), CWD, b"/prog", 0)), Some(Errno::EACCES));
    vfs::chmod(&p.who(), CWD, b"/prog", 0o111, 0).unwrap();
    let writer = p.open("/prog", O_WRONLY).unwrap();
    assert_eq!(err(vfs::open_exec(&p.who(), CWD, b"/prog", 0)), Some(Errno::ETXTBSY));
    drop(writer);
    let program = vfs::open_exec(&p.who(), CWD, b"/prog", 0).unwrap();
    assert_eq!(read(&program, 2).unwrap(), b"#!");
    assert_eq!(err(p.open("/prog", O_WRONLY)), Some(Errno::ETXTBSY));
    assert_eq!(err(p.open("/prog", O_RDONLY | O_TRUNC)), Some(Errno::ETXTBSY));
    drop(program);
    assert!(p.open("/prog", O_WRONLY).is_ok());
    p.mkdir("/dir").unwrap();
    assert_eq!(err(vfs::open_exec(&p.who(), CWD, b"/dir", 0)), Some(Errno::EACCES));
}

#[test]
fn directories_are_read_in_records() {
    let p = Process::new();
    for i in 0..20 {
        p.write_file(&std::format!("/file{i:02}"), "").unwrap();
    }
    let dir = p.open("/", O_DIRECTORY).unwrap();
    let mut names = vec![];
    loop {
        let mut buffer = [0; 100];
        let n = vfs::getdents64(&dir, &mut OutBuf::Kernel(&mut buffer)).unwrap();
        if n == 0 {
            break;
        }
        let mut at = 0;
        while at < n {
            let len = u16::from_le_bytes([buffer[at + 16], buffer[at + 17]]) as usize;
            assert_eq!(len % 8, 0);
            let name = &buffer[at + 19..at + len];
            names.push(name.split(|b| *b == 0).next().unwrap().to_vec());
            at += len;
        }
    }
    assert_eq!(names.len(), 22);
    assert_eq!((&names[0][..], &names[1][..], &names[2][..]), (&b"."[..], &b".."[..], &b"file00"[..]));
    dir.seek(0, SEEK_SET).unwrap();
    assert_eq!(err(vfs::getdents64(&dir, &mut OutBuf::Kernel(&mut [0; 8]))), Some(Errno::EINVAL));
}

#[test]
fn fifos_wait_for_their_other_end() {
    let p = Process::new();
    vfs::mknod(&p.who(), CWD, b"/fifo", S_IFIFO | 0o600, 0).unwrap();
    assert_eq!(err(p.open("/fifo", O_WRONLY | O_NONBLOCK)), Some(Errno::ENXIO));
    let reader = p.open("/fifo", O_RDONLY).unwrap();
    assert!(reader.open_waits());
    let writer = p.open("/fifo", O_WRONLY).unwrap();
    assert!(!reader.open_waits() && !writer.open_waits());
    write(&writer, b"hi").unwrap();
    drop(writer);
    assert!(!reader.open_waits(), "a writer that came and went counts");
    assert_eq!(read(&reader, 9).unwrap(), b"hi");
    assert_eq!(read(&reader, 9).unwrap(), b"");
    drop(reader);
    let both = p.open("/fifo", O_RDWR).unwrap();
    assert!(!both.open_waits());
    assert_eq!(err(read(&both, 1)), Some(Errno::EAGAIN));
}

#[test]
fn a_deep_chain_of_removed_directories_is_dropped_without_recursion() {
    const DEPTH: usize = 50_000;
    let p = Process::new();
    for _ in 0..DEPTH {
        p.mkdir("d").unwrap();
        vfs::chdir(&p.who(), b"d").unwrap();
    }
    let deepest = p.fs.cwd();
    for _ in 0..DEPTH {
        vfs::chdir(&p.who(), b"..").unwrap();
        rmdir(&p, "d").unwrap();
    }
    assert_eq!(p.list("/").unwrap().len(), 0);
    drop(deepest);
}

#[test]
fn a_deep_file_system_is_torn_down_without_recursion() {
    let p = Process::new();
    p.mkdir("/m").unwrap();
    vfs::mount(&p.who(), b"", b"/m", b"tmpfs", 0, b"nr_inodes=0").unwrap();
    vfs::chdir(&p.who(), b"/m").unwrap();
    for _ in 0..50_000 {
        p.mkdir("d").unwrap();
        vfs::chdir(&p.who(), b"d").unwrap();
    }
    vfs::umount(&p.who(), b"/m", uapi::fs::MNT_DETACH).unwrap();
    assert_eq!(err(vfs::umount(&p.who(), b"/m", 0)), Some(Errno::EINVAL));
    vfs::chdir(&p.who(), b"/").unwrap();
}

#[test]
fn names_end_when_only_the_reserve_is_left() {
    let p = Process::new();
    p.write_file("/f", "x").unwrap();
    let mut frames = vec![];
    while let Some(frame) = hal::mem::frame::Frame::alloc(hal::mem::frame::Kind::Anonymous) {
        frames.push(frame);
    }
    assert_eq!(p.mkdir("/d").err(), Some(Errno::ENOSPC));
    assert_eq!(p.open("/g", O_CREAT).err(), Some(Errno::ENOSPC));
    assert_eq!(vfs::link(&p.who(), CWD, b"/f", CWD, b"/h", 0).err(), Some(Errno::ENOSPC));
    assert!(crate::pipe::pipe2(&p.cred, 0).is_err());
    assert!(vfs::rename(&p.who(), CWD, b"/f", CWD, b"/i", 0).is_err());
    assert_eq!(p.read_file("/f").unwrap(), "x");
    drop(frames);
    p.mkdir("/d").unwrap();
}
