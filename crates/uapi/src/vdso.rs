//! The data page that the kernel shares with the vDSO, mapped read-only right below the vDSO's text.
//!
//! The kernel writes it under a sequence counter: odd while an update is under way. A reader takes the counter
//! (waiting while it is odd), a fence, the fields, a fence, and starts over if the counter has moved. Times are
//!
//! ```text
//! monotonic = mono_base_ns + ((ticks - tick_base) * mult >> shift)     (64 × 32 → 96 bits, then shifted)
//! realtime  = monotonic + realtime_offset_ns
//! boottime  = monotonic + boottime_offset_ns
//! ```
//!
//! with `ticks` the `time` CSR. The multiplication is done in 128 bits, so no range of ticks overflows it.

/// The contents of the page. All fields are aligned words, so that the vDSO loads each with one instruction.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    zerocopy::FromBytes,
    zerocopy::IntoBytes,
    zerocopy::Immutable,
    zerocopy::KnownLayout,
)]
#[repr(C)]
pub struct VdsoData {
    /// Sequence counter; odd while the kernel writes.
    pub seq: u32,
    /// Right shift of the product.
    pub shift: u32,
    /// Nanoseconds a tick, scaled by `1 << shift`.
    pub mult: u64,
    /// Value of the `time` CSR at the base.
    pub tick_base: u64,
    /// CLOCK_MONOTONIC at the base, in nanoseconds.
    pub mono_base_ns: u64,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC, in nanoseconds.
    pub realtime_offset_ns: u64,
    /// CLOCK_BOOTTIME minus CLOCK_MONOTONIC, in nanoseconds.
    pub boottime_offset_ns: u64,
    /// CLOCK_TAI minus CLOCK_REALTIME, in seconds.
    pub tai_offset_s: i32,
    /// Harts online: with one, flushing the instruction cache needs no call.
    pub harts: u32,
}
layout!(VdsoData: 56, mult @ 8, tick_base @ 16, harts @ 52);

/// Bytes of data mapped below the text.
pub const VVAR_SIZE: usize = 4096;

impl VdsoData {
    /// `mult` and `shift` for a timebase of `hz`: the greatest precision whose product with two hours' ticks stays
    /// far below 128 bits. Exact whenever `hz` divides 10^9 times a power of two. `hz` must not be 0.
    pub const fn scale(hz: u64) -> (u64, u32) {
        let shift = 32;
        (((1_000_000_000u128 << shift) / hz as u128) as u64, shift)
    }

    /// CLOCK_MONOTONIC in nanoseconds at `ticks`.
    #[inline]
    pub const fn monotonic_ns(&self, ticks: u64) -> u64 {
        let delta = ticks.wrapping_sub(self.tick_base);
        let ns = ((delta as u128 * self.mult as u128) >> (self.shift & 127)) as u64;
        self.mono_base_ns.wrapping_add(ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_nanoseconds_without_overflow() {
        let (mult, shift) = VdsoData::scale(10_000_000);
        let d = VdsoData {
            mult,
            shift,
            tick_base: 100,
            mono_base_ns: 5,
            ..Default::default()
        };
        assert_eq!(d.monotonic_ns(101), 105);
        assert_eq!(
            d.monotonic_ns(100 + 10_000_000 * 3600 * 24 * 365),
            5 + 1_000_000_000 * 3600 * 24 * 365
        );
        let (mult, shift) = VdsoData::scale(3_000_000);
        let d = VdsoData {
            mult,
            shift,
            ..Default::default()
        };
        assert_eq!(d.monotonic_ns(3_000_000), 999_999_999);
    }
}
