//! Making and removing names: mkdir(2), mknod(2), link(2), symlink(2), unlink(2), rmdir(2), and readlink(2).

use alloc::sync::Arc;
use alloc::vec::Vec;

use uapi::fs::{NAME_MAX, PATH_MAX, S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFMT, S_IFREG, S_IFSOCK, S_ISVTX};
use uapi::open::{AT_EMPTY_PATH, AT_SYMLINK_FOLLOW};
use uapi::{Errno, Result};

use crate::cred::cap;
use crate::pipe::Pipe;
use crate::tmpfs::Regular;
use crate::vfs::perm::{may_create, may_delete, new_owner};
use crate::vfs::walk::{Last, Walk};
use crate::vfs::{Caller, Dentry, Directory, Inode, Node, Path, TREE};

/// Makes the entry that `path` names, with the inode that `build` gives for its directory, under the tree lock.
fn make(
    who: &Caller<'_>,
    dirfd: i32,
    path: &[u8],
    as_dir: bool,
    build: impl FnOnce(&Path) -> Result<Arc<Inode>>,
) -> Result<()> {
    let mut walk = Walk::new(who, dirfd, path)?;
    let last = walk.walk_to_last()?;
    let Last::Name { slash, .. } = last else { return Err(Errno::EEXIST) };
    if walk.entry(last)?.is_some() {
        return Err(Errno::EEXIST);
    }
    if slash && !as_dir {
        return Err(Errno::ENOENT);
    }
    let dir = walk.here();
    may_create(who.cred, dir)?;
    let table = dir.inode().dir().ok_or(Errno::ENOTDIR)?;
    let name: Arc<[u8]> = Arc::from(walk.name(last));
    let _tree = TREE.lock();
    if table.is_dead() {
        return Err(Errno::ENOENT);
    }
    if table.find(walk.key(), &name).is_some() {
        return Err(Errno::EEXIST);
    }
    // From here on only `build` can fail, and it fails before it changes anything.
    table.reserve()?;
    let dentry = Dentry::child(&dir.dentry, name.clone(), build(dir)?);
    table.insert(walk.key(), name, dentry)?;
    if as_dir {
        dir.inode().link_added();
    }
    dir.inode().modified();
    Ok(())
}

/// mkdirat(2).
pub fn mkdir(who: &Caller<'_>, dirfd: i32, path: &[u8], mode: u32) -> Result<()> {
    make(who, dirfd, path, true, |dir| {
        let (mode, uid, gid) = new_owner(who, dir.inode(), S_IFDIR | mode & (0o777 | S_ISVTX));
        Ok(dir.mount.sb().inode(mode, uid, gid, 0, Node::Dir(Directory::sized())))
    })
}

/// mknodat(2): a regular file, FIFO, socket name or device node. `EPERM` for a directory, and for a device without
/// `CAP_MKNOD`; `EINVAL` for another type.
pub fn mknod(who: &Caller<'_>, dirfd: i32, path: &[u8], mode: u32, dev: u64) -> Result<()> {
    let kind = if mode & S_IFMT == 0 { S_IFREG } else { mode & S_IFMT };
    match kind {
        S_IFREG | S_IFIFO | S_IFSOCK => {}
        S_IFCHR | S_IFBLK if who.cred.has(cap::MKNOD) => {}
        S_IFCHR | S_IFBLK | S_IFDIR => return Err(Errno::EPERM),
        _ => return Err(Errno::EINVAL),
    }
    make(who, dirfd, path, false, |dir| {
        let (mode, uid, gid) = new_owner(who, dir.inode(), kind | mode & 0o7777);
        let rdev = if matches!(kind, S_IFCHR | S_IFBLK) { u64::from(dev as u32) } else { 0 };
        Ok(dir.mount.sb().inode(mode, uid, gid, rdev, node_of(kind, who.cred)?))
    })
}

/// The empty content of a new file, made by `cred`, of a type that is no directory or link.
pub(crate) fn node_of(kind: u32, cred: &crate::Credentials) -> Result<Node> {
    Ok(match kind {
        S_IFREG => Node::Regular(Regular::new()?),
        S_IFIFO => Node::Fifo(Pipe::new(cred)?),
        S_IFSOCK => Node::Socket,
        _ => Node::Device,
    })
}

/// symlinkat(2): a link at `path` that says `target`.
pub fn symlink(who: &Caller<'_>, target: &[u8], dirfd: i32, path: &[u8]) -> Result<()> {
    if target.is_empty() {
        return Err(Errno::ENOENT);
    }
    if target.len() >= PATH_MAX {
        return Err(Errno::ENAMETOOLONG);
    }
    let text = copy(target)?.into_boxed_slice();
    make(who, dirfd, path, false, |dir| {
        let (_, uid, gid) = new_owner(who, dir.inode(), 0);
        Ok(dir.mount.sb().inode(Inode::mode_of_link(), uid, gid, 0, Node::Symlink(text)))
    })
}

/// A copy of a text. `ENOMEM`.
fn copy(text: &[u8]) -> Result<Vec<u8>> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(text.len()).map_err(|_| Errno::ENOMEM)?;
    copy.extend_from_slice(text);
    Ok(copy)
}

/// linkat(2) with `AT_SYMLINK_FOLLOW` and `AT_EMPTY_PATH`. `EPERM` for a directory, `EXDEV` to another mount.
pub fn link(who: &Caller<'_>, olddir: i32, old: &[u8], newdir: i32, new: &[u8], flags: u32) -> Result<()> {
    if flags & !(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL);
    }
    let old = if old.is_empty() && flags & AT_EMPTY_PATH != 0 {
        if !who.cred.has(cap::DAC_READ_SEARCH) {
            return Err(Errno::ENOENT);
        }
        who.file(olddir)?.path().cloned().ok_or(Errno::EXDEV)?
    } else {
        super::resolve(who, olddir, old, flags & AT_SYMLINK_FOLLOW != 0)?
    };
    let inode = old.inode().clone();
    make(who, newdir, new, false, |dir| {
        if !Arc::ptr_eq(&dir.mount, &old.mount) {
            return Err(Errno::EXDEV);
        }
        if inode.is_dir() {
            return Err(Errno::EPERM);
        }
        if inode.nlink() == 0 {
            return Err(Errno::ENOENT);
        }
        inode.name_added();
        inode.changed();
        Ok(inode.clone())
    })
}

/// unlinkat(2) without `AT_REMOVEDIR`.
pub fn unlink(who: &Caller<'_>, dirfd: i32, path: &[u8]) -> Result<()> {
    remove(who, dirfd, path, false)
}

/// rmdir(2).
pub fn rmdir(who: &Caller<'_>, dirfd: i32, path: &[u8]) -> Result<()> {
    remove(who, dirfd, path, true)
}

fn remove(who: &Caller<'_>, dirfd: i32, path: &[u8], as_dir: bool) -> Result<()> {
    let mut walk = Walk::new(who, dirfd, path)?;
    let last = walk.walk_to_last()?;
    let Last::Name { slash, .. } = last else {
        return Err(match last {
            _ if !as_dir => Errno::EISDIR,
            Last::Dot => Errno::EINVAL,
            Last::DotDot => Errno::ENOTEMPTY,
            _ => Errno::EBUSY,
        });
    };
    let dir = walk.here();
    if dir.mount.sb().fs.fixed.is_some() {
        walk.entry(last)?.ok_or(Errno::ENOENT)?;
        return Err(Errno::EPERM);
    }
    let table = dir.inode().dir().ok_or(Errno::ENOTDIR)?;
    let (key, name) = (walk.key(), walk.name(last));
    let tree = TREE.lock();
    let victim = table.find(key, name).ok_or(Errno::ENOENT)?;
    let inode = victim.inode();
    if slash && !as_dir {
        return Err(if inode.is_dir() { Errno::EISDIR } else { Errno::ENOTDIR });
    }
    may_delete(who.cred, dir, &victim, as_dir)?;
    if let Some(below) = inode.dir() {
        below.kill_if_empty()?;
        dir.inode().link_removed();
        inode.no_links();
    } else {
        inode.name_removed();
    }
    let entry = table.remove(key, name);
    victim.set_unlinked(true);
    inode.changed();
    dir.inode().modified();
    drop(tree);
    drop(entry);
    Ok(())
}

/// readlinkat(2): the link's text. `EINVAL` for anything else; an empty path means `dirfd` itself.
pub fn readlink(who: &Caller<'_>, dirfd: i32, path: &[u8]) -> Result<Vec<u8>> {
    let (path, other) = if path.is_empty() {
        (who.base(dirfd).map_err(|e| if e == Errno::ENOTDIR { Errno::ENOENT } else { e })?, Errno::ENOENT)
    } else {
        (super::resolve(who, dirfd, path, false)?, Errno::EINVAL)
    };
    let inode = path.inode();
    let text = match &inode.node {
        Node::Symlink(text) => copy(text)?,
        Node::Magic(magic) => magic.text()?,
        _ => return Err(other),
    };
    inode.accessed();
    Ok(text)
}

/// True for a name that a directory can have, as the archive reader needs it.
pub(crate) fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && name.len() <= NAME_MAX && !name.contains(&b'/')
}
