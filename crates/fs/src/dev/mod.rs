//! Devices: null(4), random(4), tty(4), kmsg; who stands behind a device number; and devtmpfs, which shows them.

mod kmsg;
mod mem;

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use hal::sync::{Once, SpinLock};
use uapi::fs::{S_IFCHR, S_IFDIR, S_IFMT, TMPFS_MAGIC, major, makedev, minor};
use uapi::{Errno, Result};

use crate::file::Ops;
use crate::tmpfs::Usage;
use crate::vfs::dir_entry::NameKey;
use crate::vfs::{Dentry, Directory, FsType, Node, SuperBlock, TREE, register_fs};

pub use kmsg::{KMSG_CAPACITY, kmsg_append, kmsg_clear, kmsg_read_all};

/// The driver of one device number.
pub trait Device: Send + Sync {
    /// Opens it with these flags of open(2).
    fn open(&self, flags: u32) -> Result<Ops>;
}

struct Entry {
    kind: u32,
    rdev: u64,
    /// Path below `/dev`.
    name: String,
    mode: u32,
    device: Arc<dyn Device>,
}

static DEVICES: SpinLock<Vec<Entry>> = SpinLock::new(Vec::new());
static DEV_SB: Once<Arc<SuperBlock>> = Once::new();

/// The kind for mount(2): one file system, however often it is mounted, with a node for each device.
pub static DEVTMPFS: FsType = FsType { name: "devtmpfs", magic: TMPFS_MAGIC, fixed: None, open: open_devtmpfs };

/// Registers a device: `mode` has its type (`S_IFCHR` or `S_IFBLK`) and permissions, `name` is its path below `/dev`.
/// `EBUSY` if the number is taken.
pub fn register(mode: u32, major: u32, minor: u32, name: &str, device: Arc<dyn Device>) -> Result<()> {
    let (kind, rdev) = (mode & S_IFMT, makedev(major, minor));
    let mut devices = DEVICES.lock();
    if devices.iter().any(|entry| entry.kind == kind && entry.rdev == rdev) {
        return Err(Errno::EBUSY);
    }
    devices.push(Entry { kind, rdev, name: name.into(), mode, device });
    drop(devices);
    match DEV_SB.get() {
        Some(sb) => add_node(sb, name, mode, rdev),
        None => Ok(()),
    }
}

/// Opens a device node. `ENXIO`: nobody stands behind the number.
pub(crate) fn open(kind: u32, rdev: u64, flags: u32) -> Result<Ops> {
    let devices = DEVICES.lock();
    let entry = devices.iter().find(|entry| entry.rdev == rdev && entry.kind == kind).ok_or(Errno::ENXIO)?;
    let device = entry.device.clone();
    drop(devices);
    device.open(flags)
}

fn add_node(sb: &SuperBlock, name: &str, mode: u32, rdev: u64) -> Result<()> {
    let mut dir = sb.root()?;
    let mut parts = name.split('/').peekable();
    let _tree = TREE.lock();
    while let Some(part) = parts.next() {
        let key = NameKey::of(part.as_bytes());
        let table = dir.inode().dir().ok_or(Errno::ENOTDIR)?;
        if let Some(below) = table.find(&key, part.as_bytes()) {
            dir = below;
            continue;
        }
        let last = parts.peek().is_none();
        let inode = if last {
            sb.inode(mode, 0, 0, rdev, Node::Device)
        } else {
            dir.inode().link_added();
            sb.inode(S_IFDIR | 0o755, 0, 0, 0, Node::Dir(Directory::sized()))
        };
        let name: Arc<[u8]> = Arc::from(part.as_bytes());
        let below = Dentry::child(&dir, name.clone(), inode);
        table.insert(&key, name, below.clone())?;
        dir = below;
    }
    Ok(())
}

fn open_devtmpfs(fs: &'static FsType, _: &[u8]) -> Result<Arc<SuperBlock>> {
    if let Some(sb) = DEV_SB.get() {
        return Ok(sb.clone());
    }
    let sb = match DEV_SB.set(SuperBlock::limited(fs, 0o755, 0, 0, Usage::with_defaults())) {
        Ok(sb) => sb.clone(),
        // Another mount was faster.
        Err(_) => return DEV_SB.get().cloned().ok_or(Errno::ENODEV),
    };
    let nodes: Vec<_> = DEVICES.lock().iter().map(|entry| (entry.name.clone(), entry.mode, entry.rdev)).collect();
    for (name, mode, rdev) in nodes {
        add_node(&sb, &name, mode, rdev)?;
    }
    Ok(sb)
}

/// Registers devtmpfs and the devices that need no hardware: null, zero, full, random, urandom, kmsg, tty.
pub fn init() -> Result<()> {
    register_fs(&DEVTMPFS);
    mem::init()?;
    kmsg::init()
}

/// The names in `/proc/devices` format.
pub fn proc_devices() -> String {
    let mut text = String::from("Character devices:\n");
    let mut list: Vec<(u32, String)> = DEVICES
        .lock()
        .iter()
        .filter(|entry| entry.kind == S_IFCHR)
        .map(|entry| (major(entry.rdev), entry.name.trim_end_matches(|c: char| c.is_ascii_digit()).into()))
        .collect();
    list.sort();
    list.dedup_by_key(|(major, _)| *major);
    for (major, name) in list {
        let name = if major == 1 { "mem" } else { &name };
        text.push_str(&alloc::format!("{major:3} {name}\n"));
    }
    text.push_str("\nBlock devices:\n");
    text
}

/// Major and minor number as `M:N`.
pub fn number(rdev: u64) -> String {
    alloc::format!("{}:{}", major(rdev), minor(rdev))
}
