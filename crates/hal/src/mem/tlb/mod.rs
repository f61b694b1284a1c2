//! The one place that fences translations, and what each hart may still hold.
//!
//! A page table's owner changes entries and then says here what it changed; this module knows which harts may have
//! cached it and what they owe. Per address space ([`Space`]) there are two words: the harts *running* it, which are
//! told at once, and a *generation*, which every change raises: a hart that enters the space with an older one flushes
//! the space's ASID first. So a program that moved away from a hart costs that hart nothing, and no fence is sent to a
//! hart that does not run the space.
//!
//! | change | owed |
//! |---|---|
//! | invalid to valid | nothing here; a hart that cached the invalid entry faults once and [`Space::spurious`] resolves it |
//! | wider permission, same page | the faulting hart's page; others resolve it as spurious |
//! | narrower, unmapped, other page | the range on all harts, before the old page is freed |
//! | table freed | the whole ASID on all harts, before the table is freed |
//! | space gone | nothing if no hart runs it: its ASID is not used again before all harts have flushed everything |
//!
//! (Privileged specification, supervisor chapter, sfence.vma: invalid-to-valid and permission increases may be lazy.)

mod asid;
mod code;
mod fence;
mod gather;

use alloc::sync::Arc;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

pub use asid::set_asid_bits;
pub use fence::{Form, Reason, fences, flush_all, flush_asid, flush_page, set_remote};
pub use gather::Gather;

use super::frame::{Frame, Kind};
use super::layout::mode;
use crate::addr::{PAGE_SHIFT, PAGE_SIZE, PhysAddr};
use crate::hart::{self, MAX_HARTS};

/// Ranges of more pages than this are flushed by ASID instead of page by page.
const PAGES_MAX: usize = 16;

/// An address space as the translation hardware knows it: the root table, the ASID, and who may hold entries. It lives
/// as long as any hart has it in satp, so that the root is never freed under a walk.
pub struct Space {
    /// The root table; kept only to be freed with the space.
    _root: Frame,
    /// Root table's physical page number.
    root: u32,
    /// The ASID and its generation; 0 before the first activation (see [`asid`]).
    pub(super) context: AtomicU64,
    /// Bit per hart that has the space in satp.
    running: AtomicU64,
    /// Raised by each change that owes a fence.
    generation: AtomicU32,
    /// Fills that every hart running the space has fenced for (see [`code`]).
    code: AtomicU32,
    /// The generation up to which each hart has flushed.
    seen: [AtomicU32; MAX_HARTS],
}

/// What a hart has loaded, and its last spurious fault.
struct HartTlb {
    /// `Arc::into_raw` of the space in satp; null for the kernel's own table.
    current: AtomicPtr<Space>,
    spurious_page: AtomicUsize,
    spurious_count: AtomicUsize,
}

static HARTS: [HartTlb; MAX_HARTS] = [const {
    HartTlb {
        current: AtomicPtr::new(null_mut()),
        spurious_page: AtomicUsize::new(0),
        spurious_count: AtomicUsize::new(0),
    }
}; MAX_HARTS];

/// Physical page number of the kernel's own root table.
static KERNEL_ROOT: AtomicUsize = AtomicUsize::new(0);

pub(super) fn set_kernel_root(root: PhysAddr) {
    KERNEL_ROOT.store(root.0 >> PAGE_SHIFT, Ordering::Relaxed);
}

impl Space {
    /// A space around the root table `root`. `None` when there is no memory.
    pub(super) fn new(root: Frame) -> Option<Arc<Self>> {
        debug_assert_eq!(root.kind(), Kind::PageTable);
        super::heap::try_arc(Self {
            root: root.number(),
            _root: root,
            context: AtomicU64::new(0),
            running: AtomicU64::new(0),
            generation: AtomicU32::new(0),
            code: AtomicU32::new(0),
            seen: [const { AtomicU32::new(0) }; MAX_HARTS],
        })
        .ok()
    }

    /// Root table's physical page number.
    #[inline]
    pub(super) fn root(&self) -> u32 {
        self.root
    }

    /// The ASID that entries of this space carry now; 0 if it never ran or there are no ASIDs.
    #[inline]
    pub fn asid(&self) -> usize {
        asid::number(self.context.load(Ordering::Relaxed))
    }

    /// Bit per hart that has this space in satp at the moment.
    #[inline]
    pub fn running(&self) -> u64 {
        self.running.load(Ordering::Relaxed)
    }

    /// Makes this hart translate user addresses by this space. Nothing happens if it does already.
    #[inline]
    pub fn activate(self: &Arc<Self>) {
        let slot = &HARTS[hart::id()].current;
        if slot.load(Ordering::Relaxed).cast_const() != Arc::as_ptr(self) {
            self.switch_to();
        }
    }

    fn switch_to(self: &Arc<Self>) {
        let hart = hart::id();
        // Either whoever changes an entry sees this bit and tells the hart, or the load of the generation below sees
        // the change: both sides have their store before their load, sequentially consistent.
        self.running.fetch_or(1 << hart, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let number = asid::activate(self, hart);
        code::enter(hart);
        let generation = self.generation.load(Ordering::SeqCst);
        fence::write_satp(mode().satp_bits() | number << 44 | self.root as usize);
        if number == 0 {
            flush_all(Reason::Switch);
        } else if self.seen[hart].load(Ordering::Relaxed) != generation {
            flush_asid(number, Reason::Switch);
        }
        self.seen[hart].store(generation, Ordering::Relaxed);
        retire(hart, Arc::into_raw(self.clone()).cast_mut());
    }

    /// Fences `start..end` on all harts that run the space and lets the others flush when they come back. `tables`:
    /// tables were freed or the range is unknown, so everything of the ASID goes.
    pub(super) fn shoot(&self, start: usize, end: usize, tables: bool, reason: Reason) {
        let generation = self.generation.fetch_add(1, Ordering::SeqCst).wrapping_add(1);
        fence(Ordering::SeqCst);
        let running = self.running.load(Ordering::SeqCst);
        if running == 0 {
            return;
        }
        let (hart, number) = (hart::id(), self.asid());
        let whole = tables || (end - start) / PAGE_SIZE > PAGES_MAX;
        if running & 1 << hart != 0 {
            if whole {
                flush_asid(number, reason);
            } else {
                for va in (start..end).step_by(PAGE_SIZE) {
                    flush_page(number, va, reason);
                }
            }
            // Only if this hart owed nothing older: it might be owed to a change whose fence is still on its way.
            let seen = &self.seen[hart];
            if seen.load(Ordering::Relaxed).wrapping_add(1) == generation {
                seen.store(generation, Ordering::Relaxed);
            }
        }
        let others = running & !(1 << hart);
        if others != 0 {
            let (start, len) = if whole { (0, usize::MAX) } else { (start, end - start) };
            fence::remote(others, number, start, len, reason);
        }
    }

    /// After a permission was widened for a page that stayed: this hart's entry goes, other harts fault once more.
    #[inline]
    pub fn widened(&self, va: usize) {
        flush_page(self.asid(), va, Reason::Widen);
    }

    /// A fault that the tables do not explain: a stale entry. The first time its page is fenced, on this hart only;
    /// if the same page comes again the whole ASID (the stale entry may be of an inner level), then everything.
    pub fn spurious(&self, va: usize) {
        let hart = &HARTS[hart::id()];
        let page = va >> PAGE_SHIFT;
        let again = hart.spurious_page.swap(page, Ordering::Relaxed) == page;
        let count = if again { hart.spurious_count.load(Ordering::Relaxed) + 1 } else { 0 };
        hart.spurious_count.store(count, Ordering::Relaxed);
        match count % 4 {
            0 => flush_page(self.asid(), va, Reason::Spurious),
            1 => flush_asid(self.asid(), Reason::Spurious),
            _ => flush_all(Reason::Spurious),
        }
    }

    /// If this hart has the space in satp, it goes back to the kernel's own table: before the space's memory is freed.
    pub(super) fn leave(&self) {
        if core::ptr::eq(HARTS[hart::id()].current.load(Ordering::Relaxed), self) {
            deactivate();
        }
    }
}

/// Makes this hart translate by the kernel's own table: no user address is mapped. For idle harts and kernel threads
/// that do not want to keep a space alive.
pub fn deactivate() {
    let hart = hart::id();
    if HARTS[hart].current.load(Ordering::Relaxed).is_null() {
        return;
    }
    fence::write_satp(mode().satp_bits() | KERNEL_ROOT.load(Ordering::Relaxed));
    if asid::without_asids() {
        flush_all(Reason::Switch);
    }
    asid::idle(hart);
    retire(hart, null_mut());
}

/// Notes what this hart has in satp now and lets go of what it had before.
fn retire(hart: usize, new: *mut Space) {
    let old = HARTS[hart].current.swap(new, Ordering::Relaxed);
    if !old.is_null() {
        // SAFETY: what is in the slot came from `Arc::into_raw` in `switch_to`, and is taken out once; only its own
        // hart touches a slot, with interrupts off. satp has been written already.
        let old = unsafe { Arc::from_raw(old) };
        old.running.fetch_and(!(1 << hart), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests;
