//! Memory objects: the pages of one file, or of one piece of shared anonymous memory.
//!
//! An object is where reads, writes and mappings of a file meet: one frame per page index, made at first use. A file of
//! the boot archive starts with its contents in the archive's own pages; a page that lies there whole and aligned is
//! used in place (and written in place), another is copied when first needed.
//!
//! The object's lock covers the tree of frames, the size and the list of areas. It is never held while bytes move to or
//! from user memory: the frame's handle is taken out first, and keeps the page alive whatever happens to the file.

mod io;
mod tree;

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

use hal::addr::{PAGE_SHIFT, PAGE_SIZE, PhysAddr};
use hal::hart;
use hal::mem::frame::{self, Frame, FrameBatch, Kind};
use hal::mem::heap::try_arc;
use hal::sync::SpinLock;
use uapi::Errno;

pub use tree::NoMemory;
use tree::Tree;

use crate::space::AddressSpace;

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// The last number given to a walk over the spaces that map an object.
static WALKS: AtomicU64 = AtomicU64::new(0);

/// Contents of one file or of shared anonymous memory.
pub struct Object {
    id: u64,
    /// Bytes; changed under the lock, read without it.
    size: AtomicUsize,
    /// How often the size became smaller.
    cuts: AtomicU32,
    inner: SpinLock<Inner>,
}

struct Inner {
    pages: Tree,
    boot: Option<Boot>,
    areas: Areas,
}

/// Contents that still lie where the boot loader put them.
#[derive(Clone, Copy)]
struct Boot {
    start: PhysAddr,
    len: usize,
}

/// The areas that map the object, by slot; a weak reference to the space of each.
struct Areas {
    slots: Vec<Option<Weak<AddressSpace>>>,
    free: Vec<u32>,
    /// How many look at all areas now, from the first slot on. New areas go to the end meanwhile, where none is missed: they
    /// may be what an area that was not looked at yet has moved to, or left to a child.
    walks: u32,
}

/// Why a page of an object cannot be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageError {
    /// The index is beyond the object's end.
    BeyondEnd,
    /// No memory for the page.
    NoMemory,
}

impl From<NoMemory> for Errno {
    fn from(_: NoMemory) -> Self {
        Errno::ENOMEM
    }
}

impl From<NoMemory> for PageError {
    fn from(_: NoMemory) -> Self {
        Self::NoMemory
    }
}

impl Object {
    /// An empty object. `ENOMEM`.
    pub fn new() -> Result<Arc<Self>, Errno> {
        Self::make(0, None)
    }

    /// An object of `size` zero bytes, none of which takes memory yet. `ENOMEM`.
    pub fn with_size(size: usize) -> Result<Arc<Self>, Errno> {
        Self::make(size, None)
    }

    /// A file whose `len` bytes are at `start` in memory that boot set aside. `ENOMEM`.
    pub fn from_boot_memory(start: PhysAddr, len: usize) -> Result<Arc<Self>, Errno> {
        Self::make(len, Some(Boot { start, len }))
    }

    fn make(size: usize, boot: Option<Boot>) -> Result<Arc<Self>, Errno> {
        try_arc(Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            size: AtomicUsize::new(size),
            cuts: AtomicU32::new(0),
            inner: SpinLock::new(Inner {
                pages: Tree::new(),
                boot,
                areas: Areas { slots: Vec::new(), free: Vec::new(), walks: 0 },
            }),
        })
        .map_err(|_| Errno::ENOMEM)
    }

    /// A number no other object has or had.
    #[inline]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Size in bytes.
    #[inline]
    pub fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    /// Pages in memory, those of the boot archive that were not used yet left out (they cost nothing).
    pub fn resident_pages(&self) -> usize {
        self.inner.lock().pages.len()
    }

    /// The page at `index`, made if it does not exist yet.
    #[inline]
    pub fn page(&self, index: usize) -> Result<Frame, PageError> {
        let mut inner = self.inner.lock();
        if let Some(frame) = inner.pages.get(index) {
            return Ok(frame.clone());
        }
        if index >= self.size().div_ceil(PAGE_SIZE) {
            return Err(PageError::BeyondEnd);
        }
        match inner.boot_page(index)? {
            Some(frame) => Ok(frame),
            None => {
                let frame = Frame::alloc_zeroed(Kind::PageCache).ok_or(PageError::NoMemory)?;
                self.adopt(&mut inner, index, frame)
            }
        }
    }

    /// The page at `index` if it has contents: `None` where the file has a hole or ends.
    #[inline]
    pub fn existing_page(&self, index: usize) -> Result<Option<Frame>, NoMemory> {
        let mut inner = self.inner.lock();
        match inner.pages.get(index) {
            Some(frame) => Ok(Some(frame.clone())),
            None => inner.boot_page(index),
        }
    }

    /// Calls `f` with those of the pages `first..end` that are in memory already, in order.
    pub(crate) fn cached_pages(&self, first: usize, end: usize, mut f: impl FnMut(usize, &Frame)) {
        let mut inner = self.inner.lock();
        let end = end.min(self.size().div_ceil(PAGE_SIZE));
        for index in first..end {
            if let Some(frame) = inner.pages.get(index) {
                f(index, frame);
            } else if inner.boot.as_ref().is_some_and(|boot| boot.in_place(index).is_some())
                && let Ok(Some(frame)) = inner.boot_page(index)
            {
                f(index, &frame);
            }
        }
    }

    fn adopt(&self, inner: &mut Inner, index: usize, frame: Frame) -> Result<Frame, PageError> {
        frame.set_owner(self.id as usize, index);
        inner.pages.insert(index, frame.clone())?;
        Ok(frame)
    }

    /// Sets the size. What lies beyond a smaller one is gone from the file and from every mapping, private copies
    /// included; a larger one adds zeroes.
    pub fn truncate(&self, size: usize) {
        let mut inner = self.inner.lock();
        let old = self.size();
        self.size.store(size, Ordering::Relaxed);
        if size >= old {
            return;
        }
        // Who writes meanwhile sees this after its bytes, or its bytes are there before those below are cleared.
        self.cuts.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let keep = size.div_ceil(PAGE_SIZE);
        let tail = size % PAGE_SIZE;
        if tail != 0 {
            // Without memory for a copy of the archive's last page, its bytes beyond the end are cut off below.
            if let Ok(Some(frame)) = inner.known_page(size >> PAGE_SHIFT) {
                frame.zero_range(tail, PAGE_SIZE - tail);
            }
        }
        if let Some(boot) = &mut inner.boot {
            boot.len = boot.len.min(size);
        }
        let mut batch = FrameBatch::new();
        inner.pages.remove(keep, usize::MAX, &mut batch, hart::window);
        drop(inner);
        self.unmap(keep, usize::MAX, true);
        drop(batch);
    }

    /// Makes a hole of the whole pages of `start..end` and zeroes of the rest (fallocate's PUNCH_HOLE). `ENOMEM`.
    pub fn punch(&self, start: usize, end: usize) -> Result<(), Errno> {
        let end = end.min(self.size());
        if start >= end {
            return Ok(());
        }
        let (first, last) = (start.div_ceil(PAGE_SIZE), end >> PAGE_SHIFT);
        let mut inner = self.inner.lock();
        // Edges, within a page each.
        for (from, to) in [(start, end.min(first << PAGE_SHIFT)), (start.max(last << PAGE_SHIFT), end)] {
            if from < to
                && from % PAGE_SIZE + (to - from) <= PAGE_SIZE
                && let Some(frame) = inner.known_page(from >> PAGE_SHIFT)?
            {
                frame.zero_range(from % PAGE_SIZE, to - from);
            }
        }
        if first >= last {
            return Ok(());
        }
        let mut batch = FrameBatch::new();
        let result = self.remove(&mut inner, first, last, &mut batch);
        drop(inner);
        self.unmap(first, last, false);
        result
    }

    /// Makes the pages `first..last` a hole, or, without memory, some of them.
    fn remove(&self, inner: &mut Inner, first: usize, last: usize, batch: &mut FrameBatch) -> Result<(), Errno> {
        // What is in the archive would come back: zeroes stand in front of it.
        let boot = inner.boot.map_or(0, |boot| boot.len.div_ceil(PAGE_SIZE));
        for index in first..last.min(boot) {
            if index.is_multiple_of(64) {
                hart::window();
            }
            let frame = Frame::alloc_zeroed(Kind::PageCache).ok_or(Errno::ENOMEM)?;
            self.adopt(inner, index, frame).map_err(|_| Errno::ENOMEM)?;
        }
        if boot < last {
            inner.pages.remove(boot.max(first), last, batch, hart::window);
        }
        Ok(())
    }

    /// Takes the pages `first..end` out of every area that maps them, and private `copies` of them.
    fn unmap(&self, first: usize, end: usize, copies: bool) {
        let walk = WALKS.fetch_add(1, Ordering::Relaxed) + 1;
        self.inner.lock().areas.walks += 1;
        for slot in 0.. {
            let space = match self.inner.lock().areas.slots.get(slot) {
                None => break,
                Some(space) => space.as_ref().and_then(Weak::upgrade),
            };
            // The object's lock is free here: the space's lock comes first, and this may be the space's last handle.
            // A space that was visited has nothing left, however many areas it has, and has made since.
            if let Some(space) = space
                && space.is_first_visit(walk)
            {
                space.unmap_object(self, first, end, copies);
            }
            if slot % 256 == 255 {
                hart::window();
            }
        }
        self.inner.lock().areas.walks -= 1;
    }

    /// Notes that an area of `space` maps the object; gives the slot to take it back with.
    pub(crate) fn add_area(&self, space: &Weak<AddressSpace>) -> Result<u32, Errno> {
        let areas = &mut self.inner.lock().areas;
        if areas.walks == 0
            && let Some(slot) = areas.free.pop()
        {
            areas.slots[slot as usize] = Some(space.clone());
            return Ok(slot);
        }
        areas.slots.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        // Room to put any slot back is made now, since giving up an area must not fail.
        let wanted = areas.slots.len() + 1 - areas.free.len().min(areas.slots.len());
        areas.free.try_reserve(wanted).map_err(|_| Errno::ENOMEM)?;
        areas.slots.push(Some(space.clone()));
        Ok((areas.slots.len() - 1) as u32)
    }

    /// Takes back what [`Object::add_area`] noted.
    pub(crate) fn remove_area(&self, slot: u32) {
        let areas = &mut self.inner.lock().areas;
        areas.slots[slot as usize] = None;
        areas.free.push(slot);
    }
}

impl Inner {
    /// The page at `index` from the boot archive, kept in the tree from now on. `None` where the archive has nothing.
    fn boot_page(&mut self, index: usize) -> Result<Option<Frame>, NoMemory> {
        let Some(boot) = self.boot else { return Ok(None) };
        let Some(frame) = boot.page(index)? else { return Ok(None) };
        self.pages.insert(index, frame.clone())?;
        Ok(Some(frame))
    }

    fn known_page(&mut self, index: usize) -> Result<Option<Frame>, NoMemory> {
        match self.pages.get(index) {
            Some(frame) => Ok(Some(frame.clone())),
            None => self.boot_page(index),
        }
    }
}

impl Boot {
    /// The archive's own page with the contents of page `index`, if it holds them whole and nothing else.
    fn in_place(&self, index: usize) -> Option<PhysAddr> {
        let offset = index << PAGE_SHIFT;
        (self.start.0.is_multiple_of(PAGE_SIZE) && offset + PAGE_SIZE <= self.len)
            .then_some(PhysAddr(self.start.0 + offset))
    }

    fn page(&self, index: usize) -> Result<Option<Frame>, NoMemory> {
        let Some(offset) = index.checked_mul(PAGE_SIZE).filter(|&o| o < self.len) else { return Ok(None) };
        if let Some(frame) = self.in_place(index).and_then(frame::adopt) {
            return Ok(Some(frame));
        }
        let len = (self.len - offset).min(PAGE_SIZE);
        let page = Frame::alloc(Kind::PageCache).ok_or(NoMemory)?;
        let mut done = 0;
        while done < len {
            let at = self.start.0 + offset + done;
            let within = at % PAGE_SIZE;
            let n = (PAGE_SIZE - within).min(len - done);
            // Boot set all of the archive aside, so its pages can be had; where not, the file reads as zeroes.
            match frame::adopt(PhysAddr(at - within)) {
                Some(source) => page.with_bytes_mut(done, n, |bytes| source.read(within, bytes)),
                None => page.zero_range(done, n),
            }
            done += n;
        }
        page.zero_range(len, PAGE_SIZE - len);
        Ok(Some(page))
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        let mut batch = FrameBatch::new();
        self.inner.get_mut().pages.truncate(0, &mut batch);
    }
}

#[cfg(test)]
mod tests;
