//! tmpfs(5): directories are the VFS's own tables, files are memory objects.
//!
//! The options `mode`, `uid` and `gid` of the mount are honoured. `size`, `nr_blocks` and `nr_inodes` are read but bound
//! nothing yet: the limit is memory.

mod cpio;
mod memfd;
mod regular;

use alloc::sync::Arc;

use hal::sync::Once;
use uapi::fs::TMPFS_MAGIC;
use uapi::{Errno, Result};

use crate::vfs::{FsType, SuperBlock, register_fs};

pub use cpio::populate_from_cpio;
pub use memfd::memfd_create;
pub use regular::Regular;
pub(crate) use regular::{REGULAR, seek_to};

/// The kind for mount(2), and of the first root.
pub static TMPFS: FsType = FsType { name: "tmpfs", magic: TMPFS_MAGIC, fixed: None, open };

static MEMORY: Once<fn() -> (u64, u64)> = Once::new();

/// Sets who knows how many pages of memory there are and how many are free, for statfs(2).
pub fn set_memory(memory: fn() -> (u64, u64)) {
    let _ = MEMORY.set(memory);
}

pub(crate) fn memory() -> (u64, u64) {
    MEMORY.get().map_or((0, 0), |memory| memory())
}

/// Makes tmpfs known to mount(2).
pub fn init() {
    register_fs(&TMPFS);
}

fn number(text: &[u8], radix: u32) -> Result<u32> {
    let text = core::str::from_utf8(text).map_err(|_| Errno::EINVAL)?;
    u32::from_str_radix(text, radix).map_err(|_| Errno::EINVAL)
}

fn open(fs: &'static FsType, data: &[u8]) -> Result<Arc<SuperBlock>> {
    let (mut mode, mut uid, mut gid) = (0o1777, 0, 0);
    for option in data.split(|byte| *byte == b',').filter(|option| !option.is_empty()) {
        let mut parts = option.splitn(2, |byte| *byte == b'=');
        let (key, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        match key {
            b"mode" => mode = number(value, 8)? & 0o7777,
            b"uid" => uid = number(value, 10)?,
            b"gid" => gid = number(value, 10)?,
            b"size" | b"nr_blocks" | b"nr_inodes" | b"huge" | b"mpol" => {}
            _ => return Err(Errno::EINVAL),
        }
    }
    Ok(SuperBlock::new(fs, mode, uid, gid))
}

#[cfg(test)]
mod tests;
