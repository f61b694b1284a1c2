//! Files of text that is made when it is read: the content of `/proc` and `/sys`.
//!
//! A constant text needs nothing of its own when it is opened. Any other is rendered at the first read, and again when
//! a read starts over at offset 0, and stays with the open file in between, so that a reader in small steps sees one
//! consistent text.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use hal::sync::SpinLock;
use hal::user::{InBuf, OutBuf};
use uapi::open::{O_ACCMODE, O_RDONLY};
use uapi::{Errno, Result};

use crate::file::{File, FileOps, Ops};
use crate::tmpfs::seek_to;
use crate::vfs::{Node, OpenNode};

/// Most bytes that one write to such a file takes.
const WRITE_MAX: usize = 4096;

/// A text that depends on something, or can be set.
pub trait TextSource: Send + Sync {
    /// The text now.
    fn read(&self) -> Result<Vec<u8>>;

    /// Takes what a program wrote, at most 4096 bytes. `EINVAL` when it makes no sense.
    fn write(&self, _text: &[u8]) -> Result<()> {
        Err(Errno::EIO)
    }
}

/// What a text file says.
#[derive(Clone)]
pub enum Content {
    /// Always the same.
    Static(&'static [u8]),
    /// Made by a function.
    Made(fn() -> String),
    /// Made, and perhaps taken, by an object.
    Source(Arc<dyn TextSource>),
}

impl From<&'static str> for Content {
    fn from(text: &'static str) -> Self {
        Self::Static(text.as_bytes())
    }
}

impl From<fn() -> String> for Content {
    fn from(make: fn() -> String) -> Self {
        Self::Made(make)
    }
}

impl<T: TextSource + 'static> From<Arc<T>> for Content {
    fn from(source: Arc<T>) -> Self {
        Self::Source(source)
    }
}

/// The node of a text file.
pub(crate) struct TextNode {
    pub content: Content,
    /// What stat(2) shows: sysfs says 4096, procfs 0.
    pub size: u64,
}

impl OpenNode for TextNode {
    fn open(&self, flags: u32) -> Result<Ops> {
        match self.content {
            Content::Static(_) if flags & O_ACCMODE == O_RDONLY => Ok(Ops::Static(&ConstantOps)),
            _ => Ok(rendered(self.content.clone())),
        }
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn constant(&self) -> Option<&'static [u8]> {
        match self.content {
            Content::Static(text) => Some(text),
            _ => None,
        }
    }
}

/// Operations with a rendering of their own.
pub(crate) fn rendered(content: Content) -> Ops {
    Ops::Shared(Arc::new(Rendered { content, text: SpinLock::new(None) }))
}

/// Copies from `off` on.
#[inline]
fn copy(text: &[u8], off: u64, out: &mut OutBuf<'_>) -> Result<usize> {
    let from = usize::try_from(off).unwrap_or(usize::MAX);
    match text.get(from..) {
        Some(rest) if !rest.is_empty() => out.write(rest),
        _ => Ok(0),
    }
}

/// A constant text: it is in the inode.
struct ConstantOps;

impl FileOps for ConstantOps {
    fn read(&self, file: &File, out: &mut OutBuf<'_>) -> Result<usize> {
        let mut pos = file.pos.lock();
        let n = self.read_at(file, *pos, out)?;
        *pos += n as u64;
        Ok(n)
    }

    fn read_at(&self, file: &File, off: u64, out: &mut OutBuf<'_>) -> Result<usize> {
        match &file.inode().node {
            Node::Text(node) => copy(node.constant().unwrap_or_default(), off, out),
            _ => Err(Errno::EIO),
        }
    }

    fn seek(&self, file: &File, off: i64, whence: u32) -> Result<u64> {
        let mut pos = file.pos.lock();
        *pos = seek_to(*pos, file.inode().size(), off, whence)?;
        Ok(*pos)
    }
}

struct Rendered {
    content: Content,
    text: SpinLock<Option<Vec<u8>>>,
}

impl Rendered {
    fn render(&self) -> Result<Vec<u8>> {
        match &self.content {
            Content::Static(text) => Ok(text.to_vec()),
            Content::Made(make) => Ok(make().into_bytes()),
            Content::Source(source) => source.read(),
        }
    }
}

impl FileOps for Rendered {
    fn read(&self, file: &File, out: &mut OutBuf<'_>) -> Result<usize> {
        let mut pos = file.pos.lock();
        let n = self.read_at(file, *pos, out)?;
        *pos += n as u64;
        Ok(n)
    }

    fn read_at(&self, _: &File, off: u64, out: &mut OutBuf<'_>) -> Result<usize> {
        // Rendered without the lock: the source may take locks of its own.
        let fresh = if off == 0 || self.text.lock().is_none() { Some(self.render()?) } else { None };
        let mut text = self.text.lock();
        if fresh.is_some() {
            *text = fresh;
        }
        copy(text.as_deref().unwrap_or_default(), off, out)
    }

    fn write(&self, file: &File, input: &mut InBuf<'_>) -> Result<usize> {
        let n = self.write_at(file, 0, input)?;
        *file.pos.lock() += n as u64;
        Ok(n)
    }

    fn write_at(&self, _: &File, _: u64, input: &mut InBuf<'_>) -> Result<usize> {
        let Content::Source(source) = &self.content else { return Err(Errno::EIO) };
        let len = input.len().min(WRITE_MAX);
        let mut text = Vec::new();
        text.try_reserve_exact(len).map_err(|_| Errno::ENOMEM)?;
        text.resize(len, 0);
        let n = input.read(&mut text)?;
        source.write(text.get(..n).unwrap_or_default())?;
        Ok(n)
    }

    fn seek(&self, file: &File, off: i64, whence: u32) -> Result<u64> {
        let mut pos = file.pos.lock();
        *pos = seek_to(*pos, 0, off, whence)?;
        Ok(*pos)
    }

    /// A `>` of the shell opens with `O_TRUNC`: nothing to cut.
    fn truncate(&self, _: &File, _: u64) -> Result<()> {
        Ok(())
    }
}
