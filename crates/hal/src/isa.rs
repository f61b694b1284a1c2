//! What the harts can do: the extensions of the device tree, as a set, and as the strings that programs are shown.
//!
//! Only extensions that Limen supports for programs are in the table: vector and what depends on it are not, so nothing
//! promises them. The order is that of the `isa` line of `/proc/cpuinfo` (kernel document uabi.rst: single letters in
//! canonical order, then multi-letter extensions by category).

use core::fmt::{self, Write};

use crate::boot::HartInfo;

/// Names in the order in which they are shown; single letters first.
const NAMES: [&str; 66] = [
    "i",
    "m",
    "a",
    "f",
    "d",
    "q",
    "c",
    "h",
    "zicbom",
    "zicbop",
    "zicboz",
    "ziccrse",
    "zicntr",
    "zicond",
    "zicsr",
    "zifencei",
    "zihintntl",
    "zihintpause",
    "zihpm",
    "zimop",
    "zaamo",
    "zabha",
    "zacas",
    "zalasr",
    "zalrsc",
    "zawrs",
    "zfa",
    "zfbfmin",
    "zfh",
    "zfhmin",
    "zca",
    "zcb",
    "zcd",
    "zcmop",
    "zba",
    "zbb",
    "zbc",
    "zbkb",
    "zbkc",
    "zbkx",
    "zbs",
    "zk",
    "zkn",
    "zknd",
    "zkne",
    "zknh",
    "zkr",
    "zks",
    "zksed",
    "zksh",
    "zkt",
    "ztso",
    "smaia",
    "smmpm",
    "smnpm",
    "smstateen",
    "ssaia",
    "sscofpmf",
    "ssnpm",
    "sstc",
    "svade",
    "svadu",
    "svinval",
    "svnapot",
    "svpbmt",
    "svvptc",
];
/// How many of [`NAMES`] are single letters.
const LETTERS: usize = 8;

/// Bits of AT_HWCAP: the letter's place in the alphabet (asm/hwcap.h).
const HWCAP: &str = "imafdc";

/// A set of extensions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Isa(u128);

impl Isa {
    /// What the device tree says of one hart: `riscv,isa-extensions` if it is there, else `riscv,isa`.
    pub fn of(hart: &HartInfo) -> Self {
        let mut isa = Self(0);
        if hart.isa_extensions.is_empty() {
            let mut parts = hart.isa.split('_');
            let letters = parts.next().unwrap_or("").strip_prefix("rv64").unwrap_or("");
            for (at, letter) in letters.char_indices() {
                match letter {
                    'g' => ["i", "m", "a", "f", "d"].iter().for_each(|n| isa.add(n)),
                    _ => isa.add(&letters[at..at + letter.len_utf8()]),
                }
            }
            parts.for_each(|name| isa.add(name));
            // The older string leaves these out, since `i` once meant them too.
            ["zicsr", "zifencei", "zicntr", "zihpm"].iter().for_each(|n| isa.add(n));
        } else {
            let names = hart.isa_extensions.split(|&b| b == 0);
            names.filter_map(|n| core::str::from_utf8(n).ok()).for_each(|name| isa.add(name));
        }
        isa.complete();
        isa
    }

    fn bit(name: &str) -> u128 {
        NAMES.iter().position(|n| *n == name).map_or(0, |at| 1 << at)
    }

    fn add(&mut self, name: &str) {
        self.0 |= Self::bit(name);
    }

    /// What is implied, and what cannot be without something else.
    fn complete(&mut self) {
        if self.has("a") {
            self.add("zaamo");
            self.add("zalrsc");
        }
        if !self.has("f") || !self.has("d") {
            for name in ["f", "d", "zfa", "zfh", "zfhmin", "zfbfmin", "zcd"] {
                self.0 &= !Self::bit(name);
            }
        }
        if self.has("c") {
            self.add("zca");
            if self.has("d") {
                self.add("zcd");
            }
        }
        if self.has("svade") {
            self.0 &= !Self::bit("svadu");
        }
    }

    /// True when the extension is in the set; `name` in lower case.
    pub fn has(self, name: &str) -> bool {
        self.0 & Self::bit(name) != 0
    }

    /// What all `harts` have.
    pub fn common(harts: &[HartInfo]) -> Self {
        harts.iter().map(Self::of).reduce(|a, b| Self(a.0 & b.0)).unwrap_or(Self(0))
    }

    /// The value of AT_HWCAP.
    pub fn hwcap(self) -> usize {
        (0..HWCAP.len()).filter(|&i| self.has(&HWCAP[i..=i])).map(|i| 1 << (HWCAP.as_bytes()[i] - b'a')).sum()
    }
}

/// As the `isa` line shows it: `rv64imafdc_zicbom_…`.
impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rv64")?;
        for (at, name) in NAMES.iter().enumerate().filter(|(at, _)| self.0 >> at & 1 != 0) {
            if at >= LETTERS {
                f.write_char('_')?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::Isa;
    use crate::boot::HartInfo;

    #[test]
    fn both_properties_give_the_same_set() {
        let list = HartInfo {
            isa_extensions: b"i\0m\0a\0f\0d\0c\0v\0zba\0zicsr\0zifencei\0zicntr\0zihpm\0",
            ..HartInfo::default()
        };
        let text = HartInfo { isa: "rv64imafdcv_zba", ..HartInfo::default() };
        let general = HartInfo { isa: "rv64gc_zba", ..HartInfo::default() };
        let expected = "rv64imafdc_zicntr_zicsr_zifencei_zihpm_zaamo_zalrsc_zca_zcd_zba";
        for hart in [list, text, general] {
            assert_eq!(Isa::of(&hart).to_string(), expected);
        }
    }

    #[test]
    fn single_without_double_precision_is_refused() {
        let hart = HartInfo { isa: "rv64imafc", ..HartInfo::default() };
        assert!(!Isa::of(&hart).has("f"));
        assert_eq!(Isa::of(&hart).hwcap(), 1 << 8 | 1 << 12 | 1 | 1 << 2);
    }

    #[test]
    fn vector_is_never_shown() {
        let hart = HartInfo { isa: "rv64imafdcvh_zve64d_zvbb", ..HartInfo::default() };
        let text = Isa::of(&hart).to_string();
        assert!(!text.contains('v') || text.starts_with("rv64imafdch_"), "{text}");
        assert!(!text[4..].contains('v'), "{text}");
    }
}
