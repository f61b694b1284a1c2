//! An 8250-compatible serial port.

use hal::boot::Device;
use hal::mmio::Mmio;

/// Receiver buffer and transmitter holding register.
const DATA: usize = 0;
/// Interrupt enable: bit 0, data received.
const IER: usize = 1;
/// FIFO control.
const FCR: usize = 2;
/// Modem control: bit 3 lets the interrupt line out.
const MCR: usize = 4;
/// Line status: bit 0 data ready, bit 5 transmitter holding register empty.
const LSR: usize = 5;

/// The port. Its methods may be called on any hart; bytes of two concurrent writes may interleave.
pub struct Uart {
    registers: Mmio,
    shift: usize,
    wide: bool,
}

impl Uart {
    /// The port of the device tree, left at the speed the firmware chose, with receive interrupts on.
    pub fn new(device: Device) -> Self {
        let uart = Self { registers: Mmio::new(device.registers), shift: device.shift, wide: device.width == 4 };
        uart.write_register(FCR, 1);
        uart.write_register(MCR, 0b1011);
        uart.write_register(IER, 1);
        uart
    }

    fn read_register(&self, register: usize) -> u8 {
        let offset = register << self.shift;
        if self.wide { self.registers.read32(offset) as u8 } else { self.registers.read8(offset) }
    }

    fn write_register(&self, register: usize, value: u8) {
        let offset = register << self.shift;
        if self.wide { self.registers.write32(offset, value.into()) } else { self.registers.write8(offset, value) }
    }

    /// Writes all of `bytes`, waiting for the transmitter where it is slower.
    pub fn write(&self, bytes: &[u8]) {
        for &byte in bytes {
            while self.read_register(LSR) & 1 << 5 == 0 {
                core::hint::spin_loop();
            }
            self.write_register(DATA, byte);
        }
    }

    /// Takes a received byte, if there is one.
    pub fn read(&self) -> Option<u8> {
        (self.read_register(LSR) & 1 != 0).then(|| self.read_register(DATA))
    }
}
