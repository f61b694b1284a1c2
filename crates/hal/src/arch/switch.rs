//! The Rust half of a context switch: FP state, hart pointers, counters.

use core::ptr;
use core::sync::atomic::Ordering;

use super::csr;
use super::fp;
use crate::task::{Context, FRAME_SIZE, Head};

/// Bytes a switched-out task has on its stack: ra, gp, s0-s11.
pub(crate) const CONTEXT_SIZE: usize = 14 * 8;

unsafe extern "C" {
    fn limen_switch(prev: *mut Head, next: *mut Head, status: usize);
    fn limen_user_start();
    fn limen_kernel_start();
}

/// See [`crate::task::switch`].
#[inline]
pub(crate) fn switch(prev: &Context, next: &Context) {
    let running = super::head_pointer();
    let (from, to) = (prev.head(), next.head());
    assert!(ptr::eq(from, running), "only the running task can be switched away from");
    assert!(from.on_hart.load(Ordering::Relaxed) == 1 && !ptr::eq(from, to), "a task is switched to while it runs");
    assert!(to.on_hart.swap(1, Ordering::Acquire) == 0, "a task runs on two harts");

    let hart = crate::hart::this();
    hart.counters.switches.add(1);
    collect_calls(from);
    to.hart.store(from.hart.load(Ordering::Relaxed), Ordering::Relaxed);
    fp::save_current(from);
    from.fs.store(csr::sstatus() & csr::FS, Ordering::Relaxed);
    let fs = fp::enter(to);
    // SAFETY: `from` is running and `to` is not, as asserted; both contexts outlive the switch, since the scheduler
    // holds them. The status keeps the contract of entry.S; UXL and the read-only fields are left as they are.
    unsafe {
        let status = (csr::sstatus() & !(csr::SPP | csr::SIE | csr::SUM | csr::FS)) | csr::SPIE | fs;
        limen_switch(ptr::from_ref(from).cast_mut(), ptr::from_ref(to).cast_mut(), status);
    }
}

/// Adds the calls a task counted to its hart's counters.
pub(crate) fn collect_calls(head: &Head) {
    let hart = crate::hart::this();
    let full = head.full_calls.swap(0, Ordering::Relaxed);
    hart.counters.full_calls.add(full);
    hart.counters.fast_calls.add(head.calls.swap(0, Ordering::Relaxed).saturating_sub(full));
}

/// Prepares a new context so that its first switch enters `start` with `s0 = argument` and `sp` below the frame.
fn prepare(head: &Head, start: usize, argument: usize) {
    let top = ptr::from_ref(head).cast_mut().cast::<u8>();
    // SAFETY: the words lie in the context's own block, right below the user frame; nobody else knows it yet.
    unsafe {
        let sp = top.sub(FRAME_SIZE + CONTEXT_SIZE).cast::<usize>();
        for i in 0..CONTEXT_SIZE / 8 {
            sp.add(i).write(0);
        }
        sp.write(start);
        sp.add(2).write(argument);
        head.context_sp.store(sp.addr(), Ordering::Relaxed);
    }
}

pub(crate) fn prepare_user(head: &Head, started: usize) {
    prepare(head, limen_user_start as *const () as usize, started);
}

pub(crate) fn prepare_kernel(head: &Head, entry: usize) {
    prepare(head, limen_kernel_start as *const () as usize, entry);
}
