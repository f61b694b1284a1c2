//! Threads and other children that clone(2) makes.

use crate::{attempt, call, memory};
use core::sync::atomic::{AtomicU32, Ordering};
use rt::uapi::clone::{
    CLONE_CHILD_CLEARTID, CLONE_FILES, CLONE_FS, CLONE_PARENT_SETTID, CLONE_SETTLS, CLONE_SIGHAND, CLONE_SYSVSEM,
    CLONE_THREAD, CLONE_VM,
};
use rt::uapi::{Errno, Result, Timespec, futex, nr};

/// What pthread_create asks for.
pub const THREAD: u64 = CLONE_VM
    | CLONE_FS
    | CLONE_FILES
    | CLONE_SIGHAND
    | CLONE_THREAD
    | CLONE_SYSVSEM
    | CLONE_SETTLS
    | CLONE_PARENT_SETTID
    | CLONE_CHILD_CLEARTID;

const STACK: usize = 16 * memory::PAGE;

core::arch::global_asm!(
    ".globl kit_clone",
    ".type kit_clone, @function",
    "kit_clone:", // a0-a4 as clone(2) takes them, a5 = function, a6 = its argument
    "addi a1, a1, -16",
    "sd a5, 0(a1)",
    "sd a6, 8(a1)",
    "li a7, 220",
    "ecall",
    "bnez a0, 1f",
    "ld t1, 0(sp)",
    "ld a0, 8(sp)",
    "jalr t1",
    "li a7, 93",
    "ecall",
    "unimp",
    "1: ret",
    ".size kit_clone, . - kit_clone",
);

unsafe extern "C" {
    fn kit_clone(
        flags: usize,
        stack: usize,
        parent_tid: usize,
        tls: usize,
        child_tid: usize,
        function: extern "C" fn(usize) -> usize,
        argument: usize,
    ) -> isize;
}

/// clone(2) with a stack of the child's own, on which it calls `function`; what that returns is its status.
///
/// # Safety
/// `stack` is the upper end of memory that only the child uses, and the other addresses are what the flags ask for.
///
/// # Errors
/// As the call.
pub unsafe fn clone(
    flags: u64,
    stack: usize,
    ids: [usize; 2],
    tls: usize,
    function: extern "C" fn(usize) -> usize,
    argument: usize,
) -> Result<usize> {
    // SAFETY: the caller's duty; the assembly starts the function on the stack it was given.
    rt::sys::check(unsafe { kit_clone(flags as usize, stack, ids[0], tls, ids[1], function, argument) })
}

/// A thread of this process.
#[derive(Debug)]
pub struct Thread {
    base: usize,
    /// Its number.
    pub id: u32,
}

impl Thread {
    /// Starts a thread with `tls` in tp.
    ///
    /// # Errors
    /// As clone(2) and mmap(2).
    pub fn start_with_tls(function: extern "C" fn(usize) -> usize, argument: usize, tls: usize) -> Result<Self> {
        let base = memory::private(STACK)?;
        // SAFETY: the lowest word is the thread's id, the rest its stack, which is unmapped only after its end.
        let started = unsafe { clone(THREAD, base + STACK, [base, base], tls, function, argument) };
        match started {
            Ok(id) => Ok(Self { base, id: id as u32 }),
            Err(error) => {
                memory::unmap(base, STACK)?;
                Err(error)
            }
        }
    }

    /// Starts a thread.
    ///
    /// # Errors
    /// As clone(2) and mmap(2).
    pub fn start(function: extern "C" fn(usize) -> usize, argument: usize) -> Result<Self> {
        Self::start_with_tls(function, argument, 0)
    }

    /// Waits for its end.
    pub fn join(self) {
        // SAFETY: the word stays mapped until below.
        let word = unsafe { AtomicU32::from_ptr(self.base as *mut u32) };
        loop {
            let seen = word.load(Ordering::Acquire);
            if seen == 0 {
                break;
            }
            // The kernel clears the word and wakes without the private flag.
            let _ = wait_shared(word, seen, None);
        }
        let _ = memory::unmap(self.base, STACK);
    }
}

/// futex(2), FUTEX_WAIT: sleeps if the word holds `value`, for at most so many nanoseconds.
///
/// # Errors
/// As the call.
pub fn wait(word: &AtomicU32, value: u32, limit: Option<u64>) -> Result<()> {
    wait_as(futex::FUTEX_WAIT | futex::FUTEX_PRIVATE_FLAG, word, value, limit)
}

/// As [`wait`], for a word that other processes may share.
///
/// # Errors
/// As the call.
pub fn wait_shared(word: &AtomicU32, value: u32, limit: Option<u64>) -> Result<()> {
    wait_as(futex::FUTEX_WAIT, word, value, limit)
}

fn wait_as(operation: u32, word: &AtomicU32, value: u32, limit: Option<u64>) -> Result<()> {
    let limit = limit.map(Timespec::from_ns);
    let timeout = limit.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
    attempt!(nr::FUTEX, word.as_ptr(), operation, value, timeout).map(|_| ())
}

/// futex(2), FUTEX_WAKE: wakes up to `count` waiters, gives how many.
pub fn wake(word: &AtomicU32, count: u32) -> usize {
    call!(nr::FUTEX, word.as_ptr(), futex::FUTEX_WAKE | futex::FUTEX_PRIVATE_FLAG, count).max(0).cast_unsigned()
}

/// As [`wake`], for a word that other processes may share.
pub fn wake_shared(word: &AtomicU32, count: u32) -> usize {
    call!(nr::FUTEX, word.as_ptr(), futex::FUTEX_WAKE, count).max(0).cast_unsigned()
}

/// Sleeps until the word no longer holds `value`.
pub fn await_change(word: &AtomicU32, value: u32) {
    while word.load(Ordering::Acquire) == value {
        match wait_shared(word, value, None) {
            Ok(()) | Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(error) => panic!("futex: errno {}", error.code()),
        }
    }
}
