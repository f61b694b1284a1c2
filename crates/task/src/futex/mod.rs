//! Futexes: sleeping on a word of user memory (futex(2)).
//!
//! Waiters lie in a table of buckets, by a hash of what the word *is* (an address space and an address, or a shared
//! object and an offset). A waiter reads the word with its bucket locked, and a waker locks the bucket after it has
//! changed the word: so either the waiter sees the change, or the waker sees the waiter.
//!
//! A waiting thread knows its bucket; 0 says that it was taken out, which is what being woken means. Requeueing changes
//! the bucket of a sleeping thread, so a thread that gives up looks again after it has locked.

pub mod bucket;
mod op;
pub(crate) mod robust;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};

use hal::addr::UserAddr;
use hal::sync::{SpinGuard, SpinLock};
use uapi::Errno;
use uapi::futex::FUTEX_BITSET_MATCH_ANY;

use crate::seam::{self, current};
use crate::thread::Thread;
use crate::wait::{Sleep, wait as sleep};
use bucket::{Bucket, Key, Waiter};
use op::WakeOp;

const BUCKETS: usize = 256;
static TABLE: [SpinLock<Bucket<Arc<Thread>>>; BUCKETS] = [const { SpinLock::new(Bucket::new()) }; BUCKETS];

/// A thread's place in the table: its bucket's index + 1, or 0.
pub(crate) struct Waiting(AtomicUsize);

impl Waiting {
    pub const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }
}

type Guard = SpinGuard<'static, Bucket<Arc<Thread>>>;

fn index(key: Key) -> usize {
    key.hash() % BUCKETS
}

fn key_of(address: UserAddr, shared: bool) -> Result<Key, Errno> {
    if !address.0.is_multiple_of(4) {
        return Err(Errno::EINVAL);
    }
    current().mm_slot().with(|mm| seam::futex_key(mm.ok_or(Errno::EFAULT)?, address, shared))
}

/// FUTEX_WAIT_BITSET (FUTEX_WAIT: all bits): sleeps if the word at `address` still has `value`. `deadline` is absolute,
/// in clock ticks.
///
/// `EAGAIN` when the value differs; `EINVAL` for a misaligned address or no bits; `EFAULT`; `ETIMEDOUT`; `ERESTARTSYS`
/// on a signal.
pub fn wait(address: UserAddr, shared: bool, value: u32, bitset: u32, deadline: Option<u64>) -> Result<(), Errno> {
    if bitset == 0 {
        return Err(Errno::EINVAL);
    }
    let key = key_of(address, shared)?;
    let at = index(key);
    let me = current();
    {
        let mut bucket = TABLE[at].lock();
        if hal::user::load_u32(address)? != value {
            return Err(Errno::EAGAIN);
        }
        bucket.push(Waiter { key, bitset, who: me.arc() }).map_err(|_| Errno::ENOMEM)?;
        me.futex.0.store(at + 1, Ordering::Relaxed);
    }
    let woken = || (me.futex.0.load(Ordering::Acquire) == 0).then_some(());
    sleep(Sleep::Interruptible, deadline, woken).or_else(|error| if give_up(&me) { Err(error) } else { Ok(()) })
}

/// Takes a waiter back; false when it was woken meanwhile.
fn give_up(me: &Thread) -> bool {
    loop {
        let at = me.futex.0.load(Ordering::Acquire);
        let Some(bucket) = at.checked_sub(1).and_then(|i| TABLE.get(i)) else { return false };
        let mut bucket = bucket.lock();
        if me.futex.0.load(Ordering::Relaxed) == at {
            me.futex.0.store(0, Ordering::Relaxed);
            return bucket.remove(|who| core::ptr::eq(&raw const **who, me));
        }
    }
}

fn rouse(waiter: Waiter<Arc<Thread>>) {
    waiter.who.futex.0.store(0, Ordering::Release);
    waiter.who.wake();
}

fn wake_in(bucket: &mut Bucket<Arc<Thread>>, key: Key, count: usize, bitset: u32) -> usize {
    let mut woken = 0;
    while woken < count
        && let Some(waiter) = bucket.take(key, bitset)
    {
        rouse(waiter);
        woken += 1;
    }
    woken
}

pub(crate) fn wake_key(key: Key, count: usize, bitset: u32) -> usize {
    wake_in(&mut TABLE[index(key)].lock(), key, count, bitset)
}

/// FUTEX_WAKE_BITSET (FUTEX_WAKE: all bits): wakes up to `count` waiters; gives how many. `EINVAL`.
pub fn wake(address: UserAddr, shared: bool, count: usize, bitset: u32) -> Result<usize, Errno> {
    if bitset == 0 {
        return Err(Errno::EINVAL);
    }
    Ok(wake_key(key_of(address, shared)?, count, bitset))
}

/// The wake-up that CLONE_CHILD_CLEARTID promises, by the thread that ends.
pub(crate) fn wake_exiting(address: UserAddr) {
    if let Ok(key) = key_of(address, true) {
        wake_key(key, 1, FUTEX_BITSET_MATCH_ANY);
    }
}

/// Locks the buckets of two keys, the lower index first. The second guard is None when they are the same.
fn lock_two(a: Key, b: Key) -> (Guard, Option<Guard>) {
    let (a, b) = (index(a), index(b));
    if a == b {
        (TABLE[a].lock(), None)
    } else if a < b {
        let first = TABLE[a].lock();
        (first, Some(TABLE[b].lock()))
    } else {
        let first = TABLE[b].lock();
        (TABLE[a].lock(), Some(first))
    }
}

/// FUTEX_REQUEUE, and with `expected` FUTEX_CMP_REQUEUE: wakes up to `wake` waiters on `from` and makes up to `requeue`
/// more wait on `to`. Gives the number of both. `EAGAIN` when the word at `from` differs from `expected`.
pub fn requeue(
    from: UserAddr,
    to: UserAddr,
    shared: bool,
    wake: usize,
    requeue: usize,
    expected: Option<u32>,
) -> Result<usize, Errno> {
    let (from_key, to_key) = (key_of(from, shared)?, key_of(to, shared)?);
    let (mut source, mut target) = lock_two(from_key, to_key);
    if let Some(expected) = expected
        && hal::user::load_u32(from)? != expected
    {
        return Err(Errno::EAGAIN);
    }
    let woken = wake_in(&mut source, from_key, wake, FUTEX_BITSET_MATCH_ANY);
    let Some(target) = &mut target else { return Ok(woken + source.rename(from_key, to_key, requeue)) };
    let mut moved = 0;
    while moved < requeue
        && let Some(waiter) = source.take(from_key, FUTEX_BITSET_MATCH_ANY)
    {
        waiter.who.futex.0.store(index(to_key) + 1, Ordering::Release);
        if let Err(waiter) = target.push(Waiter { key: to_key, ..waiter }) {
            // No memory for it there: woken for nothing, it looks again.
            rouse(waiter);
        }
        moved += 1;
    }
    Ok(woken + moved)
}

/// FUTEX_WAKE_OP: changes the word at `second`, wakes up to `wake` waiters on `first`, and up to `wake_second` on
/// `second` if the old value satisfies the operation's comparison. Gives the number of both. `ENOSYS`, `EFAULT`.
pub fn wake_op(
    first: UserAddr,
    second: UserAddr,
    shared: bool,
    wake: usize,
    wake_second: usize,
    operation: u32,
) -> Result<usize, Errno> {
    let operation = WakeOp::decode(operation)?;
    let (key, second_key) = (key_of(first, shared)?, key_of(second, shared)?);
    let (mut bucket, mut other) = lock_two(key, second_key);
    let mut old = hal::user::load_u32(second)?;
    loop {
        let was = hal::user::cmpxchg_u32(second, old, operation.apply(old))?;
        if was == old {
            break;
        }
        old = was;
    }
    let mut woken = wake_in(&mut bucket, key, wake, FUTEX_BITSET_MATCH_ANY);
    if operation.holds(old) {
        let other = other.as_mut().unwrap_or(&mut bucket);
        woken += wake_in(other, second_key, wake_second, FUTEX_BITSET_MATCH_ANY);
    }
    Ok(woken)
}
