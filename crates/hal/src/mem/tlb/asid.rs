//! One allocator of address-space identifiers for all harts.
//!
//! A space's context is `generation << 16 | ASID`. ASIDs are handed out in turn; when they run out a new generation
//! begins: every hart owes a flush of everything before it enters a space of it, and an ASID that a hart is running at
//! that moment keeps its meaning, so that entries the hart makes meanwhile are never taken for another space's. With an
//! ASID width of 0 every space has ASID 0 and each switch flushes. ASID 0 is otherwise the kernel's own table's.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::fence::{Reason, flush_all};
use super::{MAX_HARTS, Space};
use crate::hart;
use crate::sync::SpinLock;

const ASID_MASK: u64 = 0xffff;
const GENERATION: u64 = 0x1_0000;

/// Number of ASIDs, 1 << width; 1 means that there are none.
static COUNT: AtomicUsize = AtomicUsize::new(1);
static CURRENT: AtomicU64 = AtomicU64::new(GENERATION);
/// The context that each hart has in satp; 0 after a generation began, until it switches.
static ACTIVE: [AtomicU64; MAX_HARTS] = [const { AtomicU64::new(0) }; MAX_HARTS];
static FLUSH_OWED: [AtomicBool; MAX_HARTS] = [const { AtomicBool::new(false) }; MAX_HARTS];

struct Pool {
    next: u64,
    /// Contexts that harts were running when the generation began.
    kept: [u64; MAX_HARTS],
}

static POOL: SpinLock<Pool> = SpinLock::new(Pool { next: 1, kept: [0; MAX_HARTS] });

/// Says how many ASID bits satp holds (0 to 16). When a generation begins each hart may keep one ASID, the kernel's
/// is never handed out, and one more must be left: with fewer none are used.
pub(super) fn set_bits(bits: usize) {
    let count = 1usize << bits.min(16);
    COUNT.store(if count > hart::count() + 1 { count } else { 1 }, Ordering::Relaxed);
}

/// Bits of satp.ASID in use.
pub fn width() -> u32 {
    COUNT.load(Ordering::Relaxed).trailing_zeros()
}

#[inline]
pub(super) fn without_asids() -> bool {
    COUNT.load(Ordering::Relaxed) == 1
}

/// The ASID of a context.
#[inline]
pub(super) fn number(context: u64) -> usize {
    (context & ASID_MASK) as usize
}

/// The generation of a context.
pub(super) fn generation(context: u64) -> u64 {
    context >> GENERATION.trailing_zeros()
}

/// This hart is about to enter `space`: gives the ASID for satp, 0 if there are none, after any flush that a new
/// generation made this hart owe.
#[inline]
pub(super) fn activate(space: &Space, hart: usize) -> usize {
    if without_asids() {
        return 0;
    }
    let context = space.context.load(Ordering::Relaxed);
    let active = ACTIVE[hart].load(Ordering::Relaxed);
    // The exchange fails if a new generation began in between, which sets ACTIVE to 0.
    if context & !ASID_MASK == CURRENT.load(Ordering::Acquire)
        && active != 0
        && ACTIVE[hart].compare_exchange(active, context, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    {
        return number(context);
    }
    activate_slow(space, hart)
}

#[cold]
fn activate_slow(space: &Space, hart: usize) -> usize {
    let mut pool = POOL.lock();
    let mut context = space.context.load(Ordering::Relaxed);
    if context & !ASID_MASK != CURRENT.load(Ordering::Relaxed) {
        context = pool.context(context);
        space.context.store(context, Ordering::Relaxed);
    }
    if FLUSH_OWED[hart].swap(false, Ordering::Relaxed) && !planted!(RolloverFlush) {
        flush_all(Reason::Rollover);
    }
    ACTIVE[hart].store(context, Ordering::Release);
    number(context)
}

/// This hart is about to run the kernel's own table.
pub(super) fn idle(hart: usize) {
    let active = ACTIVE[hart].load(Ordering::Relaxed);
    if active != 0 {
        // Fails if a new generation began meanwhile: ACTIVE stays 0 then, and the flush it owes is done later.
        let kernel = CURRENT.load(Ordering::Acquire);
        let _ = ACTIVE[hart].compare_exchange(active, kernel, Ordering::AcqRel, Ordering::Relaxed);
    }
}

impl Pool {
    /// A context of the current generation for a space that had `old`.
    fn context(&mut self, old: u64) -> u64 {
        if old != 0 && self.keep(old) {
            return CURRENT.load(Ordering::Relaxed) | old & ASID_MASK;
        }
        loop {
            if self.next >= COUNT.load(Ordering::Relaxed) as u64 {
                self.new_generation();
                if old != 0 && self.keep(old) {
                    return CURRENT.load(Ordering::Relaxed) | old & ASID_MASK;
                }
            }
            let asid = self.next;
            self.next += 1;
            if !self.kept.iter().any(|&kept| kept & ASID_MASK == asid) {
                return CURRENT.load(Ordering::Relaxed) | asid;
            }
        }
    }

    /// Whether `old` is kept over the change of generations; it then has a new name with the same ASID.
    fn keep(&mut self, old: u64) -> bool {
        let renamed = CURRENT.load(Ordering::Relaxed) | old & ASID_MASK;
        let mut found = false;
        for kept in &mut self.kept {
            if *kept == old {
                *kept = renamed;
                found = true;
            }
        }
        found
    }

    fn new_generation(&mut self) {
        CURRENT.fetch_add(GENERATION, Ordering::AcqRel);
        self.next = 1;
        for ((kept, active), owed) in self.kept.iter_mut().zip(&ACTIVE).zip(&FLUSH_OWED) {
            let running = active.swap(0, Ordering::AcqRel);
            // A hart that has not switched since the last generation still runs what was kept for it then.
            if running != 0 && !planted!(RolloverKeeps) {
                *kept = running;
            }
            owed.store(true, Ordering::Relaxed);
        }
    }
}

/// For tests: as if `left` ASIDs were still to be handed out in this generation.
#[cfg(test)]
pub(super) fn leave_only(left: u64) {
    POOL.lock().next = COUNT.load(Ordering::Relaxed) as u64 - left;
}
