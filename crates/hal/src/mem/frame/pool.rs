//! The frames that no hart has for itself.
//!
//! What harts give and take are *magazines*: chains of up to 32 frames, passed from hand to hand whole, so that a turn of
//! this lock costs the same few instructions for 32 frames as for one. A chain is linked through `next`; in a bundle of
//! magazines `prev` of each first frame leads to the next magazine, and its `index` is the magazine's length. When
//! many magazines are kept, or a block is wanted that the buddy lists do not have, they are taken apart and merged.
//!
//! The last [`Pool::reserve`] frames are kept from programs' own pages: what the kernel needs to finish a call that
//! has begun (heap, page tables) is there when user memory has run out. The reserve lies here, never on a hart: when
//! no more than that is left, magazines are handed out no longer, and harts keep nothing of what they free.

use core::num::NonZeroU32;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::buddy::{Buddies, MAX_RANGES, NO_RANGE, Range};
use super::local;
use super::meta::{IDLE, Kind, Meta, meta};
use crate::addr::{PAGE_SHIFT, PhysAddr};
use crate::hart;
use crate::mem::layout::phys_to_virt;
use crate::sync::SpinLock;

/// Frames of a full magazine.
pub(super) const MAGAZINE: u32 = 1 << FILL_ORDER;
const FILL_ORDER: usize = 5;
/// Frames in magazines above which some are merged.
const KEPT_MAX: usize = 4096;
/// Frames that are merged at once, at 80 instructions each: what a program of many pages leaves is not merged in one go.
const MERGED: usize = 512;

/// Free single frames, each leading to the next.
#[derive(Clone, Copy, Default)]
pub(super) struct Chain {
    /// 0 when there is none.
    pub first: u32,
    pub len: u32,
}

impl Chain {
    pub const EMPTY: Self = Self { first: 0, len: 0 };

    /// Puts frame `number` first.
    #[inline(always)]
    pub fn push(&mut self, number: u32) {
        meta(number).next.store(self.first, Ordering::Relaxed);
        self.first = number;
        self.len += 1;
    }

    /// Puts the frames of the block at `number` first.
    pub fn push_block(&mut self, number: u32, order: usize) {
        for frame in (number..number + (1 << order)).rev() {
            let meta = meta(frame);
            meta.reset(IDLE, 0);
            meta.next.store(self.first, Ordering::Relaxed);
            self.first = frame;
        }
        self.len += 1 << order;
    }

    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.first == 0
    }

    /// Takes the first frame out. The chain is not empty.
    #[inline(always)]
    pub fn take(&mut self) -> Page {
        let number = self.first;
        let meta = meta(number);
        self.first = meta.next.load(Ordering::Relaxed);
        self.len -= 1;
        Page { number, meta }
    }

    /// The first frame's number, taken out; 0 when there is none.
    pub fn pop(&mut self) -> u32 {
        if self.is_empty() { 0 } else { self.take().number }
    }
}

/// A frame that belongs to nobody else.
pub(super) struct Page {
    number: u32,
    meta: &'static Meta,
}

impl Page {
    /// Kernel address of the page.
    pub fn ptr(&self) -> *mut u8 {
        phys_to_virt(PhysAddr((self.number as usize) << PAGE_SHIFT)) as *mut u8
    }

    pub fn number(&self) -> u32 {
        self.number
    }

    /// It is `kind`'s from here on, with a count of 1.
    #[inline(always)]
    pub fn begin(self, kind: Kind) -> Option<NonZeroU32> {
        self.meta.refs.store(1, Ordering::Relaxed);
        self.meta.kind.store(kind as u8, Ordering::Relaxed);
        self.meta.code.store(0, Ordering::Relaxed);
        NonZeroU32::new(self.number)
    }
}

/// Magazines on their way between harts and the pool, the last one added first.
#[derive(Default)]
pub(super) struct Bundle {
    first: u32,
    last: u32,
    pages: usize,
}

impl Bundle {
    pub const EMPTY: Self = Self { first: 0, last: 0, pages: 0 };

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first == 0
    }

    /// Adds a magazine, unless it is empty.
    #[inline]
    pub fn add(&mut self, magazine: Chain) {
        if magazine.len == 0 {
            return;
        }
        let head = meta(magazine.first);
        head.prev.store(self.first, Ordering::Relaxed);
        head.index.store(magazine.len as usize, Ordering::Relaxed);
        if self.first == 0 {
            self.last = magazine.first;
        }
        self.first = magazine.first;
        self.pages += magazine.len as usize;
    }

    /// Adds a chain of any length, cut into magazines.
    #[cold]
    #[inline(never)]
    pub fn add_long(&mut self, mut chain: Chain) {
        let mut magazine = Chain::EMPTY;
        while chain.len != 0 {
            magazine.push(chain.pop());
            if magazine.len == MAGAZINE || chain.len == 0 {
                self.add(core::mem::take(&mut magazine));
            }
        }
    }

    /// Takes a magazine out; an empty one when there is none.
    pub fn pop(&mut self) -> Chain {
        if self.first == 0 {
            return Chain::EMPTY;
        }
        let head = meta(self.first);
        let magazine = Chain { first: self.first, len: head.index.load(Ordering::Relaxed) as u32 };
        self.first = head.prev.load(Ordering::Relaxed);
        self.pages -= magazine.len as usize;
        magazine
    }

    /// Adds all of `other`, which is not empty.
    fn join(&mut self, other: Bundle) {
        meta(other.last).prev.store(self.first, Ordering::Relaxed);
        if self.first == 0 {
            self.last = other.last;
        }
        self.first = other.first;
        self.pages += other.pages;
    }

    /// Calls `f` with each magazine.
    #[cfg(not(target_os = "none"))]
    pub fn each(&self, mut f: impl FnMut(Chain)) {
        let mut rest = Bundle { ..*self };
        while rest.first != 0 {
            f(rest.pop());
        }
    }
}

/// What the pool gives: frames, chained or still a block. To chain them takes as long as all else, and needs no lock.
#[derive(Default)]
pub(super) struct Supply {
    chain: Chain,
    /// 0 when there is none.
    block: u32,
    order: usize,
}

impl Supply {
    /// All of it as a magazine. To be called when the pool's lock is free again.
    #[inline]
    pub fn magazine(self) -> Chain {
        let mut chain = self.chain;
        if self.block != 0 {
            chain.push_block(self.block, self.order);
        }
        chain
    }

    fn frames(&self) -> usize {
        self.chain.len as usize + if self.block == 0 { 0 } else { 1 << self.order }
    }
}

impl From<Chain> for Supply {
    fn from(chain: Chain) -> Self {
        Self { chain, ..Self::default() }
    }
}

pub(super) struct Pool {
    kept: Bundle,
    buddies: Buddies,
    reserve: usize,
    /// No more than the reserve was left, and little more is now: harts keep nothing.
    low: bool,
}

/// The pool. Taken with a hart's lists locked, never the other way round.
pub(super) static POOL: SpinLock<Pool> =
    SpinLock::new(Pool { kept: Bundle::EMPTY, buddies: Buddies::new([NO_RANGE; MAX_RANGES]), reserve: 0, low: false });

/// Free frames of the pool: written under its lock, read without.
static FREE: AtomicUsize = AtomicUsize::new(0);
/// Its reserve; written at boot alone.
static RESERVE: AtomicUsize = AtomicUsize::new(0);

/// Whether only the reserve is left. Whoever makes small kernel objects that programs can ask for without end (names of
/// files, pages of pipes) stops then: the reserve is for calls that have begun.
#[inline]
pub fn is_low() -> bool {
    FREE.load(Ordering::Relaxed) <= RESERVE.load(Ordering::Relaxed)
}

/// Runs `f`, which may take programs' pages from the reserve: for one that a call which has begun cannot go on without. Whoever
/// does that sees to it that the reserve is filled again, and takes little.
pub fn from_reserve<R>(f: impl FnOnce() -> R) -> R {
    let urgent = &hart::this().urgent;
    urgent.store(true, Ordering::Relaxed);
    let result = f();
    urgent.store(false, Ordering::Relaxed);
    result
}

impl Pool {
    /// Takes over the frames of `ranges`, `total` in all. Once at boot.
    pub fn init(&mut self, ranges: [Range; MAX_RANGES], total: usize) {
        self.buddies = Buddies::new(ranges);
        self.reserve = (total / 128).clamp(32, 1024).min(total / 4);
        RESERVE.store(self.reserve, Ordering::Relaxed);
        FREE.store(total, Ordering::Relaxed);
    }

    /// Free frames.
    #[inline]
    pub fn free(&self) -> usize {
        FREE.load(Ordering::Relaxed)
    }

    /// What must be left for others than `kind`.
    fn floor(&self, kind: Kind) -> usize {
        match kind {
            Kind::Anonymous | Kind::PageCache | Kind::PageTable if hart::this().urgent.load(Ordering::Relaxed) => {
                self.reserve / 4
            }
            Kind::Anonymous | Kind::PageCache => self.reserve,
            Kind::Stack | Kind::PageTable => self.reserve / 2,
            Kind::Heap | Kind::Reserved => 0,
        }
    }

    fn set_free(&mut self, free: usize) {
        FREE.store(free, Ordering::Relaxed);
        // It ends later than it begins, so that it does not flicker.
        let low = free <= self.reserve + if self.low { 2 * MAGAZINE as usize } else { 0 };
        if low != self.low {
            self.low = low;
            local::keep(!low);
        }
    }

    /// Frames for a hart: a magazine while there is more than the reserve, one frame while there is what `kind` may have,
    /// then none.
    pub fn supply(&mut self, kind: Kind) -> Supply {
        let free = self.free();
        let supply = if free >= self.reserve + MAGAZINE as usize {
            self.take_kept()
        } else if free > self.floor(kind) {
            let mut rest = self.take_kept().magazine();
            let mut one = Chain::EMPTY;
            if rest.len != 0 {
                one.push(rest.pop());
            }
            self.kept.add(rest);
            one.into()
        } else {
            Supply::default()
        };
        self.set_free(free - supply.frames());
        supply
    }

    /// A magazine for pages that nobody has asked for yet: while there is plenty.
    pub fn surplus(&mut self) -> Supply {
        let plenty = self.free() >= 2 * self.reserve + MAGAZINE as usize;
        if plenty { self.supply(Kind::Anonymous) } else { Supply::default() }
    }

    /// A magazine that was given back, or one made of blocks: of small ones if there are any, so that large ones stay.
    fn take_kept(&mut self) -> Supply {
        let mut chain = self.kept.pop();
        if chain.len != 0 {
            return chain.into();
        }
        for order in 0..FILL_ORDER {
            while self.buddies.has(order) && chain.len + (1 << order) <= MAGAZINE {
                chain.push_block(self.buddies.carve(order), order);
            }
        }
        if chain.len != 0 {
            return chain.into();
        }
        for order in (0..=FILL_ORDER).rev() {
            let block = self.buddies.carve(order);
            if block != 0 {
                // The one frame of it that a merge might look at meanwhile.
                meta(block).reset(IDLE, order);
                return Supply { chain, block, order };
            }
        }
        Supply::default()
    }

    /// Takes magazines back, at least one.
    pub fn put(&mut self, bundle: Bundle) {
        let free = self.free() + bundle.pages;
        self.kept.join(bundle);
        if self.kept.pages > KEPT_MAX {
            self.merge();
        }
        self.set_free(free);
    }

    /// Moves some frames from the magazines to the buddy lists.
    #[cold]
    fn merge(&mut self) {
        let keep = self.kept.pages.saturating_sub(MERGED);
        while self.kept.pages > keep {
            let mut magazine = self.kept.pop();
            while magazine.len != 0 {
                self.buddies.insert(magazine.pop(), 0);
            }
        }
    }

    /// A block of 2^`order` frames for `kind`; 0 when there is none that it may have.
    pub fn block(&mut self, order: usize, kind: Kind) -> u32 {
        let free = self.free();
        if free < self.floor(kind) + (1 << order) {
            return 0;
        }
        let mut number = self.buddies.carve(order);
        while number == 0 && self.kept.pages != 0 {
            self.merge();
            number = self.buddies.carve(order);
        }
        if number != 0 {
            self.set_free(free - (1 << order));
        }
        number
    }

    /// Takes a block back.
    pub fn put_block(&mut self, number: u32, order: usize) {
        self.buddies.insert(number, order);
        self.set_free(self.free() + (1 << order));
    }
}
