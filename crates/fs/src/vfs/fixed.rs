//! Building a tree that programs cannot change: `/proc` and `/sys`.

use alloc::boxed::Box;
use alloc::sync::Arc;

use uapi::fs::{S_IFDIR, S_IFREG};
use uapi::{Errno, Result};

use crate::text::{Content, TextNode};
use crate::vfs::name_key::NameKey;
use crate::vfs::{Dentry, Inode, Node, SuperBlock, TREE};

/// Enters what `build` makes at `path`, relative to the root of `sb`; missing directories are made. An entry that is
/// there is replaced, unless it is a directory (`EISDIR`).
pub(crate) fn enter(sb: &SuperBlock, path: &str, build: impl FnOnce(&SuperBlock) -> Arc<Inode>) -> Result<()> {
    let mut dir = sb.root()?;
    let mut build = Some(build);
    let mut parts = path.split('/').filter(|part| !part.is_empty()).peekable();
    let _tree = TREE.lock();
    while let Some(part) = parts.next() {
        let key = NameKey::of(part.as_bytes());
        let table = dir.inode().dir().ok_or(Errno::ENOTDIR)?;
        let last = parts.peek().is_none();
        if let Some(below) = table.find(&key, part.as_bytes()) {
            if !last {
                dir = below;
                continue;
            }
            if below.inode().is_dir() {
                return Err(Errno::EISDIR);
            }
            table.remove(&key, part.as_bytes());
        }
        let inode = match build.take_if(|_| last) {
            Some(build) => build(sb),
            None => sb.inode(S_IFDIR | 0o555, 0, 0, 0, Node::Dir(Default::default())),
        };
        if inode.is_dir() {
            dir.inode().link_added();
        }
        let name: Arc<[u8]> = Arc::from(part.as_bytes());
        let below = Dentry::child(&dir, name.clone(), inode);
        table.insert(&key, name, below.clone())?;
        dir = below;
    }
    Ok(())
}

/// Enters a text file of permissions `mode` that stat(2) shows with `size` bytes.
pub(crate) fn enter_text(sb: &SuperBlock, path: &str, mode: u32, size: u64, content: Content) -> Result<()> {
    enter(sb, path, |sb| sb.inode(S_IFREG | mode, 0, 0, 0, Node::Text(Box::new(TextNode { content, size }))))
}

/// Enters a symbolic link.
pub(crate) fn enter_link(sb: &SuperBlock, path: &str, target: &str) -> Result<()> {
    let text = target.as_bytes().into();
    enter(sb, path, |sb| sb.inode(Inode::mode_of_link(), 0, 0, 0, Node::Symlink(text)))
}

/// Makes sure that there is a directory, for something to be mounted on or for later.
pub(crate) fn enter_dir(sb: &SuperBlock, path: &str) -> Result<()> {
    match enter(sb, path, |sb| sb.inode(S_IFDIR | 0o555, 0, 0, 0, Node::Dir(Default::default()))) {
        Err(Errno::EISDIR) => Ok(()),
        other => other,
    }
}
