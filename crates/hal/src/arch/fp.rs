//! Floating-point state: saved only when dirty, loaded at the switch.
//!
//! The kernel has no floating-point instruction but those in fp.S, so a program's registers stay where they are for
//! as long as it runs. sstatus.FS tells whether it wrote any since they were loaded.

use core::sync::atomic::Ordering;

use super::csr;
use crate::task::{FS_CLEAN, FpState, Head};

unsafe extern "C" {
    fn limen_fp_save(to: *mut FpState);
    fn limen_fp_load(from: *const FpState);
}

/// Saves the running task's registers if they are dirty; afterwards memory and registers agree.
pub(crate) fn save_current(head: &Head) {
    if csr::sstatus() & csr::FS != csr::FS_DIRTY {
        return;
    }
    // SAFETY: FS is on, and only the running task's owner touches its `fp` (see Head).
    unsafe {
        limen_fp_save(head.fp.get());
        csr::clear_sstatus(csr::FS);
        csr::set_sstatus(FS_CLEAN);
    }
    head.fs.store(FS_CLEAN, Ordering::Relaxed);
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
}
