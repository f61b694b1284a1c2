//! Instruction fetches after stores.
//!
//! A hart may go on fetching what it fetched before a store, its own included, until it executes `fence.i`
//! (unprivileged specification, Zifencei; it covers the executing hart alone). So a page that the kernel filled must not be
//! mapped executable before every hart that could run it has fenced since. A page notes in its metadata that this was
//! seen to ([`Frame::set_code_synced`], undone by each write of the kernel); a counter says how many such pages there
//! were; each hart knows the count at its last `fence.i` and makes up for the difference when it enters a space, and
//! the harts that run a space while one of its threads maps such a page are fenced at once.
//!
//! What a program stores itself and then executes is its own business: riscv_flush_icache(2).

use core::sync::atomic::{AtomicU32, Ordering, fence};

use super::Space;
use super::fence::{Form, Reason, count};
use crate::hart::{self, MAX_HARTS};
use crate::mem::frame::Frame;

/// Raised when stores were made that some hart may be about to execute.
static FILLED: AtomicU32 = AtomicU32::new(0);
/// FILLED at each hart's last `fence.i`.
static FENCED: [AtomicU32; MAX_HARTS] = [const { AtomicU32::new(0) }; MAX_HARTS];

/// This hart is about to run programs of a space: what was filled since its last fence, it fences now. Called after the
/// hart is noted as running the space.
#[inline]
pub(super) fn enter(hart: usize) {
    let filled = FILLED.load(Ordering::SeqCst);
    if FENCED[hart].load(Ordering::Relaxed) != filled {
        hart::fence_i(1 << hart);
        count(Reason::Code, Form::Fetch);
        FENCED[hart].store(filled, Ordering::Relaxed);
    }
}

impl Space {
    /// The page `frame` is about to be mapped executable.
    #[inline]
    pub fn sync_code(&self, frame: &Frame) {
        if !frame.is_code_synced() {
            FILLED.fetch_add(1, Ordering::SeqCst);
            frame.set_code_synced();
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
            hart::fence_i(owing);
            count(Reason::Code, if owing == 1 << hart::id() { Form::Fetch } else { Form::Remote });
            while owing != 0 {
                FENCED[owing.trailing_zeros() as usize].store(filled, Ordering::Relaxed);
                owing &= owing - 1;
            }
        }
        self.code.store(filled, Ordering::Relaxed);
    }
}
