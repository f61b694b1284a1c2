//! prctl(2), personality(2), and calls that a kernel without a feature answers in a fixed way.

use core::sync::atomic::Ordering;

use hal::addr::UserAddr;
use task::current;
use task::process_flag as flag;
use uapi::prctl::*;
use uapi::signal::NSIG;
use uapi::system::CAP_LAST_CAP;
use uapi::{Errno, Result};

use crate::caller::put;
use crate::table::calls;

calls! {
    fast {
        PRCTL = prctl, lacks "KEEPCAPS, securebits, raising ambient capabilities, the vector and cache options";
        PERSONALITY = personality, lacks "of what it asks for, only ADDR_NO_RANDOMIZE is done";
    }
    absent {
        SECCOMP = EINVAL, "as a kernel without seccomp";
        PTRACE = ENOSYS, "later";
        KCMP = ENOSYS, "as a kernel without it";
        SETNS = EINVAL, "as a kernel without namespaces";
    }
}

/// What Linux starts with, in nanoseconds.
const TIMERSLACK_NS: usize = 50_000;
const AMBIENT_IS_SET: usize = 1;
const AMBIENT_RAISE: usize = 2;
const AMBIENT_LOWER: usize = 3;
const AMBIENT_CLEAR_ALL: usize = 4;

/// `EINVAL` unless all unused arguments are zero.
fn unused(args: &[usize]) -> Result<()> {
    if args.iter().all(|&a| a == 0) { Ok(()) } else { Err(Errno::EINVAL) }
}

fn prctl(option: u32, a: usize, b: usize, c: usize, d: usize) -> Result<usize> {
    let me = current();
    let process = &me.process;
    match option {
        PR_SET_NAME => {
            let mut name = [0; TASK_COMM_LEN];
            let len = match hal::user::copy_in_str(name.get_mut(..TASK_COMM_LEN - 1).unwrap_or_default(), UserAddr(a)) {
                Err(Errno::ENAMETOOLONG) => TASK_COMM_LEN - 1,
                len => len?,
            };
            me.set_comm(name.get(..len).unwrap_or_default());
            Ok(0)
        }
        PR_SET_PDEATHSIG => {
            let signal = u32::try_from(a).ok().filter(|&signal| signal <= NSIG).ok_or(Errno::EINVAL)?;
            process.death_signal.store(signal, Ordering::Relaxed);
            Ok(0)
        }
        PR_GET_PDEATHSIG => put(UserAddr(a), &process.death_signal.load(Ordering::Relaxed)).map(|()| 0),
        PR_GET_NAME => put(UserAddr(a), &me.comm()).map(|()| 0),
        PR_GET_DUMPABLE => Ok(usize::from(!process.has_flag(flag::NOT_DUMPABLE))),
        PR_SET_DUMPABLE if a <= 1 => {
            process.set_flag(flag::NOT_DUMPABLE, a == 0);
            Ok(0)
        }
        PR_SET_NO_NEW_PRIVS => {
            unused(&[b, c, d])?;
            if a != 1 {
                return Err(Errno::EINVAL);
            }
            process.set_flag(flag::NO_NEW_PRIVS, true);
            Ok(0)
        }
        PR_GET_NO_NEW_PRIVS => {
            unused(&[a, b, c, d])?;
            Ok(usize::from(process.has_flag(flag::NO_NEW_PRIVS)))
        }
        PR_SET_CHILD_SUBREAPER => {
            process.set_flag(flag::SUBREAPER, a != 0);
            Ok(0)
        }
        PR_GET_CHILD_SUBREAPER => {
            put(UserAddr(a), &i32::from(process.has_flag(flag::SUBREAPER)))?;
            Ok(0)
        }
        PR_GET_TID_ADDRESS => {
            put(UserAddr(a), &me.clear_child_tid.load(Ordering::Relaxed))?;
            Ok(0)
        }
        PR_CAPBSET_READ if a <= CAP_LAST_CAP as usize => Ok(1),
        PR_GET_KEEPCAPS | PR_GET_SECUREBITS | PR_GET_TIMING => Ok(0),
        // Timers are as exact as the clock, whatever slack was asked for.
        PR_SET_TIMERSLACK => Ok(0),
        PR_GET_TIMERSLACK => Ok(TIMERSLACK_NS),
        // The ambient set is empty.
        PR_CAP_AMBIENT => {
            let known = b <= CAP_LAST_CAP as usize;
            match a {
                AMBIENT_IS_SET | AMBIENT_LOWER if known => unused(&[c, d]).map(|()| 0),
                AMBIENT_RAISE if known => Err(Errno::EPERM),
                AMBIENT_CLEAR_ALL => unused(&[b, c, d]).map(|()| 0),
                _ => Err(Errno::EINVAL),
            }
        }
        _ => Err(Errno::EINVAL),
    }
}

fn personality(persona: u32) -> u32 {
    /// Asks without changing.
    const QUERY: u32 = u32::MAX;
    let own = &current().process.personality;
    if persona == QUERY { own.load(Ordering::Relaxed) } else { own.swap(persona, Ordering::Relaxed) }
}
