//! Page frames: who owns which page of physical memory.
//!
//! Each frame has 32 bytes of [`meta`]data with a reference count; a [`Frame`] is one counted reference, held by the
//! kernel's structures or by a page-table entry, and the frame is free again when the last is dropped. A [`Block`] is
//! a run of 2^n frames with one owner, for kernel stacks and big kernel objects.
//!
//! The metadata is an array over all of memory, but nothing loops over it: memory that was never used lies above a
//! watermark in each range and its metadata is written when the watermark passes it. Below the watermark a buddy
//! system holds what was freed. Before it stand chains of single frames, and before those each hart has a few of its
//! own, so that the common allocation is a pop and the common free a push, and no hart waits for another (see
//! [`alloc`]).

mod alloc;
mod batch;
mod block;
mod buddy;
mod local;
mod meta;
mod pool;

use core::num::NonZeroU32;
use core::sync::atomic::{Ordering, fence};

pub use alloc::{Stats, init, is_reserved, stats, total};
pub use batch::FrameBatch;
pub use block::Block;
pub(crate) use local::{Local, clear_one};
pub use meta::Kind;
pub(super) use meta::meta;
pub use pool::{from_reserve, is_low};

pub use super::page::set_zero_block;
use super::{layout::phys_to_virt, page};
use crate::addr::{PAGE_SHIFT, PAGE_SIZE, PhysAddr};

/// log2 of the largest block's frames: 4 MiB.
pub const MAX_ORDER: usize = 10;

/// One counted reference to a page of physical memory.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame(NonZeroU32);

impl Frame {
    /// A page with whatever was in it: only for callers that overwrite all of it before anybody can see it.
    #[inline(always)]
    pub fn alloc(kind: Kind) -> Option<Self> {
        let number = local::single(kind)?;
        Some(Self(number))
    }

    /// A page of zeroes.
    #[inline(always)]
    pub fn alloc_zeroed(kind: Kind) -> Option<Self> {
        let frame = match local::single_zeroed(kind) {
            Ok(number) => Self(number),
            Err(number) => {
                let frame = Self(number?);
                // SAFETY: the page was just allocated, so nobody else has it.
                unsafe { page::zero(frame.ptr()) };
                frame
            }
        };
        tell!(Filled(frame.number()));
        Some(frame)
    }

    /// A page of zeroes for a page table.
    #[inline]
    pub(in crate::mem) fn alloc_table() -> Option<Self> {
        Self::alloc_zeroed(Kind::PageTable)
    }

    /// A page with the contents of `source`.
    #[inline]
    pub fn alloc_copy(kind: Kind, source: &Frame) -> Option<Self> {
        let frame = Self::alloc(kind)?;
        frame.copy_from_frame(source);
        Some(frame)
    }

    /// The page's physical address.
    #[inline]
    pub fn phys(&self) -> PhysAddr {
        PhysAddr((self.0.get() as usize) << PAGE_SHIFT)
    }

    /// The page's frame number: its physical address in pages.
    #[inline]
    pub fn number(&self) -> u32 {
        self.0.get()
    }

    /// How many references there are. If it says 1, the caller's is the only one and none can appear meanwhile.
    #[inline]
    pub fn refcount(&self) -> u32 {
        meta(self.0.get()).refs.load(Ordering::Acquire)
    }

    /// What the page was allocated for.
    #[inline]
    pub fn kind(&self) -> Kind {
        Kind::from_u8(meta(self.0.get()).kind.load(Ordering::Relaxed))
    }

    /// Notes who owns the page: an identity of the owner's choice and the page's index in it.
    #[inline]
    pub fn set_owner(&self, owner: usize, index: usize) {
        let meta = meta(self.0.get());
        meta.owner.store(owner, Ordering::Relaxed);
        meta.index.store(index, Ordering::Relaxed);
    }

    /// What [`Frame::set_owner`] noted.
    #[inline]
    pub fn owner(&self) -> (usize, usize) {
        let meta = meta(self.0.get());
        (meta.owner.load(Ordering::Relaxed), meta.index.load(Ordering::Relaxed))
    }

    /// The kernel writes to the page.
    #[inline]
    fn written(&self) {
        tell!(Filled(self.0.get()));
        meta(self.0.get()).code.store(0, Ordering::Relaxed);
    }

    /// Overwrites the whole page with that of `source`.
    #[inline]
    pub fn copy_from_frame(&self, source: &Frame) {
        if self.0 != source.0 {
            self.written();
            // SAFETY: different pages, both alive by the handles; no Rust reference ever points into a frame.
            unsafe { page::copy(self.ptr(), source.ptr()) };
        }
    }

    /// Copies bytes out of the page, from `offset` on. Panics if they do not all lie in it.
    #[inline]
    pub fn read(&self, offset: usize, dst: &mut [u8]) {
        assert!(offset <= PAGE_SIZE && dst.len() <= PAGE_SIZE - offset);
        // SAFETY: in the page by the assertion, and `dst` is kernel memory, which no frame handle covers.
        unsafe { core::ptr::copy_nonoverlapping(self.ptr().add(offset), dst.as_mut_ptr(), dst.len()) }
    }

    /// Copies bytes into the page, from `offset` on. Panics if they do not all fit.
    #[inline]
    pub fn write(&self, offset: usize, src: &[u8]) {
        assert!(offset <= PAGE_SIZE && src.len() <= PAGE_SIZE - offset);
        self.written();
        // SAFETY: as in `read`.
        unsafe { core::ptr::copy_nonoverlapping(src.as_ptr(), self.ptr().add(offset), src.len()) }
    }

    /// Clears `len` bytes from `offset` on. Panics if they do not all lie in the page.
    #[inline]
    pub fn zero_range(&self, offset: usize, len: usize) {
        assert!(offset <= PAGE_SIZE && len <= PAGE_SIZE - offset);
        self.written();
        // SAFETY: in the page by the assertion; no Rust reference points into a frame.
        unsafe { core::ptr::write_bytes(self.ptr().add(offset), 0, len) }
    }

    /// Lends the bytes `offset..offset + len` for one copy to user memory. Panics if they do not all lie in the page.
    ///
    /// The slice must only be handed to a copy routine: a program may write to the page meanwhile.
    #[inline]
    pub fn with_bytes<R>(&self, offset: usize, len: usize, f: impl FnOnce(&[u8]) -> R) -> R {
        assert!(offset <= PAGE_SIZE && len <= PAGE_SIZE - offset);
        // SAFETY: 1. in the page by the assertion, and alive as long as `self` is borrowed. 2. A program that maps the
        // page can change it while the slice exists; the slice goes to a copy whose loads happen in assembly or one
        // by one, so no decision of the compiler rests on the bytes staying the same.
        f(unsafe { core::slice::from_raw_parts(self.ptr().add(offset), len) })
    }

    /// Lends the bytes `offset..offset + len` for one copy from user memory; as [`Frame::with_bytes`].
    #[inline]
    pub fn with_bytes_mut<R>(&self, offset: usize, len: usize, f: impl FnOnce(&mut [u8]) -> R) -> R {
        assert!(offset <= PAGE_SIZE && len <= PAGE_SIZE - offset);
        self.written();
        // SAFETY: as in `with_bytes`. Two such slices can exist on two harts when two programs write to one file at
        // once; the bytes are then a mixture, as in Linux, and nothing but these bytes depends on them.
        f(unsafe { core::slice::from_raw_parts_mut(self.ptr().add(offset), len) })
    }

    /// Gives up the handle without dropping the reference: what a page-table entry holds.
    #[inline]
    pub fn into_raw(self) -> u32 {
        let number = self.0.get();
        core::mem::forget(self);
        number
    }

    /// The handle back from [`Frame::into_raw`].
    ///
    /// # Safety
    /// `number` came from `into_raw`, and each `into_raw` is undone at most once.
    #[inline]
    pub unsafe fn from_raw(number: u32) -> Self {
        debug_assert_ne!(number, 0);
        // SAFETY: a handle's number is never 0.
        Self(unsafe { NonZeroU32::new_unchecked(number) })
    }

    #[inline]
    pub(super) fn ptr(&self) -> *mut u8 {
        phys_to_virt(self.phys()) as *mut u8
    }
}

impl Clone for Frame {
    #[inline]
    fn clone(&self) -> Self {
        meta(self.0.get()).refs.fetch_add(1, Ordering::Relaxed);
        Self(self.0)
    }
}

impl Drop for Frame {
    #[inline]
    fn drop(&mut self) {
        if release(meta(self.0.get())) {
            local::free_single(self.0.get());
        }
    }
}

/// Takes one reference away and says whether it was the last.
#[inline]
fn release(meta: &meta::Meta) -> bool {
    let refs = &meta.refs;
    // The only reference cannot be joined by another, so that it needs no atomic decrement.
    if refs.load(Ordering::Relaxed) != 1 && refs.fetch_sub(1, Ordering::Release) != 1 {
        return false;
    }
    fence(Ordering::Acquire);
    true
}

/// A handle to a page of reserved memory (an initramfs, the kernel image), which is never freed.
/// `None` if the page is not in a range that [`init`] was told of.
pub fn adopt(phys: PhysAddr) -> Option<Frame> {
    let number = NonZeroU32::new(u32::try_from(phys.0 >> PAGE_SHIFT).ok()?)?;
    if !phys.0.is_multiple_of(PAGE_SIZE) || !is_reserved(number.get()) {
        return None;
    }
    // The boot's own reference stays for ever, so the count never comes down to 0.
    meta(number.get()).refs.fetch_add(1, Ordering::Relaxed);
    Some(Frame(number))
}

/// The shared page of zeroes, which is never freed and which nobody may write to. `None` only before [`init`].
#[inline]
pub fn zero_page() -> Option<Frame> {
    let number = alloc::zero_page()?;
    meta(number.get()).refs.fetch_add(1, Ordering::Relaxed);
    Some(Frame(number))
}

/// Frame number of the shared page of zeroes; 0 before [`init`].
#[inline]
pub fn zero_page_number() -> u32 {
    alloc::zero_page().map_or(0, NonZeroU32::get)
}

#[cfg(test)]
mod tests;
