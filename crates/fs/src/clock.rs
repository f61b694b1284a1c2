//! The time of day that time stamps are taken from.

use hal::sync::Once;
use uapi::Timespec;

static CLOCK: Once<fn() -> Timespec> = Once::new();

/// Sets the source of time stamps: wall-clock time since 1970, a few instructions if possible (it is asked at every
/// write). Later calls change nothing.
pub fn set_clock(clock: fn() -> Timespec) {
    let _ = CLOCK.set(clock);
}

/// Now, or the epoch as long as no clock is set.
#[inline]
pub fn now() -> Timespec {
    CLOCK.get().map_or(Timespec { tv_sec: 0, tv_nsec: 0 }, |clock| clock())
}
