//! Files of `/proc` about the file system and the random numbers.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use uapi::{Errno, Result};

use super::{register, register_link};
use crate::random;
use crate::text::{Content, TextSource};
use crate::vfs::registered_fs;

fn filesystems() -> String {
    // None of the kinds here needs a block device.
    registered_fs().iter().map(|fs| alloc::format!("nodev\t{}\n", fs.name)).collect()
}

fn uuid_line(uuid: [u8; 36]) -> String {
    let mut text = String::from_utf8_lossy(&uuid).into_owned();
    text.push('\n');
    text
}

/// The number of this boot: one UUID, made at the first look.
struct BootId(hal::sync::Once<[u8; 36]>);

impl TextSource for BootId {
    fn read(&self) -> Result<Vec<u8>> {
        if self.0.get().is_none() {
            let _ = self.0.set(random::uuid());
        }
        self.0.get().map(|uuid| uuid_line(*uuid).into_bytes()).ok_or(Errno::EIO)
    }
}

pub(super) fn init() -> Result<()> {
    register("filesystems", 0o444, Content::Made(filesystems))?;
    register("devices", 0o444, Content::Made(crate::dev::proc_devices))?;
    register_link("mounts", "self/mounts")?;
    register("sys/kernel/random/uuid", 0o444, Content::Made(|| uuid_line(random::uuid())))?;
    register("sys/kernel/random/boot_id", 0o444, Content::Source(Arc::new(BootId(hal::sync::Once::new()))))?;
    register("sys/kernel/random/entropy_avail", 0o444, "256\n")?;
    register("sys/kernel/random/poolsize", 0o444, "256\n")?;
    register("sys/fs/nr_open", 0o444, "1048576\n")?;
    register("sys/fs/file-max", 0o444, "9223372036854775807\n")?;
    register("sys/fs/pipe-max-size", 0o444, "1048576\n")?;
    register("sys/fs/pipe-user-pages-soft", 0o444, "16384\n")?;
    register("sys/fs/pipe-user-pages-hard", 0o444, "0\n")?;
    register("sys/fs/protected_symlinks", 0o444, "0\n")?;
    register("sys/fs/protected_hardlinks", 0o444, "0\n")
}
