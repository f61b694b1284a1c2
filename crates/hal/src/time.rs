//! The clock and the hart's timer.

use core::sync::atomic::{AtomicU64, Ordering};

static FREQUENCY: AtomicU64 = AtomicU64::new(10_000_000);

/// Sets the clock's frequency in Hz, from the device tree's `timebase-frequency`.
#[cfg(target_os = "none")]
pub(crate) fn set_frequency(hz: u64) {
    FREQUENCY.store(hz.max(1), Ordering::Relaxed);
}

/// Ticks of the `time` CSR since power-on.
#[inline]
pub fn now() -> u64 {
    #[cfg(target_os = "none")]
    {
        crate::arch::csr::time() as u64
    }
    #[cfg(not(target_os = "none"))]
    {
        use std::sync::OnceLock;
        use std::time::Instant;
        static START: OnceLock<Instant> = OnceLock::new();
        ticks(START.get_or_init(Instant::now).elapsed().as_nanos() as u64)
    }
}

/// Ticks in a second.
#[inline]
pub fn ticks_per_second() -> u64 {
    FREQUENCY.load(Ordering::Relaxed)
}

/// Nanoseconds in `ticks`, rounded down; saturates.
#[inline]
pub fn ns(ticks: u64) -> u64 {
    let hz = ticks_per_second();
    (ticks / hz).saturating_mul(1_000_000_000).saturating_add(ticks % hz * 1_000_000_000 / hz)
}

/// Ticks in `ns` nanoseconds, rounded up, so that a sleep is never short; saturates.
#[inline]
pub fn ticks(ns: u64) -> u64 {
    let hz = ticks_per_second();
    let rest = (ns % 1_000_000_000) as u128 * hz as u128;
    (ns / 1_000_000_000).saturating_mul(hz).saturating_add(rest.div_ceil(1_000_000_000) as u64)
}

/// Sets this hart's timer to the absolute time `deadline` in ticks; `None` switches it off. A deadline in the past
/// fires at once.
pub fn set_timer(deadline: Option<u64>) {
    let deadline = deadline.unwrap_or(u64::MAX);
    crate::hart::this().deadline.store(deadline, Ordering::Relaxed);
    #[cfg(target_os = "none")]
    if crate::boot::info().sstc {
        // SAFETY: the extension is there; the comparison raises the timer interrupt, which is handled.
        unsafe { crate::arch::csr::write_stimecmp(deadline as usize) };
    } else {
        crate::sbi::set_timer(deadline);
    }
}

/// Notes how late the interrupt is, and clears it by moving the deadline to never.
#[cfg(target_os = "none")]
pub(crate) fn timer_fired() {
    let hart = crate::hart::this();
    let late = now().saturating_sub(hart.deadline.load(Ordering::Relaxed));
    hart.counters.longest_off.raise_to(late);
    set_timer(None);
}
