//! Areas: runs of pages with one backing and one set of rights.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::{AtomicU8, Ordering};

use hal::addr::{PAGE_SHIFT, PAGE_SIZE};
use hal::mem::frame::Frame;
use hal::mem::pgtable::Prot;

use crate::object::Object;

/// Most areas in one address space (Linux's vm.max_map_count).
pub const MAX_AREAS: usize = 65_530;
/// Bytes that stay free below a stack (Linux's stack_guard_gap).
pub const STACK_GAP: usize = 256 * PAGE_SIZE;

/// The open file that a mapping came from: its name in `/proc/PID/maps`, and what keeps it open.
pub trait MappedFile: Send + Sync {
    /// Writes the file's path.
    fn write_path(&self, out: &mut dyn fmt::Write) -> fmt::Result;
    /// Device and inode number.
    fn dev_ino(&self) -> (u64, u64);
}

/// Pages of the kernel that every program can map: the vDSO.
pub struct Special {
    /// As `/proc/PID/maps` shows it, with brackets.
    pub name: &'static str,
    /// The pages.
    pub frames: Vec<Frame>,
}

/// Where an area's pages come from.
#[derive(Clone)]
pub enum Backing {
    /// Zeroes, private to the program.
    Anonymous,
    /// An object, from the area's offset on.
    Object(Arc<Object>),
    /// Pages of the kernel.
    Special(Arc<Special>),
}

/// Properties of an area, as bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AreaFlags(pub u16);

impl AreaFlags {
    /// Writes go to the object.
    pub const SHARED: u16 = 1 << 0;
    /// Grows downwards when touched below.
    pub const GROWS_DOWN: u16 = 1 << 1;
    /// mprotect may allow writing (for shared areas: the file is open for writing).
    pub const MAY_WRITE: u16 = 1 << 2;
    /// Not copied by fork.
    pub const DONT_FORK: u16 = 1 << 3;
    /// Empty in the child of a fork.
    pub const WIPE_ON_FORK: u16 = 1 << 4;
    /// The program's first stack.
    pub const STACK: u16 = 1 << 5;
    /// A private part of a program's file, as its loader maps it (MAP_DENYWRITE): nobody writes to the file meanwhile.
    pub const PROGRAM: u16 = 1 << 6;

    /// Whether `bit` is set.
    #[inline]
    pub fn has(self, bit: u16) -> bool {
        self.0 & bit != 0
    }
}

/// What has happened to an area: says nothing about what it is, so it does not hinder merging. Faults on several harts
/// note it at once.
#[derive(Default)]
pub struct Past(AtomicU8);

impl Past {
    /// Some page may have been mapped, or page tables made; without it there is nothing to clear or to free.
    const TOUCHED: u8 = 1 << 0;
    /// Some page may be private; without it a fork has nothing to share.
    const PRIVATE: u8 = 1 << 1;

    /// A page is about to be mapped.
    #[inline]
    pub fn touch(&self) {
        self.note(Self::TOUCHED);
    }

    /// A private page is about to be mapped.
    #[inline]
    pub fn touch_private(&self) {
        self.note(Self::TOUCHED | Self::PRIVATE);
    }

    #[inline]
    fn note(&self, bits: u8) {
        if self.0.load(Ordering::Relaxed) & bits != bits {
            self.0.fetch_or(bits, Ordering::Relaxed);
        }
    }

    /// What happened to `other` happened to this one too.
    pub fn join(&self, other: &Self) {
        self.note(other.0.load(Ordering::Relaxed));
    }

    /// See [`Past::TOUCHED`].
    #[inline]
    pub fn is_touched(&self) -> bool {
        self.0.load(Ordering::Relaxed) & Self::TOUCHED != 0
    }

    /// See [`Past::PRIVATE`].
    #[inline]
    pub fn has_private(&self) -> bool {
        self.0.load(Ordering::Relaxed) & Self::PRIVATE != 0
    }
}

impl Clone for Past {
    fn clone(&self) -> Self {
        Self(AtomicU8::new(self.0.load(Ordering::Relaxed)))
    }
}

/// One area.
pub struct Vma {
    pub start: usize,
    pub end: usize,
    pub backing: Backing,
    /// Index in the backing of the area's first page.
    pub offset: usize,
    pub file: Option<Arc<dyn MappedFile>>,
    /// The area's slot in the object's list.
    pub slot: u32,
    pub prot: Prot,
    pub flags: AreaFlags,
    pub past: Past,
}

// A power of two, so that indexing a list of them is a shift.
const _: () = assert!(size_of::<Vma>() == 64);

impl Vma {
    /// An area that is in no list yet, neither the space's nor the object's.
    #[inline]
    pub fn new(
        start: usize,
        end: usize,
        prot: Prot,
        flags: u16,
        backing: Backing,
        offset: usize,
        file: Option<Arc<dyn MappedFile>>,
    ) -> Self {
        Self { start, end, backing, offset, file, slot: 0, prot, flags: AreaFlags(flags), past: Past::default() }
    }

    #[inline]
    pub fn pages(&self) -> usize {
        (self.end - self.start) >> PAGE_SHIFT
    }

    #[inline]
    pub fn is_shared(&self) -> bool {
        self.flags.has(AreaFlags::SHARED)
    }

    #[inline]
    pub fn is_anonymous(&self) -> bool {
        matches!(self.backing, Backing::Anonymous)
    }

    /// Index in the backing of the page at `va`.
    #[inline]
    pub fn index_of(&self, va: usize) -> usize {
        self.offset + ((va - self.start) >> PAGE_SHIFT)
    }

    /// Lowest address that other mappings leave alone for this one.
    #[inline]
    pub fn start_with_gap(&self) -> usize {
        if self.flags.has(AreaFlags::GROWS_DOWN) { self.start.saturating_sub(STACK_GAP) } else { self.start }
    }

    /// Whether `next` continues this area.
    pub fn merges_with(&self, next: &Vma) -> bool {
        self.end == next.start
            && self.prot == next.prot
            && self.flags == next.flags
            && !self.flags.has(AreaFlags::GROWS_DOWN)
            && match (&self.backing, &next.backing) {
                (Backing::Anonymous, Backing::Anonymous) => true,
                (Backing::Object(a), Backing::Object(b)) => {
                    Arc::ptr_eq(a, b)
                        && self.offset + self.pages() == next.offset
                        && match (&self.file, &next.file) {
                            (None, None) => true,
                            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
                            _ => false,
                        }
                }
                _ => false,
            }
    }
}
