//! Exceptions of a program: what the address space resolves, and what becomes a signal.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use hal::calls::{Access, Exception};
use hal::mem::frame;
use hal::sync::Once;
use hal::task::{UserFrame, Work};
use mm::FaultError;
use uapi::Siginfo;
use uapi::signal::*;

use crate::seam::{Current, Outcome, current, resolve};
use crate::signal::force;
use crate::{oom, wait};

/// An exception in user mode (`Upcalls::exception`).
pub fn exception(frame: &mut UserFrame, exception: Exception) {
    match exception {
        Exception::PageFault { address, access } => page_fault(frame, address, access),
        Exception::Misaligned(_) | Exception::AccessFault(_) if resumed(frame) => {}
        other => force(&signal_for(other, frame.pc)),
    }
}

static RESUME: Once<fn(&mm::AddressSpace, usize) -> Option<usize>> = Once::new();

/// Tells where a program goes on that faulted at some pc in the vDSO, if that was an access on behalf of the vDSO's caller:
/// no signal is sent then. Called once at boot.
pub fn set_resume(find: fn(&mm::AddressSpace, usize) -> Option<usize>) {
    let _ = RESUME.set(find);
}

/// Lets the program go on, if it was in the vDSO and the vDSO sees to its own faults.
#[cold]
fn resumed(frame: &mut UserFrame) -> bool {
    let find = |mm: Option<&Arc<mm::AddressSpace>>| RESUME.get()?(mm?, frame.pc);
    let then = current().mm_slot().with(find);
    frame.pc = then.unwrap_or(frame.pc);
    then.is_some()
}

/// The signal for an exception other than a page fault, at `pc`.
fn signal_for(exception: Exception, pc: usize) -> Siginfo {
    match exception {
        Exception::IllegalInstruction(_) => Siginfo::fault(SIGILL, ILL_ILLOPC, pc),
        Exception::Breakpoint => Siginfo::fault(SIGTRAP, TRAP_BRKPT, pc),
        Exception::Misaligned(address) => Siginfo::fault(SIGBUS, BUS_ADRALN, address),
        Exception::AccessFault(address) | Exception::PageFault { address, .. } => {
            Siginfo::fault(SIGSEGV, SEGV_ACCERR, address)
        }
        Exception::Unknown(_) => Siginfo::fault(SIGILL, ILL_ILLTRP, pc),
    }
}

/// A fault that was not resolved at first sight: once more, and if it is no better then, a signal.
#[cold]
fn page_fault(frame: &mut UserFrame, address: usize, access: Access) {
    let me = current();
    let outcome = me.mm_slot().with(|mm| mm.map_or(Outcome::Unmapped, |mm| resolve(mm, address, access)));
    match outcome {
        Outcome::Resolved => me.counts.minor_fault(),
        Outcome::NoMemory => out_of_memory(),
        _ if resumed(frame) => {}
        failed => refuse(failed, address),
    }
}

/// The signal for a fault that the address space did not resolve.
#[cold]
fn refuse(outcome: Outcome, address: usize) {
    force(&match outcome {
        Outcome::Denied => Siginfo::fault(SIGSEGV, SEGV_ACCERR, address),
        Outcome::Bus => Siginfo::fault(SIGBUS, BUS_ADRERR, address),
        _ => Siginfo::fault(SIGSEGV, SEGV_MAPERR, address),
    });
}

/// Somebody has to go; the program then tries its access again, if it is not the one.
#[cold]
fn out_of_memory() {
    oom::kill(frame::total());
    // A moment for the victim to leave. A signal ends it early, and so does being the victim.
    let _ = wait::sleep_until(hal::time::now() + hal::time::ticks_per_second() / 100);
}

/// A page fault, from user mode or in a copy to or from user memory (`Upcalls::fault`): true to try again. Locks may be
/// held by a copy, so this never sleeps, and chooses no victim.
pub fn resolves(address: usize, access: Access, user: bool) -> bool {
    let me = current();
    let result = me.mm_slot().with(|mm| mm.map(|mm| mm.fault_of(address, access, user)));
    let resolved = match result {
        Some(Err(FaultError::Oom)) if !user => copies_from_reserve(me, address, access),
        result => matches!(result, Some(Ok(()))),
    };
    if resolved {
        me.counts.minor_fault();
    }
    resolved
}

/// Most pages that a call's copies may take from the reserve.
const BORROWED_MAX: u32 = 32;

/// A copy found no memory. Calls tell programs nothing of that, and cannot wait for it with locks held; so the page comes from
/// the reserve, and the thread sees to it that there is memory again before it goes on ([`pay_back`]). A call that wants more
/// in one go has a bad address, or fewer bytes than it asked for.
#[cold]
fn copies_from_reserve(me: Current, address: usize, access: Access) -> bool {
    let borrowed = me.borrowed.load(Ordering::Relaxed);
    me.borrowed.store(borrowed + 1, Ordering::Relaxed);
    me.context.raise(Work::RESCHED);
    borrowed < BORROWED_MAX
        && frame::from_reserve(|| {
            me.mm_slot().with(|mm| mm.is_some_and(|mm| mm.fault_of(address, access, false).is_ok()))
        })
}

/// On the way to user mode: if copies have taken pages from the reserve, somebody has to go.
#[inline]
pub(crate) fn pay_back(me: Current) {
    if me.borrowed.load(Ordering::Relaxed) != 0 {
        me.borrowed.store(0, Ordering::Relaxed);
        out_of_memory();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_have_linux_codes() {
        let codes = |e| {
            let info = signal_for(e, 0x40);
            (info.si_signo as u32, info.si_code, info.addr())
        };
        assert_eq!(codes(Exception::IllegalInstruction(0)), (SIGILL, ILL_ILLOPC, 0x40));
        assert_eq!(codes(Exception::Breakpoint), (SIGTRAP, TRAP_BRKPT, 0x40));
        assert_eq!(codes(Exception::Misaligned(0x99)), (SIGBUS, BUS_ADRALN, 0x99));
        assert_eq!(codes(Exception::AccessFault(0x99)), (SIGSEGV, SEGV_ACCERR, 0x99));
        assert_eq!(codes(Exception::Unknown(20)), (SIGILL, ILL_ILLTRP, 0x40));
    }
}
