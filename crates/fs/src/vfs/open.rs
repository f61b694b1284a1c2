//! open(2), openat2(2), and opening a program for execve(2).

use alloc::sync::Arc;

use uapi::fs::{S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFMT, S_IFREG};
use uapi::open::{
    AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW, O_ACCMODE, O_CLOEXEC, O_CREAT, O_DIRECTORY, O_EXCL, O_LARGEFILE, O_NOATIME,
    O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_PATH, O_RDONLY, O_TMPFILE, O_TRUNC, R_OK, W_OK, X_OK,
};
use uapi::{Errno, Result};

use crate::cred::cap;
use crate::file::{File, Ops};
use crate::pipe::Pipe;
use crate::tmpfs::{REGULAR, Regular};
use crate::vfs::perm::{devices_allowed, may_create, new_owner};
use crate::vfs::readdir::DIRECTORY;
use crate::vfs::walk::{Last, Walk};
use crate::vfs::{Caller, Dentry, Inode, Node, Path, TREE};

/// Bits of `O_TMPFILE` that are its own.
const TMPFILE: u32 = O_TMPFILE & !O_DIRECTORY;

/// openat(2). The file of a FIFO may still have to wait: see [`File::open_waits`].
pub fn open(who: &Caller<'_>, dirfd: i32, path: &[u8], flags: u32, mode: u32) -> Result<Arc<File>> {
    open_with(who, dirfd, path, flags, mode, 0)
}

/// openat2(2): `rules` are the `RESOLVE_` bits, checked by the caller to be known ones.
pub fn open_with(who: &Caller<'_>, dirfd: i32, path: &[u8], flags: u32, mode: u32, rules: u64) -> Result<Arc<File>> {
    let flags = if flags & O_PATH != 0 { flags & (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) } else { flags };
    let mut walk = Walk::with_rules(who, dirfd, path, rules)?;
    if flags & TMPFILE != 0 {
        return open_tmpfile(who, walk, flags, mode);
    }
    let creating = flags & O_CREAT != 0;
    let exclusive = flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL;
    let follow = flags & O_NOFOLLOW == 0 && !exclusive;
    loop {
        let last = walk.walk_to_last()?;
        let found = match last {
            Last::Name { slash, .. } => {
                if creating && slash {
                    return Err(Errno::EISDIR);
                }
                let Some(found) = walk.child(last)? else {
                    if !creating {
                        return Err(Errno::ENOENT);
                    }
                    match create(who, &walk, last, mode)? {
                        Some(made) => return opened(who, made, flags, true),
                        None => continue,
                    }
                };
                if exclusive {
                    return Err(Errno::EEXIST);
                }
                if found.inode().is_symlink() && (follow || slash) {
                    walk.follow(found.inode())?;
                    if let Some(file) = walk.take_file() {
                        return reopen(who, &file, flags);
                    }
                    continue;
                }
                if slash && !found.inode().is_dir() {
                    return Err(Errno::ENOTDIR);
                }
                found
            }
            Last::DotDot => {
                walk.up()?;
                walk.into_here()
            }
            _ => walk.into_here(),
        };
        if exclusive {
            return Err(Errno::EEXIST);
        }
        if creating && found.inode().is_dir() {
            return Err(Errno::EISDIR);
        }
        may_open(who, &found, flags)?;
        return opened(who, found, flags, false);
    }
}

/// Makes the regular file that was not found. `None`: somebody else just made something of that name.
fn create(who: &Caller<'_>, walk: &Walk<'_>, last: Last, mode: u32) -> Result<Option<Path>> {
    let dir = walk.here();
    match may_create(who.cred, dir) {
        // What a file system without creation says to open(2).
        Err(Errno::EPERM) => return Err(dir.mount.sb().fs.fixed.unwrap_or(Errno::EACCES)),
        other => other?,
    }
    let table = dir.inode().dir().ok_or(Errno::ENOTDIR)?;
    let (mode, uid, gid) = new_owner(who, dir.inode(), S_IFREG | mode & 0o7777);
    let node = Node::Regular(Regular::new()?);
    let inode = dir.mount.sb().inode(mode, uid, gid, 0, node);
    let name: Arc<[u8]> = Arc::from(walk.name(last));
    let dentry = Dentry::child(&dir.dentry, name.clone(), inode);
    let _tree = TREE.lock();
    if table.is_dead() {
        return Err(Errno::ENOENT);
    }
    if table.find(walk.key(), &name).is_some() {
        return Ok(None);
    }
    table.insert(walk.key(), name, dentry.clone())?;
    dir.inode().modified();
    Ok(Some(Path { mount: dir.mount.clone(), dentry }))
}

/// `O_TMPFILE`: a regular file without a name in the file system of a directory.
fn open_tmpfile(who: &Caller<'_>, mut walk: Walk<'_>, flags: u32, mode: u32) -> Result<Arc<File>> {
    if flags & O_ACCMODE == O_RDONLY || flags & O_CREAT != 0 || flags & O_DIRECTORY == 0 {
        return Err(Errno::EINVAL);
    }
    walk.walk_to_end(flags & O_NOFOLLOW == 0)?;
    let dir = walk.into_here();
    if !dir.inode().is_dir() {
        return Err(Errno::ENOTDIR);
    }
    if dir.mount.sb().fs.fixed.is_some() {
        return Err(Errno::EOPNOTSUPP);
    }
    may_create(who.cred, &dir)?;
    let (mode, uid, gid) = new_owner(who, dir.inode(), S_IFREG | mode & 0o7777);
    let inode = dir.mount.sb().inode(mode, uid, gid, 0, Node::Regular(Regular::new()?));
    inode.no_links();
    let name = alloc::format!("#{}", inode.ino);
    let dentry = Dentry::child(&dir.dentry, Arc::from(name.as_bytes()), inode);
    dentry.set_unlinked(true);
    opened(who, Path { mount: dir.mount, dentry }, flags & !(TMPFILE | O_DIRECTORY), true)
}

/// The checks of type and permission before an existing file is opened.
fn may_open(who: &Caller<'_>, path: &Path, flags: u32) -> Result<()> {
    let inode = path.inode();
    let dir = inode.is_dir();
    if flags & O_DIRECTORY != 0 && !dir {
        return Err(Errno::ENOTDIR);
    }
    if flags & O_PATH != 0 {
        return Ok(());
    }
    let mut want = match flags & O_ACCMODE {
        O_RDONLY => R_OK,
        uapi::open::O_WRONLY => W_OK,
        _ => R_OK | W_OK,
    };
    if flags & O_TRUNC != 0 {
        want |= W_OK;
    }
    match &inode.node {
        Node::Symlink(_) | Node::Magic(_) => return Err(Errno::ELOOP),
        Node::Dir(_) if want & W_OK != 0 => return Err(Errno::EISDIR),
        Node::Device => devices_allowed(path)?,
        Node::Socket => return Err(Errno::ENXIO),
        Node::Regular(_) | Node::Text(_) if want & W_OK != 0 => path.mount.writable()?,
        _ => {}
    }
    if !inode.permits(who.cred, want) {
        return Err(Errno::EACCES);
    }
    if flags & O_NOATIME != 0 && !who.cred.owns(inode.uid()) {
        return Err(Errno::EPERM);
    }
    Ok(())
}

/// The description of a file that may be opened.
fn opened(who: &Caller<'_>, path: Path, flags: u32, made: bool) -> Result<Arc<File>> {
    let inode = path.inode().clone();
    if let (Node::Regular(file), true) = (&inode.node, flags & O_TRUNC != 0 && flags & O_PATH == 0 && !made) {
        file.check_not_executing()?;
        file.truncate(&inode, 0)?;
        inode.drop_setid();
    }
    make(who, inode, Some(path), flags)
}

fn make(who: &Caller<'_>, inode: Arc<Inode>, path: Option<Path>, flags: u32) -> Result<Arc<File>> {
    let kept = flags & !(O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_CLOEXEC) | O_LARGEFILE;
    if flags & O_PATH != 0 {
        return Ok(Arc::new(File::new(Ops::Static(&DIRECTORY), inode, path, flags & !O_CLOEXEC)));
    }
    let mut fifo_seen = 0;
    let ops = match &inode.node {
        Node::Dir(_) => Ops::Static(&DIRECTORY),
        Node::Regular(file) => {
            if flags & O_ACCMODE != O_RDONLY {
                file.add_writer()?;
            }
            Ops::Static(&REGULAR)
        }
        Node::Text(text) => text.open(flags)?,
        Node::Device => crate::dev::open(inode.file_type(), inode.rdev, flags)?,
        Node::Fifo(pipe) => {
            fifo_seen = Pipe::open(pipe, flags & O_ACCMODE, flags & O_NONBLOCK != 0)?;
            Ops::Shared(pipe.clone())
        }
        Node::Socket => return Err(Errno::ENXIO),
        Node::Symlink(_) | Node::Magic(_) => return Err(Errno::ELOOP),
    };
    let file = File::new(ops, inode, path, kept).keeping_setid(who.cred.has(cap::FSETID));
    *file.pos.lock() = fifo_seen;
    Ok(Arc::new(file))
}

/// Opens again what a link in `/proc/PID/fd` names and no path leads to.
fn reopen(who: &Caller<'_>, file: &File, flags: u32) -> Result<Arc<File>> {
    if flags & O_DIRECTORY != 0 {
        return Err(Errno::ENOTDIR);
    }
    match &file.inode().node {
        Node::Fifo(_) => make(who, file.inode().clone(), None, flags),
        _ => Err(Errno::ENXIO),
    }
}

/// A description of what has no place in a directory tree: a pipe, an event counter. `flags` are those of open(2).
pub fn anonymous_file(ops: Ops, inode: Arc<Inode>, flags: u32) -> Arc<File> {
    Arc::new(File::new(ops, inode, None, flags))
}

/// Opens a program for execve(2) and execveat(2) with `at_flags`. The file can be read whatever its mode says, and
/// nobody can write to it until it is dropped (`ETXTBSY`). `EACCES`: no regular file, no permission, mounted noexec.
pub fn open_exec(who: &Caller<'_>, dirfd: i32, path: &[u8], at_flags: u32) -> Result<Arc<File>> {
    let path = if path.is_empty() && at_flags & AT_EMPTY_PATH != 0 {
        who.file(dirfd)?.path().cloned().ok_or(Errno::EACCES)?
    } else {
        super::resolve(who, dirfd, path, at_flags & AT_SYMLINK_NOFOLLOW == 0)?
    };
    let inode = path.inode().clone();
    match inode.mode() & S_IFMT {
        uapi::fs::S_IFLNK => return Err(Errno::ELOOP),
        S_IFDIR | S_IFCHR | S_IFBLK | S_IFIFO => return Err(Errno::EACCES),
        _ => {}
    }
    let Node::Regular(file) = &inode.node else { return Err(Errno::EACCES) };
    if !inode.permits(who.cred, X_OK) || path.mount.flags() & uapi::fs::MS_NOEXEC != 0 {
        return Err(Errno::EACCES);
    }
    file.add_execution()?;
    Ok(Arc::new(File::new(Ops::Static(&REGULAR), inode, Some(path), O_RDONLY | O_LARGEFILE).executing()))
}
