//! Floating-point state: saved only when dirty, loaded only when the registers hold something else.
//!
//! The kernel has no floating-point instruction but those in fp.S, so a program's registers stay where they are for
//! as long as it runs, and for as long as only tasks run after it that do not change them. sstatus.FS tells whether it
//! wrote any since they were loaded; the hart's `fp_owner` tells whose they are:
//!
//! | `fp_owner` | registers |
//! |---|---|
//! | 0 | unknown |
//! | [`ZERO`] | all zero: the state of every task with FS = Initial |
//! | a head | that task's, and its memory agrees, if its `fp_hart` is this hart |
//!
//! A head that was freed and used again does not match: a new one has no `fp_hart`.

use core::ptr;
use core::sync::atomic::Ordering;

use super::csr;
use crate::hart::this;
use crate::task::{FS_CLEAN, FS_INITIAL, FpState, Head};

/// The owner of zeroed registers.
const ZERO: usize = 1;

unsafe extern "C" {
    fn limen_fp_save(to: *mut FpState);
    fn limen_fp_load(from: *const FpState);
}

fn own(head: &Head) {
    let hart = this();
    hart.fp_owner.store(ptr::from_ref(head).addr(), Ordering::Relaxed);
    head.fp_hart.store(hart.index(), Ordering::Relaxed);
}

/// Saves the running task's registers if they are dirty; afterwards memory and registers agree.
#[inline]
pub(crate) fn save_current(head: &Head) {
    if csr::sstatus() & csr::FS == csr::FS_DIRTY {
        save(head);
    }
}

/// True when the running task has not used the unit since it began.
pub(crate) fn is_initial() -> bool {
    csr::sstatus() & csr::FS == FS_INITIAL
}

#[cold]
fn save(head: &Head) {
    // SAFETY: FS is on, and only the running task's owner touches its `fp` (see Head).
    unsafe {
        limen_fp_save(head.fp.get());
        csr::clear_sstatus(csr::FS);
        csr::set_sstatus(FS_CLEAN);
    }
    own(head);
}

/// Loads the running task's registers from its memory.
pub(crate) fn load_current(head: &Head) {
    // SAFETY: FS is switched on for the load, and Clean afterwards is what the task's memory says.
    unsafe {
        csr::set_sstatus(csr::FS);
        limen_fp_load(head.fp.get());
        csr::clear_sstatus(csr::FS);
        csr::set_sstatus(FS_CLEAN);
    }
    own(head);
}

/// Zeroes the running task's registers, as its memory is, and marks them unused.
pub(crate) fn zero_current(head: &Head) {
    // FS may say Clean of registers that are zero already; only an owner that is known to be so needs no load.
    if csr::sstatus() & csr::FS == csr::FS_DIRTY || this().fp_owner.load(Ordering::Relaxed) != ZERO {
        fill(head, FS_INITIAL);
    }
    // SAFETY: FS = Initial is what the registers are.
    unsafe {
        csr::clear_sstatus(csr::FS);
        csr::set_sstatus(FS_INITIAL);
    }
}

/// Makes the registers those of `to`, which is switched to next, and gives the FS it runs with.
#[inline]
pub(crate) fn enter(to: &Head) -> usize {
    let fs = to.fs.load(Ordering::Relaxed);
    if fs != 0 {
        let hart = this();
        let owner = hart.fp_owner.load(Ordering::Relaxed);
        let held = match fs {
            FS_INITIAL => owner == ZERO,
            _ => owner == ptr::from_ref(to).addr() && to.fp_hart.load(Ordering::Relaxed) == hart.index(),
        };
        if !held {
            fill(to, fs);
        }
    }
    fs
}

#[cold]
fn fill(to: &Head, fs: usize) {
    load_current(to);
    if fs == FS_INITIAL {
        this().fp_owner.store(ZERO, Ordering::Relaxed);
    }
}
