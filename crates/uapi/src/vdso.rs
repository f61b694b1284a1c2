//! The data page that the kernel shares with the vDSO, mapped read-only right below the vDSO's text, and the one
//! conversion from ticks to time that both use. This file stands alone (only `core`): the vDSO image compiles it too.
//!
//! A clock's time is `base_ns[clock] + ((ticks - tick_base) * mult >> shift)`, with `ticks` the `time` CSR. The product
//! has 128 bits, so no uptime overflows it and the kernel need not publish again for the sake of range: only setting
//! the clock does. One base a clock, indexed by its number, makes a reading one load longer than the arithmetic.
//!
//! The page is written under a sequence counter, odd while an update is under way. A reader takes the counter,
//! starts over while it is odd, reads, and starts over if the counter has moved. All fields are atomics, so both
//! sides are safe code and a torn read is impossible by type, an inconsistent one by the counter.

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering, fence};

/// The Linux release whose user ABI Limen offers, as a version code: major, minor, patch, eight bits each. The vDSO's
/// note tells it; `system::RELEASE` is the same for uname(2).
pub const LINUX_VERSION_CODE: u32 = 6 << 16 | 12 << 8;

/// Bytes of data mapped below the text: a page for riscv_hwprobe(2) and, right below the text, the page that this file is
/// about.
pub const VVAR_SIZE: usize = 2 * VVAR_PAGE;
/// Bytes of one of these pages.
const VVAR_PAGE: usize = 4096;
/// Harts that the page for riscv_hwprobe(2) has room for.
pub const HARTS: usize = 8;

/// Length of the table of bases: one more than the highest clock answered without a call.
pub const CLOCKS: usize = 12;
/// Bit n is set if clock n is answered from the page: REALTIME 0, MONOTONIC 1, MONOTONIC_RAW 4, REALTIME_COARSE 5,
/// MONOTONIC_COARSE 6, BOOTTIME 7, TAI 11.
pub const ANSWERED: u32 = 1 << 0 | 1 << 1 | 1 << 4 | COARSE | 1 << 7 | 1 << 11;
/// The clocks whose resolution is a scheduler tick by contract.
pub const COARSE: u32 = 1 << 5 | 1 << 6;
/// What clock_getres(2) says of the fine clocks, in nanoseconds.
pub const FINE_RESOLUTION_NS: i64 = 1;
/// What clock_getres(2) says of the coarse clocks, in nanoseconds (they are in fact as fine as the others).
pub const COARSE_RESOLUTION_NS: i64 = 4_000_000;

/// Whether the page answers `clock`.
#[inline]
pub const fn answers(clock: i32) -> bool {
    (clock as u32) < CLOCKS as u32 && ANSWERED >> clock & 1 != 0
}

/// The resolution of a clock of the page in nanoseconds, `None` for others.
#[inline]
pub const fn resolution_ns(clock: i32) -> Option<i64> {
    if !answers(clock) {
        return None;
    }
    Some(if COARSE >> clock & 1 != 0 { COARSE_RESOLUTION_NS } else { FINE_RESOLUTION_NS })
}

/// A rate and an origin: how ticks become nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeBase {
    /// Nanoseconds a tick, scaled by `1 << shift`.
    pub mult: u64,
    /// Right shift of the product, 1..=63.
    pub shift: u32,
    /// Value of the `time` CSR at the origin.
    pub tick_base: u64,
    /// CLOCK_MONOTONIC at the origin.
    pub monotonic_ns: u64,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC.
    pub realtime_offset_ns: u64,
    /// CLOCK_BOOTTIME minus CLOCK_MONOTONIC.
    pub boottime_offset_ns: u64,
    /// CLOCK_TAI minus CLOCK_REALTIME.
    pub tai_offset_ns: u64,
}

/// Nanoseconds from `tick_base` to `ticks`: 0 if that lies before (another hart's counter may be a little behind).
#[inline]
const fn elapsed_ns(ticks: u64, tick_base: u64, mult: u64, shift: u32) -> u64 {
    let delta = ticks.wrapping_sub(tick_base);
    if (delta as i64) < 0 {
        return 0;
    }
    let product = delta as u128 * mult as u128;
    let (high, low) = ((product >> 64) as u64, product as u64);
    high << ((64 - shift) & 63) | low >> (shift & 63)
}

impl TimeBase {
    /// A base at tick 0 for a timebase of `hz` ticks a second (not 0), all clocks starting at 0. Exact if `hz`
    /// divides 10^9; else slow by less than one part in 2^32 / (10^9 / hz).
    pub const fn new(hz: u64) -> Self {
        let mult = ((1_000_000_000u128 << 32) / hz as u128) as u64;
        TimeBase {
            mult,
            shift: 32,
            tick_base: 0,
            monotonic_ns: 0,
            realtime_offset_ns: 0,
            boottime_offset_ns: 0,
            tai_offset_ns: 0,
        }
    }

    /// CLOCK_MONOTONIC at `ticks`, in nanoseconds.
    #[inline]
    pub const fn monotonic_at(&self, ticks: u64) -> u64 {
        self.monotonic_ns.wrapping_add(elapsed_ns(ticks, self.tick_base, self.mult, self.shift))
    }

    /// The bases of the page's table.
    fn bases(&self) -> [u64; CLOCKS] {
        let monotonic = self.monotonic_ns;
        let realtime = monotonic.wrapping_add(self.realtime_offset_ns);
        let mut bases = [monotonic; CLOCKS];
        (bases[0], bases[5]) = (realtime, realtime);
        bases[7] = monotonic.wrapping_add(self.boottime_offset_ns);
        bases[11] = realtime.wrapping_add(self.tai_offset_ns);
        bases
    }
}

/// The contents of the page.
#[derive(Debug, Default)]
#[repr(C)]
pub struct VdsoData {
    seq: AtomicU32,
    shift: AtomicU32,
    /// 0 until the first [`VdsoData::publish`]: the vDSO then makes the call.
    mult: AtomicU64,
    tick_base: AtomicU64,
    base_ns: [AtomicU64; CLOCKS],
    /// gettimeofday(2)'s second argument, as settimeofday(2) left it.
    tz_minuteswest: AtomicI32,
    tz_dsttime: AtomicI32,
    /// Harts online: with one, flushing the instruction cache needs no call.
    harts: AtomicU32,
    pad: u32,
}

const _: () = {
    assert!(size_of::<VdsoData>() == 136 && align_of::<VdsoData>() == 8);
    assert!(size_of::<VdsoData>() <= VVAR_PAGE);
};

impl VdsoData {
    /// An empty page: no time yet, no harts.
    pub const fn new() -> Self {
        VdsoData {
            seq: AtomicU32::new(0),
            shift: AtomicU32::new(0),
            mult: AtomicU64::new(0),
            tick_base: AtomicU64::new(0),
            base_ns: [const { AtomicU64::new(0) }; CLOCKS],
            tz_minuteswest: AtomicI32::new(0),
            tz_dsttime: AtomicI32::new(0),
            harts: AtomicU32::new(0),
            pad: 0,
        }
    }

    /// Publishes a new base. Kernel only; callers must exclude one another.
    pub fn publish(&self, base: &TimeBase) {
        let seq = self.seq.load(Ordering::Relaxed);
        self.seq.store(seq.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release); // the odd counter before any field
        self.shift.store(base.shift, Ordering::Relaxed);
        self.mult.store(base.mult, Ordering::Relaxed);
        self.tick_base.store(base.tick_base, Ordering::Relaxed);
        for (slot, ns) in self.base_ns.iter().zip(base.bases()) {
            slot.store(ns, Ordering::Relaxed);
        }
        self.seq.store(seq.wrapping_add(2), Ordering::Release); // every field before the even counter
    }

    /// The time of `clock` in nanoseconds, `ticks` reading the `time` CSR. `None` if the page does not answer that
    /// clock, or has not been filled yet.
    #[inline(always)]
    pub fn now(&self, clock: i32, ticks: impl Fn() -> u64) -> Option<u64> {
        if !answers(clock) {
            return None;
        }
        let slot = self.base_ns.get(clock as usize)?;
        loop {
            let seq = self.seq.load(Ordering::Acquire);
            let (shift, mult) = (self.shift.load(Ordering::Relaxed), self.mult.load(Ordering::Relaxed));
            let (tick_base, base) = (self.tick_base.load(Ordering::Relaxed), slot.load(Ordering::Relaxed));
            let ticks = ticks();
            fence(Ordering::Acquire); // every field before the second look at the counter
            if seq & 1 != 0 || self.seq.load(Ordering::Relaxed) != seq {
                core::hint::spin_loop();
                continue;
            }
            if mult == 0 {
                return None;
            }
            return Some(base.wrapping_add(elapsed_ns(ticks, tick_base, mult, shift)));
        }
    }

    /// settimeofday(2)'s time zone: minutes west, kind of daylight saving.
    #[inline]
    pub fn timezone(&self) -> (i32, i32) {
        (self.tz_minuteswest.load(Ordering::Relaxed), self.tz_dsttime.load(Ordering::Relaxed))
    }

    /// Sets the time zone that gettimeofday(2) reports.
    pub fn set_timezone(&self, minuteswest: i32, dsttime: i32) {
        self.tz_minuteswest.store(minuteswest, Ordering::Relaxed);
        self.tz_dsttime.store(dsttime, Ordering::Relaxed);
    }

    /// Harts online; 0 until the kernel has counted them.
    #[inline]
    pub fn harts(&self) -> u32 {
        self.harts.load(Ordering::Relaxed)
    }

    /// Tells how many harts are online. To be raised before a further hart runs user code.
    pub fn set_harts(&self, harts: u32) {
        self.harts.store(harts, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn ticks_become_nanoseconds_without_overflow() {
        let base = TimeBase { tick_base: 100, monotonic_ns: 5, ..TimeBase::new(10_000_000) };
        assert_eq!(base.monotonic_at(101), 105);
        assert_eq!(base.monotonic_at(99), 5, "a hart that lags sees no time before the base");
        let year = 3600 * 24 * 365;
        assert_eq!(base.monotonic_at(100 + 10_000_000 * year), 5 + 1_000_000_000 * year);
        assert_eq!(TimeBase::new(3_000_000).monotonic_at(3_000_000), 999_999_999);
        assert_eq!(TimeBase::new(1_000_000_000).monotonic_at(u64::MAX >> 1), u64::MAX >> 1);
    }

    #[test]
    fn each_clock_has_its_base_and_others_are_refused() {
        let data = VdsoData::new();
        assert_eq!(data.now(1, || 0), None, "nothing published");
        let base = TimeBase {
            monotonic_ns: 1,
            realtime_offset_ns: 10,
            boottime_offset_ns: 100,
            tai_offset_ns: 1000,
            ..TimeBase::new(1_000_000_000)
        };
        data.publish(&base);
        let all: Vec<_> = (-1..14).map(|clock| data.now(clock, || 0)).collect();
        let expected = |clock: i32| match clock {
            0 | 5 => Some(11),
            1 | 4 | 6 => Some(1),
            7 => Some(101),
            11 => Some(1011),
            _ => None,
        };
        assert_eq!(all, (-1..14).map(expected).collect::<Vec<_>>());
        assert_eq!(data.now(i32::MIN, || 0), None);
        assert_eq!((resolution_ns(1), resolution_ns(6), resolution_ns(2)), (Some(1), Some(4_000_000), None));
    }

    #[test]
    fn a_reader_never_mixes_two_publications() {
        let data = VdsoData::new();
        let stop = AtomicBool::new(false);
        let base = |n: u64| TimeBase { tick_base: n, monotonic_ns: n, ..TimeBase::new(1_000_000_000) };
        data.publish(&base(1));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 1..200_000 {
                    data.publish(&base(n));
                }
                stop.store(true, Ordering::Relaxed);
            });
            while !stop.load(Ordering::Relaxed) {
                assert_eq!(data.now(1, || 1_000_000), Some(1_000_000));
            }
        });
    }
}
