use std::string::String;
use std::sync::Mutex;
use std::vec::Vec;

use uapi::Errno;
use uapi::fs::{S_IFDIR, S_IFMT};
use uapi::open::*;

use super::*;
use crate::Caller;
use crate::testing::{Process, read, write};
use crate::vfs;

/// Two processes: 7 is the caller, with threads 7 and 8; 20 belongs to somebody else.
struct Model(Mutex<Option<Parts>>);

#[derive(Clone)]
struct Parts {
    fds: Arc<FdTable>,
    fs: Arc<FsContext>,
    exe: Arc<File>,
}

static MODEL: Model = Model(Mutex::new(None));

impl Model {
    fn parts(&self, tid: u32) -> Option<Parts> {
        self.0.lock().unwrap().clone().filter(|_| tid == 7 || tid == 8)
    }
}

impl ProcSource for Model {
    fn current(&self) -> (u32, u32) {
        (7, 8)
    }
    fn next_pid(&self, from: u32) -> Option<u32> {
        [7, 20].into_iter().find(|pid| *pid >= from)
    }
    fn next_thread(&self, pid: u32, from: u32) -> Option<u32> {
        [7, 8].into_iter().find(|tid| pid == 7 && *tid >= from)
    }
    fn exists(&self, tid: u32, pid: Option<u32>) -> bool {
        match pid {
            Some(pid) => pid == 7 && (tid == 7 || tid == 8),
            None => [7, 8, 20].contains(&tid),
        }
    }
    fn owner(&self, tid: u32) -> Option<(u32, u32)> {
        Some(if tid == 20 { (1000, 1000) } else { (0, 0) })
    }
    fn render(&self, tid: u32, file: PidFile, out: &mut Vec<u8>) -> Result<()> {
        out.extend(std::format!("{tid} {file:?}\n").bytes());
        Ok(())
    }
    fn write(&self, _: u32, file: PidFile, text: &[u8]) -> Result<()> {
        if file == PidFile::Comm && text == b"name" { Ok(()) } else { Err(Errno::EINVAL) }
    }
    fn fds(&self, tid: u32) -> Option<Arc<FdTable>> {
        self.parts(tid).map(|parts| parts.fds)
    }
    fn fs(&self, tid: u32) -> Option<Arc<FsContext>> {
        self.parts(tid).map(|parts| parts.fs)
    }
    fn exe(&self, tid: u32) -> Option<Arc<File>> {
        self.parts(tid).map(|parts| parts.exe)
    }
    fn may_inspect(&self, tid: u32) -> bool {
        tid != 20
    }
}

/// A process whose /proc and /sys are mounted. Its file table is the one that /proc shows.
fn mounted() -> (Process, Arc<FdTable>) {
    let p = Process::new();
    init().unwrap();
    crate::sysfs::init().unwrap();
    set_source(&MODEL);
    p.mkdir("/proc").unwrap();
    p.mkdir("/sys").unwrap();
    p.write_file("/prog", "").unwrap();
    vfs::mount(&p.who(), b"proc", b"/proc", b"proc", uapi::fs::MS_NOSUID, b"").unwrap();
    vfs::mount(&p.who(), b"my sys", b"/sys", b"sysfs", 0, b"").unwrap();
    let fds = Arc::new(FdTable::new());
    let fs = Arc::new(FsContext::new(p.fs.root()));
    let exe = p.open("/prog", O_RDONLY).unwrap();
    *MODEL.0.lock().unwrap() = Some(Parts { fds: fds.clone(), fs, exe });
    (p, fds)
}

fn readlink(p: &Process, path: &str) -> Result<String> {
    let text = vfs::readlink(&p.who(), AT_FDCWD, path.as_bytes())?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn processes_are_shown() {
    let (p, _) = mounted();
    let names = p.list("/proc").unwrap();
    assert!(["filesystems", "self", "sys", "7", "20"].iter().all(|name| names.iter().any(|n| n == name)), "{names:?}");
    assert_eq!(readlink(&p, "/proc/self").unwrap(), "7");
    assert_eq!(readlink(&p, "/proc/thread-self").unwrap(), "7/task/8");
    assert_eq!(p.read_file("/proc/self/stat").unwrap(), "7 Stat\n");
    assert_eq!(p.read_file("/proc/thread-self/status").unwrap(), "8 Status\n");
    assert_eq!(p.list("/proc/7/task").unwrap(), ["7", "8"]);
    assert!(p.list("/proc/7").unwrap().iter().any(|name| name == "task"));
    assert!(!p.list("/proc/7/task/8").unwrap().iter().any(|name| name == "task"));
    for gone in ["/proc/9", "/proc/07", "/proc/-7", "/proc/7/none", "/proc/7/task/20", "/proc/x"] {
        assert_eq!(p.stat(gone).err(), Some(Errno::ENOENT), "{gone}");
    }
    assert_eq!(p.stat("/proc/20").unwrap().st_uid, 1000);
    assert_eq!(p.stat("/proc/7/fd").unwrap().st_mode, S_IFDIR | 0o500);
    assert!(p.write_file("/proc/7/comm", "name").is_ok());
    assert_eq!(p.write_file("/proc/7/comm", "other").err(), Some(Errno::EINVAL));
    assert_eq!(p.open("/proc/new", O_CREAT | O_WRONLY).err(), Some(Errno::ENOENT));
    assert_eq!(p.mkdir("/proc/new").err(), Some(Errno::ENOENT));
    assert_eq!(vfs::unlink(&p.who(), AT_FDCWD, b"/proc/filesystems"), Err(Errno::EPERM));
    assert_eq!(p.mkdir("/sys/new").err(), Some(Errno::EPERM));
    assert_eq!(p.open("/sys/new", O_CREAT | O_WRONLY).err(), Some(Errno::EACCES));
}

#[test]
fn links_lead_to_files() {
    let (p, fds) = mounted();
    p.write_file("/tmpfile", "hello").unwrap();
    let file = p.open("/tmpfile", O_RDWR).unwrap();
    fds.install(file, false, 99).unwrap();
    let (r, w) = crate::pipe::pipe2(&p.cred, 0).unwrap();
    let ino = r.inode().ino;
    fds.install_pair(r.clone(), w, true, 99).unwrap();
    assert_eq!(p.list("/proc/self/fd").unwrap(), ["0", "1", "2"]);
    assert_eq!(readlink(&p, "/proc/self/fd/0").unwrap(), "/tmpfile");
    assert_eq!(readlink(&p, "/proc/self/fd/1").unwrap(), std::format!("pipe:[{ino}]"));
    assert_eq!(readlink(&p, "/proc/self/exe").unwrap(), "/prog");
    assert_eq!(readlink(&p, "/proc/self/cwd").unwrap(), "/");
    vfs::unlink(&p.who(), AT_FDCWD, b"/tmpfile").unwrap();
    assert_eq!(readlink(&p, "/proc/self/fd/0").unwrap(), "/tmpfile (deleted)");
    assert_eq!(p.read_file("/proc/self/fd/0").unwrap(), "hello", "the link leads to the file, not to its name");
    assert_eq!(p.stat("/proc/self/fd/1").unwrap().st_ino, ino);
    let again = p.open("/proc/self/fd/2", O_WRONLY).unwrap();
    write(&again, b"x").unwrap();
    assert_eq!(read(&r, 9).unwrap(), b"x");
    assert_eq!(p.stat("/proc/self/fd/1/x").err(), Some(Errno::ENOTDIR));
    assert_eq!(p.stat("/proc/self/fd/9").err(), Some(Errno::ENOENT));
    assert_eq!(p.list("/proc/self/cwd/proc/self/task").unwrap(), ["7", "8"]);
    assert_eq!(p.stat("/proc/20/exe").err(), Some(Errno::EACCES));
    assert!(p.read_file("/proc/self/fdinfo/1").unwrap().starts_with("pos:\t0\nflags:\t02000000\n"));
    let user = crate::Credentials::user(5, 5);
    let who = Caller { cred: &user, ..p.who() };
    assert_eq!(vfs::stat(&who, AT_FDCWD, b"/proc/7/fd/0", 0).err(), Some(Errno::EACCES));
}

#[test]
fn mounts_and_system_files() {
    let (p, _) = mounted();
    let mounts = p.read_file("/proc/mounts").unwrap();
    assert_eq!(
        mounts,
        "rootfs / tmpfs rw,relatime 0 0\nproc /proc proc rw,nosuid,relatime 0 0\nmy\\040sys /sys sysfs rw,relatime 0 0\n"
    );
    assert_eq!(p.read_file("/proc/self/mountinfo").unwrap().lines().count(), 3);
    assert!(p.read_file("/proc/filesystems").unwrap().contains("nodev\tsysfs\n"));
    let (a, b) = (p.read_file("/proc/sys/kernel/random/uuid"), p.read_file("/proc/sys/kernel/random/uuid"));
    assert_ne!(a, b);
    let boot = |p: &Process| p.read_file("/proc/sys/kernel/random/boot_id").unwrap();
    assert_eq!(boot(&p), boot(&p));
}

#[test]
fn attributes_are_read_as_registered() {
    let (p, _) = mounted();
    assert_eq!(p.read_file("/sys/kernel/cpu_byteorder").unwrap(), "little\n");
    let file = p.open("/sys/kernel/cpu_byteorder", O_RDONLY).unwrap();
    assert_eq!(read(&file, 3).unwrap(), b"lit");
    assert_eq!(read(&file, 30).unwrap(), b"tle\n");
    assert_eq!(read(&file, 30).unwrap(), b"");
    file.seek(1, SEEK_SET).unwrap();
    assert_eq!(read(&file, 30).unwrap(), b"ittle\n");
    assert_eq!(vfs::fstat(&file).st_size, 4096);
    crate::sysfs::register_cpus(3, || "0-1\n".into()).unwrap();
    assert_eq!(p.read_file("/sys/devices/system/cpu/online").unwrap(), "0-1\n");
    assert_eq!(p.read_file("/sys/devices/system/cpu/possible").unwrap(), "0-2\n");
    assert_eq!(p.stat("/sys/bus/cpu/devices/cpu2").unwrap().st_mode & S_IFMT, S_IFDIR);

    struct Counter(Mutex<u32>);
    impl crate::TextSource for Counter {
        fn read(&self) -> Result<Vec<u8>> {
            let mut n = self.0.lock().unwrap();
            *n += 1;
            Ok(std::format!("read {n}\n").into_bytes())
        }
    }
    register("counter", 0o444, Arc::new(Counter(Mutex::new(0)))).unwrap();
    let file = p.open("/proc/counter", O_RDONLY).unwrap();
    assert_eq!(read(&file, 4).unwrap(), b"read");
    assert_eq!(read(&file, 9).unwrap(), b" 1\n", "one rendering for one pass");
    file.seek(0, SEEK_SET).unwrap();
    assert_eq!(read(&file, 9).unwrap(), b"read 2\n");
}

#[test]
fn devices_are_nodes() {
    let (p, _) = mounted();
    let _ = crate::dev::init();
    p.mkdir("/dev").unwrap();
    vfs::mount(&p.who(), b"", b"/dev", b"devtmpfs", 0, b"").unwrap();
    let open = |name| p.open(name, O_RDWR).unwrap();
    assert_eq!(read(&open("/dev/null"), 9).unwrap(), b"");
    assert_eq!(write(&open("/dev/null"), b"x"), Ok(1));
    assert_eq!(read(&open("/dev/zero"), 3).unwrap(), [0; 3]);
    assert_eq!(write(&open("/dev/full"), b"x"), Err(Errno::ENOSPC));
    assert_ne!(read(&open("/dev/urandom"), 32).unwrap(), read(&open("/dev/random"), 32).unwrap());
    assert_eq!(p.stat("/dev/zero").unwrap().st_rdev, 0x105);
    assert!(open("/dev/zero").mmap_is_anonymous());
    let kmsg = open("/dev/kmsg");
    kmsg.seek(0, SEEK_END).unwrap();
    assert_eq!(read(&kmsg, 99).err(), Some(Errno::EAGAIN));
    write(&kmsg, b"<30>hello").unwrap();
    let line = String::from_utf8(read(&kmsg, 99).unwrap()).unwrap();
    assert!(line.starts_with("30,") && line.ends_with(",-;hello\n"), "{line}");
    vfs::mknod(&p.who(), AT_FDCWD, b"/null", uapi::fs::S_IFCHR | 0o666, 0x103).unwrap();
    assert_eq!(read(&open("/null"), 9).unwrap(), b"", "a node works wherever it is");
    vfs::mknod(&p.who(), AT_FDCWD, b"/nobody", uapi::fs::S_IFCHR | 0o666, 0x9999).unwrap();
    assert_eq!(p.open("/nobody", O_RDONLY).err(), Some(Errno::ENXIO));
    vfs::mount(&p.who(), b"", b"/", b"", uapi::fs::MS_REMOUNT | uapi::fs::MS_NODEV, b"").unwrap();
    assert_eq!(p.open("/null", O_RDONLY).err(), Some(Errno::EACCES));
    assert!(p.read_file("/proc/devices").unwrap().contains("  1 mem\n"));
}
