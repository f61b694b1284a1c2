//! proc(5).
//!
//! What does not depend on a process is registered by the kernel's parts, like attributes in sysfs. Directories of
//! processes are made when they are looked up; what they say comes from the [`ProcSource`] that the process model
//! registers, so that this crate needs to know nothing of tasks.

mod fd;
mod files;
mod pid;
mod system;

use alloc::sync::Arc;
use alloc::vec::Vec;

use hal::sync::Once;
use uapi::fs::PROC_SUPER_MAGIC;
use uapi::{Errno, Result};

use crate::fdtable::FdTable;
use crate::file::File;
use crate::text::Content;
use crate::vfs::fixed::{enter_dir, enter_link, enter_text};
use crate::vfs::{FsContext, FsType, SuperBlock, register_fs};

pub use files::PidFile;

/// The kind for mount(2): one file system, however often it is mounted.
pub static PROCFS: FsType =
    FsType { name: "proc", magic: PROC_SUPER_MAGIC, fixed: Some(Errno::ENOENT), open: |_, _| superblock() };

static SB: Once<Arc<SuperBlock>> = Once::new();
static SOURCE: Once<&'static dyn ProcSource> = Once::new();

/// What `/proc` has to know of processes. A thread number that is not a group leader names that thread.
///
/// Called without any lock of this crate held but a file's position.
pub trait ProcSource: Send + Sync {
    /// Process and thread number of the caller, as `/proc/self` and `/proc/thread-self` show them.
    fn current(&self) -> (u32, u32);

    /// The lowest process number not below `from`.
    fn next_pid(&self, from: u32) -> Option<u32>;

    /// The lowest thread number not below `from` in the process `pid`.
    fn next_thread(&self, pid: u32, from: u32) -> Option<u32>;

    /// True when there is a process or thread of this number; with `pid`, one of that process.
    fn exists(&self, tid: u32, pid: Option<u32>) -> bool;

    /// User and group that own the directory: the effective ones, or root's if the process must not be looked into.
    fn owner(&self, tid: u32) -> Option<(u32, u32)>;

    /// Appends the content of a file. `ESRCH` when the process is gone, `EACCES` when the caller may not look into it
    /// (environ, auxv, maps), an empty text for a zombie's memory.
    fn render(&self, tid: u32, file: PidFile, out: &mut Vec<u8>) -> Result<()>;

    /// Takes what was written to `comm` or `oom_score_adj`. `EINVAL`, `EACCES`, `ESRCH`.
    fn write(&self, tid: u32, file: PidFile, text: &[u8]) -> Result<()>;

    /// The file descriptors; `None` when gone.
    fn fds(&self, tid: u32) -> Option<Arc<FdTable>>;

    /// Root and working directory; `None` when gone.
    fn fs(&self, tid: u32) -> Option<Arc<FsContext>>;

    /// The program's file; `None` for a kernel thread or zombie.
    fn exe(&self, tid: u32) -> Option<Arc<File>>;

    /// Whether the caller may follow the links of this process (`fd/*`, `exe`, `cwd`, `root`): ptrace(2)'s access check.
    fn may_inspect(&self, tid: u32) -> bool;
}

pub(crate) fn source() -> Result<&'static dyn ProcSource> {
    SOURCE.get().copied().ok_or(Errno::ESRCH)
}

fn superblock() -> Result<Arc<SuperBlock>> {
    if SB.get().is_none() {
        let _ = SB.set(SuperBlock::with_ops(&PROCFS, 0o555, &pid::PIDS));
    }
    SB.get().cloned().ok_or(Errno::ENODEV)
}

/// Sets who knows the processes.
pub fn set_source(source: &'static dyn ProcSource) {
    let _ = SOURCE.set(source);
}

/// Registers a file at `path` below `/proc` with permissions `mode`: the kernel's parts do so for `cpuinfo`, `meminfo`,
/// `uptime`, `stat`, `version`, `cmdline`, `sys/kernel/hostname`, `limen/boundary` and whatever they have to show.
pub fn register(path: &str, mode: u32, content: impl Into<Content>) -> Result<()> {
    enter_text(&*superblock()?, path, mode, 0, content.into())
}

/// Registers a symbolic link.
pub fn register_link(path: &str, target: &str) -> Result<()> {
    enter_link(&*superblock()?, path, target)
}

/// Makes proc known to mount(2) and enters what this crate itself knows: filesystems, mounts, devices, self,
/// thread-self, sys/kernel/random and some limits of the file system.
pub fn init() -> Result<()> {
    register_fs(&PROCFS);
    let sb = superblock()?;
    system::init()?;
    pid::init(&sb)?;
    enter_dir(&sb, "sys/fs/binfmt_misc")
}

#[cfg(test)]
mod tests;
