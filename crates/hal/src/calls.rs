//! The seam to the kernel: the system call table and the upcalls, which [`crate::kernel`] defines once.

use crate::task::UserFrame;

/// Table slots: one for "no such call", then numbers 0 to 471.
pub const SLOTS: usize = uapi::nr::NR_SYSCALLS + 1;

/// A handler on the fast path: six arguments, a result or a negated errno.
pub type FastCall = extern "C" fn(usize, usize, usize, usize, usize, usize) -> isize;
/// A handler that sees, and may replace, all registers.
pub type FullCall = extern "C" fn(&mut UserFrame) -> isize;

/// The two tables of handlers. The fast one is indexed by number + 1 in entry.S; the slot of a full call there leads to
/// the stub that spills the remaining registers and looks into the second.
#[repr(C)]
pub struct CallTable {
    fast: [FastCall; SLOTS],
    pub(crate) full: [FullCall; SLOTS],
}

extern "C" fn no_full_call(_: &mut UserFrame) -> isize {
    uapi::Errno::ENOSYS.to_ret()
}

#[cfg(target_os = "none")]
unsafe extern "C" {
    safe fn limen_full_call(a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> isize;
}
#[cfg(not(target_os = "none"))]
extern "C" fn limen_full_call(_: usize, _: usize, _: usize, _: usize, _: usize, _: usize) -> isize {
    uapi::Errno::ENOSYS.to_ret()
}

impl CallTable {
    /// A table in which every number answers through `unknown`.
    pub const fn new(unknown: FastCall) -> Self {
        Self { fast: [unknown; SLOTS], full: [no_full_call; SLOTS] }
    }

    /// Sets the handler of call `number` on the fast path.
    #[must_use]
    pub const fn fast(mut self, number: usize, handler: FastCall) -> Self {
        self.fast[number + 1] = handler;
        self
    }

    /// Sets the handler of call `number`, to be called with all registers spilled.
    #[must_use]
    pub const fn full(mut self, number: usize, handler: FullCall) -> Self {
        self.fast[number + 1] = limen_full_call;
        self.full[number + 1] = handler;
        self
    }
}

/// What an access wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// A load.
    Read,
    /// A store or AMO.
    Write,
    /// An instruction fetch.
    Execute,
}

/// An exception in user mode, other than a system call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exception {
    /// The translation of `address` does not allow `access`.
    PageFault {
        /// The faulting virtual address.
        address: usize,
        /// What was tried.
        access: Access,
    },
    /// The instruction, or 0 where the hart does not tell.
    IllegalInstruction(usize),
    /// `ebreak`; `pc` is at it.
    Breakpoint,
    /// A misaligned access or jump that nobody emulates, and its address.
    Misaligned(usize),
    /// Physical memory refused the access to this address.
    AccessFault(usize),
    /// A cause that no specification this kernel knows has given a meaning.
    Unknown(usize),
}

/// What the HAL asks of the kernel. All are called with interrupts off.
pub struct Upcalls {
    /// The boot hart is ready: memory, traps, clock. Other harts wait for [`crate::hart::start_others`].
    pub main: fn(&'static crate::boot::BootInfo) -> !,
    /// Another hart is ready.
    pub secondary: fn() -> !,
    /// An exception in user mode, a page fault only if [`Upcalls::fault`] has not resolved it.
    pub exception: fn(&mut UserFrame, Exception),
    /// A page fault, from user mode or inside a user copy: true to try the access again. False ends the copy, or leads to
    /// [`Upcalls::exception`]. Never sleeps. The last argument: it is from user mode, so that interrupts may be let in while
    /// it waits for a lock.
    pub fault: fn(usize, Access, bool) -> bool,
    /// A [`crate::task::Work`] bit is set and the task is about to return to user mode with this frame.
    pub work: fn(&mut UserFrame),
    /// The hart's timer has run out.
    pub timer: fn(),
    /// A device raised an interrupt.
    pub external: fn(),
}

#[cfg(target_os = "none")]
unsafe extern "Rust" {
    /// Defined by [`crate::kernel`].
    safe static LIMEN_UPCALLS: Upcalls;
}

#[cfg(target_os = "none")]
#[inline]
pub(crate) fn upcalls() -> &'static Upcalls {
    &LIMEN_UPCALLS
}

/// Defines the kernel: its call table and its upcalls. Expanded once, in the kernel's binary.
#[macro_export]
macro_rules! kernel {
    (calls: $calls:expr, upcalls: $upcalls:expr $(,)?) => {
        #[cfg(target_os = "none")]
        #[unsafe(no_mangle)]
        static LIMEN_CALLS: $crate::calls::CallTable = $calls;
        #[cfg(target_os = "none")]
        #[unsafe(no_mangle)]
        static LIMEN_UPCALLS: $crate::calls::Upcalls = $upcalls;
    };
}
