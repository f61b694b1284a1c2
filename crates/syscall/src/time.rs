//! Clocks and sleeping: clock_gettime(2), nanosleep(2), settimeofday(2), setitimer(2).
//!
//! The kernel reads the clocks from the same page and by the same code as programs do through the vDSO, so the two can
//! never differ. Setting the clock publishes a new page. All waiting is by absolute deadlines in ticks of the `time`
//! CSR; a deadline on the wall clock is converted when the wait begins.

use fs::cap;
use hal::addr::UserAddr;
use hal::sync::SpinLock;
use hal::time::{now, ns, ticks};
use task::wait::sleep_until;
use task::{CpuTimer, Process, Restart, Thread, current, find_process, find_thread};
use uapi::time::*;
use uapi::vdso::resolution_ns;
use uapi::{Errno, Itimerval, Result, TimeBase, Timespec, Timeval, Timezone};
use vdso::VVAR;

use crate::caller::{get, get_opt, need, put, put_opt};
use crate::table::calls;

calls! {
    fast {
        CLOCK_GETTIME = clock_gettime;
        CLOCK_GETRES = clock_getres;
        CLOCK_SETTIME = clock_settime;
        CLOCK_NANOSLEEP = clock_nanosleep, lacks "CPU time and alarm clocks; a clock that is set does not move absolute sleeps";
        NANOSLEEP = nanosleep;
        GETTIMEOFDAY = gettimeofday;
        SETTIMEOFDAY = settimeofday;
        GETITIMER = getitimer;
        SETITIMER = setitimer;
    }
}

/// What the page was last filled with; the lock keeps those who set the clock apart.
static BASE: SpinLock<TimeBase> = SpinLock::new(TimeBase {
    mult: 0,
    shift: 32,
    tick_base: 0,
    monotonic_ns: 0,
    realtime_offset_ns: 0,
    boottime_offset_ns: 0,
    tai_offset_ns: 0,
});

/// Starts the clocks: from now on they run by `base`, and so do the time stamps of files. Once at boot.
pub fn init(base: TimeBase) {
    let mut current = BASE.lock();
    *current = base;
    VVAR.publish(&current);
    drop(current);
    fs::set_clock(wall_clock);
}

fn wall_clock() -> Timespec {
    Timespec::from_ns(read(CLOCK_REALTIME))
}

/// A clock of the page, in nanoseconds; 0 before [`init`] and for another clock.
fn read(clock: i32) -> u64 {
    VVAR.now(clock, now).unwrap_or(0)
}

/// Whose CPU time a clock id counts: clock_getcpuclockid(3), pthread_getcpuclockid(3).
enum CpuClock {
    Process(alloc::sync::Arc<Process>),
    Thread(alloc::sync::Arc<Thread>),
}

impl CpuClock {
    /// `EINVAL` for what is no such clock or nobody's.
    fn find(clock: i32) -> Result<Self> {
        let me = current();
        match clock {
            CLOCK_PROCESS_CPUTIME_ID => return Ok(Self::Process(me.process.clone())),
            CLOCK_THREAD_CPUTIME_ID => return Ok(Self::Thread(me.arc())),
            0.. => return Err(Errno::EINVAL),
            _ => {}
        }
        // The number, inverted, above three bits: whether it is a thread's, and which time of three counts.
        let (id, of_thread, kind) = (!(clock >> 3) as u32, clock & 4 != 0, clock & 3);
        if kind == 3 {
            return Err(Errno::EINVAL);
        }
        match (of_thread, id) {
            (false, 0) => Ok(Self::Process(me.process.clone())),
            (true, 0) => Ok(Self::Thread(me.arc())),
            (false, id) => find_process(id).map(Self::Process).ok_or(Errno::EINVAL),
            (true, id) => match find_thread(id) {
                Some(thread) if thread.process.tgid == me.process.tgid => Ok(Self::Thread(thread)),
                _ => Err(Errno::EINVAL),
            },
        }
    }

    fn ns(&self) -> u64 {
        match self {
            Self::Process(process) => process.usage().ns(),
            Self::Thread(thread) => thread.usage().ns(),
        }
    }
}

fn clock_gettime(clock: i32, out: UserAddr) -> Result<()> {
    let ns = match VVAR.now(clock, now) {
        Some(ns) => ns,
        None => CpuClock::find(clock)?.ns(),
    };
    put(out, &Timespec::from_ns(ns))
}

fn clock_getres(clock: i32, out: UserAddr) -> Result<()> {
    let ns = match resolution_ns(clock) {
        Some(ns) => ns,
        None => CpuClock::find(clock).map(|_| 1)?,
    };
    put_opt(out, &Timespec { tv_sec: 0, tv_nsec: ns })
}

/// Sets CLOCK_REALTIME to `ns`.
fn set_realtime(to: u64) -> Result<()> {
    need(cap::SYS_TIME)?;
    let mut base = BASE.lock();
    let monotonic = base.monotonic_at(now());
    base.realtime_offset_ns = to.checked_sub(monotonic).ok_or(Errno::EINVAL)?;
    VVAR.publish(&base);
    Ok(())
}

fn clock_settime(clock: i32, value: UserAddr) -> Result<()> {
    if clock != CLOCK_REALTIME {
        return Err(Errno::EINVAL);
    }
    set_realtime(valid(&get(value)?)?)
}

/// A span in nanoseconds, `EINVAL` when it is none.
fn valid(span: &Timespec) -> Result<u64> {
    span.to_ns().ok_or(Errno::EINVAL)
}

/// When a relative timeout that begins now ends, in ticks. `EINVAL` for no valid span.
pub(crate) fn deadline_after(timeout: &Timespec) -> Result<u64> {
    Ok(now().saturating_add(ticks(valid(timeout)?)))
}

/// When an absolute time of CLOCK_REALTIME or another clock of the page comes, in ticks. `EINVAL` for no valid time.
pub(crate) fn deadline_at(clock: i32, at: &Timespec) -> Result<u64> {
    let left = valid(at)?.saturating_sub(read(clock));
    Ok(now().saturating_add(ticks(left)))
}

/// What is left until `deadline`.
pub(crate) fn left_until(deadline: u64) -> Timespec {
    Timespec::from_ns(ns(deadline.saturating_sub(now())))
}

/// A relative sleep: if a signal ends it, what is left goes to `remaining`, and restart_syscall(2) goes on.
pub(crate) fn sleep(deadline: u64, remaining: UserAddr) -> Result<()> {
    match sleep_until(deadline) {
        Err(Errno::ERESTARTSYS) => {
            put_opt(remaining, &left_until(deadline))?;
            current().set_restart(Restart::Sleep { deadline, remaining: remaining.0 });
            Err(Errno::ERESTART_RESTARTBLOCK)
        }
        result => result,
    }
}

fn nanosleep(request: UserAddr, remaining: UserAddr) -> Result<()> {
    sleep(deadline_after(&get(request)?)?, remaining)
}

fn clock_nanosleep(clock: i32, flags: u32, request: UserAddr, remaining: UserAddr) -> Result<()> {
    match clock {
        CLOCK_REALTIME | CLOCK_MONOTONIC | CLOCK_BOOTTIME | CLOCK_TAI => {}
        CLOCK_PROCESS_CPUTIME_ID
        | CLOCK_THREAD_CPUTIME_ID
        | CLOCK_MONOTONIC_RAW
        | CLOCK_REALTIME_COARSE
        | CLOCK_MONOTONIC_COARSE
        | CLOCK_REALTIME_ALARM
        | CLOCK_BOOTTIME_ALARM => return Err(Errno::EOPNOTSUPP),
        _ => return Err(Errno::EINVAL),
    }
    let request: Timespec = get(request)?;
    if flags & TIMER_ABSTIME == 0 {
        return sleep(deadline_after(&request)?, remaining);
    }
    match sleep_until(deadline_at(clock, &request)?) {
        Err(Errno::ERESTARTSYS) => Err(Errno::ERESTARTNOHAND),
        result => result,
    }
}

fn gettimeofday(time: UserAddr, zone: UserAddr) -> Result<()> {
    put_opt(time, &Timeval::from_ns(read(CLOCK_REALTIME)))?;
    let (tz_minuteswest, tz_dsttime) = VVAR.timezone();
    put_opt(zone, &Timezone { tz_minuteswest, tz_dsttime })
}

fn settimeofday(time: UserAddr, zone: UserAddr) -> Result<()> {
    let time: Option<Timeval> = get_opt(time)?;
    let zone: Option<Timezone> = get_opt(zone)?;
    let to = match time {
        Some(time) => Some(time.to_ns().ok_or(Errno::EINVAL)?),
        None => None,
    };
    need(cap::SYS_TIME)?;
    if let Some(zone) = zone {
        if zone.tz_minuteswest.unsigned_abs() > 15 * 60 {
            return Err(Errno::EINVAL);
        }
        VVAR.set_timezone(zone.tz_minuteswest, zone.tz_dsttime);
    }
    to.map_or(Ok(()), set_realtime)
}

/// A timer's state in the form of the call; a fraction of a microsecond counts as one, as 0 means that it is off.
fn itimer((left, interval): (u64, u64)) -> Itimerval {
    let value = |ticks: u64| Timeval::from_ns(ns(ticks).next_multiple_of(1000));
    Itimerval { it_interval: value(interval), it_value: value(left) }
}

/// The timer of processor time that a call means; None: the one of real time. `EINVAL`.
fn which_timer(which: i32) -> Result<Option<CpuTimer>> {
    match which {
        ITIMER_REAL => Ok(None),
        ITIMER_VIRTUAL => Ok(Some(CpuTimer::Virtual)),
        ITIMER_PROF => Ok(Some(CpuTimer::Prof)),
        _ => Err(Errno::EINVAL),
    }
}

fn getitimer(which: i32, out: UserAddr) -> Result<()> {
    let process = &current().process;
    let value = match which_timer(which)? {
        None => process.itimer.get(),
        Some(timer) => process.cpu_timer(timer),
    };
    put(out, &itimer(value))
}

fn setitimer(which: i32, new: UserAddr, old: UserAddr) -> Result<()> {
    let new: Itimerval = get_opt(new)?.unwrap_or_default();
    let which = which_timer(which)?;
    let span = |value: Timeval| value.to_ns().map(ticks).ok_or(Errno::EINVAL);
    let (value, interval) = (span(new.it_value)?, span(new.it_interval)?);
    let process = &current().process;
    let before = match which {
        None => process.set_itimer(value, interval),
        Some(timer) => process.set_cpu_timer(timer, value, interval),
    };
    put_opt(old, &itimer(before))
}
