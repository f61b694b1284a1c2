//! The allocator as a whole: how it begins, and what it has counted.
//!
//! Free frames lie in three places, in the order in which they are asked: on each hart ([`local`]), in the pool that all
//! harts share ([`pool`]), as blocks of the pool ([`buddy`](super::buddy)).

use core::num::NonZeroU32;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::buddy::{MAX_RANGES, NO_RANGE, Range};
use super::meta::{Kind, Meta, meta, set_base};
use super::{local, page, pool};
use crate::addr::{PAGE_SHIFT, PAGE_SIZE, PhysAddr, page_up};
use crate::mem::layout::phys_to_virt;

/// Reserved ranges as (first, end) frame numbers; written by [`init`] alone.
static RESERVED: [(AtomicU32, AtomicU32); MAX_RANGES] = [const { (AtomicU32::new(0), AtomicU32::new(0)) }; MAX_RANGES];
static ZERO_PAGE: AtomicU32 = AtomicU32::new(0);
static TOTAL: AtomicUsize = AtomicUsize::new(0);

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

/// Managed pages: all but what boot reserved and the metadata.
#[inline]
pub fn total() -> usize {
    TOTAL.load(Ordering::Relaxed)
}

/// The counts of one moment. For reports, not for hot paths: the allocator stands still on all harts meanwhile.
pub fn stats() -> Stats {
    let (free, used) = local::usage();
    let used = used.map(|count| count as usize);
    Stats {
        total: total(),
        free,
        anonymous: total() - free - used[Kind::Anonymous as usize + 1..].iter().sum::<usize>(),
        page_cache: used[Kind::PageCache as usize],
        page_tables: used[Kind::PageTable as usize],
        kernel_stacks: used[Kind::Stack as usize],
        heap: used[Kind::Heap as usize],
    }
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
    }
    let total: usize = ranges[..used].iter().map(|r| (r.end - r.start) as usize).sum();
    TOTAL.store(total, Ordering::Relaxed);
    pool::POOL.lock().init(ranges, total);
    if let Some(number) = local::single(Kind::Reserved) {
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
