//! Switching the machine off.

/// Powers the machine off. `failure` tells the firmware, and through it a virtual machine's host, that it went wrong.
pub fn power_off(failure: bool) -> ! {
    #[cfg(target_os = "none")]
    crate::sbi::power_off(failure);
    #[cfg(not(target_os = "none"))]
    panic!("power off, failure: {failure}");
}

/// Restarts the machine.
pub fn reboot() -> ! {
    #[cfg(target_os = "none")]
    crate::sbi::reboot();
    #[cfg(not(target_os = "none"))]
    panic!("reboot");
}

/// Stops this hart for good, with interrupts off; the machine stays on.
pub fn halt() -> ! {
    #[cfg(target_os = "none")]
    crate::hart::stop();
    #[cfg(not(target_os = "none"))]
    panic!("halt");
}

/// mvendorid, marchid and mimpid, as the firmware tells them; 0 is "not implemented".
pub fn ids() -> (usize, usize, usize) {
    #[cfg(target_os = "none")]
    {
        crate::sbi::ids()
    }
    #[cfg(not(target_os = "none"))]
    {
        (0, 0, 0)
    }
}
