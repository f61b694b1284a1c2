//! As much of a disassembler as the rules need: where an instruction may go next, which integer register it writes,
//! whether it is a CSR access or of the F, D or V extension. (RISC-V unprivileged specification: base formats, "C".)

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its address.
    pub address: u64,
    /// 2 or 4 bytes.
    pub length: u64,
    /// The integer register it writes; 0 for none.
    pub writes: u8,
    /// What it does.
    pub kind: Kind,
}

/// What an instruction does, as far as the rules care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `jal`: the link register is what it writes.
    Jump(u64),
    /// `jalr`: register and offset.
    Indirect(u8, i64),
    /// A conditional branch.
    Branch(u64),
    /// A load of an integer register from a register and an offset.
    Load(u8, i64),
    /// `auipc` with what it writes.
    Auipc(u64),
    /// An access to this control and status register.
    Csr(u16),
    /// Return to user mode.
    Sret,
    /// F or D.
    Float,
    /// V.
    Vector,
    /// An instruction that never is one: the end of what cannot go on.
    Illegal,
    /// Anything else.
    Other,
}

impl Instruction {
    /// The address behind it.
    pub const fn next(&self) -> u64 {
        self.address + self.length
    }
}

/// Bits `low..low + count` of `word`.
const fn bits(word: u32, low: u32, count: u32) -> u32 {
    word >> low & ((1 << count) - 1)
}

/// The lowest `count` bits of `value` as a signed number.
const fn signed(value: u32, count: u32) -> i64 {
    (((value << (32 - count)) as i32) >> (32 - count)) as i64
}

/// Decodes the instruction in `word`, of which the upper half counts only if the lower two bits are set.
pub const fn decode(address: u64, word: u32) -> Instruction {
    let (length, (writes, kind)) =
        if word & 3 == 3 { (4, full(address, word)) } else { (2, compressed(address, word & 0xffff)) };
    Instruction { address, length, writes, kind }
}

const fn full(address: u64, word: u32) -> (u8, Kind) {
    let rd = bits(word, 7, 5) as u8;
    let rs1 = bits(word, 15, 5) as u8;
    let immediate = signed(word >> 20, 12);
    let funct3 = bits(word, 12, 3);
    match word & 0x7f {
        0x6f => {
            let offset =
                bits(word, 31, 1) << 20 | bits(word, 12, 8) << 12 | bits(word, 20, 1) << 11 | bits(word, 21, 10) << 1;
            (rd, Kind::Jump(address.wrapping_add_signed(signed(offset, 21))))
        }
        0x67 => (rd, Kind::Indirect(rs1, immediate)),
        0x63 => {
            let offset =
                bits(word, 31, 1) << 12 | bits(word, 7, 1) << 11 | bits(word, 25, 6) << 5 | bits(word, 8, 4) << 1;
            (0, Kind::Branch(address.wrapping_add_signed(signed(offset, 13))))
        }
        0x03 => (rd, Kind::Load(rs1, immediate)),
        0x17 => (rd, Kind::Auipc(address.wrapping_add_signed((word & 0xffff_f000) as i32 as i64))),
        0x37 | 0x13 | 0x33 | 0x1b | 0x3b | 0x2f => (rd, Kind::Other),
        0x73 if funct3 & 3 != 0 => (rd, system_register(bits(word, 20, 12) as u16)),
        0x73 if word == 0x1020_0073 => (0, Kind::Sret),
        // Loads and stores of the FP opcodes with these widths are the vector ones.
        0x07 | 0x27 if matches!(funct3, 0 | 5 | 6 | 7) => (0, Kind::Vector),
        0x07 | 0x27 | 0x43 | 0x47 | 0x4b | 0x4f | 0x53 => (0, Kind::Float),
        0x57 => (0, Kind::Vector),
        0x0f | 0x23 | 0x73 => (0, Kind::Other),
        _ => (0, Kind::Illegal),
    }
}

/// FP and vector state has registers of its own among the CSRs.
const fn system_register(number: u16) -> Kind {
    match number {
        0x001..=0x003 => Kind::Float,
        0x008..=0x00f | 0xc20..=0xc22 => Kind::Vector,
        _ => Kind::Csr(number),
    }
}

const fn compressed(address: u64, word: u32) -> (u8, Kind) {
    let rd = bits(word, 7, 5) as u8;
    let short = bits(word, 2, 3) as u8 + 8;
    let short_high = bits(word, 7, 3) as u8 + 8;
    match (word & 3, word >> 13) {
        (0, 0) if word == 0 => (0, Kind::Illegal),
        (0, 0) => (short, Kind::Other),
        (0, 1 | 5) | (2, 1 | 5) => (0, Kind::Float),
        (0, 2 | 3) => (short, Kind::Load(short_high, 0)),
        (1, 0..=3) => (rd, Kind::Other),
        (1, 4) => (short_high, Kind::Other),
        (1, 5) => {
            let offset = bits(word, 12, 1) << 11
                | bits(word, 8, 1) << 10
                | bits(word, 9, 2) << 8
                | bits(word, 6, 1) << 7
                | bits(word, 7, 1) << 6
                | bits(word, 2, 1) << 5
                | bits(word, 11, 1) << 4
                | bits(word, 3, 3) << 1;
            (0, Kind::Jump(address.wrapping_add_signed(signed(offset, 12))))
        }
        (1, _) => {
            let offset = bits(word, 12, 1) << 8
                | bits(word, 5, 2) << 6
                | bits(word, 2, 1) << 5
                | bits(word, 10, 2) << 3
                | bits(word, 3, 2) << 1;
            (0, Kind::Branch(address.wrapping_add_signed(signed(offset, 9))))
        }
        (2, 2) => (rd, Kind::Load(2, 0)),
        (2, 3) => {
            let offset = bits(word, 2, 3) << 6 | bits(word, 12, 1) << 5 | bits(word, 5, 2) << 3;
            (rd, Kind::Load(2, offset as i64))
        }
        (2, 0) => (rd, Kind::Other),
        (2, 4) => match (bits(word, 12, 1), bits(word, 2, 5)) {
            (0, 0) => (0, Kind::Indirect(rd, 0)),
            (1, 0) if rd != 0 => (1, Kind::Indirect(rd, 0)),
            (1, 0) => (0, Kind::Other),
            _ => (rd, Kind::Other),
        },
        _ => (0, Kind::Other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodings as an assembler gives them for code at 0x1000.
    #[test]
    fn known_encodings() {
        let cases: &[(u32, u64, u8, Kind)] = &[
            (0x0080_00ef, 4, 1, Kind::Jump(0x1008)),   // jal ra, .+8
            (0xff9f_f06f, 4, 0, Kind::Jump(0xff8)),    // j .-8
            (0x0000_8067, 4, 0, Kind::Indirect(1, 0)), // ret
            (0x0003_00e7, 4, 1, Kind::Indirect(6, 0)), // jalr ra, 0(t1)
            (0x8082, 2, 0, Kind::Indirect(1, 0)),      // c.jr ra
            (0x9302, 2, 1, Kind::Indirect(6, 0)),      // c.jalr t1
            (0x0002_8067, 4, 0, Kind::Indirect(5, 0)), // jr t0
            (0x8282, 2, 0, Kind::Indirect(5, 0)),      // c.jr t0
            (0x0001_4463, 4, 0, Kind::Branch(0x1008)), // bltz sp, .+8
            (0xe109, 2, 0, Kind::Branch(0x1002)),      // c.bnez a0, .+2
            (0xa011, 2, 0, Kind::Jump(0x1004)),        // c.j .+4
            (0x60a2, 2, 1, Kind::Load(2, 8)),          // c.ldsp ra, 8(sp)
            (0xef82_3083, 4, 1, Kind::Load(4, -264)),  // ld ra, -264(tp)
            (0x1402_1273, 4, 4, Kind::Csr(0x140)),     // csrrw tp, sscratch, tp
            (0x1020_0073, 4, 0, Kind::Sret),           // sret
            (0x0005_3007, 4, 0, Kind::Float),          // fld f0, 0(a0)
            (0x2108, 2, 0, Kind::Float),               // c.fld
            (0x0030_2373, 4, 6, Kind::Float),          // frcsr t1
            (0x0cd0_f057, 4, 0, Kind::Vector),         // vsetvli zero, ra, e8
            (0x0285_0027, 4, 0, Kind::Vector),         // vs1r.v
            (0xc200_2573, 4, 10, Kind::Vector),        // csrr a0, vl
            (0x0000, 2, 0, Kind::Illegal),             // c.unimp
            (0x8532, 2, 10, Kind::Other),              // c.mv a0, a2
            (0x00c5_8533, 4, 10, Kind::Other),         // add a0, a1, a2
            (0x0000_0097, 4, 1, Kind::Auipc(0x1000)),  // auipc ra, 0
        ];
        for &(word, length, writes, kind) in cases {
            assert_eq!(decode(0x1000, word), Instruction { address: 0x1000, length, writes, kind }, "{word:#x}");
        }
    }
}
