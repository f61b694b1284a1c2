//! The life of processes and threads: clone(2), exit(2), wait(2); numbers, groups and sessions.

use alloc::sync::Arc;

use hal::addr::UserAddr;
use hal::task::UserFrame;
use task::reap::{self, Waited, Which};
use task::{clone as fork, current, exit as end, jobs};
use uapi::clone::*;
use uapi::wait::*;
use uapi::{CloneArgs, Errno, Result, Siginfo};
use zerocopy::IntoBytes;

use crate::caller::{put, put_opt, rest_is_zero};
use crate::table::{arguments, calls};

calls! {
    fast {
        GETPID = getpid;
        GETTID = gettid;
        GETPPID = getppid;
        GETPGID = getpgid;
        SETPGID = setpgid;
        GETSID = getsid;
        SETSID = setsid;
        EXIT = exit;
        EXIT_GROUP = exit_group;
        WAIT4 = wait4;
        WAITID = waitid, lacks "P_PIDFD";
        SET_TID_ADDRESS = set_tid_address;
        UNSHARE = unshare, lacks "namespaces";
    }
    full {
        CLONE = clone, lacks "namespaces, CLONE_PIDFD, ptrace";
        CLONE3 = clone3, lacks "namespaces, CLONE_PIDFD, set_tid, cgroups";
    }
}

fn getpid() -> u32 {
    current().process.tgid
}

fn gettid() -> u32 {
    current().tid()
}

fn getppid() -> u32 {
    current().process.ppid()
}

/// A number that must not be negative.
fn number(id: i32, error: Errno) -> Result<u32> {
    u32::try_from(id).map_err(|_| error)
}

fn getpgid(pid: i32) -> Result<u32> {
    jobs::getpgid(number(pid, Errno::ESRCH)?)
}

fn setpgid(pid: i32, pgid: i32) -> Result<()> {
    // No group means that of the process's own number, which is checked first then.
    let pgid = number(if pgid == 0 && pid < 0 { pid } else { pgid }, Errno::EINVAL)?;
    jobs::setpgid(number(pid, Errno::ESRCH)?, pgid)
}

fn getsid(pid: i32) -> Result<u32> {
    jobs::getsid(number(pid, Errno::ESRCH)?)
}

fn setsid() -> Result<u32> {
    jobs::setsid()
}

fn exit(code: i32) -> isize {
    end::exit_thread(exited(code))
}

fn exit_group(code: i32) -> isize {
    end::exit_group(exited(code))
}

fn set_tid_address(at: usize) -> u32 {
    current().clear_child_tid.store(at, core::sync::atomic::Ordering::Relaxed);
    current().tid()
}

/// unshare(2): `EINVAL` for namespaces, as a kernel without them, and for what only a single thread can give up.
fn unshare(flags: usize) -> Result<()> {
    let flags = flags as u64;
    let alone = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD;
    if flags & !(CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | alone) != 0 {
        return Err(Errno::EINVAL);
    }
    let me = current();
    if flags & alone != 0 && me.process.thread_count() != 1 {
        return Err(Errno::EINVAL);
    }
    if flags & CLONE_FILES != 0 {
        crate::caller::unshare_files()?;
    }
    if flags & CLONE_FS != 0 {
        let own = Arc::new(me.fs().copy());
        drop(me.fs_slot().replace(Some(own)));
    }
    Ok(())
}

fn clone(frame: &mut UserFrame) -> Result<u32> {
    let [flags, stack, parent_tid, tls, child_tid, _] = arguments(frame);
    // The flags of clone(2) are 32 bits.
    let flags = flags as u64 & u64::from(u32::MAX);
    fork::clone(&fork::from_clone(flags, stack, parent_tid, tls, child_tid), frame)
}

fn clone3(frame: &mut UserFrame) -> Result<u32> {
    let [at, size, ..] = arguments(frame);
    let at = UserAddr(at);
    if size < CLONE_ARGS_SIZE_VER0 {
        return Err(Errno::EINVAL);
    }
    rest_is_zero(at, size_of::<CloneArgs>(), size)?;
    let mut args = CloneArgs::default();
    let known = size.min(size_of::<CloneArgs>());
    hal::user::copy_in(args.as_mut_bytes().get_mut(..known).unwrap_or_default(), at)?;
    if args.flags & CSIGNAL != 0 {
        return Err(Errno::EINVAL);
    }
    fork::check(&args)?;
    fork::clone(&args, frame)
}

fn wait4(pid: i32, status: UserAddr, options: u32, usage: UserAddr) -> Result<u32> {
    if options & !(WNOHANG | WUNTRACED | WCONTINUED | WNOTHREAD | WCLONE | WALL) != 0 {
        return Err(Errno::EINVAL);
    }
    let which = match pid {
        i32::MIN => return Err(Errno::ESRCH),
        -1 => Which::All,
        0 => Which::Group(jobs::getpgid(0)?),
        1.. => Which::Process(pid as u32),
        _ => Which::Group(pid.unsigned_abs()),
    };
    let Some(waited) = reap::wait(which, options | WEXITED)? else { return Ok(0) };
    put_opt(status, &waited.status)?;
    put_opt(usage, &waited.usage.rusage())?;
    Ok(waited.pid)
}

fn waitid(kind: u32, id: i32, info: UserAddr, options: u32, usage: UserAddr) -> Result<()> {
    let events = options & (WEXITED | WSTOPPED | WCONTINUED);
    if options & !(WNOHANG | WNOWAIT | WEXITED | WSTOPPED | WCONTINUED | WNOTHREAD | WCLONE | WALL) != 0 || events == 0
    {
        return Err(Errno::EINVAL);
    }
    let which = match kind {
        P_ALL => Which::All,
        P_PID if id > 0 => Which::Process(id as u32),
        P_PGID if id == 0 => Which::Group(jobs::getpgid(0)?),
        P_PGID if id > 0 => Which::Group(id as u32),
        // No descriptor stands for a process.
        P_PIDFD if id >= 0 => return Err(Errno::EBADF),
        _ => return Err(Errno::EINVAL),
    };
    let waited = reap::wait(which, options)?;
    if let Some(waited) = &waited {
        put_opt(usage, &waited.usage.rusage())?;
    }
    if info.is_null() {
        return Ok(());
    }
    put(info, &waited.as_ref().map_or(Siginfo::default(), Waited::siginfo))
}
