//! The virtual file system: inodes, directory entries, mounts, and the calls on paths.
//!
//! The tree of directory entries *is* the content of the file systems that live in memory, and every file system here
//! does: there is no disk to fill a cache from. So an entry is found in its directory's own table (a hash table that
//! also keeps the order of creation, for stable positions in readdir), and a walk costs a lock, a hash chain and a
//! counter per component. A directory whose entries come and go by themselves (`/proc`) adds [`DirOps`].
//!
//! Changes of the tree take one lock, [`TREE`], for the whole system: renames, links and removals are then serial, and
//! ancestry cannot change under a check. Look-ups do not take it.

mod attr;
mod context;
mod dentry;
mod dir;
pub(crate) mod fixed;
mod inode;
mod mount;
mod name_key;
mod names;
mod open;
mod perm;
mod readdir;
mod rename;
mod slots;
mod stat;
mod superblock;
mod walk;

pub use attr::{access, chmod, chown, fchmod, fchown, futimens, truncate, utimens};
pub use context::{Caller, FsContext};
pub use dentry::{Dentry, Path};
pub use dir::{DirOps, Directory};
pub use inode::{Inode, MagicLink, Node, OpenNode, Times};
pub use mount::{Mount, mount, mount_table, root_mount, umount};
pub use names::{link, mkdir, mknod, readlink, rmdir, symlink, unlink};
pub use open::{anonymous_file, open, open_exec, open_with};
pub use readdir::getdents64;
pub use rename::rename;
pub use stat::{fstat, fstatfs, fstatx, stat, statfs, statx};
pub use superblock::{FsType, SuperBlock, anon_inode, register_fs, registered_fs};
pub use walk::{chdir, chroot, fchdir, getcwd, resolve};

/// What a file system needs that fills directories itself.
pub(crate) mod dir_entry {
    pub(crate) use super::name_key::NameKey;
    pub(crate) use super::names::{is_name, node_of};
}

/// Held while the tree changes shape. Taken before any directory's table.
pub(crate) static TREE: hal::sync::SpinLock<()> = hal::sync::SpinLock::new(());

#[cfg(test)]
mod tests;
