//! Path resolution: path_resolution(7), symlink(7), openat2(2).
//!
//! A [`Walk`] holds the text, how far it has come in it, and where that is. Symbolic links are not followed by
//! recursion: the text is replaced by the link's with the rest appended, so that no nesting uses up the stack.

use alloc::sync::Arc;
use alloc::vec::Vec;

use uapi::fs::{MAX_SYMLINKS, NAME_MAX, PATH_MAX, S_IFDIR};
use uapi::open::{RESOLVE_BENEATH, RESOLVE_IN_ROOT, RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS, RESOLVE_NO_XDEV, X_OK};
use uapi::{Errno, Result};

use crate::cred::cap;
use crate::file::File;
use crate::vfs::name_key::NameKey;
use crate::vfs::{Caller, Dentry, Inode, Node, Path};

/// The last component of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Last {
    /// There is none left: the path is where the walk stands ("/", or the target of a made-up link).
    Here,
    /// `.`
    Dot,
    /// `..`, not yet gone up.
    DotDot,
    /// A name, `start..end` of the walk's text.
    Name {
        start: usize,
        end: usize,
        /// Slashes come after it: it must be a directory.
        slash: bool,
    },
}

const NAME_TOO_LONG: usize = NAME_MAX + 1;

pub(crate) struct Walk<'a> {
    who: &'a Caller<'a>,
    given: &'a [u8],
    /// The text once a link was followed.
    expanded: Option<Arc<Vec<u8>>>,
    at: usize,
    /// The component before `at`.
    key: NameKey,
    cur: Path,
    /// The root for `..` and absolute links; fetched when first needed.
    root: Option<Path>,
    links: u32,
    rules: u64,
    /// The last step led through a made-up link to a file that has no path.
    file: Option<Arc<File>>,
}

impl<'a> Walk<'a> {
    /// Starts at the root or at `dirfd`, which is not looked at for an absolute path. `ENOENT` for an empty path.
    pub fn new(who: &'a Caller<'a>, dirfd: i32, path: &'a [u8]) -> Result<Self> {
        Self::with_rules(who, dirfd, path, 0)
    }

    /// As [`Walk::new`] with the `resolve` rules of openat2(2).
    pub fn with_rules(who: &'a Caller<'a>, dirfd: i32, path: &'a [u8], rules: u64) -> Result<Self> {
        if path.len() >= PATH_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        let first = *path.first().ok_or(Errno::ENOENT)?;
        let mut root = None;
        let cur = if rules & (RESOLVE_IN_ROOT | RESOLVE_BENEATH) != 0 {
            if first == b'/' && rules & RESOLVE_BENEATH != 0 {
                return Err(Errno::EXDEV);
            }
            let base = who.base(dirfd)?;
            root = Some(base.clone());
            base
        } else if first == b'/' {
            who.fs.root()
        } else {
            who.base(dirfd)?
        };
        Ok(Self {
            who,
            given: path,
            expanded: None,
            at: 0,
            key: NameKey::EMPTY,
            cur,
            root,
            links: 0,
            rules,
            file: None,
        })
    }

    pub fn text(&self) -> &[u8] {
        self.expanded.as_ref().map_or(self.given, |text| text)
    }

    pub fn name(&self, last: Last) -> &[u8] {
        match last {
            Last::Name { start, end, .. } => self.text().get(start..end).unwrap_or_default(),
            _ => b".",
        }
    }

    /// The name of the last component, for look-up.
    pub fn key(&self) -> &NameKey {
        &self.key
    }

    /// Where the walk stands: before the last component, its directory.
    pub fn here(&self) -> &Path {
        &self.cur
    }

    pub fn into_here(self) -> Path {
        self.cur
    }

    /// The file, when the walk ended at one that no path leads to.
    pub fn take_file(&mut self) -> Option<Arc<File>> {
        self.file.take()
    }

    fn root(&mut self) -> &Path {
        let who = self.who;
        self.root.get_or_insert_with(|| who.fs.root())
    }

    /// Walks on to the last component and says what it is; [`Walk::here`] is then its directory, which may be searched.
    pub fn walk_to_last(&mut self) -> Result<Last> {
        loop {
            // The text is not borrowed from `self` while the walk changes it.
            let last = match self.expanded.clone() {
                None => self.walk_text(self.given)?,
                Some(text) => self.walk_text(&text)?,
            };
            if let Some(last) = last {
                return Ok(last);
            }
        }
    }

    /// Walks on in `text` from position `at`: to its last component, or (`None`) to a link that gives another text.
    fn walk_text(&mut self, text: &[u8]) -> Result<Option<Last>> {
        let mut rest = text.get(self.at..).unwrap_or_default();
        while let [b'/', behind @ ..] = rest {
            rest = behind;
        }
        loop {
            let key = NameKey::scan(rest);
            let len = key.len();
            let start = text.len() - rest.len();
            let kind = match (len, rest) {
                (0, _) => return Ok(Some(Last::Here)),
                (1, [b'.', ..]) => Last::Dot,
                (2, [b'.', b'.', ..]) => Last::DotDot,
                (NAME_TOO_LONG.., _) => return Err(Errno::ENAMETOOLONG),
                _ => Last::Name { start, end: start + len, slash: rest.len() > len },
            };
            rest = rest.get(len..).unwrap_or_default();
            while let [b'/', behind @ ..] = rest {
                rest = behind;
            }
            let inode = self.cur.inode();
            let Some(dir) = inode.dir() else { return Err(Errno::ENOTDIR) };
            if !inode.permits(self.who.cred, X_OK) {
                return Err(Errno::EACCES);
            }
            if rest.is_empty() {
                self.key = key;
                self.at = text.len();
                return Ok(Some(kind));
            }
            match kind {
                Last::Name { start, end, .. } => {
                    let name = text.get(start..end).unwrap_or_default();
                    let next = dir.lookup(&self.cur.dentry, &key, name)?.ok_or(Errno::ENOENT)?;
                    if next.inode().is_symlink() {
                        self.at = text.len() - rest.len();
                        let given = self.expanded.is_none();
                        self.follow(next.inode())?;
                        // A made-up link leads elsewhere in the same text, another begins a new one.
                        if !given || self.expanded.is_some() {
                            return Ok(None);
                        }
                    } else {
                        self.enter(next)?;
                    }
                }
                Last::DotDot => self.up()?,
                _ => {}
            }
        }
    }

    /// Goes to an entry of where the walk stands, through what is mounted there.
    #[inline]
    fn enter(&mut self, next: Arc<Dentry>) -> Result<()> {
        if !next.is_mountpoint() {
            self.cur.dentry = next;
            return Ok(());
        }
        let next = Path { mount: self.cur.mount.clone(), dentry: next }.topmost();
        self.crosses(&next)?;
        self.cur = next;
        Ok(())
    }

    /// One directory up.
    pub fn up(&mut self) -> Result<()> {
        let root = self.root().clone();
        if self.rules & RESOLVE_BENEATH != 0 && self.cur.same(&root) {
            return Err(Errno::EXDEV);
        }
        let up = self.cur.up(&root);
        self.crosses(&up)?;
        self.cur = up;
        Ok(())
    }

    fn crosses(&self, to: &Path) -> Result<()> {
        let crosses = self.rules & RESOLVE_NO_XDEV != 0 && !Arc::ptr_eq(&self.cur.mount, &to.mount);
        if crosses { Err(Errno::EXDEV) } else { Ok(()) }
    }

    /// The entry of the last component, not through what is mounted on it.
    pub fn entry(&self, last: Last) -> Result<Option<Arc<Dentry>>> {
        let Last::Name { start, end, .. } = last else { return Ok(Some(self.cur.dentry.clone())) };
        let name = self.text().get(start..end).unwrap_or_default();
        let Some(dir) = self.cur.inode().dir() else { return Err(Errno::ENOTDIR) };
        dir.lookup(&self.cur.dentry, &self.key, name)
    }

    /// The place of the last component, through mounts.
    #[inline]
    pub fn child(&self, last: Last) -> Result<Option<Path>> {
        let Some(dentry) = self.entry(last)? else { return Ok(None) };
        if !dentry.is_mountpoint() {
            return Ok(Some(Path { mount: self.cur.mount.clone(), dentry }));
        }
        let next = Path { mount: self.cur.mount.clone(), dentry }.topmost();
        self.crosses(&next)?;
        Ok(Some(next))
    }

    /// Follows `link`, found as the component just consumed: the rest of the path is what comes after it.
    pub fn follow(&mut self, link: &Inode) -> Result<()> {
        self.links += 1;
        if self.links > MAX_SYMLINKS || self.rules & RESOLVE_NO_SYMLINKS != 0 {
            return Err(Errno::ELOOP);
        }
        let made;
        let target: &[u8] = match &link.node {
            Node::Symlink(text) => text,
            Node::Magic(magic) => {
                let jump = magic.target()?;
                let file = magic.file();
                if jump.is_some() || file.is_some() {
                    if self.rules & RESOLVE_NO_MAGICLINKS != 0 {
                        return Err(Errno::ELOOP);
                    }
                    if self.rules & (RESOLVE_BENEATH | RESOLVE_IN_ROOT) != 0 {
                        return Err(Errno::EXDEV);
                    }
                    self.file = file;
                    match jump {
                        Some(path) => self.cur = path,
                        // A file without a place: nothing can come after it.
                        None if self.at < self.text().len() => return Err(Errno::ENOTDIR),
                        None => {}
                    }
                    return Ok(());
                }
                made = magic.text()?;
                &made
            }
            _ => return Err(Errno::EINVAL),
        };
        if target.first() == Some(&b'/') {
            if self.rules & RESOLVE_BENEATH != 0 {
                return Err(Errno::EXDEV);
            }
            let root = self.root().clone();
            self.crosses(&root)?;
            self.cur = root;
        }
        let text = self.text();
        // The separator belongs to the rest, so a slash behind the link stays behind its target.
        let mut rest = self.at;
        while rest > 0 && text.get(rest - 1) == Some(&b'/') {
            rest -= 1;
        }
        let rest = text.get(rest..).unwrap_or_default();
        let mut expanded = Vec::new();
        expanded.try_reserve_exact(target.len() + rest.len()).map_err(|_| Errno::ENOMEM)?;
        expanded.extend_from_slice(target);
        expanded.extend_from_slice(rest);
        self.expanded = Some(Arc::new(expanded));
        self.at = 0;
        Ok(())
    }

    /// Walks to the end; the last component's links are followed if `follow`, or if a slash comes after it.
    pub fn walk_to_end(&mut self, follow: bool) -> Result<()> {
        loop {
            let last = self.walk_to_last()?;
            match last {
                Last::Here | Last::Dot => return Ok(()),
                Last::DotDot => return self.up(),
                Last::Name { slash, .. } => {
                    let next = self.entry(last)?.ok_or(Errno::ENOENT)?;
                    let follow = follow || slash;
                    if next.inode().is_symlink() && follow {
                        self.follow(next.inode())?;
                        if self.file.is_some() {
                            return Ok(());
                        }
                        continue;
                    }
                    self.enter(next)?;
                    return if slash && !self.cur.inode().is_dir() { Err(Errno::ENOTDIR) } else { Ok(()) };
                }
            }
        }
    }
}

/// The place that a path leads to; the last component's link is followed if `follow`.
pub fn resolve(who: &Caller<'_>, dirfd: i32, path: &[u8], follow: bool) -> Result<Path> {
    let mut walk = Walk::new(who, dirfd, path)?;
    walk.walk_to_end(follow)?;
    if walk.take_file().is_some() {
        return Err(Errno::ENOENT);
    }
    Ok(walk.into_here())
}

fn directory(who: &Caller<'_>, path: &Path) -> Result<()> {
    if path.inode().file_type() != S_IFDIR {
        return Err(Errno::ENOTDIR);
    }
    if path.inode().permits(who.cred, X_OK) { Ok(()) } else { Err(Errno::EACCES) }
}

/// chdir(2).
pub fn chdir(who: &Caller<'_>, path: &[u8]) -> Result<()> {
    let to = resolve(who, uapi::open::AT_FDCWD, path, true)?;
    directory(who, &to)?;
    who.fs.set_cwd(to);
    Ok(())
}

/// fchdir(2).
pub fn fchdir(who: &Caller<'_>, fd: i32) -> Result<()> {
    let to = who.file(fd)?.path().cloned().ok_or(Errno::ENOTDIR)?;
    directory(who, &to)?;
    who.fs.set_cwd(to);
    Ok(())
}

/// chroot(2): `EPERM` without `CAP_SYS_CHROOT`.
pub fn chroot(who: &Caller<'_>, path: &[u8]) -> Result<()> {
    let to = resolve(who, uapi::open::AT_FDCWD, path, true)?;
    directory(who, &to)?;
    if !who.cred.has(cap::SYS_CHROOT) {
        return Err(Errno::EPERM);
    }
    who.fs.set_root(to);
    Ok(())
}

/// getcwd(2): the text without NUL, `(unreachable)` in front if the directory is outside the root. `ENOENT` if it was
/// removed.
pub fn getcwd(who: &Caller<'_>) -> Result<Vec<u8>> {
    let cwd = who.fs.cwd();
    if cwd.dentry.is_unlinked() {
        return Err(Errno::ENOENT);
    }
    let (text, reachable) = cwd.absolute(&who.fs.root())?;
    if reachable {
        return Ok(text);
    }
    let mut marked = b"(unreachable)".to_vec();
    marked.extend_from_slice(&text);
    Ok(marked)
}
