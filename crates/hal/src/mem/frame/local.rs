//! Each hart's own free frames.
//!
//! Two magazines, as in Bonwick and Adams' allocator of that name: frames are taken from `hot` and given back to it,
//! last in first out, so that a frame just freed is still in the cache; `spare` is full or empty (or what a batch left),
//! so that a hart whose need goes up and down by a few frames at the edge of a magazine does not go to the pool each
//! time. Beside them lie pages that are all zeroes: page tables, every entry of which was cleared before they were freed,
//! and pages that the hart cleared while it had nothing else to do ([`clear_one`]). And a few blocks for kernel stacks,
//! which a fork would else cut out of larger ones and an exit merge again.
//!
//! The lists have a lock, which only their own hart takes, but for two cases: when the pool has nothing more, any hart
//! takes what others have before an allocation fails, and whoever counts frames holds all of them for a moment.

use core::num::NonZeroU32;
use core::sync::atomic::{AtomicU32, Ordering};

use super::MAX_ORDER;
use super::batch::FrameBatch;
use super::meta::{KINDS, Kind, meta};
use super::pool::{Bundle, Chain, MAGAZINE, POOL, Page, Pool};
use crate::hart::{self, MAX_HARTS};
use crate::mem::page::zero;
use crate::sync::{SpinGuard, SpinLock};

/// Most pages of zeroes that a hart keeps.
const ZEROED_MAX: u32 = 256;
/// Pages of zeroes up to which an idle hart clears more.
const CLEARED_MAX: u32 = 64;
/// log2 of the frames of blocks that a hart keeps: kernel stacks.
const STACK_ORDER: usize = 2;
/// Most of these that it keeps.
const STACKS_MAX: u32 = 4;

struct Lists {
    hot: Chain,
    spare: Chain,
    zeroed: Chain,
    /// Blocks, chained by their first frames.
    stacks: Chain,
    /// Frames handed out and not given back, by kind, but for anonymous ones: those are what is missing from the total.
    /// Wraps below 0 where more are given back than are taken: the sum over all harts is what counts.
    used: [u32; KINDS],
}

/// A hart's free frames; a cache line.
#[repr(align(64))]
pub(crate) struct Local {
    lists: SpinLock<Lists>,
    /// Most frames in `hot`: a magazine, or 0 while memory is low.
    limit: AtomicU32,
}

impl Local {
    pub(crate) const fn new() -> Self {
        const EMPTY: Chain = Chain::EMPTY;
        let lists = Lists { hot: EMPTY, spare: EMPTY, zeroed: EMPTY, stacks: EMPTY, used: [0; KINDS] };
        Self { lists: SpinLock::new(lists), limit: AtomicU32::new(MAGAZINE) }
    }

    #[inline]
    fn is_low(&self) -> bool {
        self.limit.load(Ordering::Relaxed) == 0
    }
}

const _: () = assert!(size_of::<Local>() == 64);

/// Lets the harts keep what they free, or not.
pub(super) fn keep(yes: bool) {
    for local in hart::all_frames() {
        local.limit.store(if yes { MAGAZINE } else { 0 }, Ordering::Relaxed);
    }
}

impl Lists {
    /// Counts `frames` of `kind` out; a negative number, in two's complement, in.
    #[inline(always)]
    fn count(&mut self, kind: u8, frames: u32) {
        if kind != Kind::Anonymous as u8
            && let Some(used) = self.used.get_mut(kind as usize)
        {
            *used = used.wrapping_add(frames);
        }
    }

    /// Any frame at all, counted as `kind`.
    fn take_any(&mut self, kind: Kind) -> Option<Page> {
        if self.hot.is_empty() && !self.stacks.is_empty() && self.spare.is_empty() && self.zeroed.is_empty() {
            self.hot.push_block(self.stacks.pop(), STACK_ORDER);
        }
        let chains = [&mut self.hot, &mut self.spare, &mut self.zeroed];
        let chain = chains.into_iter().find(|chain| !chain.is_empty())?;
        let page = chain.take();
        self.count(kind as u8, 1);
        Some(page)
    }

    /// Fills the empty hot list from the spare magazine or the pool.
    fn fill(&mut self, kind: Kind) {
        self.hot = core::mem::take(&mut self.spare);
        if self.hot.is_empty() {
            let supply = POOL.lock().supply(kind);
            self.hot = supply.magazine();
        }
    }

    /// Everything.
    fn take_all(&mut self) -> Bundle {
        let mut bundle = Bundle::EMPTY;
        while !self.stacks.is_empty() {
            let mut frames = Chain::EMPTY;
            frames.push_block(self.stacks.pop(), STACK_ORDER);
            bundle.add(frames);
        }
        bundle.add(core::mem::take(&mut self.hot));
        bundle.add(core::mem::take(&mut self.spare));
        bundle.add_long(core::mem::take(&mut self.zeroed));
        bundle
    }
}

/// One frame, with a count of 1. Inlined, since the kind is a constant where it is called.
#[inline(always)]
pub(super) fn single(kind: Kind) -> Option<NonZeroU32> {
    let mut lists = hart::this().frames.lists.lock();
    if lists.hot.is_empty() {
        return refill(lists, kind);
    }
    let page = lists.hot.take();
    lists.count(kind as u8, 1);
    drop(lists);
    page.begin(kind)
}

/// One frame of zeroes, with a count of 1, if the hart has one; if not, then one that is still to be cleared.
#[inline(always)]
pub(super) fn single_zeroed(kind: Kind) -> Result<NonZeroU32, Option<NonZeroU32>> {
    let hart = hart::this();
    let mut lists = hart.frames.lists.lock();
    if lists.zeroed.is_empty() {
        if lists.hot.is_empty() {
            return Err(refill(lists, kind));
        }
        let page = lists.hot.take();
        lists.count(kind as u8, 1);
        drop(lists);
        return Err(page.begin(kind));
    }
    let page = lists.zeroed.take();
    hart.counters.zeroed_taken.add(1);
    lists.count(kind as u8, 1);
    drop(lists);
    page.begin(kind).ok_or(None)
}

/// A frame for a hart whose hot list is empty: from its spare magazine, from the pool, from its pages of zeroes, from
/// other harts.
#[cold]
#[inline(never)]
fn refill(mut lists: SpinGuard<Lists>, kind: Kind) -> Option<NonZeroU32> {
    lists.fill(kind);
    if let Some(page) = lists.take_any(kind) {
        drop(lists);
        return page.begin(kind);
    }
    drop(lists);
    let others = || hart::all_frames().find_map(|other| other.lists.lock().take_any(kind));
    // Frames may go from other harts to the pool while this one looks, hence the second look there.
    let page = others().or_else(|| {
        let mut lists = hart::this().frames.lists.lock();
        if lists.hot.is_empty() {
            lists.fill(kind);
        }
        lists.take_any(kind)
    });
    page?.begin(kind)
}

/// For a hart that has nothing else to do: clears one of its free pages, so that who needs it later finds that done.
/// False when there is no need. A page takes as long as a fault's; the caller looks for work in between.
pub(crate) fn clear_one() -> bool {
    let hart = hart::this();
    let mut lists = hart.frames.lists.lock();
    if lists.zeroed.len >= CLEARED_MAX || hart.frames.is_low() {
        return false;
    }
    // Not from `hot`: what lies there is in the cache, and wanted by those who fill a page themselves.
    if lists.spare.is_empty() {
        let supply = POOL.lock().surplus();
        lists.spare = supply.magazine();
    }
    if lists.spare.is_empty() {
        return false;
    }
    let page = lists.spare.take();
    // SAFETY: a free page, which nobody else finds while the lists are locked; no Rust reference points into it.
    unsafe { zero(page.ptr()) };
    tell!(Filled(page.number()));
    lists.zeroed.push(page.number());
    hart.counters.zeroed_idle.add(1);
    true
}

/// A frame whose last reference is gone comes back.
#[inline]
pub(super) fn free_single(number: u32) {
    tell!(Freed(number));
    let kind = meta(number).kind.load(Ordering::Relaxed);
    let local = &hart::this().frames;
    let mut lists = local.lists.lock();
    lists.count(kind, 1u32.wrapping_neg());
    lists.hot.push(number);
    if lists.hot.len > local.limit.load(Ordering::Relaxed) {
        make_room(local, &mut lists);
    }
}

/// The hot list has one frame too many.
#[cold]
#[inline(never)]
fn make_room(local: &Local, lists: &mut Lists) {
    let mut bundle = Bundle::EMPTY;
    if local.is_low() {
        bundle.add(core::mem::take(&mut lists.hot));
        bundle.add(core::mem::take(&mut lists.spare));
    } else {
        let mut hot = Chain::EMPTY;
        hot.push(lists.hot.pop());
        bundle.add(core::mem::replace(&mut lists.spare, core::mem::replace(&mut lists.hot, hot)));
    }
    give(bundle);
}

#[cold]
#[inline(never)]
fn give(bundle: Bundle) {
    if !bundle.is_empty() {
        POOL.lock().put(bundle);
    }
}

/// The frames of a batch come back; it is empty then.
pub(super) fn free_batch(batch: &mut FrameBatch) {
    batch.tell();
    let local = &hart::this().frames;
    let mut lists = local.lists.lock();
    let mut bundle = core::mem::take(&mut batch.full);
    if batch.by_kind[Kind::Anonymous as usize] != 0 {
        for (kind, count) in core::mem::take(&mut batch.by_kind).into_iter().enumerate() {
            lists.count(kind as u8, count.wrapping_neg());
        }
    }
    let low = local.is_low();
    let rest = core::mem::take(&mut batch.chain);
    if low {
        bundle.add(rest);
    } else if lists.hot.len + rest.len <= MAGAZINE {
        if rest.len != 0 {
            meta(batch.last).next.store(lists.hot.first, Ordering::Relaxed);
            lists.hot = Chain { first: rest.first, len: lists.hot.len + rest.len };
        }
    } else {
        // The longer one is the next spare magazine, so that magazines are more than half full.
        let (short, long) = if lists.hot.len < rest.len { (lists.hot, rest) } else { (rest, lists.hot) };
        lists.hot = short;
        bundle.add(core::mem::replace(&mut lists.spare, long));
    }
    let tables = core::mem::take(&mut batch.tables);
    if tables.len != 0 {
        lists.count(Kind::PageTable as u8, tables.len.wrapping_neg());
        if low || lists.zeroed.len + tables.len > ZEROED_MAX {
            bundle.add_long(tables);
        } else {
            meta(batch.last_table).next.store(lists.zeroed.first, Ordering::Relaxed);
            lists.zeroed = Chain { first: tables.first, len: lists.zeroed.len + tables.len };
        }
    }
    if !bundle.is_empty() {
        if !low && lists.spare.is_empty() {
            lists.spare = bundle.pop();
        }
        give(bundle);
    }
}

/// A block of 2^`order` frames, from the hart if it is a stack.
pub(super) fn block(order: usize, kind: Kind) -> Option<NonZeroU32> {
    if order > MAX_ORDER {
        return None;
    }
    let mut lists = hart::this().frames.lists.lock();
    let mut number = 0;
    if order == STACK_ORDER {
        number = lists.stacks.pop();
    }
    if number == 0 {
        number = POOL.lock().block(order, kind);
    }
    if number == 0 {
        // The frames that harts keep may be what the pool is missing.
        drop(lists);
        for local in hart::all_frames() {
            let mut lists = local.lists.lock();
            give(lists.take_all());
        }
        lists = hart::this().frames.lists.lock();
        number = POOL.lock().block(order, kind);
    }
    if number != 0 {
        lists.count(kind as u8, 1 << order);
        meta(number).reset(kind as u8, order);
    }
    NonZeroU32::new(number)
}

/// A block from [`block`] comes back.
pub(super) fn free_block(number: u32, order: usize) {
    let kind = meta(number).kind.load(Ordering::Relaxed);
    let local = &hart::this().frames;
    let mut lists = local.lists.lock();
    lists.count(kind, (1u32 << order).wrapping_neg());
    if order == STACK_ORDER && lists.stacks.len < STACKS_MAX && !local.is_low() {
        lists.stacks.push(number);
    } else {
        POOL.lock().put_block(number, order);
    }
}

/// Frames that are free, and frames that are used for other things than programs' memory, by kind.
pub(super) fn usage() -> (usize, [u32; KINDS]) {
    // All at once, so that a frame on its way from one to another is counted once. In one order, and nobody else waits
    // for a hart's lists while he holds another's.
    let mut all: [Option<SpinGuard<Lists>>; MAX_HARTS] = [const { None }; MAX_HARTS];
    for (slot, local) in all.iter_mut().zip(hart::all_frames()) {
        *slot = Some(local.lists.lock());
    }
    let pool: SpinGuard<Pool> = POOL.lock();
    let mut free = pool.free();
    let mut used = [0u32; KINDS];
    for lists in all.iter().flatten() {
        free += (lists.hot.len + lists.spare.len + lists.zeroed.len + (lists.stacks.len << STACK_ORDER)) as usize;
        for (sum, one) in used.iter_mut().zip(lists.used) {
            *sum = sum.wrapping_add(one);
        }
    }
    (free, used)
}
