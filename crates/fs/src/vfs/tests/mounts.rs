//! mount(2) and umount2(2).

use uapi::Errno;
use uapi::fs::{MNT_DETACH, MS_BIND, MS_MOVE, MS_RDONLY, MS_REC, MS_REMOUNT};
use uapi::open::{AT_FDCWD, O_CREAT, O_RDONLY};

use crate::testing::Process;
use crate::vfs::{self, mount, mount_table, umount};
use crate::{Caller, Credentials};

fn tmpfs(p: &Process, at: &str, flags: u64) -> crate::Result<()> {
    mount(&p.who(), b"none", at.as_bytes(), b"tmpfs", flags, b"mode=755")
}

#[test]
fn what_is_mounted_covers_and_uncovers() {
    let p = Process::new();
    p.mkdir("/m").unwrap();
    p.write_file("/m/below", "b").unwrap();
    tmpfs(&p, "/m", 0).unwrap();
    assert_eq!(p.list("/m").unwrap(), [""; 0]);
    assert_ne!(p.stat("/m").unwrap().st_dev, p.stat("/").unwrap().st_dev);
    p.mkdir("/m/x").unwrap();
    vfs::chdir(&p.who(), b"/m/x").unwrap();
    assert_eq!(vfs::getcwd(&p.who()).unwrap(), b"/m/x");
    assert_eq!(p.stat("../../m/x").unwrap().st_ino, p.stat(".").unwrap().st_ino);
    assert_eq!(umount(&p.who(), b"/m", 0), Err(Errno::EBUSY));
    assert_eq!(vfs::rmdir(&p.who(), AT_FDCWD, b"/m"), Err(Errno::EBUSY));
    assert_eq!(vfs::rename(&p.who(), AT_FDCWD, b"/m/x", AT_FDCWD, b"/x", 0), Err(Errno::EXDEV));
    vfs::chdir(&p.who(), b"/").unwrap();
    tmpfs(&p, "/m", 0).unwrap();
    assert_eq!(p.stat("/m/x").err(), Some(Errno::ENOENT));
    umount(&p.who(), b"/m", 0).unwrap();
    assert!(p.stat("/m/x").is_ok());
    let open = p.open("/m/x", O_RDONLY).unwrap();
    assert_eq!(umount(&p.who(), b"/m", 0), Err(Errno::EBUSY));
    umount(&p.who(), b"/m", MNT_DETACH).unwrap();
    assert!(vfs::fstat(&open).st_ino != 0);
    assert_eq!(p.read_file("/m/below").unwrap(), "b");
    assert_eq!(umount(&p.who(), b"/m", 0), Err(Errno::EINVAL));
}

#[test]
fn errors() {
    let p = Process::new();
    p.write_file("/f", "").unwrap();
    assert_eq!(tmpfs(&p, "/f", 0), Err(Errno::ENOTDIR));
    assert_eq!(tmpfs(&p, "/none", 0), Err(Errno::ENOENT));
    assert_eq!(mount(&p.who(), b"", b"/", b"nofs", 0, b""), Err(Errno::ENODEV));
    assert_eq!(mount(&p.who(), b"", b"/", b"tmpfs", 0, b"bad=1"), Err(Errno::EINVAL));
    let user = Credentials::user(1, 1);
    let who = Caller { cred: &user, ..p.who() };
    assert_eq!(mount(&who, b"", b"/", b"tmpfs", 0, b""), Err(Errno::EPERM));
    assert_eq!(umount(&p.who(), b"/", 0), Err(Errno::EINVAL));
}

#[test]
fn read_only_bind_and_move() {
    let p = Process::new();
    for dir in ["/a", "/a/sub", "/b", "/c"] {
        p.mkdir(dir).unwrap();
    }
    p.write_file("/a/f", "f").unwrap();
    tmpfs(&p, "/a/sub", 0).unwrap();
    p.write_file("/a/sub/g", "g").unwrap();
    mount(&p.who(), b"/a", b"/b", b"", MS_BIND, b"").unwrap();
    assert_eq!(p.read_file("/b/f").unwrap(), "f");
    assert_eq!(p.stat("/b/sub/g").err(), Some(Errno::ENOENT));
    umount(&p.who(), b"/b", 0).unwrap();
    mount(&p.who(), b"/a", b"/b", b"", MS_BIND | MS_REC, b"").unwrap();
    assert_eq!(p.read_file("/b/sub/g").unwrap(), "g");
    mount(&p.who(), b"", b"/b", b"", MS_REMOUNT | MS_BIND | MS_RDONLY, b"").unwrap();
    assert_eq!(p.open("/b/new", O_CREAT).err(), Some(Errno::EROFS));
    assert_eq!(vfs::unlink(&p.who(), AT_FDCWD, b"/b/f"), Err(Errno::EROFS));
    assert!(p.write_file("/a/f", "written").is_ok());
    mount(&p.who(), b"/a/sub", b"/c", b"", MS_MOVE, b"").unwrap();
    assert_eq!(p.read_file("/c/g").unwrap(), "g");
    assert_eq!(p.stat("/a/sub/g").err(), Some(Errno::ENOENT));
    let table = mount_table(&p.fs.root());
    let names: std::vec::Vec<_> = table.iter().map(|(_, name)| std::string::String::from_utf8_lossy(name)).collect();
    assert_eq!(names, ["/", "/c", "/b", "/b/sub"]);
}
