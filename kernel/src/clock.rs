//! Where the time comes from: the `time` CSR since boot, the clock of day for the rest.

use hal::boot::BootInfo;
use uapi::vdso::TimeBase;

/// Gives the clock calls and the vDSO the base that they compute from.
pub fn init(info: &BootInfo) {
    let mut base = TimeBase::new(info.timebase);
    if let Some(device) = info.rtc {
        let uptime = base.monotonic_at(hal::time::now());
        base.realtime_offset_ns = drivers::rtc::read(device).saturating_sub(uptime);
    }
    syscall::time::init(base);
}
