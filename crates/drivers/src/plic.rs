//! The platform-level interrupt controller (RISC-V PLIC specification 1.0).
//!
//! Every source that is used gets priority 1 and goes to one hart's S-mode context; claiming it there masks it until it
//! is completed, so a handler runs on one hart at a time.

use hal::boot::{self, Plic as Description};
use hal::mmio::Mmio;

const ENABLE: usize = 0x2000;
const ENABLE_STRIDE: usize = 0x80;
const CONTEXT: usize = 0x20_0000;
const CONTEXT_STRIDE: usize = 0x1000;

/// The controller.
pub struct Plic {
    registers: Mmio,
    description: Description,
}

impl Plic {
    /// The controller of the device tree; all sources start disabled for the harts in use.
    pub fn new(description: Description) -> Self {
        let plic = Self { registers: Mmio::new(description.registers), description };
        for hart in 0..boot::info().hart_count {
            if let Some(context) = plic.context(hart) {
                for word in 0..plic.words() {
                    plic.registers.write32(ENABLE + context * ENABLE_STRIDE + word * 4, 0);
                }
                plic.registers.write32(CONTEXT + context * CONTEXT_STRIDE, 0);
            }
        }
        plic
    }

    fn words(&self) -> usize {
        self.description.sources as usize / 32 + 1
    }

    fn context(&self, hart: usize) -> Option<usize> {
        let hart = boot::info().harts().get(hart)?;
        self.description.context(hart.intc)
    }

    /// Sends `source` to hart `index`. False when the controller does not reach the hart or has no such source.
    pub fn enable(&self, source: u32, index: usize) -> bool {
        let Some(context) = self.context(index).filter(|_| source != 0 && source <= self.description.sources) else {
            return false;
        };
        self.registers.write32(source as usize * 4, 1);
        let at = ENABLE + context * ENABLE_STRIDE + source as usize / 32 * 4;
        self.registers.write32(at, self.registers.read32(at) | 1 << (source % 32));
        true
    }

    /// Takes the interrupt that is pending for hart `index`, if one is; it stays masked until [`Plic::complete`].
    pub fn claim(&self, index: usize) -> Option<u32> {
        let context = self.context(index)?;
        match self.registers.read32(CONTEXT + context * CONTEXT_STRIDE + 4) {
            0 => None,
            source => Some(source),
        }
    }

    /// Says that an interrupt from [`Plic::claim`] has been served.
    pub fn complete(&self, index: usize, source: u32) {
        if let Some(context) = self.context(index) {
            self.registers.write32(CONTEXT + context * CONTEXT_STRIDE + 4, source);
        }
    }
}
