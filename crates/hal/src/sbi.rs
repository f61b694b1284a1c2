//! The firmware's services, by the SBI crate.

use sbi_rt::{HartMask, NoReason, Shutdown, SystemFailure};

/// One hart, as the firmware names it.
fn one(hart_id: usize) -> HartMask {
    HartMask::from_mask_base(1, hart_id)
}

/// Raises the software interrupt of a hart.
pub(crate) fn send_ipi(hart_id: usize) {
    // The only error is a hart that does not exist; the ids come from the device tree.
    let _ = sbi_rt::send_ipi(one(hart_id));
}

/// Raises the software interrupt of several harts.
pub(crate) fn send_ipis(mask: HartMask) {
    let _ = sbi_rt::send_ipi(mask);
}

/// Sets this hart's timer where there is no Sstc.
pub(crate) fn set_timer(deadline: u64) {
    let _ = sbi_rt::set_timer(deadline);
}

/// Starts a hart at a physical address, translation off.
pub(crate) fn start_hart(hart_id: usize, entry: usize, argument: usize) -> bool {
    sbi_rt::hart_start(hart_id, entry, argument).is_ok()
}

/// Fences `[start, start + len)` of an ASID on the harts in `mask`; a `len` of `usize::MAX` is all of it. Returns when
/// they have done it.
pub(crate) fn remote_fence(mask: HartMask, asid: usize, start: usize, len: usize) -> bool {
    sbi_rt::remote_sfence_vma_asid(mask, start, len, asid).is_ok()
}

/// Has the harts in `mask` execute `fence.i`. Returns when they have done it.
pub(crate) fn remote_fence_i(mask: HartMask) -> bool {
    sbi_rt::remote_fence_i(mask).is_ok()
}

/// Writes to the debug console.
pub(crate) fn console_write(bytes: &[u8]) {
    for &byte in bytes {
        let _ = sbi_rt::console_write_byte(byte);
    }
}

/// Powers the machine off; after a failure, where the firmware can tell the host so.
pub(crate) fn power_off(failure: bool) -> ! {
    let _ =
        if failure { sbi_rt::system_reset(Shutdown, SystemFailure) } else { sbi_rt::system_reset(Shutdown, NoReason) };
    crate::hart::stop()
}

/// Restarts the machine.
pub(crate) fn reboot() -> ! {
    let _ = sbi_rt::system_reset(sbi_rt::ColdReboot, NoReason);
    crate::hart::stop()
}

/// The machine's vendor, architecture and implementation ids.
pub(crate) fn ids() -> (usize, usize, usize) {
    (sbi_rt::get_mvendorid(), sbi_rt::get_marchid(), sbi_rt::get_mimpid())
}
