//! The keys and their bits, as data: a list to hold against the kernel document `arch/riscv/hwprobe.rst`.
//!
//! Names are those of `<asm/hwprobe.h>` without their prefix (`RISCV_HWPROBE_KEY_`, `RISCV_HWPROBE_EXT_` …).

/// A key that the kernel knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its number.
    pub number: u64,
    /// Its name in `<asm/hwprobe.h>`, such as `IMA_EXT_0`.
    pub name: &'static str,
    /// How its value is read.
    pub kind: Kind,
    /// What it tells, in a sentence.
    pub text: &'static str,
}

/// How a value is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One of the machine's three identities; -1 where harts differ.
    Id,
    /// Bits; over several harts those that all have.
    Bits(&'static [Bit]),
    /// One of a few named numbers; UNKNOWN (0) where harts differ.
    Choice(&'static [Choice]),
    /// Bytes of a cache block; 0 where not all harts have the extension.
    Bytes,
    /// An address.
    Address,
    /// A frequency in Hz.
    Hertz,
}

/// A bit of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bit {
    /// Its number.
    pub bit: u8,
    /// Its name in `<asm/hwprobe.h>`, such as `ZBA`.
    pub name: &'static str,
    /// What a program may rely on where it is set.
    pub text: &'static str,
}

/// A value with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The value.
    pub value: u64,
    /// Its name, such as `FAST`.
    pub name: &'static str,
    /// What it says.
    pub text: &'static str,
}

const fn key(number: u64, name: &'static str, kind: Kind, text: &'static str) -> Key {
    Key { number, name, kind, text }
}

const fn bit(bit: u8, name: &'static str, text: &'static str) -> Bit {
    Bit { bit, name, text }
}

const fn choice(value: u64, name: &'static str, text: &'static str) -> Choice {
    Choice { value, name, text }
}

/// mvendorid.
pub const MVENDORID: u64 = 0;
/// marchid.
pub const MARCHID: u64 = 1;
/// mimpid.
pub const MIMPID: u64 = 2;
/// The base that programs may rely on.
pub const BASE_BEHAVIOR: u64 = 3;
/// Extensions, first word.
pub const IMA_EXT_0: u64 = 4;
/// Speed of misaligned scalar accesses; use [`MISALIGNED_SCALAR_PERF`], which is compared as a number.
pub const CPUPERF_0: u64 = 5;
/// Bytes that `cbo.zero` clears.
pub const ZICBOZ_BLOCK_SIZE: u64 = 6;
/// End of the addresses that programs may use.
pub const HIGHEST_VIRT_ADDRESS: u64 = 7;
/// Frequency of the `time` register.
pub const TIME_CSR_FREQ: u64 = 8;
/// Speed of misaligned scalar accesses.
pub const MISALIGNED_SCALAR_PERF: u64 = 9;
/// Speed of misaligned vector accesses.
pub const MISALIGNED_VECTOR_PERF: u64 = 10;
/// T-Head's extensions.
pub const VENDOR_EXT_THEAD_0: u64 = 11;
/// Bytes that `cbo.clean` and `cbo.flush` manage.
pub const ZICBOM_BLOCK_SIZE: u64 = 12;
/// SiFive's extensions.
pub const VENDOR_EXT_SIFIVE_0: u64 = 13;
/// MIPS's extensions.
pub const VENDOR_EXT_MIPS_0: u64 = 14;
/// Bytes that `prefetch.*` names.
pub const ZICBOP_BLOCK_SIZE: u64 = 15;
/// Extensions, second word.
pub const IMA_EXT_1: u64 = 16;

/// Misaligned accesses: nothing is known, or harts differ.
pub const MISALIGNED_UNKNOWN: u64 = 0;
/// Misaligned accesses trap and are done by software.
pub const MISALIGNED_EMULATED: u64 = 1;
/// Misaligned accesses are slower than bytes.
pub const MISALIGNED_SLOW: u64 = 2;
/// Misaligned accesses are faster than bytes.
pub const MISALIGNED_FAST: u64 = 3;
/// Misaligned accesses fault.
pub const MISALIGNED_UNSUPPORTED: u64 = 4;

/// Every key of Linux 7.2, in order: a key is its own index.
pub const KEYS: [Key; super::rules::KEYS] = [
    key(MVENDORID, "MVENDORID", Kind::Id, "who made the hart: JEDEC number (mvendorid); 0 if not told"),
    key(MARCHID, "MARCHID", Kind::Id, "which design it is (marchid); 0 if not told"),
    key(MIMPID, "MIMPID", Kind::Id, "which version of the design (mimpid); 0 if not told"),
    key(BASE_BEHAVIOR, "BASE_BEHAVIOR", Kind::Bits(&BASE), "the base that programs may rely on"),
    key(IMA_EXT_0, "IMA_EXT_0", Kind::Bits(&EXT_0), "extensions beyond IMA, first word"),
    key(CPUPERF_0, "CPUPERF_0", Kind::Choice(&SCALAR), "old form of MISALIGNED_SCALAR_PERF"),
    key(ZICBOZ_BLOCK_SIZE, "ZICBOZ_BLOCK_SIZE", Kind::Bytes, "bytes that cbo.zero clears"),
    key(HIGHEST_VIRT_ADDRESS, "HIGHEST_VIRT_ADDRESS", Kind::Address, "end of the addresses that programs may use"),
    key(TIME_CSR_FREQ, "TIME_CSR_FREQ", Kind::Hertz, "frequency of the time register"),
    key(MISALIGNED_SCALAR_PERF, "MISALIGNED_SCALAR_PERF", Kind::Choice(&SCALAR), "misaligned scalar accesses"),
    key(MISALIGNED_VECTOR_PERF, "MISALIGNED_VECTOR_PERF", Kind::Choice(&VECTOR), "misaligned vector accesses"),
    key(VENDOR_EXT_THEAD_0, "VENDOR_EXT_THEAD_0", Kind::Bits(&THEAD), "extensions of T-Head"),
    key(ZICBOM_BLOCK_SIZE, "ZICBOM_BLOCK_SIZE", Kind::Bytes, "bytes that cbo.clean and cbo.flush write back"),
    key(VENDOR_EXT_SIFIVE_0, "VENDOR_EXT_SIFIVE_0", Kind::Bits(&SIFIVE), "extensions of SiFive"),
    key(VENDOR_EXT_MIPS_0, "VENDOR_EXT_MIPS_0", Kind::Bits(&MIPS), "extensions of MIPS"),
    key(ZICBOP_BLOCK_SIZE, "ZICBOP_BLOCK_SIZE", Kind::Bytes, "bytes that prefetch.* fetches"),
    key(IMA_EXT_1, "IMA_EXT_1", Kind::Bits(&EXT_1), "extensions beyond IMA, second word"),
];

const BASE: [Bit; 1] = [bit(0, "IMA", "integers, multiplication and atomic operations, as ratified")];

const SCALAR: [Choice; 5] = [
    choice(MISALIGNED_UNKNOWN, "UNKNOWN", "not measured, or harts differ"),
    choice(MISALIGNED_EMULATED, "EMULATED", "trap and are done by software: avoid"),
    choice(MISALIGNED_SLOW, "SLOW", "slower than single bytes: avoid"),
    choice(MISALIGNED_FAST, "FAST", "faster than single bytes"),
    choice(MISALIGNED_UNSUPPORTED, "UNSUPPORTED", "fault"),
];

const VECTOR: [Choice; 4] = [
    choice(MISALIGNED_UNKNOWN, "UNKNOWN", "not measured, or harts differ"),
    choice(MISALIGNED_SLOW, "SLOW", "slower than single bytes: avoid"),
    choice(MISALIGNED_FAST, "FAST", "faster than single bytes"),
    choice(MISALIGNED_UNSUPPORTED, "UNSUPPORTED", "fault, or there is no vector unit"),
];

/// Bits of [`IMA_EXT_0`]; a bit is its own index.
pub const EXT_0: [Bit; 64] = [
    bit(0, "FD", "floating point, single and double precision"),
    bit(1, "C", "compressed instructions"),
    bit(2, "V", "vectors of all element types"),
    bit(3, "ZBA", "address generation: sh1add and others"),
    bit(4, "ZBB", "basic bits: clz, cpop, min, rev8, rol and others"),
    bit(5, "ZBS", "single bits: bset, bclr, binv, bext"),
    bit(6, "ZICBOZ", "cbo.zero clears a cache block"),
    bit(7, "ZBC", "carry-less multiplication"),
    bit(8, "ZBKB", "bits for cryptography: pack, brev8, zip"),
    bit(9, "ZBKC", "carry-less multiplication for cryptography"),
    bit(10, "ZBKX", "crossbar permutations: xperm4, xperm8"),
    bit(11, "ZKND", "AES decryption"),
    bit(12, "ZKNE", "AES encryption"),
    bit(13, "ZKNH", "SHA-2"),
    bit(14, "ZKSED", "SM4"),
    bit(15, "ZKSH", "SM3"),
    bit(16, "ZKT", "time of scalar instructions does not depend on data"),
    bit(17, "ZVBB", "vector: basic bits"),
    bit(18, "ZVBC", "vector: carry-less multiplication"),
    bit(19, "ZVKB", "vector: bits for cryptography"),
    bit(20, "ZVKG", "vector: GCM and GMAC"),
    bit(21, "ZVKNED", "vector: AES"),
    bit(22, "ZVKNHA", "vector: SHA-256"),
    bit(23, "ZVKNHB", "vector: SHA-256 and SHA-512"),
    bit(24, "ZVKSED", "vector: SM4"),
    bit(25, "ZVKSH", "vector: SM3"),
    bit(26, "ZVKT", "time of vector instructions does not depend on data"),
    bit(27, "ZFH", "half-precision floating point"),
    bit(28, "ZFHMIN", "half precision: loads, stores, conversions"),
    bit(29, "ZIHINTNTL", "hints for data used once"),
    bit(30, "ZVFH", "vector: half-precision floating point"),
    bit(31, "ZVFHMIN", "vector: half precision, conversions"),
    bit(32, "ZFA", "additional floating point: fli, fround and others"),
    bit(33, "ZTSO", "loads and stores are ordered as on x86"),
    bit(34, "ZACAS", "compare and swap: amocas"),
    bit(35, "ZICOND", "conditional zero: czero.eqz, czero.nez"),
    bit(36, "ZIHINTPAUSE", "pause"),
    bit(37, "ZVE32X", "vector: integers up to 32 bits"),
    bit(38, "ZVE32F", "vector: 32-bit elements, single precision"),
    bit(39, "ZVE64X", "vector: integers up to 64 bits"),
    bit(40, "ZVE64F", "vector: 64-bit elements, single precision"),
    bit(41, "ZVE64D", "vector: 64-bit elements, double precision"),
    bit(42, "ZIMOP", "may-be operations"),
    bit(43, "ZCA", "compressed: all but floating point"),
    bit(44, "ZCB", "compressed: bytes, halves, mul, not and others"),
    bit(45, "ZCD", "compressed: double-precision loads and stores"),
    bit(46, "ZCF", "compressed: single-precision loads and stores, 32-bit harts only"),
    bit(47, "ZCMOP", "compressed may-be operations"),
    bit(48, "ZAWRS", "wait for a store to a reserved place: wrs.nto, wrs.sto"),
    bit(49, "SUPM", "upper address bits can be ignored: pointer masking, see prctl(2)"),
    bit(50, "ZICNTR", "counters: cycle, time, instret"),
    bit(51, "ZIHPM", "performance counters: hpmcounter3 and others"),
    bit(52, "ZFBFMIN", "bfloat16: conversions"),
    bit(53, "ZVFBFMIN", "vector: bfloat16, conversions"),
    bit(54, "ZVFBFWMA", "vector: bfloat16, widening multiply-add"),
    bit(55, "ZICBOM", "cbo.clean and cbo.flush write a cache block back"),
    bit(56, "ZAAMO", "atomic operations on memory"),
    bit(57, "ZALRSC", "load reserved, store conditional"),
    bit(58, "ZABHA", "atomic operations on bytes and halves"),
    bit(59, "ZALASR", "load acquire, store release"),
    bit(60, "ZICBOP", "prefetch.r, prefetch.w, prefetch.i"),
    bit(61, "ZILSD", "loads and stores of register pairs, 32-bit harts only"),
    bit(62, "ZCLSD", "the same, compressed, 32-bit harts only"),
    bit(63, "ZICFILP", "landing pads for indirect jumps"),
];

const EXT_1: [Bit; 1] = [bit(0, "ZICFISS", "shadow stacks")];

const THEAD: [Bit; 1] = [bit(0, "XTHEADVECTOR", "vectors of the draft 0.7.1")];

const SIFIVE: [Bit; 4] = [
    bit(0, "XSFVQMACCDOD", "integer matrix multiplication, 2 by 8 by 2"),
    bit(1, "XSFVQMACCQOQ", "integer matrix multiplication, 4 by 8 by 4"),
    bit(2, "XSFVFNRCLIPXFQF", "clipping single precision to 8-bit integers"),
    bit(3, "XSFVFWMACCQQQ", "bfloat16 matrix multiplication, 4 by 4 by 4"),
];

const MIPS: [Bit; 1] = [bit(0, "XMIPSEXECTL", "MIPS's pause and other hints")];

impl Key {
    /// The key with this number.
    pub fn by_number(number: u64) -> Option<&'static Self> {
        KEYS.get(usize::try_from(number).ok()?)
    }

    /// The key with this name, in upper or lower case, or this number.
    pub fn parse(text: &str) -> Option<&'static Self> {
        match crate::number(text) {
            Some(number) => Self::by_number(number),
            None => KEYS.iter().find(|key| key.name.eq_ignore_ascii_case(text)),
        }
    }

    /// The value that `text` names: a number, a named value, or bits by name joined with `+`.
    pub fn parse_value(&self, text: &str) -> Option<u64> {
        if let Some(number) = crate::number(text) {
            return Some(number);
        }
        match self.kind {
            Kind::Choice(all) => all.iter().find(|c| c.name.eq_ignore_ascii_case(text)).map(|c| c.value),
            Kind::Bits(all) => text.split(['+', '|']).try_fold(0, |sum, name| {
                all.iter().find(|bit| bit.name.eq_ignore_ascii_case(name)).map(|bit| sum | 1 << bit.bit)
            }),
            _ => None,
        }
    }

    /// The key's bits; none for other kinds.
    pub const fn bits(&self) -> &'static [Bit] {
        match self.kind {
            Kind::Bits(bits) => bits,
            _ => &[],
        }
    }

    /// Whether WHICH_CPUS compares the key's value as a set of bits.
    pub const fn is_bitmask(&self) -> bool {
        super::rules::BITMASKS >> self.number & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{ANDED, IDS};

    #[test]
    fn keys_and_bits_are_their_own_indices() {
        for (index, key) in KEYS.iter().enumerate() {
            assert_eq!(key.number, index as u64);
            assert!(key.text.len() <= 60, "{}", key.name);
            let mut last = None;
            for bit in key.bits() {
                assert!(last < Some(bit.bit), "{}", bit.name);
                assert!(bit.name.len() <= 15 && bit.text.len() <= 70, "{}", bit.name);
                last = Some(bit.bit);
            }
        }
        assert!(EXT_0.iter().enumerate().all(|(index, bit)| usize::from(bit.bit) == index));
    }

    #[test]
    fn the_rules_know_the_kinds() {
        for key in KEYS {
            let (and, id) = (ANDED >> key.number & 1 != 0, IDS >> key.number & 1 != 0);
            assert_eq!(and, matches!(key.kind, Kind::Bits(_)), "{}", key.name);
            assert_eq!(id, key.kind == Kind::Id, "{}", key.name);
            assert_eq!(key.is_bitmask(), and || key.number == CPUPERF_0, "{}", key.name);
        }
    }

    #[test]
    fn names_and_values_are_understood() {
        assert_eq!(Key::parse("ima_ext_0").map(|k| k.number), Some(4));
        assert_eq!(Key::parse("0x10").map(|k| k.number), Some(16));
        assert_eq!(Key::parse("17"), None);
        let ext = Key::parse("4").unwrap();
        assert_eq!(ext.parse_value("zba+ZBB"), Some(0x18));
        assert_eq!(ext.parse_value("zba+nothing"), None);
        assert_eq!(Key::parse("9").unwrap().parse_value("fast"), Some(3));
        assert_eq!(ext.parse_value("0x138d"), Some(0x138d));
    }
}
