//! What the assembly calls: traps from user mode, traps from the kernel, work on the way out.

use core::sync::atomic::Ordering;

use super::{csr, probe, usercopy};
use crate::calls::{Access, Exception, upcalls};
use crate::task::{Head, LOCAL_REPLACED, UserFrame};

/// What a trap from the kernel saves, below the interrupted stack pointer.
#[repr(C, align(16))]
pub(crate) struct KernelFrame {
    pub ra: usize,
    /// t0 … t6.
    pub t: [usize; 7],
    /// a0 … a7.
    pub a: [usize; 8],
    pub pc: usize,
    pub status: usize,
}

const INTERRUPT: usize = 1 << 63;

fn head() -> &'static Head {
    // SAFETY: tp points at the running task's head for as long as the task is in the kernel.
    unsafe { &*super::head_pointer() }
}

/// A page fault's two words, in the registers of a result as in those of the arguments.
#[repr(C)]
struct Fault {
    address: usize,
    cause: usize,
}

/// A page fault from user mode, with the callee-saved registers not in the frame yet. If the access can be tried again,
/// the cause given back is 0; otherwise `limen_user_trap` is next.
#[unsafe(no_mangle)]
extern "C" fn limen_page_fault(address: usize, cause: usize) -> Fault {
    let access = access(cause);
    crate::hart::this().counters.fault(access);
    let resolved = (upcalls().fault)(address, access, true);
    Fault { address, cause: if resolved { 0 } else { cause } }
}

/// A page fault is resolved, and there is work to do before the program goes on, if only sepc to be written again; all
/// registers are in `frame`.
#[unsafe(no_mangle)]
extern "C" fn limen_fault_work(frame: &mut UserFrame) {
    frame.forget_call();
    work(frame);
}

/// An exception or interrupt from user mode; all registers are in `frame`.
#[unsafe(no_mangle)]
extern "C" fn limen_user_trap(frame: &mut UserFrame, cause: usize, value: usize) {
    frame.forget_call();
    if cause & INTERRUPT != 0 {
        interrupt(cause & !INTERRUPT);
    } else {
        let exception = match cause {
            12 | 13 | 15 => Exception::PageFault { address: value, access: access(cause) },
            2 => Exception::IllegalInstruction(value),
            3 => Exception::Breakpoint,
            0 | 4 | 6 => Exception::Misaligned(value),
            1 | 5 | 7 => Exception::AccessFault(value),
            _ => Exception::Unknown(cause),
        };
        if !matches!(exception, Exception::PageFault { .. }) {
            crate::hart::this().counters.other_exceptions.add(1);
        }
        (upcalls().exception)(frame, exception);
    }
    work(frame);
}

/// What the access wanted that the page fault `cause` stopped.
#[inline]
fn access(cause: usize) -> Access {
    match cause {
        12 => Access::Execute,
        13 => Access::Read,
        _ => Access::Write,
    }
}

/// A system call has work to do before it returns: its result goes into the frame, which is then complete.
#[unsafe(no_mangle)]
extern "C" fn limen_call_work(frame: &mut UserFrame, result: usize) {
    if head().local.load(Ordering::Relaxed) & LOCAL_REPLACED == 0 {
        frame.finish_call(result);
    }
    work(frame);
}

/// A new user task runs for the first time.
#[unsafe(no_mangle)]
extern "C" fn limen_task_started(frame: &mut UserFrame, started: *const ()) {
    // SAFETY: `prepare_user` put a `fn()` into the context, and nothing else gets here.
    unsafe { core::mem::transmute::<*const (), fn()>(started)() };
    work(frame);
}

/// Serves the work bits until none is left. Interrupts stay off from the last look to `sret`.
#[inline]
fn work(frame: &mut UserFrame) {
    while head().work.load(Ordering::Acquire) != 0 {
        (upcalls().work)(frame);
    }
}

/// A trap from the kernel: an interrupt in a window, a fault in a user copy, or the end.
#[unsafe(no_mangle)]
extern "C" fn limen_kernel_trap(frame: &mut KernelFrame, cause: usize, value: usize) {
    if cause & INTERRUPT != 0 {
        interrupt(cause & !INTERRUPT);
        return;
    }
    if let (12 | 13 | 15, Some(fixup)) = (cause, usercopy::fixup(frame.pc)) {
        let access = access(cause);
        crate::hart::this().counters.copy_faults.add(1);
        // A kernel address here is a bug of the kernel's, not the program's: the ranges were cut.
        if value < crate::mem::layout::user_top() {
            if !(upcalls().fault)(value, access, false) {
                frame.pc = fixup;
            }
            return;
        }
    }
    if let (4..=7, Some(out)) = (cause, probe::fixup(frame.pc)) {
        frame.pc = out;
        return;
    }
    panic!(
        "kernel trap: cause {cause}, address {value:#x}, pc {:#x}, ra {:#x}, sp {:#x}, status {:#x}",
        frame.pc,
        frame.ra,
        (&raw const *frame).addr() + size_of::<KernelFrame>(),
        frame.status,
    );
}

/// The kernel's stack pointer left the task's block.
#[unsafe(no_mangle)]
extern "C" fn limen_stack_overflow(sp: usize, pc: usize, cause: usize, value: usize) -> ! {
    panic!("kernel stack overflow: sp {sp:#x}, pc {pc:#x}, cause {cause:#x}, address {value:#x}");
}

fn interrupt(code: usize) {
    let counters = &crate::hart::this().counters;
    match code {
        1 => {
            // Cleared before the requests are looked at: one that comes later sets it again.
            // SAFETY: only the pending bit changes.
            unsafe { csr::clear_sip(csr::SOFTWARE) };
            counters.ipis.add(1);
            crate::hart::serve_requests();
        }
        5 => {
            counters.timer_interrupts.add(1);
            crate::time::timer_fired();
            (upcalls().timer)();
        }
        9 => {
            counters.external_interrupts.add(1);
            (upcalls().external)();
        }
        _ => panic!("interrupt {code} is not enabled"),
    }
}
