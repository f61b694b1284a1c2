//! `/proc/PID/fd` and `/proc/PID/fdinfo`.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use uapi::fs::{S_IFIFO, S_IFLNK, S_IFREG, S_IFSOCK};
use uapi::open::O_CLOEXEC;
use uapi::{Errno, Result};

use super::pid::{Spot, callers_root, number};
use super::source;
use crate::file::{File, RawEntry};
use crate::text::TextSource;
use crate::vfs::{DirOps, Inode, MagicLink, Node, Path};

pub(super) struct FdDir {
    pub spot: Spot,
    pub info: bool,
}

/// The file at a descriptor of a process that the caller may look into.
fn file(tid: u32, fd: u32) -> Result<(Arc<File>, bool)> {
    let source = source()?;
    if !source.may_inspect(tid) {
        return Err(Errno::EACCES);
    }
    let fds = source.fds(tid).ok_or(Errno::ENOENT)?;
    fds.get_with_cloexec(i32::try_from(fd).map_err(|_| Errno::ENOENT)?).map_err(|_| Errno::ENOENT)
}

impl FdDir {
    /// Descriptors are above the numbers of a process's other files.
    fn ino(&self, fd: u32) -> u64 {
        self.spot.ino(0x100 + u64::from(fd) * 2 + u64::from(self.info))
    }
}

impl DirOps for FdDir {
    fn lookup(&self, name: &[u8]) -> Result<Arc<Inode>> {
        let fd = number(name).ok_or(Errno::ENOENT)?;
        let (open, _) = file(self.spot.tid, fd)?;
        let (tid, ino) = (self.spot.tid, 0x100 + u64::from(fd) * 2 + u64::from(self.info));
        if self.info {
            return self.spot.text(ino, 0o400, FdInfo { tid, fd });
        }
        let bits = |on, bits| if on { bits } else { 0u32 };
        let access = bits(open.readable(), 0o500) | bits(open.writable(), 0o300);
        self.spot.inode(ino, S_IFLNK | access, Node::Magic(Box::new(FdLink { tid, fd })))
    }

    fn list(&self, from: u64, emit: &mut dyn FnMut(RawEntry<'_>) -> bool) -> bool {
        let Ok(source) = source() else { return true };
        let Some(fds) = source.fds(self.spot.tid).filter(|_| source.may_inspect(self.spot.tid)) else { return true };
        let mode = if self.info { S_IFREG | 0o400 } else { S_IFLNK | 0o700 };
        let mut at = from as usize;
        while let Some(fd) = fds.next_open(at) {
            let name = alloc::format!("{fd}");
            at = fd + 1;
            if !emit(RawEntry { ino: self.ino(fd as u32), mode, name: name.as_bytes(), next: at as u64 }) {
                return false;
            }
        }
        true
    }
}

/// A link that leads to the open file itself, not to its name.
struct FdLink {
    tid: u32,
    fd: u32,
}

impl MagicLink for FdLink {
    fn text(&self) -> Result<Vec<u8>> {
        let (file, _) = file(self.tid, self.fd)?;
        if let Some(path) = file.path() {
            return path.display(&callers_root()?);
        }
        let inode = file.inode();
        let kind = match inode.file_type() {
            S_IFIFO => "pipe",
            S_IFSOCK => "socket",
            _ => return Ok(b"anon_inode:[unknown]".to_vec()),
        };
        Ok(alloc::format!("{kind}:[{}]", inode.ino).into_bytes())
    }

    fn target(&self) -> Result<Option<Path>> {
        Ok(file(self.tid, self.fd)?.0.path().cloned())
    }

    fn file(&self) -> Option<Arc<File>> {
        file(self.tid, self.fd).ok().map(|(file, _)| file).filter(|file| file.path().is_none())
    }
}

/// proc_pid_fdinfo(5).
struct FdInfo {
    tid: u32,
    fd: u32,
}

impl TextSource for FdInfo {
    fn read(&self) -> Result<Vec<u8>> {
        let (file, cloexec) = file(self.tid, self.fd)?;
        let pos = if file.as_pipe().is_some() { 0 } else { *file.pos.lock() };
        let flags = file.flags() | if cloexec { O_CLOEXEC } else { 0 };
        let mount = file.path().map_or(0, |path| path.mount.id);
        let ino = file.inode().ino;
        Ok(alloc::format!("pos:\t{pos}\nflags:\t0{flags:o}\nmnt_id:\t{mount}\nino:\t{ino}\n").into_bytes())
    }
}
