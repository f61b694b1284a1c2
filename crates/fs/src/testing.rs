//! What the tests of several modules need: a root of their own and a caller.

use std::string::String;
use std::sync::{Arc, MutexGuard};
use std::vec::Vec;

use hal::user::{InBuf, OutBuf};
use uapi::open::AT_FDCWD;

use crate::vfs::{self, FsContext, Inode, Node, SuperBlock};
use crate::{Caller, Credentials, FdTable, File, Result};

/// An inode with a number of the test's choice.
pub fn plain_inode(ino: u64) -> Arc<Inode> {
    let sb = SuperBlock::new(&crate::tmpfs::TMPFS, 0o755, 0, 0);
    sb.inode_numbered(ino, uapi::fs::S_IFSOCK | 0o644, 0, 0, 0, Node::Socket)
}

/// A process of root's in an empty tmpfs of its own.
pub struct Process {
    pub fs: FsContext,
    pub cred: Credentials,
    pub fds: FdTable,
    /// The physical memory that files take: one test at a time has it.
    _memory: MutexGuard<'static, ()>,
}

impl Process {
    pub fn new() -> Self {
        let memory = hal::mem::host::arena();
        crate::tmpfs::init();
        let root = vfs::root_mount((crate::tmpfs::TMPFS.open)(&crate::tmpfs::TMPFS, b"mode=755,nr_inodes=0").unwrap())
            .unwrap();
        Self { fs: FsContext::new(root), cred: Credentials::root(), fds: FdTable::new(), _memory: memory }
    }

    pub fn who(&self) -> Caller<'_> {
        Caller { fs: &self.fs, cred: &self.cred, fds: &self.fds }
    }

    pub fn open(&self, path: &str, flags: u32) -> Result<Arc<File>> {
        vfs::open(&self.who(), AT_FDCWD, path.as_bytes(), flags, 0o666)
    }

    pub fn mkdir(&self, path: &str) -> Result<()> {
        vfs::mkdir(&self.who(), AT_FDCWD, path.as_bytes(), 0o777)
    }

    pub fn stat(&self, path: &str) -> Result<uapi::Stat> {
        vfs::stat(&self.who(), AT_FDCWD, path.as_bytes(), 0)
    }

    pub fn write_file(&self, path: &str, text: &str) -> Result<()> {
        use uapi::open::{O_CREAT, O_TRUNC, O_WRONLY};
        let file = self.open(path, O_CREAT | O_TRUNC | O_WRONLY)?;
        write(&file, text.as_bytes()).map(drop)
    }

    pub fn read_file(&self, path: &str) -> Result<String> {
        let file = self.open(path, 0)?;
        let mut all = Vec::new();
        loop {
            let some = read(&file, 4096)?;
            if some.is_empty() {
                return Ok(String::from_utf8_lossy(&all).into_owned());
            }
            all.extend(some);
        }
    }

    /// The names in a directory, in the order of readdir, without the dots.
    pub fn list(&self, path: &str) -> Result<Vec<String>> {
        let dir = self.open(path, uapi::open::O_DIRECTORY)?;
        let mut names = Vec::new();
        dir.readdir(&mut |entry| {
            let name = String::from_utf8_lossy(entry.name).into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
            true
        })?;
        Ok(names)
    }
}

pub fn read(file: &File, len: usize) -> Result<Vec<u8>> {
    let mut buffer = std::vec![0; len];
    let n = file.read(&mut OutBuf::Kernel(&mut buffer))?;
    buffer.truncate(n);
    Ok(buffer)
}

pub fn write(file: &File, bytes: &[u8]) -> Result<usize> {
    file.write(&mut InBuf::Kernel(bytes))
}
