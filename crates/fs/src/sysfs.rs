//! sysfs(5): a tree of attributes that the kernel's parts register.

use alloc::sync::Arc;

use hal::sync::Once;
use uapi::fs::SYSFS_MAGIC;
use uapi::{Errno, Result};

use crate::text::Content;
use crate::vfs::fixed::{enter_dir, enter_link, enter_text};
use crate::vfs::{FsType, SuperBlock, register_fs};

/// The kind for mount(2): one file system, however often it is mounted.
pub static SYSFS: FsType =
    FsType { name: "sysfs", magic: SYSFS_MAGIC, fixed: Some(Errno::EACCES), open: |_, _| superblock() };

static SB: Once<Arc<SuperBlock>> = Once::new();

fn superblock() -> Result<Arc<SuperBlock>> {
    if SB.get().is_none() {
        // A second one made at the same time is dropped.
        let _ = SB.set(SuperBlock::new(&SYSFS, 0o555, 0, 0));
    }
    SB.get().cloned().ok_or(Errno::ENODEV)
}

/// Registers an attribute at `path` below `/sys` with permissions `mode` (`0o444`, `0o644`).
pub fn register(path: &str, mode: u32, content: impl Into<Content>) -> Result<()> {
    enter_text(&*superblock()?, path, mode, 4096, content.into())
}

/// Registers a symbolic link.
pub fn register_link(path: &str, target: &str) -> Result<()> {
    enter_link(&*superblock()?, path, target)
}

/// Registers an empty directory: a place to mount on.
pub fn register_dir(path: &str) -> Result<()> {
    enter_dir(&*superblock()?, path)
}

/// Makes sysfs known to mount(2) and enters what every machine has.
pub fn init() -> Result<()> {
    register_fs(&SYSFS);
    for dir in ["block", "bus", "class", "devices", "firmware", "fs/cgroup", "module", "power", "kernel/debug"] {
        register_dir(dir)?;
    }
    register("kernel/cpu_byteorder", 0o444, "little\n")?;
    register("kernel/address_bits", 0o444, "64\n")
}

/// Registers the processors: `/sys/devices/system/cpu`. `online` is asked at each read, for a list such as `0-3`.
pub fn register_cpus(count: usize, online: fn() -> alloc::string::String) -> Result<()> {
    let all = match count {
        0 | 1 => alloc::string::String::from("0\n"),
        n => alloc::format!("0-{}\n", n - 1),
    };
    let all: &'static [u8] = alloc::boxed::Box::leak(all.into_bytes().into_boxed_slice());
    register("devices/system/cpu/online", 0o444, Content::Made(online))?;
    register("devices/system/cpu/possible", 0o444, Content::Static(all))?;
    register("devices/system/cpu/present", 0o444, Content::Static(all))?;
    register("devices/system/cpu/offline", 0o444, "\n")?;
    register("devices/system/cpu/isolated", 0o444, "\n")?;
    register("devices/system/cpu/kernel_max", 0o444, Content::Static(b"63\n"))?;
    (0..count).try_for_each(|cpu| {
        register_dir(&alloc::format!("devices/system/cpu/cpu{cpu}"))?;
        register_link(
            &alloc::format!("bus/cpu/devices/cpu{cpu}"),
            &alloc::format!("../../../devices/system/cpu/cpu{cpu}"),
        )
    })
}
