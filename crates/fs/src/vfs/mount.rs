//! Mounts: mount(2), umount2(2), mount_namespaces(7) with the one name space that there is.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use hal::sync::SpinLock;
use uapi::fs::{
    MNT_DETACH, MNT_FORCE, MS_BIND, MS_MOVE, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_PRIVATE, MS_RDONLY, MS_REC,
    MS_RELATIME, MS_REMOUNT, MS_SHARED, MS_SLAVE, UMOUNT_NOFOLLOW,
};
use uapi::open::AT_FDCWD;
use uapi::{Errno, Result};

use crate::cred::cap;
use crate::vfs::superblock::find_fs;
use crate::vfs::walk::resolve;
use crate::vfs::{Caller, Dentry, Path, SuperBlock, TREE};

/// Flags that a mount keeps.
const KEPT: u64 = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RELATIME;
/// Changes of how mounts propagate to other name spaces: with one name space they are done as soon as said.
const PROPAGATION: u64 = MS_PRIVATE | MS_SLAVE | MS_SHARED | 1 << 17;

/// A file system, or a part of one, at a place.
pub struct Mount {
    /// Number for statx(2) and `/proc/PID/mountinfo`.
    pub id: u32,
    sb: Arc<SuperBlock>,
    root: Arc<Dentry>,
    flags: AtomicU64,
    at: SpinLock<Option<Path>>,
    /// [`spot`] of `at`; of a mount in [`MOUNTS`] it changes under that lock.
    spot: (AtomicUsize, AtomicUsize),
    source: Box<[u8]>,
}

/// All mounts that lie somewhere, in the order of mounting; the first is the root's.
static MOUNTS: SpinLock<Vec<Arc<Mount>>> = SpinLock::new(Vec::new());

impl Mount {
    fn new(sb: Arc<SuperBlock>, root: Arc<Dentry>, flags: u64, source: &[u8]) -> Arc<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let flags = AtomicU64::new(flags & KEPT | MS_RELATIME);
        Arc::new(Self { id, sb, root, flags, at: SpinLock::new(None), spot: Default::default(), source: source.into() })
    }

    /// A file system outside the tree, for what the kernel alone looks at.
    pub(crate) fn detached(sb: Arc<SuperBlock>) -> Result<Arc<Self>> {
        let root = sb.root()?;
        Ok(Self::new(sb, root, 0, b"none"))
    }

    /// The file system.
    pub fn sb(&self) -> &Arc<SuperBlock> {
        &self.sb
    }

    /// The entry that it shows at its place.
    #[inline]
    pub fn root(&self) -> &Arc<Dentry> {
        &self.root
    }

    /// The flags of mount(2) in force.
    #[inline]
    pub fn flags(&self) -> u64 {
        self.flags.load(Ordering::Relaxed)
    }

    /// Its place; `None` for the first root, and once unmounted.
    pub fn mountpoint(&self) -> Option<Path> {
        self.at.lock().clone()
    }

    fn spot(&self) -> (usize, usize) {
        (self.spot.0.load(Ordering::Relaxed), self.spot.1.load(Ordering::Relaxed))
    }

    /// Moves it, and gives the old place.
    fn place(&self, at: Option<Path>) -> Option<Path> {
        let (mount, dentry) = at.as_ref().map_or((0, 0), spot);
        self.spot.0.store(mount, Ordering::Relaxed);
        self.spot.1.store(dentry, Ordering::Relaxed);
        core::mem::replace(&mut *self.at.lock(), at)
    }

    /// What was mounted, as the program said.
    pub fn source(&self) -> &[u8] {
        &self.source
    }

    /// `EROFS` when mounted read-only.
    #[inline]
    pub(crate) fn writable(&self) -> Result<()> {
        if self.flags() & MS_RDONLY != 0 { Err(Errno::EROFS) } else { Ok(()) }
    }
}

impl Path {
    /// The path as it appears: through what is mounted on it.
    #[inline]
    pub(crate) fn topmost(self) -> Path {
        if self.dentry.is_mountpoint() { self.topmost_slow() } else { self }
    }

    fn topmost_slow(mut self) -> Path {
        let mounts = MOUNTS.lock();
        while self.dentry.is_mountpoint() {
            let here = spot(&self);
            match mounts.iter().rev().find(|mount| mount.spot() == here) {
                Some(mount) => self = Path { mount: mount.clone(), dentry: mount.root.clone() },
                None => break,
            }
        }
        self
    }
}

/// A place by the addresses of its parts, for quick comparison.
fn spot(at: &Path) -> (usize, usize) {
    (Arc::as_ptr(&at.mount).addr(), Arc::as_ptr(&at.dentry).addr())
}

fn attach(mount: &Arc<Mount>, at: Path) -> Result<()> {
    let mut mounts = MOUNTS.lock();
    mounts.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
    at.dentry.mounted();
    mount.place(Some(at));
    mounts.push(mount.clone());
    Ok(())
}

/// Mounts `sb` as a root of its own: the first thing at boot. The place is what the first process's
/// [`crate::FsContext`] starts from.
pub fn root_mount(sb: Arc<SuperBlock>) -> Result<Path> {
    let mount = Mount::new(sb.clone(), sb.root()?, 0, b"rootfs");
    let mut mounts = MOUNTS.lock();
    mounts.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
    mounts.push(mount.clone());
    Ok(Path { dentry: mount.root.clone(), mount })
}

/// mount(2). New mounts of the registered kinds, `MS_BIND`, `MS_REMOUNT`, `MS_MOVE`; changes of propagation succeed.
///
/// `EPERM` without `CAP_SYS_ADMIN`, `ENODEV` unknown kind, `ENOTDIR` target, `EBUSY` the same file system (not tmpfs,
/// which is always a new one) is already mounted right there.
pub fn mount(who: &Caller<'_>, source: &[u8], target: &[u8], kind: &[u8], flags: u64, data: &[u8]) -> Result<()> {
    if !who.cred.has(cap::SYS_ADMIN) {
        return Err(Errno::EPERM);
    }
    let at = resolve(who, AT_FDCWD, target, true)?;
    if flags & MS_REMOUNT != 0 {
        return remount(&at, flags);
    }
    if flags & MS_BIND != 0 {
        let from = resolve(who, AT_FDCWD, source, true)?;
        return bind(who, &from, at, flags & MS_REC != 0);
    }
    if flags & PROPAGATION != 0 {
        let root = Arc::ptr_eq(&at.dentry, at.mount.root());
        return if root { Ok(()) } else { Err(Errno::EINVAL) };
    }
    if flags & MS_MOVE != 0 {
        let from = resolve(who, AT_FDCWD, source, true)?;
        return move_mount(from, at);
    }
    let fs = find_fs(kind)?;
    if !at.inode().is_dir() {
        return Err(Errno::ENOTDIR);
    }
    let sb = (fs.open)(fs, data)?;
    let root = sb.root()?;
    if Arc::ptr_eq(at.mount.sb(), &sb) && Arc::ptr_eq(at.mount.root(), &at.dentry) {
        return Err(Errno::EBUSY);
    }
    let _tree = TREE.lock();
    if at.dentry.is_unlinked() {
        return Err(Errno::ENOENT);
    }
    attach(&Mount::new(sb, root, flags, source), at)
}

fn remount(at: &Path, flags: u64) -> Result<()> {
    if !Arc::ptr_eq(&at.dentry, at.mount.root()) {
        return Err(Errno::EINVAL);
    }
    at.mount.flags.store(flags & KEPT | MS_RELATIME, Ordering::Relaxed);
    Ok(())
}

fn bind(who: &Caller<'_>, from: &Path, at: Path, deep: bool) -> Result<()> {
    if from.inode().is_dir() != at.inode().is_dir() {
        return Err(Errno::ENOTDIR);
    }
    let (source, _) = from.absolute(&who.fs.root())?;
    let _tree = TREE.lock();
    let copy = Mount::new(from.mount.sb.clone(), from.dentry.clone(), from.mount.flags(), &source);
    if !deep {
        return attach(&copy, at);
    }
    // The mounts below the source, each with the mount it lies on, copied one for one. The list is in the order of
    // mounting, so a mount's parent comes before it.
    let below = MOUNTS.lock().clone();
    let mut copies: Vec<(Arc<Mount>, Arc<Mount>)> = Vec::new();
    copies.push((from.mount.clone(), copy.clone()));
    let mut places: Vec<(Arc<Mount>, Path)> = Vec::new();
    for mount in below {
        let Some(place) = mount.mountpoint() else { continue };
        if Arc::ptr_eq(&place.mount, &from.mount) && !place.dentry.is_within(&from.dentry) {
            continue;
        }
        let Some(parent) = copies.iter().find(|(old, _)| Arc::ptr_eq(old, &place.mount)).map(|(_, new)| new.clone())
        else {
            continue;
        };
        let new = Mount::new(mount.sb.clone(), mount.root.clone(), mount.flags(), &mount.source);
        copies.push((mount, new.clone()));
        places.push((new, Path { mount: parent, dentry: place.dentry }));
    }
    attach(&copy, at)?;
    places.into_iter().try_for_each(|(mount, place)| attach(&mount, place))
}

fn move_mount(from: Path, at: Path) -> Result<()> {
    if !Arc::ptr_eq(&from.dentry, from.mount.root()) {
        return Err(Errno::EINVAL);
    }
    if from.inode().is_dir() != at.inode().is_dir() {
        return Err(Errno::ENOTDIR);
    }
    let _tree = TREE.lock();
    let Some(old) = from.mount.mountpoint() else { return Err(Errno::EINVAL) };
    let mut above = Some(at.clone());
    while let Some(place) = above {
        if Arc::ptr_eq(&place.mount, &from.mount) {
            return Err(Errno::ELOOP);
        }
        above = place.mount.mountpoint();
    }
    let mounts = MOUNTS.lock();
    at.dentry.mounted();
    let _ = from.mount.place(Some(at));
    drop(mounts);
    old.dentry.unmounted();
    Ok(())
}

/// umount2(2). `EINVAL` not a mount, `EBUSY` in use (open files, working directories, mounts below) without
/// `MNT_DETACH`, `EPERM`. `MNT_EXPIRE` is refused (`EINVAL`).
pub fn umount(who: &Caller<'_>, target: &[u8], flags: u32) -> Result<()> {
    if flags & !(MNT_FORCE | MNT_DETACH | UMOUNT_NOFOLLOW) != 0 {
        return Err(Errno::EINVAL);
    }
    if !who.cred.has(cap::SYS_ADMIN) {
        return Err(Errno::EPERM);
    }
    let at = resolve(who, AT_FDCWD, target, flags & UMOUNT_NOFOLLOW == 0)?;
    if !Arc::ptr_eq(&at.dentry, at.mount.root()) {
        return Err(Errno::EINVAL);
    }
    let mount = at.mount.clone();
    drop(at);
    let _tree = TREE.lock();
    // The first root cannot go, detached or not.
    let Some(place) = mount.mountpoint() else { return Err(Errno::EINVAL) };
    let mut gone = Vec::new();
    gone.push(mount);
    if flags & MNT_DETACH != 0 {
        take_below(&mut gone);
    }
    let mut mounts = MOUNTS.lock();
    if flags & MNT_DETACH == 0 {
        // Two references are the list's and this function's; any other is a user.
        let busy = gone.iter().any(|mount| Arc::strong_count(mount) > 2);
        if busy {
            return Err(Errno::EBUSY);
        }
    }
    mounts.retain(|mount| !gone.iter().any(|g| Arc::ptr_eq(g, mount)));
    drop(mounts);
    let mut places = Vec::new();
    places.push(place);
    for mount in &gone {
        let place = mount.place(None);
        if let Some(place) = place {
            place.dentry.unmounted();
            places.push(place);
        }
    }
    drop(_tree);
    drop((places, gone));
    Ok(())
}

/// Adds every mount that lies on one of `gone`.
fn take_below(gone: &mut Vec<Arc<Mount>>) {
    for mount in MOUNTS.lock().iter() {
        let place = mount.mountpoint();
        let below = place.is_some_and(|at| gone.iter().any(|g| Arc::ptr_eq(g, &at.mount)));
        if below {
            gone.push(mount.clone());
        }
    }
}

/// The mounts that can be reached from `root`, with their path names: for `/proc/PID/mounts` and mountinfo.
pub fn mount_table(root: &Path) -> Vec<(Arc<Mount>, Vec<u8>)> {
    let mounts = MOUNTS.lock().clone();
    let mut table = Vec::new();
    for mount in mounts {
        let top = Path { dentry: mount.root.clone(), mount: mount.clone() };
        if let Ok((name, true)) = top.absolute(root) {
            table.push((mount, name));
        }
    }
    table
}
