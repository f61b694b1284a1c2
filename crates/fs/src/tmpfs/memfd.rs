//! memfd_create(2): a regular file in a tmpfs that is mounted nowhere.

use alloc::sync::Arc;
use alloc::vec::Vec;

use hal::sync::Once;
use uapi::fs::{MFD_ALLOW_SEALING, MFD_CLOEXEC, NAME_MAX, S_IFREG};
use uapi::open::{O_LARGEFILE, O_RDWR};
use uapi::{Errno, Result};

use super::{REGULAR, Regular, TMPFS};
use crate::cred::Credentials;
use crate::file::{File, Ops};
use crate::vfs::{Dentry, Mount, Node, Path};

const PREFIX: &[u8] = b"memfd:";

static MOUNT: Once<Arc<Mount>> = Once::new();

fn mount() -> Result<&'static Arc<Mount>> {
    if MOUNT.get().is_none() {
        let _ = MOUNT.set(Mount::detached((TMPFS.open)(&TMPFS, b"mode=777")?)?);
    }
    MOUNT.get().ok_or(Errno::ENOMEM)
}

/// memfd_create(2): a file for reading and writing. `EINVAL` for a name of more than 249 bytes or flags other than
/// `MFD_CLOEXEC` (the caller's to heed) and `MFD_ALLOW_SEALING`, which is refused too: there are no seals.
pub fn memfd_create(cred: &Credentials, name: &[u8], flags: u32) -> Result<Arc<File>> {
    let unknown = flags & !MFD_CLOEXEC != 0;
    if unknown || flags & MFD_ALLOW_SEALING != 0 || name.len() > NAME_MAX - PREFIX.len() {
        return Err(Errno::EINVAL);
    }
    let mount = mount()?;
    mount.sb().usage().map_or(Ok(()), |usage| usage.check_inodes())?;
    let content = Regular::new()?;
    content.add_writer()?;
    let inode = mount.sb().inode(S_IFREG | 0o777, cred.fsuid, cred.fsgid, 0, Node::Regular(content));
    inode.no_links();
    let full: Vec<u8> = [PREFIX, name].concat();
    let dentry = Dentry::child(mount.root(), Arc::from(full), inode.clone());
    dentry.set_unlinked(true);
    let path = Path { mount: mount.clone(), dentry };
    Ok(Arc::new(File::new(Ops::Static(&REGULAR), inode, Some(path), O_RDWR | O_LARGEFILE)))
}
