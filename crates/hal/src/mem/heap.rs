//! The kernel heap: size-class slabs of one page each, whole pages and blocks for what is bigger.
//!
//! A slab's bookkeeping is in its frame's metadata, so that objects fill the page and a freed object finds its slab by
//! its address. Each class has its own lock and a list of slabs with a free object; a full slab is on no list, an empty
//! one goes back to the frame allocator unless it is the class's last.
//!
//! Running out of memory gives a null pointer. Whoever allocates an amount that a program controls uses `try_reserve`
//! and the like, or [`try_box`] and [`try_arc`]; for the rest, the frame allocator keeps a reserve that only the
//! kernel's own allocations may use.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::alloc::Layout;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::frame::{Block, Frame, Kind, MAX_ORDER, meta};
use super::layout::{phys_to_virt, virt_to_phys};
use crate::addr::{PAGE_SHIFT, PAGE_SIZE, PhysAddr};
use crate::sync::SpinLock;

/// Object sizes in bytes. Each is a multiple of 16, and so is each object's address.
const SIZES: [usize; 14] = [16, 32, 48, 64, 80, 96, 128, 192, 256, 384, 512, 768, 1024, 2048];
const LARGEST: usize = 2048;

/// Class of a size: index is the size in units of 16 bytes, rounded up.
static CLASS_OF: [u8; LARGEST / 16 + 1] = {
    let mut table = [0; LARGEST / 16 + 1];
    let (mut units, mut class) = (0, 0);
    while units < table.len() {
        if units * 16 > SIZES[class] {
            class += 1;
        }
        table[units] = class as u8;
        units += 1;
    }
    table
};

/// Slabs of one size that have a free object: first frame number, 0 when there is none.
struct Class {
    partial: u32,
}

static CLASSES: [SpinLock<Class>; SIZES.len()] = [const { SpinLock::new(Class { partial: 0 }) }; SIZES.len()];
/// Bytes in objects handed out from slabs and blocks: approximate use, for `/proc/meminfo`.
static LARGE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Bytes in allocations above 2 KiB.
pub fn large_bytes() -> usize {
    LARGE_BYTES.load(Ordering::Relaxed)
}

/// The class for `layout`, `None` if it takes pages. Alignments above 16 take a class whose size is a power of two:
/// objects of such a class lie at multiples of their size, since slabs are pages.
#[inline]
fn class_of(layout: Layout) -> Option<usize> {
    let size = if layout.align() <= 16 { layout.size() } else { layout.size().max(layout.align()).next_power_of_two() };
    if size > LARGEST { None } else { Some(CLASS_OF[size.div_ceil(16)] as usize) }
}

/// Memory for `layout`, null when there is none.
///
/// # Safety
/// As [`core::alloc::GlobalAlloc::alloc`]: the layout's size is not 0.
#[inline]
pub unsafe fn alloc(layout: Layout) -> *mut u8 {
    let Some(class) = class_of(layout) else { return alloc_pages(layout) };
    let mut list = CLASSES[class].lock();
    if list.partial == 0 && !list.grow(class) {
        return null_mut();
    }
    let slab = meta(list.partial);
    let object = slab.owner.load(Ordering::Relaxed) as *mut u8;
    // SAFETY: a slab on the partial list has a free object, whose first word is the address of the next one or 0; the
    // class's lock is held, and free objects belong to the heap.
    let next = unsafe { object.cast::<usize>().read() };
    slab.owner.store(next, Ordering::Relaxed);
    slab.index.store(slab.index.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    if next == 0 {
        list.pop();
    }
    object
}

/// Takes back what [`alloc`] gave.
///
/// # Safety
/// As [`core::alloc::GlobalAlloc::dealloc`]: `object` came from [`alloc`] with the same layout and is not used again.
#[inline]
pub unsafe fn free(object: *mut u8, layout: Layout) {
    let Some(class) = class_of(layout) else {
        // SAFETY: the caller's promise.
        return unsafe { free_pages(object, layout) };
    };
    let number = (virt_to_phys(object as usize).0 >> PAGE_SHIFT) as u32;
    let slab = meta(number);
    let mut list = CLASSES[class].lock();
    let next = slab.owner.load(Ordering::Relaxed);
    // SAFETY: the object is the heap's again; it is at least 16 bytes long and 16-aligned.
    unsafe { object.cast::<usize>().write(next) };
    slab.owner.store(object as usize, Ordering::Relaxed);
    let used = slab.index.load(Ordering::Relaxed) - 1;
    slab.index.store(used, Ordering::Relaxed);
    if next == 0 {
        list.push(number);
    } else if used == 0 {
        list.retire(number);
    }
}

impl Class {
    /// Adds a slab; false when there is no page.
    #[cold]
    fn grow(&mut self, class: usize) -> bool {
        let Some(frame) = Frame::alloc(Kind::Heap) else { return false };
        let size = SIZES[class];
        let page = frame.ptr();
        let count = PAGE_SIZE / size;
        for i in 0..count {
            let next = if i + 1 < count { page as usize + (i + 1) * size } else { 0 };
            // SAFETY: the page was just allocated, and `i * size + 8` is within it.
            unsafe { page.add(i * size).cast::<usize>().write(next) };
        }
        let slab = meta(frame.number());
        slab.owner.store(page as usize, Ordering::Relaxed);
        slab.index.store(0, Ordering::Relaxed);
        self.push(frame.into_raw());
        true
    }

    /// A slab that has a free object (again) joins the list.
    #[inline]
    fn push(&mut self, number: u32) {
        let slab = meta(number);
        slab.next.store(self.partial, Ordering::Relaxed);
        slab.prev.store(0, Ordering::Relaxed);
        if self.partial != 0 {
            meta(self.partial).prev.store(number, Ordering::Relaxed);
        }
        self.partial = number;
    }

    /// The first slab is full and leaves the list.
    #[inline]
    fn pop(&mut self) {
        self.partial = meta(self.partial).next.load(Ordering::Relaxed);
        if self.partial != 0 {
            meta(self.partial).prev.store(0, Ordering::Relaxed);
        }
    }

    /// A slab has become empty: it goes back unless it is the only one.
    #[cold]
    fn retire(&mut self, number: u32) {
        let slab = meta(number);
        let (next, prev) = (slab.next.load(Ordering::Relaxed), slab.prev.load(Ordering::Relaxed));
        if next == 0 && prev == 0 {
            return;
        }
        if prev == 0 {
            self.partial = next;
        } else {
            meta(prev).next.store(next, Ordering::Relaxed);
        }
        if next != 0 {
            meta(next).prev.store(prev, Ordering::Relaxed);
        }
        // SAFETY: `grow` gave the handle up, and the slab has no object in use and is on no list now.
        drop(unsafe { Frame::from_raw(number) });
    }
}

/// log2 of the pages that `layout` takes; `None` if no block is that big.
#[inline]
fn order_of(layout: Layout) -> Option<usize> {
    let bytes = layout.size().max(layout.align());
    let order = bytes.div_ceil(PAGE_SIZE).checked_next_power_of_two()?.ilog2() as usize;
    (order <= MAX_ORDER).then_some(order)
}

#[cold]
fn alloc_pages(layout: Layout) -> *mut u8 {
    let Some(order) = order_of(layout) else { return null_mut() };
    let phys = if order == 0 {
        Frame::alloc(Kind::Heap).map(|f| PhysAddr((f.into_raw() as usize) << PAGE_SHIFT))
    } else {
        Block::alloc(order, Kind::Heap).map(Block::into_phys)
    };
    let Some(phys) = phys else { return null_mut() };
    LARGE_BYTES.fetch_add(PAGE_SIZE << order, Ordering::Relaxed);
    phys_to_virt(phys) as *mut u8
}

/// # Safety
/// `object` came from [`alloc_pages`] with this layout.
#[cold]
unsafe fn free_pages(object: *mut u8, layout: Layout) {
    let Some(order) = order_of(layout) else { return };
    let phys = virt_to_phys(object as usize);
    LARGE_BYTES.fetch_sub(PAGE_SIZE << order, Ordering::Relaxed);
    if order == 0 {
        // SAFETY: the caller's promise; `alloc_pages` gave the handle up.
        drop(unsafe { Frame::from_raw((phys.0 >> PAGE_SHIFT) as u32) });
    } else {
        // SAFETY: the same, for a block of this order.
        drop(unsafe { Block::from_phys(phys, order) });
    }
}

/// As [`core::alloc::GlobalAlloc::realloc`]; stays in place when the new size takes the same class or block.
///
/// # Safety
/// `object` came from [`alloc`] with `layout`; `size` is not 0 and does not overflow when rounded up to the alignment.
pub unsafe fn resize(object: *mut u8, layout: Layout, size: usize) -> *mut u8 {
    // SAFETY: the caller vouches that size and alignment make a layout.
    let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
    let same = match (class_of(layout), class_of(new)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => order_of(layout) == order_of(new),
        _ => false,
    };
    if same {
        return object;
    }
    // SAFETY: sizes are not 0; both regions are at least as long as what is copied and do not overlap, and `object`
    // is given back with the layout that it was allocated with.
    unsafe {
        let target = alloc(new);
        if !target.is_null() {
            core::ptr::copy_nonoverlapping(object, target, layout.size().min(size));
            free(object, layout);
        }
        target
    }
}

/// [`Box::new`] that gives the value back when there is no memory.
pub fn try_box<T>(value: T) -> Result<Box<T>, T> {
    let layout = Layout::new::<T>();
    if layout.size() == 0 {
        return Ok(Box::new(value));
    }
    // SAFETY: the size is not 0. The pointer comes from the global allocator with T's own layout, as a box's does.
    unsafe {
        let place = alloc::alloc::alloc(layout).cast::<T>();
        if place.is_null() {
            return Err(value);
        }
        place.write(value);
        Ok(Box::from_raw(place))
    }
}

/// [`Arc::new`] that gives the value back when there is no memory. It looks whether an object of the size is to be
/// had first; should other harts take all of them in between, the reserve that the frame allocator keeps for the heap
/// serves the allocation.
pub fn try_arc<T>(value: T) -> Result<Arc<T>, T> {
    let counts = Layout::new::<[usize; 2]>();
    let Ok((layout, _)) = counts.extend(Layout::new::<T>()) else { return Err(value) };
    // SAFETY: the layout holds two words at least, so its size is not 0; the memory is given back at once.
    unsafe {
        let probe = alloc::alloc::alloc(layout.pad_to_align());
        if probe.is_null() {
            return Err(value);
        }
        alloc::alloc::dealloc(probe, layout.pad_to_align());
    }
    Ok(Arc::new(value))
}

#[cfg(target_os = "none")]
mod global {
    use core::alloc::{GlobalAlloc, Layout};

    struct KernelHeap;

    // SAFETY: the functions of this module keep the trait's contract: memory of the size and alignment asked for,
    // owned by the caller until freed, null when there is none; they do not unwind.
    unsafe impl GlobalAlloc for KernelHeap {
        #[inline]
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: the trait's contract is ours.
            unsafe { super::alloc(layout) }
        }
        #[inline]
        unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
            // SAFETY: the trait's contract is ours.
            unsafe { super::free(object, layout) }
        }
        unsafe fn realloc(&self, object: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            // SAFETY: the trait's contract is ours.
            unsafe { super::resize(object, layout, size) }
        }
    }

    #[global_allocator]
    static HEAP: KernelHeap = KernelHeap;
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::mem::{frame::stats, host};

    #[test]
    fn objects_of_all_sizes_are_aligned_disjoint_and_given_back() {
        let _turn = host::arena();
        let before = stats();
        let mut seed = 7u32;
        let mut held: Vec<(*mut u8, Layout, u8)> = Vec::new();
        let mut rounds = 0;
        while rounds < 20_000 || !held.is_empty() {
            rounds += 1;
            seed = seed.wrapping_mul(1664525).wrapping_add(1013904223);
            if seed >> 31 == 0 && rounds < 20_000 || held.is_empty() {
                let size = 1 + (seed >> 8) as usize % if seed & 0x40 == 0 { 200 } else { 9000 };
                let layout = Layout::from_size_align(size, 1 << ((seed >> 24) % 8)).unwrap();
                // SAFETY: the size is not 0.
                let object = unsafe { alloc(layout) };
                assert!(!object.is_null());
                assert_eq!(object as usize % layout.align(), 0);
                // SAFETY: `size` bytes were allocated.
                unsafe { object.write_bytes(rounds as u8, size) };
                held.push((object, layout, rounds as u8));
            } else {
                let (object, layout, fill) = held.swap_remove((seed >> 8) as usize % held.len());
                // SAFETY: allocated above with this layout, freed once.
                unsafe {
                    assert!(core::slice::from_raw_parts(object, layout.size()).iter().all(|&b| b == fill));
                    free(object, layout);
                }
            }
        }
        // One empty slab a class may stay.
        assert!(stats().heap <= before.heap + SIZES.len());
        assert_eq!(large_bytes(), 0);
    }

    #[test]
    fn resizing_keeps_the_contents() {
        let _turn = host::arena();
        let mut layout = Layout::from_size_align(10, 1).unwrap();
        // SAFETY: sizes are not 0, each pointer is used with the layout it was allocated or resized to.
        unsafe {
            let mut object = alloc(layout);
            object.write_bytes(0x5a, 10);
            for size in [16, 17, 2000, 2049, 4096, 5000, 100_000, 10] {
                object = resize(object, layout, size);
                layout = Layout::from_size_align(size, 1).unwrap();
                assert!(core::slice::from_raw_parts(object, 10).iter().all(|&b| b == 0x5a));
            }
            free(object, layout);
            assert!(alloc(Layout::from_size_align(1 << 30, 1).unwrap()).is_null());
        }
    }
}
