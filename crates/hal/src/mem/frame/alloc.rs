//! The allocator behind the handles.
//!
//! Three stores of free frames, in the order in which they are asked: the *hot list* of single frames (singly linked
//! through the metadata, last in first out, so that a frame just freed is still in the cache), the *buddy lists* of
//! blocks by order (doubly linked, merged with their buddies when freed), and the untouched memory above each range's
//! watermark. The hot list is filled 32 frames at a time and drained into the buddy lists when it grows long or when a
//! block is asked for that the buddy lists do not have.
//!
//! Page tables are all zeroes again when they are freed, since every entry was cleared: they wait on a list of their own
//! for the next page table, which then need not be cleared.
//!
//! The last [`Allocator::reserve`] frames are kept from programs' own pages: what the kernel needs to finish a call
//! that has begun (heap, page tables) is there when user memory has run out.

use core::num::NonZeroU32;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::meta::{FREE, IDLE, KINDS, Kind, Meta, meta, set_base};
use super::{MAX_ORDER, page};
use crate::addr::{PAGE_SHIFT, PAGE_SIZE, PhysAddr, page_up};
use crate::mem::layout::phys_to_virt;
use crate::sync::SpinLock;

/// Ranges of free or reserved memory that can be told apart.
const MAX_RANGES: usize = 16;
/// Frames that the hot list is filled with at a time: log2.
const FILL_ORDER: usize = 5;
/// Length at which the hot list is drained to half.
const HOT_MAX: usize = 4096;
/// Most pages of zeroes that are kept.
const ZEROED_MAX: usize = 256;

/// One range of memory, in frame numbers. Metadata exists below `next` only.
#[derive(Clone, Copy)]
struct Range {
    start: u32,
    next: u32,
    end: u32,
}

const NO_RANGE: Range = Range { start: 0, next: 0, end: 0 };

struct Allocator {
    hot: u32,
    hot_len: usize,
    zeroed: u32,
    zeroed_len: usize,
    lists: [u32; MAX_ORDER + 1],
    ranges: [Range; MAX_RANGES],
    reserve: usize,
}

static ALLOCATOR: SpinLock<Allocator> = SpinLock::new(Allocator {
    hot: 0,
    hot_len: 0,
    zeroed: 0,
    zeroed_len: 0,
    lists: [0; MAX_ORDER + 1],
    ranges: [NO_RANGE; MAX_RANGES],
    reserve: 0,
});

/// Reserved ranges as (first, end) frame numbers; written by [`init`] alone.
static RESERVED: [(AtomicU32, AtomicU32); MAX_RANGES] = [const { (AtomicU32::new(0), AtomicU32::new(0)) }; MAX_RANGES];
static ZERO_PAGE: AtomicU32 = AtomicU32::new(0);
/// Counts: written under the allocator's lock, read without it.
static FREE_FRAMES: AtomicUsize = AtomicUsize::new(0);
static TOTAL: AtomicUsize = AtomicUsize::new(0);
static IN_USE: [AtomicUsize; KINDS] = [const { AtomicUsize::new(0) }; KINDS];

/// Free frames at which only the reserve is left; written by [`init`] alone.
static LOW: AtomicUsize = AtomicUsize::new(0);

/// Whether only the reserve is left. Whoever makes small kernel objects that programs can ask for without end (names of
/// files, pages of pipes) stops then: the reserve is for calls that have begun.
#[inline]
pub fn is_low() -> bool {
    FREE_FRAMES.load(Ordering::Relaxed) <= LOW.load(Ordering::Relaxed)
}

/// Memory in pages, by use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stats {
    /// Managed pages: all but what boot reserved and the metadata.
    pub total: usize,
    /// Pages in no use.
    pub free: usize,
    /// Private memory of programs.
    pub anonymous: usize,
    /// File contents and shared memory.
    pub page_cache: usize,
    /// Page tables.
    pub page_tables: usize,
    /// Kernel stacks.
    pub kernel_stacks: usize,
    /// Kernel heap.
    pub heap: usize,
}

/// The counters now. Each is exact; on several harts they may be of slightly different moments.
pub fn stats() -> Stats {
    let used = |kind: Kind| IN_USE[kind as usize].load(Ordering::Relaxed);
    Stats {
        total: TOTAL.load(Ordering::Relaxed),
        free: FREE_FRAMES.load(Ordering::Relaxed),
        anonymous: used(Kind::Anonymous),
        page_cache: used(Kind::PageCache),
        page_tables: used(Kind::PageTable),
        kernel_stacks: used(Kind::Stack),
        heap: used(Kind::Heap),
    }
}

/// Adds under the allocator's lock: a plain add, since all writers hold it.
#[inline]
fn bump(counter: &AtomicUsize, by: isize) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add_signed(by), Ordering::Relaxed);
}

/// Takes over physical memory: `free` is RAM that nobody uses, `reserved` RAM that stays as it is but may be
/// [adopted](super::adopt) page by page. Both are (start, length in bytes); partial pages are left out of `free` and
/// counted in for `reserved`. At most 16 ranges of each are used.
///
/// # Safety
/// The ranges are RAM, in the direct map, and do not overlap; nobody else uses `free`. Called once, before any other
/// function of [`mem`](crate::mem), with one hart running.
pub unsafe fn init(free: &[(PhysAddr, usize)], reserved: &[(PhysAddr, usize)]) {
    let mut ranges = [NO_RANGE; MAX_RANGES];
    let mut used = 0;
    for &(start, len) in free.iter().take(MAX_RANGES) {
        let first = page_up(start.0).unwrap_or(start.0) >> PAGE_SHIFT;
        let end = start.0.saturating_add(len) >> PAGE_SHIFT;
        // Frame 0 has no handle; frame numbers have 32 bits.
        let (first, end) = (first.max(1) as u32, end.min(u32::MAX as usize) as u32);
        if first < end {
            ranges[used] = Range { start: first, next: first, end };
            used += 1;
        }
    }
    let (mut low, mut high) = (u32::MAX, 0);
    for range in &ranges[..used] {
        (low, high) = (low.min(range.start), high.max(range.end));
    }
    for (slot, &(start, len)) in RESERVED.iter().zip(reserved) {
        let first = (start.0 >> PAGE_SHIFT).max(1) as u32;
        let end = (page_up(start.0.saturating_add(len)).unwrap_or(start.0) >> PAGE_SHIFT) as u32;
        slot.0.store(first, Ordering::Relaxed);
        slot.1.store(end.max(first), Ordering::Relaxed);
        (low, high) = (low.min(first), high.max(end));
    }
    // The metadata of everything from `low` to `high` goes to the end of the first range that has room for it.
    let bytes = high.saturating_sub(low) as usize * size_of::<Meta>();
    let frames = bytes.div_ceil(PAGE_SIZE) as u32;
    let Some(home) = ranges[..used].iter_mut().find(|r| r.end - r.start > frames) else { return };
    home.end -= frames;
    let array = phys_to_virt(PhysAddr((home.end as usize) << PAGE_SHIFT));
    set_base(array.wrapping_sub(low as usize * size_of::<Meta>()));
    for (first, end) in RESERVED.iter().map(|r| (r.0.load(Ordering::Relaxed), r.1.load(Ordering::Relaxed))) {
        for number in first..end {
            meta(number).reset(Kind::Reserved as u8, 0);
            meta(number).refs.store(1, Ordering::Relaxed);
            // Filled by the loader; each hart fences its fetches when it starts.
            meta(number).code.store(1, Ordering::Relaxed);
        }
        bump(&IN_USE[Kind::Reserved as usize], (end - first) as isize);
    }
    let total: usize = ranges[..used].iter().map(|r| (r.end - r.start) as usize).sum();
    let mut allocator = ALLOCATOR.lock();
    allocator.ranges = ranges;
    allocator.reserve = (total / 128).clamp(32, 1024).min(total / 4);
    LOW.store(allocator.reserve, Ordering::Relaxed);
    TOTAL.store(total, Ordering::Relaxed);
    FREE_FRAMES.store(total, Ordering::Relaxed);
    drop(allocator);
    if let Some(number) = single(Kind::Reserved) {
        // SAFETY: the frame was just allocated.
        unsafe { page::zero(phys_to_virt(PhysAddr((number.get() as usize) << PAGE_SHIFT)) as *mut u8) };
        ZERO_PAGE.store(number.get(), Ordering::Relaxed);
    }
}

/// Whether frame `number` is in a reserved range.
pub fn is_reserved(number: u32) -> bool {
    RESERVED.iter().any(|r| r.0.load(Ordering::Relaxed) <= number && number < r.1.load(Ordering::Relaxed))
}

#[inline]
pub(super) fn zero_page() -> Option<NonZeroU32> {
    NonZeroU32::new(ZERO_PAGE.load(Ordering::Relaxed))
}

/// One frame, with a count of 1. Inlined, since the kind is a constant where it is called.
#[inline(always)]
pub(super) fn single(kind: Kind) -> Option<NonZeroU32> {
    let mut allocator = ALLOCATOR.lock();
    if allocator.hot == 0 && !allocator.fill() {
        return None;
    }
    if !allocator.take(kind, 1) {
        return None;
    }
    let number = allocator.hot;
    let meta = meta(number);
    allocator.hot = meta.next.load(Ordering::Relaxed);
    allocator.hot_len -= 1;
    drop(allocator);
    meta.refs.store(1, Ordering::Relaxed);
    meta.kind.store(kind as u8, Ordering::Relaxed);
    meta.code.store(0, Ordering::Relaxed);
    NonZeroU32::new(number)
}

/// One frame of zeroes for a page table, with a count of 1, if one is kept.
#[inline]
pub(super) fn zeroed_table() -> Option<NonZeroU32> {
    let mut allocator = ALLOCATOR.lock();
    let number = NonZeroU32::new(allocator.zeroed)?;
    if !allocator.take(Kind::PageTable, 1) {
        return None;
    }
    let meta = meta(number.get());
    allocator.zeroed = meta.next.load(Ordering::Relaxed);
    allocator.zeroed_len -= 1;
    drop(allocator);
    meta.refs.store(1, Ordering::Relaxed);
    meta.kind.store(Kind::PageTable as u8, Ordering::Relaxed);
    Some(number)
}

/// A frame whose last reference is gone comes back.
#[inline]
pub(super) fn free_single(number: u32) {
    tell!(Freed(number));
    let meta = meta(number);
    let kind = meta.kind.load(Ordering::Relaxed);
    let mut allocator = ALLOCATOR.lock();
    allocator.give(kind, 1);
    meta.next.store(allocator.hot, Ordering::Relaxed);
    allocator.hot = number;
    allocator.hot_len += 1;
    if allocator.hot_len > HOT_MAX {
        allocator.drain(HOT_MAX / 2);
    }
}

/// Tells a test on the host that the frames from `first` to `last` are about to be free.
#[inline(always)]
fn tell_chain(first: u32, last: u32) {
    if cfg!(not(target_os = "none")) {
        let mut number = first;
        while number != last {
            tell!(Freed(number));
            number = meta(number).next.load(Ordering::Relaxed);
        }
        tell!(Freed(last));
    }
}

/// A chain of frames whose last references are gone comes back: `first` to `last` through `next`, with their number by
/// kind.
pub(super) fn free_chain(first: u32, last: u32, by_kind: &[u32; KINDS]) {
    tell_chain(first, last);
    let mut allocator = ALLOCATOR.lock();
    for (kind, &count) in by_kind.iter().enumerate() {
        if count != 0 {
            allocator.give(kind as u8, count as usize);
            allocator.hot_len += count as usize;
        }
    }
    meta(last).next.store(allocator.hot, Ordering::Relaxed);
    allocator.hot = first;
    if allocator.hot_len > HOT_MAX {
        allocator.drain(HOT_MAX / 2);
    }
}

/// A chain of `count` page tables comes back, all zeroes; otherwise as [`free_chain`].
pub(super) fn free_tables(first: u32, last: u32, count: usize) {
    tell_chain(first, last);
    let mut allocator = ALLOCATOR.lock();
    allocator.give(Kind::PageTable as u8, count);
    if allocator.zeroed_len + count <= ZEROED_MAX {
        meta(last).next.store(allocator.zeroed, Ordering::Relaxed);
        allocator.zeroed = first;
        allocator.zeroed_len += count;
    } else {
        meta(last).next.store(allocator.hot, Ordering::Relaxed);
        allocator.hot = first;
        allocator.hot_len += count;
        if allocator.hot_len > HOT_MAX {
            allocator.drain(HOT_MAX / 2);
        }
    }
}

/// A block of 2^`order` frames.
pub(super) fn block(order: usize, kind: Kind) -> Option<NonZeroU32> {
    if order > MAX_ORDER {
        return None;
    }
    let mut allocator = ALLOCATOR.lock();
    if !allocator.take(kind, 1 << order) {
        return None;
    }
    let mut number = allocator.carve(order);
    if number == 0 {
        allocator.spend_zeroed();
        allocator.drain(0);
        number = allocator.carve(order);
    }
    if number == 0 {
        allocator.give(kind as u8, 1 << order);
        return None;
    }
    meta(number).reset(kind as u8, order);
    NonZeroU32::new(number)
}

/// A block from [`block`] comes back.
pub(super) fn free_block(number: u32, order: usize) {
    let mut allocator = ALLOCATOR.lock();
    allocator.give(meta(number).kind.load(Ordering::Relaxed), 1 << order);
    allocator.insert(number, order);
}

impl Allocator {
    /// Counts `frames` frames out, unless that would touch what `kind` may not have.
    #[inline(always)]
    fn take(&mut self, kind: Kind, frames: usize) -> bool {
        let floor = match kind {
            Kind::Anonymous | Kind::PageCache => self.reserve,
            Kind::Stack | Kind::PageTable => self.reserve / 2,
            Kind::Heap | Kind::Reserved => 0,
        };
        let free = FREE_FRAMES.load(Ordering::Relaxed);
        if free < floor + frames {
            return false;
        }
        FREE_FRAMES.store(free - frames, Ordering::Relaxed);
        bump(&IN_USE[kind as usize], frames as isize);
        true
    }

    /// Counts `frames` frames of `kind` back in.
    #[inline]
    fn give(&mut self, kind: u8, frames: usize) {
        bump(&FREE_FRAMES, frames as isize);
        if let Some(counter) = IN_USE.get(kind as usize) {
            bump(counter, -(frames as isize));
        }
    }

    /// Puts up to 32 frames on the empty hot list; false when there is none.
    #[cold]
    fn fill(&mut self) -> bool {
        for order in (0..=FILL_ORDER).rev() {
            let number = self.carve(order);
            if number != 0 {
                for frame in (number..number + (1 << order)).rev() {
                    let meta = meta(frame);
                    meta.reset(IDLE, 0);
                    meta.next.store(self.hot, Ordering::Relaxed);
                    self.hot = frame;
                }
                self.hot_len += 1 << order;
                return true;
            }
        }
        self.spend_zeroed();
        self.hot != 0
    }

    /// The pages of zeroes become ordinary free frames.
    fn spend_zeroed(&mut self) {
        while self.zeroed != 0 {
            let meta = meta(self.zeroed);
            let next = meta.next.load(Ordering::Relaxed);
            meta.next.store(self.hot, Ordering::Relaxed);
            self.hot = core::mem::replace(&mut self.zeroed, next);
        }
        self.hot_len += core::mem::take(&mut self.zeroed_len);
    }

    /// Moves frames from the hot list to the buddy lists until `keep` are left.
    #[cold]
    fn drain(&mut self, keep: usize) {
        while self.hot_len > keep {
            let number = self.hot;
            self.hot = meta(number).next.load(Ordering::Relaxed);
            self.hot_len -= 1;
            self.insert(number, 0);
        }
    }

    /// A block from the buddy lists, split as needed, or from untouched memory; 0 when there is none.
    fn carve(&mut self, order: usize) -> u32 {
        for found in order..=MAX_ORDER {
            let number = self.lists[found];
            if number != 0 {
                self.unlink(number, found);
                for half in (order..found).rev() {
                    self.link(number + (1 << half), half);
                }
                return number;
            }
        }
        let size = 1u32 << order;
        for i in 0..MAX_RANGES {
            let Range { next, end, .. } = self.ranges[i];
            let Some(number) = next.checked_next_multiple_of(size) else { continue };
            if number < end && end - number >= size {
                self.ranges[i].next = number + size;
                // What alignment skipped becomes blocks of its own.
                let mut gap = next;
                while gap < number {
                    let order = (gap.trailing_zeros() as usize).min((number - gap).ilog2() as usize).min(MAX_ORDER);
                    self.link(gap, order);
                    gap += 1 << order;
                }
                return number;
            }
        }
        0
    }

    /// A free block joins the buddy lists, merged with its buddy as often as that is free too.
    fn insert(&mut self, mut number: u32, mut order: usize) {
        // Metadata is valid from the range's start up to its watermark.
        let Some(range) = self.ranges.iter().find(|r| r.start <= number && number < r.next).copied() else { return };
        while order < MAX_ORDER {
            let buddy = number ^ (1 << order);
            if buddy < range.start || buddy >= range.next {
                break;
            }
            let meta = meta(buddy);
            if meta.kind.load(Ordering::Relaxed) != FREE || meta.order.load(Ordering::Relaxed) as usize != order {
                break;
            }
            self.unlink(buddy, order);
            meta.kind.store(IDLE, Ordering::Relaxed);
            number &= !(1 << order);
            order += 1;
        }
        self.link(number, order);
    }

    fn link(&mut self, number: u32, order: usize) {
        let head = self.lists[order];
        let block = meta(number);
        block.reset(FREE, order);
        block.next.store(head, Ordering::Relaxed);
        block.prev.store(0, Ordering::Relaxed);
        if head != 0 {
            meta(head).prev.store(number, Ordering::Relaxed);
        }
        self.lists[order] = number;
    }

    fn unlink(&mut self, number: u32, order: usize) {
        let block = meta(number);
        let (next, prev) = (block.next.load(Ordering::Relaxed), block.prev.load(Ordering::Relaxed));
        block.kind.store(IDLE, Ordering::Relaxed);
        if prev == 0 {
            self.lists[order] = next;
        } else {
            meta(prev).next.store(next, Ordering::Relaxed);
        }
        if next != 0 {
            meta(next).prev.store(prev, Ordering::Relaxed);
        }
    }
}
