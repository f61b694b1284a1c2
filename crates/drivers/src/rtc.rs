//! The Goldfish clock of day.

use hal::boot::Device;
use hal::mmio::Mmio;

/// Nanoseconds since 1970-01-01 00:00 UTC. Reading the low word latches the high one.
pub fn read(device: Device) -> u64 {
    let registers = Mmio::new(device.registers);
    let low = registers.read32(0);
    u64::from(registers.read32(4)) << 32 | u64::from(low)
}
