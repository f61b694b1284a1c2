//! Where things are in the kernel's address space.

use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use crate::addr::PhysAddr;

/// Start of the direct map: physical address `p` is at `DIRECT_BASE + p`, in Sv39, Sv48 and Sv57 alike. It is the
/// lowest address of Sv39's kernel half, and lies in the last top-level entry of the two others.
pub const DIRECT_BASE: usize = 0xffff_ffc0_0000_0000;

/// Address translation modes (privileged specification, satp.MODE).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Mode {
    /// 3 levels, 39 bits.
    Sv39 = 3,
    /// 4 levels, 48 bits.
    Sv48 = 4,
    /// 5 levels, 57 bits.
    Sv57 = 5,
}

impl Mode {
    /// Number of table levels.
    #[inline]
    pub const fn levels(self) -> usize {
        self as usize
    }

    /// First address above the user half: 2^38, 2^47 or 2^56.
    #[inline]
    pub const fn user_top(self) -> usize {
        1 << (self.levels() * 9 + 11)
    }

    /// The mode's field value in satp, in place.
    #[inline]
    pub const fn satp_bits(self) -> usize {
        (self.levels() + 5) << 60
    }
}

static MODE: AtomicU8 = AtomicU8::new(Mode::Sv39 as u8);
static USER_TOP: AtomicUsize = AtomicUsize::new(Mode::Sv39.user_top());

/// Says which mode the boot hart enabled. Called once, before the first user page table.
pub fn set_mode(mode: Mode) {
    MODE.store(mode as u8, Ordering::Relaxed);
    USER_TOP.store(mode.user_top(), Ordering::Relaxed);
}

/// The mode in use.
#[inline]
pub fn mode() -> Mode {
    match MODE.load(Ordering::Relaxed) {
        3 => Mode::Sv39,
        4 => Mode::Sv48,
        _ => Mode::Sv57,
    }
}

/// First address above the user half in the mode in use.
#[inline]
pub fn user_top() -> usize {
    USER_TOP.load(Ordering::Relaxed)
}

/// The kernel's address of physical address `phys`. Only an address: whether memory is there is the caller's matter.
#[inline]
pub fn phys_to_virt(phys: PhysAddr) -> usize {
    #[cfg(target_os = "none")]
    return DIRECT_BASE.wrapping_add(phys.0);
    #[cfg(not(target_os = "none"))]
    return super::host::offset().wrapping_add(phys.0);
}

/// The physical address behind an address of the direct map.
#[inline]
pub fn virt_to_phys(virt: usize) -> PhysAddr {
    #[cfg(target_os = "none")]
    return PhysAddr(virt.wrapping_sub(DIRECT_BASE));
    #[cfg(not(target_os = "none"))]
    return PhysAddr(virt.wrapping_sub(super::host::offset()));
}
