//! The 32 bytes that are kept for each frame.

use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering};

/// What a page is used for; the kinds that `/proc/meminfo` and the leak tests count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Private memory of a program.
    Anonymous = 0,
    /// Contents of a file or of shared anonymous memory.
    PageCache = 1,
    /// A page table.
    PageTable = 2,
    /// A task's kernel stack.
    Stack = 3,
    /// The kernel heap.
    Heap = 4,
    /// Memory that boot set aside; never freed.
    Reserved = 5,
}

/// Number of [`Kind`]s.
pub(super) const KINDS: usize = 6;

impl Kind {
    #[inline]
    pub(super) fn from_u8(kind: u8) -> Self {
        match kind {
            0 => Self::Anonymous,
            1 => Self::PageCache,
            2 => Self::PageTable,
            3 => Self::Stack,
            4 => Self::Heap,
            _ => Self::Reserved,
        }
    }
}

/// In place of a kind: the first frame of a free block in the buddy system.
pub(super) const FREE: u8 = 0x80;
/// In place of a kind: inside a free block, or about to be handed out.
pub(super) const IDLE: u8 = 0x81;

/// Metadata of one frame. Everything is atomic because handles on several harts share it; who may write what when is
/// said at each field.
#[repr(C)]
pub(in crate::mem) struct Meta {
    /// References to a single frame. Meaningless while the frame is free.
    pub refs: AtomicU32,
    /// A [`Kind`], [`FREE`] or [`IDLE`]; changed by the allocator and by the one who just got the frame.
    pub kind: AtomicU8,
    /// log2 of the block's frames, in the first frame of a block.
    pub order: AtomicU8,
    /// 1 if harts that fetch from the page see all that the kernel wrote to it (see `tlb::code`).
    pub code: AtomicU16,
    /// Next in a list of the allocator, of a batch or of the heap; 0 ends it.
    pub next: AtomicU32,
    /// Previous in a doubly linked list.
    pub prev: AtomicU32,
    /// Owner's identity (see `Frame::set_owner`); the heap's first free object of a slab.
    pub owner: AtomicUsize,
    /// Index in the owner; the heap's objects in use of a slab.
    pub index: AtomicUsize,
}

const _: () = assert!(size_of::<Meta>() == 32);

/// Address at which the metadata of frame 0 would be.
static BASE: AtomicUsize = AtomicUsize::new(0);

pub(super) fn set_base(address: usize) {
    BASE.store(address, Ordering::Relaxed);
}

/// The metadata of frame `number`, which must lie in memory that the allocator was given.
#[inline]
pub(in crate::mem) fn meta(number: u32) -> &'static Meta {
    let address = BASE.load(Ordering::Relaxed).wrapping_add(number as usize * size_of::<Meta>());
    // SAFETY: 1. frame numbers come from handles and from the allocator's own lists, so they lie in the memory that
    // the array covers. 2. All fields are atomic integers, for which any bits are valid, and the memory is never used
    // for anything else.
    unsafe { &*(address as *const Meta) }
}

impl Meta {
    /// Makes the frame a free or idle one of `order`.
    #[inline]
    pub(super) fn reset(&self, kind: u8, order: usize) {
        self.kind.store(kind, Ordering::Relaxed);
        self.order.store(order as u8, Ordering::Relaxed);
    }
}
