//! Instruction fetches after stores.
//!
//! A hart may go on fetching what it fetched before a store, its own included, until it executes `fence.i`
//! (unprivileged specification, Zifencei; it covers the executing hart alone). So a page that the kernel filled must not be
//! mapped executable before every hart that could run it has fenced since. A page notes in its metadata that this was
//! seen to (undone by each write of the kernel); a counter says how many such pages there
//! were; each hart knows the count at its last `fence.i` and makes up for the difference when it enters a space, and
//! the harts that run a space while one of its threads maps such a page are fenced at once.
//!
//! What a program stores itself and then executes is its own business: riscv_flush_icache(2).

use core::sync::atomic::{AtomicU32, Ordering, fence};

use super::Space;
use super::fence::{Reason, fence_i};
use super::remote::{self, Request};
use crate::hart::{self, MAX_HARTS};
use crate::mem::frame::meta;

/// Raised when stores were made that some hart may be about to execute.
static FILLED: AtomicU32 = AtomicU32::new(0);
/// FILLED at each hart's last `fence.i`.
static FENCED: [AtomicU32; MAX_HARTS] = [const { AtomicU32::new(0) }; MAX_HARTS];

/// This hart is about to run programs of a space: what was filled since its last fence, it fences now. Called after the
/// hart is noted as running the space.
#[inline]
pub(super) fn enter(hart: usize) {
    let filled = FILLED.load(Ordering::SeqCst);
    if FENCED[hart].load(Ordering::Relaxed) != filled && !planted!(CodeReturning) {
        fence_i(Reason::Code);
        FENCED[hart].store(filled, Ordering::Relaxed);
    }
}

/// Has every hart in `harts` (bit per index) see all earlier stores, in its loads and in its instruction fetches.
/// Returns when they do.
pub fn synchronize(harts: u64) {
    let me = hart::id();
    if harts >> me & 1 != 0 && !planted!(CodeLocal) {
        fence_i(Reason::Code);
    }
    let others = harts & !(1 << me);
    if others != 0 && !planted!(CodeRemote) {
        remote::fence(others, Request::Fetch, Reason::Code);
    }
}

impl Space {
    /// The page of frame `number`, which is alive, is about to be mapped executable.
    #[inline(never)]
    pub(in crate::mem) fn sync_code(&self, number: u32) {
        let synced = &meta(number).code;
        if synced.load(Ordering::Acquire) == 0 {
            FILLED.fetch_add(1, Ordering::SeqCst);
            synced.store(1, Ordering::Release);
        } else if self.code.load(Ordering::Relaxed) == FILLED.load(Ordering::Acquire) {
            return;
        }
        self.fence_code();
    }

    /// Whatever was stored to this space's memory before is what its programs execute from now on, on all harts
    /// (riscv_flush_icache(2), and after a debugger's writes).
    pub fn flush_icache(&self) {
        FILLED.fetch_add(1, Ordering::SeqCst);
        self.fence_code();
    }

    /// Fences the harts that run this space and have not fenced since the last fill.
    #[cold]
    fn fence_code(&self) {
        let filled = FILLED.load(Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let mut running = self.running();
        let mut owing = 0;
        while running != 0 {
            let hart = running.trailing_zeros() as usize;
            running &= running - 1;
            if FENCED[hart].load(Ordering::Relaxed) != filled {
                owing |= 1 << hart;
            }
        }
        if owing != 0 {
            synchronize(owing);
            while owing != 0 {
                FENCED[owing.trailing_zeros() as usize].store(filled, Ordering::Relaxed);
                owing &= owing - 1;
            }
        }
        self.code.store(filled, Ordering::Relaxed);
    }
}
