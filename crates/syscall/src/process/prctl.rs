//! prctl(2), personality(2), and calls that a kernel without a feature answers in a fixed way.

use hal::addr::UserAddr;
use task::current;
use task::process_flag as flag;
use uapi::prctl::*;
use uapi::system::CAP_LAST_CAP;
use uapi::{Errno, Result};

use crate::caller::put;
use crate::table::calls;

calls! {
    fast {
        PRCTL = prctl, lacks "PDEATHSIG, KEEPCAPS, securebits, ambient capabilities, the vector and cache options";
        PERSONALITY = personality, lacks "only PER_LINUX, without flags";
    }
    absent {
        SECCOMP = EINVAL, "as a kernel without seccomp";
        PTRACE = ENOSYS, "later";
        KCMP = ENOSYS, "as a kernel without it";
        UNSHARE = EINVAL, "as a kernel without namespaces";
        SETNS = EINVAL, "as a kernel without namespaces";
    }
}

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
            put(UserAddr(a), &me.clear_child_tid.load(core::sync::atomic::Ordering::Relaxed))?;
            Ok(0)
        }
        PR_CAPBSET_READ if a <= CAP_LAST_CAP as usize => Ok(1),
        PR_GET_KEEPCAPS | PR_GET_SECUREBITS | PR_GET_TIMING => Ok(0),
        // Timers are as exact as the clock, whatever slack was asked for.
        PR_SET_TIMERSLACK => Ok(0),
        PR_GET_TIMERSLACK => Ok(1),
        _ => Err(Errno::EINVAL),
    }
}

fn personality(persona: u32) -> Result<usize> {
    /// Asks without changing.
    const QUERY: u32 = u32::MAX;
    if persona == QUERY || persona == uapi::system::PER_LINUX { Ok(0) } else { Err(Errno::EINVAL) }
}
