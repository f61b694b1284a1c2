//! tmpfs(5): directories are the VFS's own tables, files are memory objects.
//!
//! Options of the mount: `mode`, `uid`, `gid`, `size`, `nr_blocks`, `nr_inodes`; `huge` and `mpol` are read and mean
//! nothing here.

mod cpio;
mod memfd;
mod regular;
mod usage;

use alloc::sync::Arc;

use uapi::fs::TMPFS_MAGIC;
use uapi::{Errno, Result};

use crate::vfs::{FsType, SuperBlock, register_fs};

pub use cpio::populate_from_cpio;
pub use memfd::memfd_create;
pub use regular::Regular;
pub(crate) use regular::{REGULAR, seek_to};
pub(crate) use usage::Room;
pub use usage::Usage;

use usage::Limits;

/// The kind for mount(2), and of the first root.
pub static TMPFS: FsType = FsType { name: "tmpfs", magic: TMPFS_MAGIC, fixed: None, open };

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
    let mut limits = Limits::default();
    for option in data.split(|byte| *byte == b',').filter(|option| !option.is_empty()) {
        let mut parts = option.splitn(2, |byte| *byte == b'=');
        let (key, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        match key {
            b"mode" => mode = number(value, 8)? & 0o7777,
            b"uid" => uid = number(value, 10)?,
            b"gid" => gid = number(value, 10)?,
            b"size" => limits.pages = Some(usage::size(value)?),
            b"nr_blocks" => limits.pages = Some(usage::count(value)?),
            b"nr_inodes" => limits.inodes = Some(usage::count(value)?),
            b"huge" | b"mpol" => {}
            _ => return Err(Errno::EINVAL),
        }
    }
    Ok(SuperBlock::limited(fs, mode, uid, gid, Usage::new(&limits)))
}

#[cfg(test)]
mod tests;
