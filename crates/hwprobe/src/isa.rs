//! Instruction sets: which extensions there are, what they imply and need, how they are written in device trees and in
//! `/proc/cpuinfo`, and which bits of the keys they set.
//!
//! One table, in the order of the `isa` line of `/proc/cpuinfo` (kernel document `arch/riscv/uabi.rst`: single letters in
//! canonical order, then names by category, vendors last).

use core::fmt::{self, Write};

use crate::keys::{EXT_0, IMA_EXT_0, IMA_EXT_1, VENDOR_EXT_MIPS_0, VENDOR_EXT_SIFIVE_0, VENDOR_EXT_THEAD_0};

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension {
    /// Its name in lower case.
    pub name: &'static str,
    /// The key that tells of it, and the bit there.
    pub word: Option<(u64, u8)>,
    /// It uses vector registers.
    pub vector: bool,
}

const fn row(name: &'static str) -> Extension {
    Extension { name, word: None, vector: false }
}

const fn ext0(name: &'static str, bit: u8) -> Extension {
    Extension { name, word: Some((IMA_EXT_0, bit)), vector: false }
}

const fn vector(name: &'static str, bit: u8) -> Extension {
    Extension { name, word: Some((IMA_EXT_0, bit)), vector: true }
}

const fn vendor(name: &'static str, key: u64, bit: u8, vector: bool) -> Extension {
    Extension { name, word: Some((key, bit)), vector }
}

/// How many rows of [`EXTENSIONS`] are single letters.
const LETTERS: usize = 9;

/// The extensions. An extension's index here is its bit in an [`Isa`].
pub const EXTENSIONS: [Extension; 104] = [
    row("i"),
    row("m"),
    row("a"),
    row("f"),
    ext0("d", 0),
    row("q"),
    ext0("c", 1),
    vector("v", 2),
    row("h"),
    ext0("zicbom", 55),
    ext0("zicbop", 60),
    ext0("zicboz", 6),
    row("ziccrse"),
    ext0("zicfilp", 63),
    Extension { name: "zicfiss", word: Some((IMA_EXT_1, 0)), vector: false },
    ext0("zicntr", 50),
    ext0("zicond", 35),
    row("zicsr"),
    row("zifencei"),
    ext0("zihintntl", 29),
    ext0("zihintpause", 36),
    ext0("zihpm", 51),
    ext0("zimop", 42),
    ext0("zaamo", 56),
    ext0("zabha", 58),
    ext0("zacas", 34),
    ext0("zalasr", 59),
    ext0("zalrsc", 57),
    ext0("zawrs", 48),
    ext0("zfa", 32),
    ext0("zfbfmin", 52),
    ext0("zfh", 27),
    ext0("zfhmin", 28),
    ext0("zca", 43),
    ext0("zcb", 44),
    ext0("zcd", 45),
    ext0("zcmop", 47),
    ext0("zba", 3),
    ext0("zbb", 4),
    ext0("zbc", 7),
    ext0("zbkb", 8),
    ext0("zbkc", 9),
    ext0("zbkx", 10),
    ext0("zbs", 5),
    ext0("zknd", 11),
    ext0("zkne", 12),
    ext0("zknh", 13),
    row("zkr"),
    ext0("zkt", 16),
    ext0("zksed", 14),
    ext0("zksh", 15),
    ext0("ztso", 33),
    vector("zvbb", 17),
    vector("zvbc", 18),
    vector("zve32f", 38),
    vector("zve32x", 37),
    vector("zve64d", 41),
    vector("zve64f", 40),
    vector("zve64x", 39),
    vector("zvfbfmin", 53),
    vector("zvfbfwma", 54),
    vector("zvfh", 30),
    vector("zvfhmin", 31),
    vector("zvkb", 19),
    vector("zvkg", 20),
    vector("zvkned", 21),
    vector("zvknha", 22),
    vector("zvknhb", 23),
    vector("zvksed", 24),
    vector("zvksh", 25),
    vector("zvkt", 26),
    row("smaia"),
    row("smmpm"),
    row("smnpm"),
    row("smstateen"),
    row("ssaia"),
    row("sscofpmf"),
    row("ssnpm"),
    row("sstc"),
    ext0("supm", 49),
    row("svade"),
    row("svadu"),
    row("svinval"),
    row("svnapot"),
    row("svpbmt"),
    row("svrsw60t59b"),
    row("svvptc"),
    vendor("xmipsexectl", VENDOR_EXT_MIPS_0, 0, false),
    vendor("xsfvfnrclipxfqf", VENDOR_EXT_SIFIVE_0, 2, true),
    vendor("xsfvfwmaccqqq", VENDOR_EXT_SIFIVE_0, 3, true),
    vendor("xsfvqmaccdod", VENDOR_EXT_SIFIVE_0, 0, true),
    vendor("xsfvqmaccqoq", VENDOR_EXT_SIFIVE_0, 1, true),
    vendor("xtheadvector", VENDOR_EXT_THEAD_0, 0, true),
    // Names for several of the above: they are in a set only until it is completed.
    row("zk"),
    row("zkn"),
    row("zks"),
    row("zvkn"),
    row("zvknc"),
    row("zvkng"),
    row("zvks"),
    row("zvksc"),
    row("zvksg"),
    row("g"),
    row("b"),
];

/// First of the rows that only stand for others.
const BUNDLES: usize = EXTENSIONS.len() - 11;

/// What each name brings with it. In an order in which one pass is enough.
const IMPLIED: &[(&str, &[&str])] = &[
    ("g", &["i", "m", "a", "f", "d"]),
    ("b", &["zba", "zbb", "zbs"]),
    ("a", &["zaamo", "zalrsc"]),
    ("zk", &["zkn", "zkr", "zkt"]),
    ("zkn", &["zbkb", "zbkc", "zbkx", "zknd", "zkne", "zknh"]),
    ("zks", &["zbkb", "zbkc", "zbkx", "zksed", "zksh"]),
    ("zvknc", &["zvkn", "zvbc"]),
    ("zvkng", &["zvkn", "zvkg"]),
    ("zvkn", &["zvkned", "zvknhb", "zvkb", "zvkt"]),
    ("zvksc", &["zvks", "zvbc"]),
    ("zvksg", &["zvks", "zvkg"]),
    ("zvks", &["zvksed", "zvksh", "zvkb", "zvkt"]),
    ("zvbb", &["zvkb"]),
    ("v", &["zve64d"]),
    ("zve64d", &["zve64f"]),
    ("zve64f", &["zve64x", "zve32f"]),
    ("zve64x", &["zve32x"]),
    ("zve32f", &["zve32x"]),
    ("c", &["zca"]),
];

/// What cannot be without another: a name is dropped unless the set has all behind it. In an order in which one pass is
/// enough.
const NEEDED: &[(&str, &[&str])] = &[
    ("f", &["d"]),
    ("d", &["f"]),
    ("zfa", &["f"]),
    ("zfbfmin", &["f"]),
    ("zfh", &["f"]),
    ("zfhmin", &["f"]),
    ("zcd", &["d"]),
    ("zcb", &["zca"]),
    ("zcmop", &["zca"]),
    ("zve64d", &["d"]),
    ("zve64f", &["f"]),
    ("zve32f", &["f"]),
    ("v", &["zve64d"]),
    ("zvbb", &["zve32x"]),
    ("zvbc", &["zve64x"]),
    ("zvkb", &["zve32x"]),
    ("zvkg", &["zve32x"]),
    ("zvkned", &["zve32x"]),
    ("zvknha", &["zve32x"]),
    ("zvknhb", &["zve64x"]),
    ("zvksed", &["zve32x"]),
    ("zvksh", &["zve32x"]),
    ("zvkt", &["zve32x"]),
    ("zvfhmin", &["zve32f"]),
    ("zvfh", &["zve32f", "zfhmin"]),
    ("zvfbfmin", &["zve32f"]),
    ("zvfbfwma", &["zfbfmin", "zvfbfmin"]),
];

/// A set of extensions.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Isa(u128);

const _: () = assert!(EXTENSIONS.len() <= 128);

/// The set of one name; empty for one that is not in the table.
const fn bit(name: &str) -> u128 {
    let name = name.as_bytes();
    let mut at = 0;
    while at < EXTENSIONS.len() {
        let other = EXTENSIONS[at].name.as_bytes();
        if other.len() == name.len() {
            let mut same = 0;
            while same < name.len() && other[same] == name[same] {
                same += 1;
            }
            if same == name.len() {
                return 1 << at;
            }
        }
        at += 1;
    }
    0
}

/// [`IMPLIED`] or [`NEEDED`] as sets.
const fn sets<const N: usize>(rows: &[(&str, &[&str])]) -> [(u128, u128); N] {
    let mut sets = [(0, 0); N];
    let mut at = 0;
    while at < N {
        let (name, others) = rows[at];
        let (mut all, mut other) = (0, 0);
        while other < others.len() {
            assert!(bit(others[other]) != 0, "a name of the rules is not in the table");
            all |= bit(others[other]);
            other += 1;
        }
        assert!(bit(name) != 0, "a name of the rules is not in the table");
        sets[at] = (bit(name), all);
        at += 1;
    }
    sets
}

const IMPLIED_SETS: [(u128, u128); IMPLIED.len()] = sets(IMPLIED);
const NEEDED_SETS: [(u128, u128); NEEDED.len()] = sets(NEEDED);
const F_D: u128 = bit("f") | bit("d");
const C_D: u128 = bit("c") | bit("d");

impl Isa {
    /// The names of a list, such as the strings of `riscv,isa-extensions`; names that are not in the table are left out.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self(names.into_iter().fold(0, |set, name| set | bit(name))).completed()
    }

    /// An ISA string such as `rv64imafdc_zba_zbb`, as in `/proc/cpuinfo`; versions behind names are skipped.
    pub fn from_text(text: &str) -> Self {
        Self::read(text, 0)
    }

    /// The string of the old property `riscv,isa`: as [`Isa::from_text`], but Zicsr, Zifencei, Zicntr and Zihpm are taken to
    /// be there, since `i` once meant them too.
    pub fn from_old_text(text: &str) -> Self {
        Self::read(text, bit("zicsr") | bit("zifencei") | bit("zicntr") | bit("zihpm"))
    }

    fn read(text: &str, mut set: u128) -> Self {
        let text = text.strip_prefix("rv64").or_else(|| text.strip_prefix("rv32")).unwrap_or(text);
        for (at, part) in text.split('_').enumerate() {
            let rest = if at == 0 { letters(part, &mut set) } else { part };
            set |= bit(without_version(rest));
        }
        Self(set).completed()
    }

    /// What is implied, without what cannot be without something else, and without the names that only stand for others.
    fn completed(self) -> Self {
        let mut set = self.0;
        for (name, others) in IMPLIED_SETS {
            set |= if set & name != 0 { others } else { 0 };
        }
        if set & C_D == C_D {
            set |= bit("zcd");
        }
        if set & F_D != F_D {
            set &= !F_D;
        }
        for (name, others) in NEEDED_SETS {
            set &= if set & others == others { u128::MAX } else { !name };
        }
        if set & bit("svade") != 0 {
            set &= !bit("svadu");
        }
        Self(set & ((1 << BUNDLES) - 1))
    }

    /// True when the extension is in the set; `name` in lower case.
    pub const fn has(self, name: &str) -> bool {
        self.0 & bit(name) != 0
    }

    /// The set without these names.
    #[must_use]
    pub fn without(self, names: &[&str]) -> Self {
        Self(names.iter().fold(self.0, |set, name| set & !bit(name)))
    }

    /// The set without what uses vector registers.
    #[must_use]
    pub fn without_vector(self) -> Self {
        Self(self.rows().filter(|(_, extension)| extension.vector).fold(self.0, |set, (at, _)| set & !(1 << at)))
    }

    /// What both have.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The value of AT_HWCAP: a bit for each letter of `imafdcv` (asm/hwcap.h).
    pub fn hwcap(self) -> u64 {
        let letters = EXTENSIONS.iter().take(LETTERS).enumerate().filter(|(_, e)| "imafdcv".contains(e.name));
        letters.filter(|(at, _)| self.0 >> at & 1 != 0).map(|(_, e)| 1 << (e.name.as_bytes()[0] - b'a')).sum()
    }

    /// The bits of `key` that the extensions of the set stand for.
    pub fn word(self, key: u64) -> u64 {
        self.rows().filter_map(|(_, e)| e.word).filter(|word| word.0 == key).fold(0, |sum, word| sum | 1 << word.1)
    }

    /// The extensions of the set with their indices.
    fn rows(self) -> impl Iterator<Item = (usize, &'static Extension)> {
        EXTENSIONS.iter().enumerate().filter(move |(at, _)| self.0 >> at & 1 != 0)
    }

    /// The extensions of the set, in the table's order.
    pub fn iter(self) -> impl Iterator<Item = &'static Extension> {
        self.rows().map(|(_, extension)| extension)
    }
}

/// The single letters at the start of an ISA string; gives what follows them, which a `z`, `s` or `x` begins.
fn letters<'a>(part: &'a str, set: &mut u128) -> &'a str {
    let mut rest = part;
    while let Some(letter) = rest.chars().next() {
        // Old emulators named the modes as if they were extensions.
        let modes = rest.starts_with("su");
        if matches!(letter, 'z' | 's' | 'x') && !modes {
            break;
        }
        let (name, after) = rest.split_at(if modes { 2 } else { letter.len_utf8() });
        *set |= bit(name);
        rest = skip_version(after);
    }
    rest
}

/// Skips `2` or `2p1` at the start.
fn skip_version(text: &str) -> &str {
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let major = digits(text);
    let rest = text.get(major..).unwrap_or_default();
    match rest.strip_prefix('p') {
        Some(minor) if major > 0 && digits(minor) > 0 => minor.get(digits(minor)..).unwrap_or_default(),
        _ => rest,
    }
}

/// Drops `2` or `2p1` at the end, unless the name as it is has a meaning.
fn without_version(name: &str) -> &str {
    if bit(name) != 0 {
        return name;
    }
    let major = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match major.strip_suffix('p') {
        Some(before) if major.len() < name.len() && before.ends_with(|c: char| c.is_ascii_digit()) => {
            before.trim_end_matches(|c: char| c.is_ascii_digit())
        }
        _ => major,
    }
}

/// As the `isa` line shows it: `rv64imafdc_zicbom_…`.
impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rv64")?;
        for (at, extension) in self.rows() {
            if at >= LETTERS {
                f.write_char('_')?;
            }
            f.write_str(extension.name)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The name of bit `bit` of [`IMA_EXT_0`] in lower case is the extension's, but for `fd`.
const _: () = {
    let mut at = 0;
    while at < BUNDLES {
        if let Some((IMA_EXT_0, bit)) = EXTENSIONS[at].word {
            let (name, upper) = (EXTENSIONS[at].name.as_bytes(), EXT_0[bit as usize].name.as_bytes());
            assert!(bit == 0 || name.len() == upper.len() && name[name.len() - 1] == upper[name.len() - 1] | 0x20);
        }
        at += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn names_text_and_the_general_letter_give_the_same_set() {
        let names = ["i", "m", "a", "f", "d", "c", "v", "zba", "zicsr", "zifencei", "zicntr", "zihpm"];
        let expected = "rv64imafdcv_zicntr_zicsr_zifencei_zihpm_zaamo_zalrsc_zca_zcd_zba\
                        _zve32f_zve32x_zve64d_zve64f_zve64x";
        assert_eq!(Isa::from_names(names).to_string(), expected);
        for text in ["rv64imafdcv_zba", "rv64gcv_zba", "rv64i2p1m2p0a2p1f2d2cvzba1p0", "rv64imafdcvsu_zba1"] {
            assert_eq!(Isa::from_old_text(text).to_string(), expected, "{text}");
        }
        assert_eq!(Isa::from_text(expected).to_string(), expected);
        assert_eq!(Isa::from_text("rv64imac").to_string(), "rv64imac_zaamo_zalrsc_zca");
    }

    #[test]
    fn what_needs_another_is_refused() {
        let isa = Isa::from_old_text("rv64imafcv_zfa_zvbb_zcb_zfh");
        assert_eq!(
            isa.to_string(),
            "rv64imac_zicntr_zicsr_zifencei_zihpm_zaamo_zalrsc_zca_zcb_zvbb_zve32x_zve64x_zvkb"
        );
        assert_eq!(isa.hwcap(), 1 << 8 | 1 << 12 | 1 | 1 << 2);
        assert!(!Isa::from_names(["i", "zcb"]).has("zcb"));
        let page_tables = Isa::from_names(["i", "svadu", "svade"]);
        assert!(page_tables.has("svade") && !page_tables.has("svadu"));
    }

    #[test]
    fn bundles_are_their_members() {
        let isa = Isa::from_names(["i", "zk", "zks", "b"]);
        let expected = "rv64i_zba_zbb_zbkb_zbkc_zbkx_zbs_zknd_zkne_zknh_zkr_zkt_zksed_zksh";
        assert_eq!(isa.to_string(), expected);
        let isa = Isa::from_names(["i", "zve64x", "zvkng", "zvksc"]).without(&["i"]);
        let expected = "rv64_zvbc_zve32x_zve64x_zvkb_zvkg_zvkned_zvknhb_zvksed_zvksh_zvkt";
        assert_eq!(isa.to_string(), expected);
        assert_eq!(isa.without_vector(), Isa::default());
    }

    #[test]
    fn words_are_those_of_linux() {
        // What Linux 7.2 says of QEMU's rv64 with vector: golden value.
        let text = "rv64imafdcvh_zicbom_zicbop_zicboz_ziccrse_zicntr_zicsr_zifencei_zihintntl_zihintpause_zihpm_zaamo_zalrsc\
                    _zawrs_zfa_zca_zcd_zba_zbb_zbc_zbs_zve32f_zve32x_zve64d_zve64f_zve64x_sstc_svadu_svvptc";
        let isa = Isa::from_text(text);
        assert_eq!(isa.to_string(), text);
        assert_eq!((isa.word(IMA_EXT_0), isa.word(IMA_EXT_1)), (0x138d_2bf1_2000_00ff, 0));
        assert_eq!(isa.hwcap(), 0x20_112d);
    }

    #[test]
    fn every_bit_of_the_first_word_is_an_extension() {
        let mut seen = 0_u64;
        for (key, bit) in EXTENSIONS.iter().filter_map(|e| e.word) {
            if key == IMA_EXT_0 {
                assert!(seen >> bit & 1 == 0, "{bit}");
                seen |= 1 << bit;
            }
        }
        // Those of 32-bit harts only are missing.
        assert_eq!(!seen, 1 << 46 | 1 << 61 | 1 << 62);
    }
}
