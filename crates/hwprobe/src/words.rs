//! From what is known of a hart to its words.

use crate::isa::Isa;
use crate::keys::{
    BASE_BEHAVIOR, CPUPERF_0, HIGHEST_VIRT_ADDRESS, IMA_EXT_0, MARCHID, MIMPID, MISALIGNED_SCALAR_PERF,
    MISALIGNED_VECTOR_PERF, MVENDORID, TIME_CSR_FREQ, ZICBOM_BLOCK_SIZE, ZICBOP_BLOCK_SIZE, ZICBOZ_BLOCK_SIZE,
};
use crate::rules::KEYS;

/// A hart. What programs must not rely on has been taken out of `isa`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hart {
    /// mvendorid, marchid, mimpid.
    pub ids: [u64; 3],
    /// Its extensions.
    pub isa: Isa,
    /// Extensions that all harts of the machine have: floating point, compressed and vector code is promised on every hart
    /// or on none, since programs are built for them as a whole.
    pub common: Isa,
    /// Block sizes in bytes of Zicbom, Zicboz and Zicbop.
    pub blocks: [u64; 3],
    /// Misaligned scalar and vector accesses.
    pub misaligned: [u64; 2],
    /// First address that programs cannot use.
    pub highest_address: u64,
    /// Frequency of the `time` register.
    pub time_frequency: u64,
}

/// Bits FD, C and V of [`IMA_EXT_0`].
const COMMON: u64 = 0b111;

impl Hart {
    /// The answers to a query for this hart alone.
    pub fn words(&self) -> [u64; KEYS] {
        let block = |name: &str, size: u64| if self.isa.has(name) { size } else { 0 };
        core::array::from_fn(|key| match key as u64 {
            MVENDORID => self.ids[0],
            MARCHID => self.ids[1],
            MIMPID => self.ids[2],
            BASE_BEHAVIOR => 1,
            IMA_EXT_0 => self.isa.word(IMA_EXT_0) & !COMMON | self.common.word(IMA_EXT_0) & COMMON,
            ZICBOM_BLOCK_SIZE => block("zicbom", self.blocks[0]),
            ZICBOZ_BLOCK_SIZE => block("zicboz", self.blocks[1]),
            ZICBOP_BLOCK_SIZE => block("zicbop", self.blocks[2]),
            HIGHEST_VIRT_ADDRESS => self.highest_address,
            TIME_CSR_FREQ => self.time_frequency,
            CPUPERF_0 | MISALIGNED_SCALAR_PERF => self.misaligned[0],
            MISALIGNED_VECTOR_PERF => self.misaligned[1],
            other => self.isa.word(other),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floating_point_is_promised_on_all_harts_or_on_none() {
        let (with, without) = (Isa::from_text("rv64imafdc_zba"), Isa::from_text("rv64imac"));
        let hart = Hart { isa: with, common: with.and(without), blocks: [64; 3], ..Hart::default() };
        let words = hart.words();
        assert_eq!(words[IMA_EXT_0 as usize] & 0b1111, 0b1010);
        assert_eq!(words[ZICBOZ_BLOCK_SIZE as usize], 0);
        let hart = Hart { isa: Isa::from_names(["i", "zicboz"]), ..hart };
        assert_eq!(hart.words()[ZICBOZ_BLOCK_SIZE as usize], 64);
        assert_eq!(hart.words()[BASE_BEHAVIOR as usize], 1);
    }
}
