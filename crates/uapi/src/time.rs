//! Time: clock_gettime(2), timer_create(2), setitimer(2), times(2).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// timespec(3type).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Timespec {
    pub tv_sec: i64,
    pub tv_nsec: i64,
}
layout!(Timespec: 16, tv_nsec @ 8);

/// timeval(3type).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Timeval {
    pub tv_sec: i64,
    pub tv_usec: i64,
}
layout!(Timeval: 16, tv_usec @ 8);

/// The obsolete second argument of gettimeofday(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Timezone {
    pub tz_minuteswest: i32,
    pub tz_dsttime: i32,
}
layout!(Timezone: 8);

/// setitimer(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Itimerval {
    pub it_interval: Timeval,
    pub it_value: Timeval,
}
layout!(Itimerval: 32, it_value @ 16);

/// timer_settime(2), timerfd_settime(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Itimerspec {
    pub it_interval: Timespec,
    pub it_value: Timespec,
}
layout!(Itimerspec: 32, it_value @ 16);

/// times(2), in ticks of [`USER_HZ`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Tms {
    pub tms_utime: i64,
    pub tms_stime: i64,
    pub tms_cutime: i64,
    pub tms_cstime: i64,
}
layout!(Tms: 32, tms_cutime @ 16);

/// Ticks a second in times(2), AT_CLKTCK and /proc/PID/stat.
pub const USER_HZ: u64 = 100;
pub const NSEC_PER_SEC: i64 = 1_000_000_000;
pub const USEC_PER_SEC: i64 = 1_000_000;

pub const CLOCK_REALTIME: i32 = 0;
pub const CLOCK_MONOTONIC: i32 = 1;
pub const CLOCK_PROCESS_CPUTIME_ID: i32 = 2;
pub const CLOCK_THREAD_CPUTIME_ID: i32 = 3;
pub const CLOCK_MONOTONIC_RAW: i32 = 4;
pub const CLOCK_REALTIME_COARSE: i32 = 5;
pub const CLOCK_MONOTONIC_COARSE: i32 = 6;
pub const CLOCK_BOOTTIME: i32 = 7;
pub const CLOCK_REALTIME_ALARM: i32 = 8;
pub const CLOCK_BOOTTIME_ALARM: i32 = 9;
pub const CLOCK_TAI: i32 = 11;

pub const TIMER_ABSTIME: u32 = 1;
pub const ITIMER_REAL: i32 = 0;
pub const ITIMER_VIRTUAL: i32 = 1;
pub const ITIMER_PROF: i32 = 2;

/// timerfd_create(2), timerfd_settime(2).
pub const TFD_TIMER_ABSTIME: u32 = 1;
pub const TFD_TIMER_CANCEL_ON_SET: u32 = 2;
pub const TFD_CLOEXEC: u32 = 0o2000000;
pub const TFD_NONBLOCK: u32 = 0o4000;

/// utimensat(2).
pub const UTIME_NOW: i64 = 0x3fff_ffff;
pub const UTIME_OMIT: i64 = 0x3fff_fffe;

impl Timespec {
    /// Whether both fields are what clock_nanosleep(2) and its family accept: seconds not negative, nanoseconds in 0..10^9.
    #[inline]
    pub const fn is_valid(&self) -> bool {
        self.tv_sec >= 0 && self.tv_nsec >= 0 && self.tv_nsec < NSEC_PER_SEC
    }

    /// The span in nanoseconds, saturated at `u64::MAX`. `None` unless [`Timespec::is_valid`].
    #[inline]
    pub const fn to_ns(&self) -> Option<u64> {
        if !self.is_valid() {
            return None;
        }
        Some((self.tv_sec as u64).saturating_mul(NSEC_PER_SEC as u64).saturating_add(self.tv_nsec as u64))
    }

    /// The span of `ns` nanoseconds.
    #[inline]
    pub const fn from_ns(ns: u64) -> Self {
        Timespec { tv_sec: (ns / NSEC_PER_SEC as u64) as i64, tv_nsec: (ns % NSEC_PER_SEC as u64) as i64 }
    }
}

impl Timeval {
    /// Whether both fields are in range: seconds not negative, microseconds in 0..10^6.
    #[inline]
    pub const fn is_valid(&self) -> bool {
        self.tv_sec >= 0 && self.tv_usec >= 0 && self.tv_usec < USEC_PER_SEC
    }

    /// The span in nanoseconds, saturated at `u64::MAX`. `None` unless [`Timeval::is_valid`].
    #[inline]
    pub const fn to_ns(&self) -> Option<u64> {
        if !self.is_valid() {
            return None;
        }
        Some((self.tv_sec as u64).saturating_mul(NSEC_PER_SEC as u64).saturating_add(self.tv_usec as u64 * 1000))
    }

    /// The span of `ns` nanoseconds, rounded down to microseconds.
    #[inline]
    pub const fn from_ns(ns: u64) -> Self {
        let t = Timespec::from_ns(ns);
        Timeval { tv_sec: t.tv_sec, tv_usec: t.tv_nsec / 1000 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_saturate_and_reject_what_the_calls_reject() {
        assert_eq!(Timespec::from_ns(1_500_000_000), Timespec { tv_sec: 1, tv_nsec: 500_000_000 });
        assert_eq!(Timespec { tv_sec: i64::MAX, tv_nsec: 0 }.to_ns(), Some(u64::MAX));
        assert_eq!(Timespec { tv_sec: 0, tv_nsec: NSEC_PER_SEC }.to_ns(), None);
        assert_eq!(Timespec { tv_sec: -1, tv_nsec: 0 }.to_ns(), None);
        assert_eq!(Timeval { tv_sec: 1, tv_usec: 7 }.to_ns(), Some(1_000_007_000));
        assert_eq!(Timeval { tv_sec: 0, tv_usec: USEC_PER_SEC }.to_ns(), None);
    }
}
