//! `/proc/PID`, `/proc/PID/task/TID`, `/proc/self`.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use uapi::fs::{MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_RDONLY, MS_RELATIME, S_IFDIR, S_IFLNK, S_IFREG};
use uapi::{Errno, Result};

use super::fd::FdDir;
use super::files::FILES;
use super::{PidFile, source, superblock};
use crate::file::RawEntry;
use crate::text::{Content, TextNode, TextSource};
use crate::vfs::fixed::enter;
use crate::vfs::{DirOps, Directory, Inode, MagicLink, Mount, Node, Path, SuperBlock, mount_table};

/// A place in the tree of processes: what an inode number is made of.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    /// Thread (or process) number.
    pub tid: u32,
    /// True below `task/`.
    pub thread: bool,
}

impl Spot {
    /// Inode numbers: the thread, whether below `task`, and which file. Registered files have small numbers.
    pub fn ino(self, file: u64) -> u64 {
        1 << 52 | u64::from(self.tid) << 20 | u64::from(self.thread) << 19 | file
    }

    pub fn inode(self, file: u64, mode: u32, node: Node) -> Result<Arc<Inode>> {
        let (uid, gid) = source()?.owner(self.tid).ok_or(Errno::ENOENT)?;
        Ok(superblock()?.inode_numbered(self.ino(file), mode, uid, gid, 0, node))
    }

    pub fn directory(self, file: u64, mode: u32, ops: impl DirOps + 'static) -> Result<Arc<Inode>> {
        self.inode(file, S_IFDIR | mode, Node::Dir(Directory::with_own_ops(Box::new(ops))))
    }

    pub fn text(self, file: u64, mode: u32, text: impl TextSource + 'static) -> Result<Arc<Inode>> {
        let content = Content::Source(Arc::new(text));
        self.inode(file, S_IFREG | mode, Node::Text(Box::new(TextNode { content, size: 0 })))
    }
}

/// A decimal number as a name has it: no sign, no leading zero.
pub(super) fn number(name: &[u8]) -> Option<u32> {
    match name {
        [b'0', _, ..] | [] => None,
        digits if digits.iter().all(u8::is_ascii_digit) => core::str::from_utf8(digits).ok()?.parse().ok(),
        _ => None,
    }
}

/// The processes in the root of `/proc`.
pub(super) struct Pids;

/// The one instance.
pub(super) static PIDS: Pids = Pids;

/// Emits directories named by the numbers that `next` gives from `from` on; the position is the number.
fn list_numbers(
    from: u64,
    mode: u32,
    ino: impl Fn(u32) -> u64,
    next: impl Fn(u32) -> Option<u32>,
    emit: &mut dyn FnMut(RawEntry<'_>) -> bool,
) -> bool {
    let Ok(mut at) = u32::try_from(from) else { return true };
    while let Some(id) = next(at) {
        let name = alloc::format!("{id}");
        at = id.saturating_add(1);
        if !emit(RawEntry { ino: ino(id), mode, name: name.as_bytes(), next: u64::from(at) }) {
            return false;
        }
    }
    true
}

impl DirOps for Pids {
    fn lookup(&self, name: &[u8]) -> Result<Arc<Inode>> {
        let tid = number(name).ok_or(Errno::ENOENT)?;
        if !source()?.exists(tid, None) {
            return Err(Errno::ENOENT);
        }
        let spot = Spot { tid, thread: false };
        spot.directory(0, 0o555, PidDir(spot))
    }

    fn list(&self, from: u64, emit: &mut dyn FnMut(RawEntry<'_>) -> bool) -> bool {
        let Ok(source) = source() else { return true };
        let ino = |tid| Spot { tid, thread: false }.ino(0);
        list_numbers(from, S_IFDIR | 0o555, ino, |at| source.next_pid(at), emit)
    }
}

/// `/proc/PID/task`.
struct TaskDir(u32);

impl DirOps for TaskDir {
    fn lookup(&self, name: &[u8]) -> Result<Arc<Inode>> {
        let tid = number(name).ok_or(Errno::ENOENT)?;
        if !source()?.exists(tid, Some(self.0)) {
            return Err(Errno::ENOENT);
        }
        let spot = Spot { tid, thread: true };
        spot.directory(0, 0o555, PidDir(spot))
    }

    fn list(&self, from: u64, emit: &mut dyn FnMut(RawEntry<'_>) -> bool) -> bool {
        let Ok(source) = source() else { return true };
        let ino = |tid| Spot { tid, thread: true }.ino(0);
        list_numbers(from, S_IFDIR | 0o555, ino, |at| source.next_thread(self.0, at), emit)
    }
}

/// Entries of a process's directory that are not rendered by the process model.
#[derive(Clone, Copy)]
enum Other {
    Fd,
    FdInfo,
    Task,
    Exe,
    Cwd,
    Root,
    Mounts,
    MountInfo,
}

const OTHERS: [(&str, u32, Other); 8] = [
    ("fd", S_IFDIR | 0o500, Other::Fd),
    ("fdinfo", S_IFDIR | 0o500, Other::FdInfo),
    ("task", S_IFDIR | 0o555, Other::Task),
    ("exe", S_IFLNK | 0o777, Other::Exe),
    ("cwd", S_IFLNK | 0o777, Other::Cwd),
    ("root", S_IFLNK | 0o777, Other::Root),
    ("mounts", S_IFREG | 0o444, Other::Mounts),
    ("mountinfo", S_IFREG | 0o444, Other::MountInfo),
];

/// `/proc/PID` and `/proc/PID/task/TID`.
struct PidDir(Spot);

impl PidDir {
    /// Number of an entry in inode numbers: the rendered files first, then the others.
    fn entries(&self) -> impl Iterator<Item = (u64, &'static str, u32)> {
        let files = FILES.iter().map(|(name, mode, _)| (*name, S_IFREG | mode));
        let thread = self.0.thread;
        let others = OTHERS.iter().filter(move |(name, ..)| !(thread && *name == "task"));
        files.chain(others.map(|(name, mode, _)| (*name, *mode))).zip(1..).map(|((name, mode), n)| (n, name, mode))
    }
}

impl DirOps for PidDir {
    fn lookup(&self, name: &[u8]) -> Result<Arc<Inode>> {
        let spot = self.0;
        if let Some(n) = FILES.iter().position(|(file, ..)| file.as_bytes() == name)
            && let Some((_, mode, file)) = FILES.get(n)
        {
            return spot.text(n as u64 + 1, *mode, Rendered { tid: spot.tid, file: *file });
        }
        let found = OTHERS.iter().zip(FILES.len() as u64 + 1..).find(|((file, ..), _)| file.as_bytes() == name);
        let ((_, mode, other), ino) = found.ok_or(Errno::ENOENT)?;
        match other {
            Other::Fd => spot.directory(ino, 0o500, FdDir { spot, info: false }),
            Other::FdInfo => spot.directory(ino, 0o500, FdDir { spot, info: true }),
            Other::Task if spot.thread => Err(Errno::ENOENT),
            Other::Task => spot.directory(ino, 0o555, TaskDir(spot.tid)),
            Other::Mounts | Other::MountInfo => {
                let info = matches!(other, Other::MountInfo);
                spot.text(ino, mode & 0o777, MountList { tid: spot.tid, info })
            }
            Other::Exe | Other::Cwd | Other::Root => {
                spot.inode(ino, *mode, Node::Magic(Box::new(PidLink { tid: spot.tid, which: *other })))
            }
        }
    }

    fn list(&self, from: u64, emit: &mut dyn FnMut(RawEntry<'_>) -> bool) -> bool {
        if source().is_ok_and(|source| !source.exists(self.0.tid, None)) {
            return true;
        }
        for (n, name, mode) in self.entries().skip(from as usize) {
            if !emit(RawEntry { ino: self.0.ino(n), mode, name: name.as_bytes(), next: n }) {
                return false;
            }
        }
        true
    }
}

struct Rendered {
    tid: u32,
    file: PidFile,
}

impl TextSource for Rendered {
    fn read(&self) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        source()?.render(self.tid, self.file, &mut out)?;
        Ok(out)
    }

    fn write(&self, text: &[u8]) -> Result<()> {
        source()?.write(self.tid, self.file, text)
    }
}

struct PidLink {
    tid: u32,
    which: Other,
}

impl PidLink {
    fn place(&self) -> Result<Path> {
        let source = source()?;
        if !source.may_inspect(self.tid) {
            return Err(Errno::EACCES);
        }
        let fs = || source.fs(self.tid).ok_or(Errno::ENOENT);
        match self.which {
            Other::Cwd => Ok(fs()?.cwd()),
            Other::Root => Ok(fs()?.root()),
            _ => source.exe(self.tid).and_then(|file| file.path().cloned()).ok_or(Errno::ENOENT),
        }
    }
}

/// The caller's root, to which names in links are relative.
pub(super) fn callers_root() -> Result<Path> {
    let source = source()?;
    source.fs(source.current().1).map(|fs| fs.root()).ok_or(Errno::ESRCH)
}

impl MagicLink for PidLink {
    fn text(&self) -> Result<Vec<u8>> {
        self.place()?.display(&callers_root()?)
    }

    fn target(&self) -> Result<Option<Path>> {
        self.place().map(Some)
    }
}

/// `mounts` and `mountinfo`: proc_pid_mounts(5), proc_pid_mountinfo(5).
struct MountList {
    tid: u32,
    info: bool,
}

/// Blanks in names are written in octal, so that fields stay fields.
fn escape(name: &[u8], out: &mut Vec<u8>) {
    for byte in name {
        match byte {
            b' ' | b'\t' | b'\n' | b'\\' => out.extend_from_slice(alloc::format!("\\{byte:03o}").as_bytes()),
            _ => out.push(*byte),
        }
    }
}

const OPTIONS: [(u64, &str); 4] =
    [(MS_NOSUID, ",nosuid"), (MS_NODEV, ",nodev"), (MS_NOEXEC, ",noexec"), (MS_RELATIME, ",relatime")];

/// The options of a mount, as mount(8) takes them.
fn options(mount: &Mount) -> String {
    let mut text = String::from(if mount.flags() & MS_RDONLY != 0 { "ro" } else { "rw" });
    OPTIONS.iter().filter(|(bit, _)| mount.flags() & bit != 0).for_each(|(_, option)| text.push_str(option));
    text
}

impl TextSource for MountList {
    fn read(&self) -> Result<Vec<u8>> {
        let root = source()?.fs(self.tid).ok_or(Errno::EINVAL)?.root();
        let mut out = Vec::new();
        for (mount, name) in mount_table(&root) {
            let (flags, fs) = (options(&mount), mount.sb().fs.name);
            if self.info {
                let parent = mount.mountpoint().map_or(mount.id, |at| at.mount.id);
                let dev = crate::dev::number(mount.sb().dev);
                out.extend_from_slice(alloc::format!("{} {parent} {dev} ", mount.id).as_bytes());
                let inside = Path { mount: mount.clone(), dentry: mount.root().clone() };
                escape(&inside.within_fs(), &mut out);
                out.push(b' ');
                escape(&name, &mut out);
                out.extend_from_slice(alloc::format!(" {flags} - {fs} ").as_bytes());
                escape(mount.source(), &mut out);
                out.extend_from_slice(b" rw\n");
            } else {
                escape(mount.source(), &mut out);
                out.push(b' ');
                escape(&name, &mut out);
                out.extend_from_slice(alloc::format!(" {fs} {flags} 0 0\n").as_bytes());
            }
        }
        Ok(out)
    }
}

/// `/proc/self` and `/proc/thread-self`.
struct SelfLink {
    thread: bool,
}

impl MagicLink for SelfLink {
    fn text(&self) -> Result<Vec<u8>> {
        let (pid, tid) = source().map_err(|_| Errno::ENOENT)?.current();
        let text = if self.thread { alloc::format!("{pid}/task/{tid}") } else { alloc::format!("{pid}") };
        Ok(text.into_bytes())
    }
}

pub(super) fn init(sb: &SuperBlock) -> Result<()> {
    for (name, thread) in [("self", false), ("thread-self", true)] {
        let node = Node::Magic(Box::new(SelfLink { thread }));
        enter(sb, name, |sb| sb.inode(Inode::mode_of_link(), 0, 0, 0, node))?;
    }
    Ok(())
}
