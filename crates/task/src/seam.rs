//! What this crate takes for granted about its neighbours, in one place.
//!
//! `tie` stores in a context which thread it is; the thread must then live while the context runs. It does: the hart's
//! run queue holds a reference to its current thread, and gives it up at the next switch at the earliest (see
//! [`crate::sched`]).

use alloc::sync::Arc;
use core::task::Waker;

use hal::addr::UserAddr;
use hal::calls::Access;
use mm::{AddressSpace, FaultError, FutexKey};
use uapi::Errno;

use crate::futex::bucket::Key;
use crate::thread::Thread;

hal::current_task!(Thread);

/// The thread that is about to run, as a reference that outlives the caller's counted one: the caller moves `next` into
/// its hart's run queue, as its current thread, before it switches.
pub(crate) fn about_to_run(next: &Arc<Thread>) -> Current {
    Current(Arc::as_ptr(next))
}

impl Current {
    /// What wakes the running thread.
    #[inline]
    pub fn waker(self) -> Waker {
        Waker::from(self.arc())
    }
}

/// How a page fault ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// The access can be tried again.
    Resolved,
    /// Nothing is mapped there.
    Unmapped,
    /// The mapping does not allow it.
    Denied,
    /// Beyond the end of a mapped file.
    Bus,
    /// No memory.
    NoMemory,
}

/// Lets the address space resolve a page fault.
#[inline]
pub(crate) fn resolve(mm: &Arc<AddressSpace>, address: usize, access: Access) -> Outcome {
    match mm.fault(address, access) {
        Ok(()) => Outcome::Resolved,
        Err(FaultError::MapErr) => Outcome::Unmapped,
        Err(FaultError::AccErr) => Outcome::Denied,
        Err(FaultError::Bus) => Outcome::Bus,
        Err(FaultError::Oom) => Outcome::NoMemory,
    }
}

/// What a futex word is for all who can see it. `shared`: it may lie in memory shared with other address spaces;
/// otherwise the address alone tells.
pub(crate) fn futex_key(mm: &Arc<AddressSpace>, address: UserAddr, shared: bool) -> Result<Key, Errno> {
    Ok(match mm.futex_key(address.0, !shared).map_err(|_| Errno::EFAULT)? {
        // Spaces and objects are numbered apart.
        FutexKey::Private { space, addr } => Key { space: space << 1, offset: addr as u64 },
        FutexKey::Shared { object, offset } => Key { space: object << 1 | 1, offset: offset as u64 },
    })
}
