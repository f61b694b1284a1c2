//! Where the time comes from: the `time` CSR since boot, the clock of day for the rest.

use hal::boot::BootInfo;
use uapi::Timespec;
use uapi::vdso::TimeBase;

/// Publishes the time base that the clock calls and the vDSO compute from.
pub fn init(info: &BootInfo) {
    let mut base = TimeBase::new(info.timebase);
    if let Some(device) = info.rtc {
        let uptime = base.monotonic_at(hal::time::now());
        base.realtime_offset_ns = drivers::rtc::read(device).saturating_sub(uptime);
    }
    vdso::VVAR.publish(&base);
    fs::set_clock(|| {
        let ns = vdso::VVAR.now(uapi::time::CLOCK_REALTIME, hal::time::now).unwrap_or(0);
        Timespec::from_ns(ns)
    });
}
