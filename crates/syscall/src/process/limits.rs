//! What a process may use and has used: prlimit(2), getrusage(2), times(2), getpriority(2), sched_setscheduler(2) and its family.

use alloc::sync::Arc;
use alloc::vec::Vec;

use fs::cap;
use hal::addr::UserAddr;
use hal::{hart, time};
use task::{Process, Thread, current, find_process, find_thread, jobs, sched};
use uapi::resource::*;
use uapi::sched::*;
use uapi::time::USER_HZ;
use uapi::{Errno, Result, Rlimit64, SchedAttr, SchedParam, Timespec, Tms};
use zerocopy::IntoBytes;

use crate::caller::{credentials, get, get_opt, need, put, put_opt, rest_is_zero};
use crate::table::calls;

calls! {
    fast {
        PRLIMIT64 = prlimit64, lacks "limits are kept, those on CPU time, file size and locks not enforced";
        GETRLIMIT = getrlimit;
        SETRLIMIT = setrlimit;
        GETRUSAGE = getrusage, lacks "all time counts as user time";
        TIMES = times, lacks "all time counts as user time";
        GETPRIORITY = getpriority;
        SETPRIORITY = setpriority;
        SCHED_YIELD = sched_yield;
        SCHED_GETSCHEDULER = sched_getscheduler;
        SCHED_SETSCHEDULER = sched_setscheduler, lacks "real-time policies are not served before others";
        SCHED_GETPARAM = sched_getparam;
        SCHED_SETPARAM = sched_setparam;
        SCHED_GETATTR = sched_getattr;
        SCHED_SETATTR = sched_setattr, lacks "SCHED_DEADLINE";
        SCHED_GET_PRIORITY_MAX = sched_get_priority_max;
        SCHED_GET_PRIORITY_MIN = sched_get_priority_min;
        SCHED_RR_GET_INTERVAL = sched_rr_get_interval;
        SCHED_GETAFFINITY = sched_getaffinity;
        SCHED_SETAFFINITY = sched_setaffinity;
    }
}

/// The process of a number; 0 is the caller's.
fn process(pid: i32) -> Result<Arc<Process>> {
    match u32::try_from(pid).map_err(|_| Errno::ESRCH)? {
        0 => Ok(current().process.clone()),
        pid => find_process(pid).ok_or(Errno::ESRCH),
    }
}

/// The thread of a number; 0 is the caller.
fn thread(tid: i32) -> Result<Arc<Thread>> {
    match u32::try_from(tid).map_err(|_| Errno::EINVAL)? {
        0 => Ok(current().arc()),
        tid => find_thread(tid).ok_or(Errno::ESRCH),
    }
}

/// Whether the caller may change the scheduling of `target`'s owner.
fn may_schedule(target: &Process) -> Result<()> {
    let (mine, theirs) = (credentials(), target.credentials());
    if mine.euid == theirs.uid || mine.euid == theirs.euid || mine.has(cap::SYS_NICE) {
        Ok(())
    } else {
        Err(Errno::EPERM)
    }
}

fn prlimit64(pid: i32, resource: u32, new: UserAddr, old: UserAddr) -> Result<()> {
    let resource = resource as usize;
    if resource >= RLIM_NLIMITS {
        return Err(Errno::EINVAL);
    }
    let new: Option<Rlimit64> = get_opt(new)?;
    let target = process(pid)?;
    let (mine, theirs) = (credentials(), target.credentials());
    let same = [theirs.uid, theirs.euid, theirs.suid].iter().all(|&id| id == mine.uid)
        && [theirs.gid, theirs.egid, theirs.sgid].iter().all(|&id| id == mine.gid);
    if !Arc::ptr_eq(&target, &current().process) && !same && !mine.has(cap::SYS_RESOURCE) {
        return Err(Errno::EPERM);
    }
    let limits = target.limits(resource).ok_or(Errno::EINVAL)?;
    if let Some(new) = new {
        if resource == RLIMIT_NOFILE && new.rlim_max > fs::NR_OPEN as u64 {
            return Err(Errno::EPERM);
        }
        target.set_limits(resource, new, mine.has(cap::SYS_RESOURCE))?;
        if let Some(mm) = target.mm() {
            mm.set_limits(crate::memory::limits(&target));
        }
    }
    put_opt(old, &limits)
}

fn getrlimit(resource: u32, out: UserAddr) -> Result<()> {
    put(out, &current().process.limits(resource as usize).ok_or(Errno::EINVAL)?)
}

fn setrlimit(resource: u32, new: UserAddr) -> Result<()> {
    get::<Rlimit64>(new)?;
    prlimit64(0, resource, new, UserAddr::NULL)
}

fn getrusage(who: i32, out: UserAddr) -> Result<()> {
    let me = current();
    let usage = match who {
        RUSAGE_SELF => me.process.usage(),
        RUSAGE_CHILDREN => me.process.children_usage(),
        RUSAGE_THREAD => me.usage(),
        _ => return Err(Errno::EINVAL),
    };
    put(out, &usage.rusage())
}

/// Clock ticks in units of [`USER_HZ`].
fn user_ticks(ticks: u64) -> i64 {
    (time::ns(ticks) / (1_000_000_000 / USER_HZ)) as i64
}

fn times(out: UserAddr) -> Result<i64> {
    let process = &current().process;
    let (own, children) = (process.usage(), process.children_usage());
    let tms = Tms { tms_utime: user_ticks(own.time), tms_cutime: user_ticks(children.time), ..Tms::default() };
    put_opt(out, &tms)?;
    Ok(user_ticks(time::now()))
}

/// Those that getpriority(2) names.
fn selected(which: u32, who: i32) -> Result<Vec<Arc<Thread>>> {
    let id = who as u32;
    let mut found = Vec::new();
    let mut add = |process: &Arc<Process>| {
        process.for_each_thread(|thread| {
            if found.try_reserve(1).is_ok() {
                found.push(thread.clone());
            }
        });
    };
    match which {
        PRIO_PROCESS => {
            let thread = thread(who).map_err(|_| Errno::ESRCH)?;
            found.push(thread);
        }
        PRIO_PGRP => {
            let group = if id == 0 { jobs::getpgid(0)? } else { id };
            jobs::select(|_, pgid| pgid == group).iter().for_each(&mut add);
        }
        PRIO_USER => {
            let uid = if id == 0 { credentials().uid } else { id };
            jobs::select(|process, _| process.credentials().uid == uid).iter().for_each(&mut add);
        }
        _ => return Err(Errno::EINVAL),
    }
    if found.is_empty() { Err(Errno::ESRCH) } else { Ok(found) }
}

/// getpriority(2): 20 minus the nice value, so that it is never negative.
fn getpriority(which: u32, who: i32) -> Result<isize> {
    let threads = selected(which, who)?;
    Ok(20 - isize::from(threads.iter().map(|t| t.sched.nice()).min().unwrap_or(0)))
}

fn setpriority(which: u32, who: i32, nice: i32) -> Result<()> {
    let nice = nice.clamp(-20, 19);
    for thread in selected(which, who)? {
        may_schedule(&thread.process)?;
        set_nice(&thread, nice)?;
    }
    Ok(())
}

/// Sets a nice value: `EACCES` when it would rise above what RLIMIT_NICE allows.
fn set_nice(thread: &Thread, nice: i32) -> Result<()> {
    let allowed = 20i64.saturating_sub_unsigned(thread.process.limit(RLIMIT_NICE).min(40));
    if nice < i32::from(thread.sched.nice()) && i64::from(nice) < allowed && !credentials().has(cap::SYS_NICE) {
        return Err(Errno::EACCES);
    }
    thread.sched.set_nice(nice);
    Ok(())
}

fn sched_yield() {
    sched::yield_now();
}

fn sched_getscheduler(tid: i32) -> Result<u32> {
    Ok(thread(tid)?.sched.policy().0)
}

fn set_policy(thread: &Thread, policy: u32, priority: i32) -> Result<()> {
    let policy = policy & !SCHED_RESET_ON_FORK;
    let priority = u32::try_from(priority).map_err(|_| Errno::EINVAL)?;
    may_schedule(&thread.process)?;
    if priority > 0 && thread.process.limit(RLIMIT_RTPRIO) < u64::from(priority) {
        need(cap::SYS_NICE)?;
    }
    thread.sched.set_policy(policy, priority)
}

fn sched_setscheduler(tid: i32, policy: i32, param: UserAddr) -> Result<()> {
    if policy < 0 || param.is_null() {
        return Err(Errno::EINVAL);
    }
    let param: SchedParam = get(param)?;
    set_policy(&*thread(tid)?, policy as u32, param.sched_priority)
}

fn sched_getparam(tid: i32, param: UserAddr) -> Result<()> {
    if param.is_null() {
        return Err(Errno::EINVAL);
    }
    put(param, &SchedParam { sched_priority: thread(tid)?.sched.policy().1 as i32 })
}

fn sched_setparam(tid: i32, param: UserAddr) -> Result<()> {
    if param.is_null() {
        return Err(Errno::EINVAL);
    }
    let param: SchedParam = get(param)?;
    let thread = thread(tid)?;
    let policy = thread.sched.policy().0;
    set_policy(&thread, policy, param.sched_priority)
}

/// Length of the first published [`SchedAttr`].
const ATTR_SIZE_VER0: usize = 48;

fn sched_getattr(tid: i32, out: UserAddr, size: u32, flags: u32) -> Result<()> {
    let size = size as usize;
    if !(ATTR_SIZE_VER0..=hal::addr::PAGE_SIZE).contains(&size) || flags != 0 || out.is_null() {
        return Err(Errno::EINVAL);
    }
    let thread = thread(tid)?;
    let (policy, priority) = thread.sched.policy();
    let known = size.min(size_of::<SchedAttr>());
    let attr = SchedAttr {
        size: known as u32,
        sched_policy: policy,
        sched_priority: priority,
        sched_nice: thread.sched.nice().into(),
        sched_util_max: 1024,
        ..SchedAttr::default()
    };
    hal::user::copy_out(out, attr.as_bytes().get(..known).unwrap_or_default())
}

fn sched_setattr(tid: i32, at: UserAddr, flags: u32) -> Result<()> {
    if at.is_null() || flags != 0 {
        return Err(Errno::EINVAL);
    }
    let size = match get::<u32>(at)? as usize {
        0 => ATTR_SIZE_VER0,
        size => size,
    };
    let too_big = size < ATTR_SIZE_VER0 || rest_is_zero(at, size_of::<SchedAttr>(), size).is_err();
    if too_big {
        put(at, &(size_of::<SchedAttr>() as u32))?;
        return Err(Errno::E2BIG);
    }
    let mut attr = SchedAttr::default();
    let known = size.min(size_of::<SchedAttr>());
    hal::user::copy_in(attr.as_mut_bytes().get_mut(..known).unwrap_or_default(), at)?;
    let thread = thread(tid)?;
    set_policy(&thread, attr.sched_policy, i32::try_from(attr.sched_priority).map_err(|_| Errno::EINVAL)?)?;
    if matches!(attr.sched_policy, SCHED_NORMAL | SCHED_BATCH) {
        set_nice(&thread, attr.sched_nice.clamp(-20, 19))
    } else {
        Ok(())
    }
}

fn sched_get_priority_max(policy: u32) -> Result<u32> {
    match policy {
        SCHED_FIFO | SCHED_RR => Ok(99),
        SCHED_NORMAL | SCHED_BATCH | SCHED_IDLE | SCHED_DEADLINE => Ok(0),
        _ => Err(Errno::EINVAL),
    }
}

fn sched_get_priority_min(policy: u32) -> Result<u32> {
    sched_get_priority_max(policy).map(|max| max.min(1))
}

/// The slice of the scheduler, whatever the policy.
fn sched_rr_get_interval(tid: i32, out: UserAddr) -> Result<()> {
    thread(tid)?;
    put(out, &Timespec { tv_sec: 0, tv_nsec: 4_000_000 })
}

/// sched_getaffinity(2): a mask of harts in one word; gives the bytes written.
fn sched_getaffinity(tid: i32, len: u32, mask: UserAddr) -> Result<usize> {
    let len = len as usize;
    if len * 8 < hart::count() || !len.is_multiple_of(size_of::<usize>()) {
        return Err(Errno::EINVAL);
    }
    let affinity = thread(tid).map_err(|_| Errno::ESRCH)?.sched.affinity() & hart::online_mask();
    put(mask, &affinity)?;
    Ok(size_of::<usize>())
}

fn sched_setaffinity(tid: i32, len: u32, mask: UserAddr) -> Result<()> {
    let mut word = [0; size_of::<usize>()];
    let len = (len as usize).min(word.len());
    hal::user::copy_in(word.get_mut(..len).unwrap_or_default(), mask)?;
    let thread = thread(tid).map_err(|_| Errno::ESRCH)?;
    may_schedule(&thread.process)?;
    let mask = usize::from_le_bytes(word) & hart::online_mask();
    if mask == 0 {
        return Err(Errno::EINVAL);
    }
    thread.set_affinity(mask);
    Ok(())
}
