//! Device registers.

use crate::boot::Range;

/// The registers of a device: reads and writes stay inside them.
#[derive(Clone, Copy, Debug)]
pub struct Mmio {
    base: usize,
    len: usize,
}

impl Mmio {
    /// The registers at a physical range of the device tree, which the boot code has mapped.
    pub fn new(registers: Range) -> Self {
        Self { base: crate::mem::layout::phys_to_virt(crate::addr::PhysAddr(registers.start)), len: registers.len }
    }

    fn at<T>(&self, offset: usize) -> *mut T {
        let end = offset.checked_add(size_of::<T>());
        assert!(end.is_some_and(|e| e <= self.len) && offset.is_multiple_of(align_of::<T>()), "register {offset:#x}");
        core::ptr::with_exposed_provenance_mut(self.base + offset)
    }

    /// Reads a byte register. Panics outside the device.
    #[inline]
    pub fn read8(&self, offset: usize) -> u8 {
        // SAFETY: inside the registers of a device, which are mapped for ever.
        unsafe { self.at::<u8>(offset).read_volatile() }
    }

    /// Writes a byte register.
    #[inline]
    pub fn write8(&self, offset: usize, value: u8) {
        // SAFETY: as in `read8`.
        unsafe { self.at::<u8>(offset).write_volatile(value) }
    }

    /// Reads a 32-bit register.
    #[inline]
    pub fn read32(&self, offset: usize) -> u32 {
        // SAFETY: as in `read8`.
        unsafe { self.at::<u32>(offset).read_volatile() }
    }

    /// Writes a 32-bit register.
    #[inline]
    pub fn write32(&self, offset: usize, value: u32) {
        // SAFETY: as in `read8`.
        unsafe { self.at::<u32>(offset).write_volatile(value) }
    }
}
