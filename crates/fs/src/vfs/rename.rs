//! rename(2), renameat2(2).

use alloc::sync::Arc;

use uapi::open::{RENAME_EXCHANGE, RENAME_NOREPLACE, W_OK};
use uapi::{Errno, Result};

use crate::vfs::name_key::NameKey;
use crate::vfs::perm::{may_create, may_delete};
use crate::vfs::walk::{Last, Walk};
use crate::vfs::{Caller, Dentry, Directory, Path, TREE};

/// One side: a directory, and a name in it.
struct Side<'a> {
    dir: &'a Path,
    table: &'a Directory,
    name: &'a [u8],
    key: &'a NameKey,
    slash: bool,
}

fn side<'a>(walk: &'a Walk<'_>, last: Last) -> Result<Side<'a>> {
    let Last::Name { slash, .. } = last else { return Err(Errno::EBUSY) };
    let dir = walk.here();
    let table = dir.inode().dir().ok_or(Errno::ENOTDIR)?;
    Ok(Side { dir, table, name: walk.name(last), key: walk.key(), slash })
}

/// renameat2(2) with `RENAME_NOREPLACE` and `RENAME_EXCHANGE`.
pub fn rename(who: &Caller<'_>, olddir: i32, old: &[u8], newdir: i32, new: &[u8], flags: u32) -> Result<()> {
    if flags & !(RENAME_NOREPLACE | RENAME_EXCHANGE) != 0 || flags == RENAME_NOREPLACE | RENAME_EXCHANGE {
        return Err(Errno::EINVAL);
    }
    let mut from = Walk::new(who, olddir, old)?;
    let old_last = from.walk_to_last()?;
    let mut to = Walk::new(who, newdir, new)?;
    let new_last = to.walk_to_last()?;
    if !Arc::ptr_eq(&from.here().mount, &to.here().mount) {
        return Err(Errno::EXDEV);
    }
    let from = side(&from, old_last)?;
    let to = match side(&to, new_last) {
        Err(Errno::EBUSY) if flags & RENAME_NOREPLACE != 0 => return Err(Errno::EEXIST),
        other => other?,
    };
    from.dir.mount.writable()?;
    if from.dir.mount.sb().fs.fixed.is_some() {
        from.table.lookup(&from.dir.dentry, from.key, from.name)?.ok_or(Errno::ENOENT)?;
        return Err(Errno::EPERM);
    }
    let tree = TREE.lock();
    let gone = locked(who, &from, &to, flags);
    drop(tree);
    gone.map(drop)
}

/// The rename itself; gives what was replaced, to be dropped without the lock.
fn locked(who: &Caller<'_>, from: &Side<'_>, to: &Side<'_>, flags: u32) -> Result<Option<Arc<Dentry>>> {
    let exchange = flags & RENAME_EXCHANGE != 0;
    let moved = from.table.find(from.key, from.name).ok_or(Errno::ENOENT)?;
    let target = to.table.find(to.key, to.name);
    match (&target, flags) {
        (Some(_), RENAME_NOREPLACE) => return Err(Errno::EEXIST),
        (None, RENAME_EXCHANGE) => return Err(Errno::ENOENT),
        _ => {}
    }
    let is_dir = moved.inode().is_dir();
    if !is_dir && (from.slash || !exchange && to.slash) {
        return Err(Errno::ENOTDIR);
    }
    if exchange && to.slash && target.as_ref().is_some_and(|t| !t.inode().is_dir()) {
        return Err(Errno::ENOTDIR);
    }
    // Neither may be above the other's directory.
    if is_dir && to.dir.dentry.is_within(&moved) {
        return Err(Errno::EINVAL);
    }
    if let Some(target) = target.as_ref().filter(|t| t.inode().is_dir() && from.dir.dentry.is_within(t)) {
        let _ = target;
        return Err(if exchange { Errno::EINVAL } else { Errno::ENOTEMPTY });
    }
    // Two names of one file: nothing to do.
    if target.as_ref().is_some_and(|t| Arc::ptr_eq(t.inode(), moved.inode())) {
        return Ok(None);
    }
    let across = !Arc::ptr_eq(&from.dir.dentry, &to.dir.dentry);
    may_delete(who.cred, from.dir, &moved, is_dir)?;
    let target_is_dir = match &target {
        None => {
            may_create(who.cred, to.dir)?;
            None
        }
        Some(target) => {
            let target_is_dir = target.inode().is_dir();
            may_delete(who.cred, to.dir, target, if exchange { target_is_dir } else { is_dir })?;
            if exchange && target_is_dir && across && !target.inode().permits(who.cred, W_OK) {
                return Err(Errno::EACCES);
            }
            Some(target_is_dir)
        }
    };
    // A directory that gets another parent has its `..` written.
    if is_dir && across && !moved.inode().permits(who.cred, W_OK) {
        return Err(Errno::EACCES);
    }
    let gone = match target {
        None => {
            insert(from, to, &moved)?;
            None
        }
        Some(target) if exchange => {
            swap(from, to, moved.clone(), target.clone());
            if across && is_dir != target.inode().is_dir() {
                let (fewer, more) = if is_dir { (from, to) } else { (to, from) };
                fewer.dir.inode().link_removed();
                more.dir.inode().link_added();
            }
            target.inode().changed();
            None
        }
        Some(target) => Some(replace(from, to, &moved, target)?),
    };
    if across && is_dir && !exchange {
        from.dir.inode().link_removed();
        if target_is_dir.is_none() {
            to.dir.inode().link_added();
        }
    } else if is_dir && !exchange && target_is_dir.is_some() {
        from.dir.inode().link_removed();
    }
    moved.inode().changed();
    from.dir.inode().modified();
    to.dir.inode().modified();
    Ok(gone)
}

fn insert(from: &Side<'_>, to: &Side<'_>, moved: &Arc<Dentry>) -> Result<()> {
    let name: Arc<[u8]> = Arc::from(to.name);
    to.table.insert(to.key, name.clone(), moved.clone())?;
    from.table.remove(from.key, from.name);
    moved.set_place(to.dir.dentry.clone(), name);
    Ok(())
}

fn replace(from: &Side<'_>, to: &Side<'_>, moved: &Arc<Dentry>, target: Arc<Dentry>) -> Result<Arc<Dentry>> {
    let inode = target.inode();
    if let Some(below) = inode.dir() {
        below.kill_if_empty()?;
        inode.no_links();
    } else {
        inode.name_removed();
    }
    to.table.replace(to.key, to.name, moved.clone());
    from.table.remove(from.key, from.name);
    moved.set_place(to.dir.dentry.clone(), target.name());
    target.set_unlinked(true);
    inode.changed();
    Ok(target)
}

fn swap(from: &Side<'_>, to: &Side<'_>, moved: Arc<Dentry>, target: Arc<Dentry>) {
    let (old_name, new_name) = (moved.name(), target.name());
    moved.set_place(to.dir.dentry.clone(), new_name);
    target.set_place(from.dir.dentry.clone(), old_name);
    from.table.replace(from.key, from.name, target);
    to.table.replace(to.key, to.name, moved);
}
