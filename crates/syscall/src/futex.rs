//! futex(2) and robust lists: get_robust_list(2).

use core::sync::atomic::Ordering;

use hal::addr::UserAddr;
use task::{Restart, current, find_thread, futex};
use uapi::futex::*;
use uapi::time::{CLOCK_MONOTONIC, CLOCK_REALTIME};
use uapi::{Errno, Result, RobustListHead, Timespec};

use crate::caller::{credentials, get_opt, put};
use crate::table::calls;

calls! {
    fast {
        FUTEX = futex_call, lacks "priority inheritance";
        SET_ROBUST_LIST = set_robust_list;
        GET_ROBUST_LIST = get_robust_list;
    }
}

/// A count: negative ones wake one or none, as in Linux.
fn count(value: u32) -> usize {
    usize::try_from(value as i32).unwrap_or(0)
}

fn futex_call(word: UserAddr, op: u32, value: u32, timeout: UserAddr, second: UserAddr, third: u32) -> Result<usize> {
    let shared = op & FUTEX_PRIVATE_FLAG == 0;
    let command = op & FUTEX_CMD_MASK;
    if op & FUTEX_CLOCK_REALTIME != 0 && command != FUTEX_WAIT_BITSET {
        return Err(Errno::ENOSYS);
    }
    // The timeout's place holds a number in the calls that do not wait.
    let number = timeout.0 as u32;
    match command {
        FUTEX_WAIT | FUTEX_WAIT_BITSET => {
            let bitset = if command == FUTEX_WAIT { FUTEX_BITSET_MATCH_ANY } else { third };
            wait(word, op, value, bitset, get_opt(timeout)?)
        }
        FUTEX_WAKE => futex::wake(word, shared, count(value).max(1), FUTEX_BITSET_MATCH_ANY),
        FUTEX_WAKE_BITSET => futex::wake(word, shared, count(value).max(1), third),
        FUTEX_REQUEUE | FUTEX_CMP_REQUEUE => {
            if (value as i32) < 0 || (number as i32) < 0 {
                return Err(Errno::EINVAL);
            }
            let expected = (command == FUTEX_CMP_REQUEUE).then_some(third);
            futex::requeue(word, second, shared, count(value), count(number), expected)
        }
        FUTEX_WAKE_OP => futex::wake_op(word, second, shared, count(value), count(number), third),
        _ => Err(Errno::ENOSYS),
    }
}

fn wait(word: UserAddr, op: u32, value: u32, bitset: u32, timeout: Option<Timespec>) -> Result<usize> {
    let shared = op & FUTEX_PRIVATE_FLAG == 0;
    let relative = op & FUTEX_CMD_MASK == FUTEX_WAIT;
    let deadline = match &timeout {
        None => None,
        Some(span) if relative => Some(crate::time::deadline_after(span)?),
        Some(at) => {
            let clock = if op & FUTEX_CLOCK_REALTIME != 0 { CLOCK_REALTIME } else { CLOCK_MONOTONIC };
            Some(crate::time::deadline_at(clock, at)?)
        }
    };
    match (deadline, relative) {
        // A restart must not begin the span anew.
        (Some(deadline), true) => wait_until(word, op, value, bitset, deadline),
        _ => futex::wait(word, shared, value, bitset, deadline).map(|()| 0),
    }
}

/// A wait with a relative timeout that ends at `deadline`; restart_syscall(2) goes on with it.
pub(crate) fn wait_until(address: UserAddr, op: u32, value: u32, bitset: u32, deadline: u64) -> Result<usize> {
    let shared = op & FUTEX_PRIVATE_FLAG == 0;
    match futex::wait(address, shared, value, bitset, Some(deadline)) {
        Err(Errno::ERESTARTSYS) => {
            current().set_restart(Restart::Futex { address: address.0, op, value, bitset, deadline });
            Err(Errno::ERESTART_RESTARTBLOCK)
        }
        result => result.map(|()| 0),
    }
}

fn set_robust_list(head: usize, len: usize) -> Result<()> {
    if len != size_of::<RobustListHead>() {
        return Err(Errno::EINVAL);
    }
    current().robust_list.store(head, Ordering::Relaxed);
    Ok(())
}

fn get_robust_list(tid: i32, head: UserAddr, len: UserAddr) -> Result<()> {
    let me = current();
    let thread = match u32::try_from(tid).map_err(|_| Errno::ESRCH)? {
        0 => me.arc(),
        tid => find_thread(tid).ok_or(Errno::ESRCH)?,
    };
    let (mine, theirs) = (credentials(), thread.process.credentials());
    if thread.process.tgid != me.process.tgid && mine.euid != theirs.uid && !mine.has(fs::cap::SYS_PTRACE) {
        return Err(Errno::EPERM);
    }
    put(len, &size_of::<RobustListHead>())?;
    put(head, &thread.robust_list.load(Ordering::Relaxed))
}
