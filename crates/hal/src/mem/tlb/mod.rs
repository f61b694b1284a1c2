//! The one place that fences translations, and what each hart may still hold.
//!
//! A page table's owner changes entries and then says here what it changed; the table in [`owed`] says what that owes,
//! and this module knows which harts may have cached it. Per address space ([`Space`]) there are two words: the harts
//! *running* it, which are told at once, and a *generation*, which every change raises: a hart that enters the space with
//! an older one flushes the space's ASID first. So a program that moved away from a hart costs that hart nothing, and
//! no fence is sent to a hart that does not run the space.
//!
//! What may be left to a fault is left to it, hart by hart ([`policy`]); other harts are reached as [`remote`] says; what
//! was taken out of a table is dropped when its fences are done ([`Gather`]); ASIDs are handed out by [`asid`];
//! instruction fetches are the business of [`code`].

mod asid;
mod code;
mod fence;
mod gather;
#[cfg(not(target_os = "none"))]
pub mod hook;
pub(super) mod inject;
#[cfg(not(target_os = "none"))]
pub mod model;
pub mod owed;
mod policy;
mod remote;

use alloc::sync::Arc;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

pub use asid::width as asid_width;
pub use code::synchronize;
pub use fence::{Form, Reason, fences, flush_all};
pub use gather::Gather;
pub use owed::Features;
pub(super) use policy::is_lazy;
pub use policy::{HartReport, Mode, features, mode};
pub(crate) use remote::serve;
pub use remote::{by_ipi, served};

use super::frame::{Frame, Kind};
use super::layout;
use crate::addr::{PAGE_SHIFT, PhysAddr};
use crate::hart::{self, MAX_HARTS};
use fence::{flush_asid, flush_page, flush_range};
use owed::{Change, Scope, owed};
use policy::{Spurious, Wide};
use remote::Request;

/// How translations are fenced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Config {
    /// `limen.tlb=`.
    pub mode: Mode,
    /// What all harts promise; [`Features::asids`] is not looked at.
    pub features: Features,
    /// Bits of satp.ASID to use, 0 to 16.
    pub asid_bits: usize,
    /// Remote fences go by an own interrupt, not by the firmware.
    pub by_ipi: bool,
}

/// Sets all that. At boot, when the number of harts is known and before the second one runs programs.
pub fn configure(config: Config) {
    policy::set(config.mode, config.features);
    asid::set_bits(config.asid_bits);
    remote::set_by_ipi(config.by_ipi);
}

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
    counts: Counts,
}

/// What a space has cost.
#[derive(Default)]
struct Counts {
    spurious: AtomicU32,
    local: AtomicU32,
    remote: AtomicU32,
    returned: AtomicU32,
}

/// A space, as `/proc/PID/limen` shows it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct SpaceReport {
    /// The ASID; 0 if the space never ran or there are none.
    pub asid: usize,
    /// The generation of ASIDs that it belongs to.
    pub asid_generation: u64,
    /// How many changes owed a fence so far.
    pub generation: u32,
    /// Bit per hart that has the space in satp.
    pub running: u64,
    /// Faults that the table did not explain.
    pub spurious: u32,
    /// Changes fenced on the hart that made them, on others, and by harts that came back later.
    pub local: u32,
    /// See there.
    pub remote: u32,
    /// See there.
    pub returned: u32,
}

/// What a hart has loaded, and what it knows of its spurious faults.
struct HartTlb {
    /// `Arc::into_raw` of the space in satp; null for the kernel's own table.
    current: AtomicPtr<Space>,
    spurious: Spurious,
}

static HARTS: [HartTlb; MAX_HARTS] =
    [const { HartTlb { current: AtomicPtr::new(null_mut()), spurious: Spurious::new() } }; MAX_HARTS];

/// What the faults of `hart` were like.
pub fn hart_report(hart: usize) -> HartReport {
    HARTS.get(hart).map_or_else(HartReport::default, |h| h.spurious.report(hart))
}

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
            counts: Counts::default(),
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
        if !planted!(LeavesRunning) {
            self.running.fetch_or(1 << hart, Ordering::SeqCst);
        }
        fence(Ordering::SeqCst);
        let number = asid::activate(self, hart);
        code::enter(hart);
        let generation = self.generation.load(Ordering::SeqCst);
        fence::write_satp(layout::mode().satp_bits(), number, self.root);
        if number == 0 {
            // Entered, without ASIDs. (Nothing a hart keeps of its own accord is global.)
            if !planted!(NoAsidFlush) {
                flush_asid(0, Reason::Switch);
            }
        } else if self.seen[hart].load(Ordering::Relaxed) != generation {
            // Returned.
            flush_asid(number, Reason::Switch);
            self.counts.returned.fetch_add(1, Ordering::Relaxed);
        }
        self.seen[hart].store(generation, Ordering::Relaxed);
        retire(hart, Arc::into_raw(self.clone()).cast_mut());
    }

    /// Entries of the pages `start..end` changed, as `reason` says; `tables`: tables were freed, or the range is
    /// unknown. Fences all harts that run the space, and lets the others flush when they come back.
    pub(super) fn shoot(&self, start: usize, end: usize, tables: bool, reason: Reason) {
        let change = if tables { Change::TableFreed } else { reason.change() };
        let owed = owed(change, features());
        let left_out = left_out(reason, tables);
        let mut generation = self.generation.load(Ordering::Relaxed);
        if !left_out.returning {
            generation = self.generation.fetch_add(1, Ordering::SeqCst).wrapping_add(1);
        }
        fence(Ordering::SeqCst);
        let running = self.running.load(Ordering::SeqCst);
        if running == 0 {
            return;
        }
        let (hart, number) = (hart::id(), self.asid());
        let whole = owed.scope != Scope::Page && !left_out.tables;
        let request = if whole { Request::Asid(number) } else { Request::Pages(number, start, end) };
        if running & 1 << hart != 0 && !left_out.local {
            if whole {
                flush_asid(number, reason);
            } else {
                flush_range(number, start, end, reason);
            }
            self.counts.local.fetch_add(1, Ordering::Relaxed);
            // Only if this hart owed nothing older: it might be owed to a change whose fence is still on its way.
            let seen = &self.seen[hart];
            if seen.load(Ordering::Relaxed).wrapping_add(1) == generation {
                seen.store(generation, Ordering::Relaxed);
            }
        }
        let others = running & !(1 << hart);
        if others != 0 && !left_out.remote {
            remote::fence(others, request, reason);
            self.counts.remote.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether this hart has the space in satp.
    #[inline]
    fn runs_here(&self) -> bool {
        self.running.load(Ordering::Relaxed) >> hart::id() & 1 != 0
    }

    /// The rights of the page at `va`, which stays, are wider now. Lazily: a hart that goes on seeing the old ones
    /// faults once more. This one fences now if it is one of those that do.
    #[inline]
    pub(super) fn widened(&self, va: usize) {
        if policy::fences_widening() {
            self.fence_here(|number| flush_page(number, va, Reason::Widen));
        } else {
            HARTS[hart::id()].spurious.note_widened(va >> PAGE_SHIFT);
        }
    }

    /// An entry of a table for `va` was not valid and is now, and some hart is not lazy; `table`: it leads to a table.
    #[cold]
    pub(super) fn linked(&self, va: usize, table: bool) {
        if policy::fences_links() {
            self.fence_here(|number| match table {
                false => flush_page(number, va, Reason::Link),
                true => flush_asid(number, Reason::Link),
            });
        }
    }

    fn fence_here(&self, flush: impl FnOnce(usize)) {
        if self.runs_here() {
            flush(self.asid());
            self.counts.local.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A fault that the tables do not explain: a stale entry, which goes, on this hart only. Takes no lock.
    #[inline(never)]
    pub fn spurious(&self, va: usize) {
        self.counts.spurious.fetch_add(1, Ordering::Relaxed);
        let wide = HARTS[hart::id()].spurious.fault(self.root, va >> PAGE_SHIFT, hart::this().counters.faults());
        if planted!(SpuriousFence) {
            return;
        }
        match wide {
            Wide::Asid | Wide::All if planted!(SpuriousEscalation) => flush_page(self.asid(), va, Reason::Spurious),
            Wide::Page => flush_page(self.asid(), va, Reason::Spurious),
            Wide::Asid => flush_asid(self.asid(), Reason::Spurious),
            Wide::All => flush_all(Reason::Spurious),
        }
        if inject::is_on() {
            inject::publish(self.root, va, wide != Wide::Page);
        }
    }

    /// What it has cost, and who runs it.
    pub fn report(&self) -> SpaceReport {
        let context = self.context.load(Ordering::Relaxed);
        SpaceReport {
            asid: asid::number(context),
            asid_generation: asid::generation(context),
            generation: self.generation.load(Ordering::Relaxed),
            running: self.running(),
            spurious: self.counts.spurious.load(Ordering::Relaxed),
            local: self.counts.local.load(Ordering::Relaxed),
            remote: self.counts.remote.load(Ordering::Relaxed),
            returned: self.counts.returned.load(Ordering::Relaxed),
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
    fence::write_satp(layout::mode().satp_bits(), 0, KERNEL_ROOT.load(Ordering::Relaxed) as u32);
    if asid::without_asids() {
        flush_asid(0, Reason::Switch);
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

/// What a test has left out of the fences of a change.
struct LeftOut {
    local: bool,
    remote: bool,
    returning: bool,
    tables: bool,
}

#[inline(always)]
fn left_out(reason: Reason, tables: bool) -> LeftOut {
    let (local, remote, returning) = match reason {
        Reason::Unmap if tables => (planted!(TableLocal), planted!(TableRemote), planted!(TableReturning)),
        Reason::Unmap => (planted!(UnmapLocal), planted!(UnmapRemote), planted!(UnmapReturning)),
        Reason::Protect => (planted!(ProtectLocal), planted!(ProtectRemote), planted!(ProtectReturning)),
        Reason::Replace => (planted!(ReplaceLocal), planted!(ReplaceRemote), planted!(ReplaceReturning)),
        Reason::Fork => (planted!(ForkLocal), planted!(ForkRemote), planted!(ForkReturning)),
        _ => (false, false, false),
    };
    LeftOut { local, remote, returning, tables: reason == Reason::Unmap && planted!(TableByPage) }
}

#[cfg(test)]
mod tests;
