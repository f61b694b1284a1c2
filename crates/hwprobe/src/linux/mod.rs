//! Typed queries to the running Linux.
//!
//! [`features`] asks once for everything about all harts, and keeps it. The kernel is asked by its vDSO, else by the system
//! call; where it has neither (before 6.4), extensions and identities are taken from `/proc/cpuinfo`. Elsewhere than on a
//! riscv64 Linux nothing is known.
//!
//! ```
//! let features = riscv_hwprobe::features();
//! if features.has("zbb") && features.misaligned_scalar().is_fast() {
//!     // … the routine made for such harts
//! }
//! ```

mod raw;

use crate::isa::{EXTENSIONS, Isa};
use crate::keys::{
    IMA_EXT_0, IMA_EXT_1, MARCHID, MIMPID, MISALIGNED_EMULATED, MISALIGNED_FAST, MISALIGNED_SCALAR_PERF,
    MISALIGNED_SLOW, MISALIGNED_UNSUPPORTED, MISALIGNED_VECTOR_PERF, MVENDORID, TIME_CSR_FREQ, ZICBOM_BLOCK_SIZE,
    ZICBOP_BLOCK_SIZE, ZICBOZ_BLOCK_SIZE,
};
use crate::pair::{Harts, Pair};
use crate::rules::{KEYS, WHICH_CPUS};
use std::sync::OnceLock;

/// An error number, as in errno(3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl std::fmt::Display for Errno {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::io::Error::from_raw_os_error(self.0).fmt(f)
    }
}

impl std::error::Error for Errno {}

/// Answers `pairs` for `harts`, or for all harts with `None`. Keys that the kernel does not know become -1.
///
/// # Errors
/// EINVAL for a set without a hart that is online; ENOSYS where there is no such call.
pub fn probe(pairs: &mut [Pair], harts: Option<&Harts>) -> Result<(), Errno> {
    let mut set = harts.map(|harts| harts.0);
    let set = set.as_mut().map_or(&mut [][..], |set| &mut set[..]);
    raw::ask(pairs, set, 0).map(|_| ())
}

/// Those of `harts`, or of all harts if it is empty, that match all `pairs`: the value is equal, or, for keys of bits, has
/// the bits of the pair's. Keys that the kernel does not know match nowhere.
///
/// # Errors
/// EINVAL before Linux 6.9; ENOSYS where there is no such call.
pub fn which(pairs: &[Pair], harts: &Harts) -> Result<Harts, Errno> {
    let (mut pairs, mut set) = (pairs.to_vec(), *harts);
    raw::ask(&mut pairs, &mut set.0, WHICH_CPUS)?;
    // A set of harts that the machine does not have counts as empty to the kernel: as all.
    Ok(if harts.is_empty() { set } else { set.and(harts) })
}

/// Where [`Features`] come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The function of the vDSO.
    Vdso,
    /// The system call.
    Call,
    /// `/proc/cpuinfo`.
    CpuInfo,
    /// Nothing tells.
    Nothing,
}

/// How misaligned accesses fare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Misaligned {
    Unknown,
    Emulated,
    Slow,
    Fast,
    Unsupported,
}

impl Misaligned {
    /// Faster than bytes: worth using.
    pub fn is_fast(self) -> bool {
        self == Self::Fast
    }

    fn from_value(value: Option<u64>) -> Self {
        match value {
            Some(MISALIGNED_EMULATED) => Self::Emulated,
            Some(MISALIGNED_SLOW) => Self::Slow,
            Some(MISALIGNED_FAST) => Self::Fast,
            Some(MISALIGNED_UNSUPPORTED) => Self::Unsupported,
            _ => Self::Unknown,
        }
    }
}

/// What all harts can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    values: [Option<u64>; KEYS],
    source: Source,
}

/// What all harts can do; asked at the first call.
pub fn features() -> &'static Features {
    static FEATURES: OnceLock<Features> = OnceLock::new();
    FEATURES.get_or_init(|| Features::of(None).unwrap_or_else(|_| Features::from_cpuinfo()))
}

impl Features {
    /// What the harts of a set can do, asked anew.
    ///
    /// # Errors
    /// As [`probe`].
    pub fn of(harts: Option<&Harts>) -> Result<Self, Errno> {
        let mut pairs: [Pair; KEYS] = core::array::from_fn(|key| Pair::ask(key as u64));
        let mut set = harts.map(|harts| harts.0);
        let set = set.as_mut().map_or(&mut [][..], |set| &mut set[..]);
        let way = raw::ask(&mut pairs, set, 0)?;
        let source = if way == raw::Way::Vdso { Source::Vdso } else { Source::Call };
        Ok(Self { values: pairs.map(Pair::answer), source })
    }

    fn from_cpuinfo() -> Self {
        let text = if cfg!(all(target_arch = "riscv64", target_os = "linux")) {
            std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default()
        } else {
            String::new()
        };
        Self::from_cpuinfo_text(&text)
    }

    fn from_cpuinfo_text(text: &str) -> Self {
        let line = |section: &'_ str, name: &str| {
            let line = section.lines().find(|line| line.split([':', '\t', ' ']).next() == Some(name))?;
            line.split_once(':').map(|(_, value)| value.trim().to_owned())
        };
        let harts: Vec<&str> = text.split("\n\n").filter(|section| line(section, "isa").is_some()).collect();
        let isa =
            harts.iter().filter_map(|hart| line(hart, "isa")).map(|text| Isa::from_old_text(&text)).reduce(Isa::and);
        let Some(isa) = isa else { return Self { values: [None; KEYS], source: Source::Nothing } };
        let id = |name: &str| {
            let mut all = harts.iter().map(|hart| line(hart, name).and_then(|text| crate::number(&text)));
            let first = all.next()??;
            Some(if all.all(|id| id == Some(first)) { first } else { u64::MAX })
        };
        let values = core::array::from_fn(|key| match key as u64 {
            MVENDORID => id("mvendorid"),
            MARCHID => id("marchid"),
            MIMPID => id("mimpid"),
            key @ (IMA_EXT_0 | IMA_EXT_1) => Some(isa.word(key)),
            _ => None,
        });
        Self { values, source: Source::CpuInfo }
    }

    /// The value of a key; `None` where the kernel does not know it.
    pub fn value(&self, key: u64) -> Option<u64> {
        self.values.get(usize::try_from(key).ok()?).copied().flatten()
    }

    /// Whether an extension is there, by its name in lower case: `zba`, `c`, `v`; `d` stands for F and D.
    pub fn has(&self, name: &str) -> bool {
        let word = EXTENSIONS.iter().find(|extension| extension.name == name).and_then(|extension| extension.word);
        word.is_some_and(|(key, bit)| self.value(key).is_some_and(|value| value >> bit & 1 != 0))
    }

    /// Misaligned scalar accesses; before Linux 6.11 by the old key.
    pub fn misaligned_scalar(&self) -> Misaligned {
        Misaligned::from_value(self.value(MISALIGNED_SCALAR_PERF).or(self.value(crate::keys::CPUPERF_0).map(|v| v & 7)))
    }

    /// Misaligned vector accesses.
    pub fn misaligned_vector(&self) -> Misaligned {
        Misaligned::from_value(self.value(MISALIGNED_VECTOR_PERF))
    }

    /// Bytes that `cbo.zero` clears, where all harts have it.
    pub fn zicboz_block(&self) -> Option<u64> {
        self.value(ZICBOZ_BLOCK_SIZE).filter(|size| *size != 0)
    }

    /// Bytes that `cbo.clean` and `cbo.flush` write back, where all harts have them.
    pub fn zicbom_block(&self) -> Option<u64> {
        self.value(ZICBOM_BLOCK_SIZE).filter(|size| *size != 0)
    }

    /// Bytes that `prefetch.r` and the like fetch, where all harts have them.
    pub fn zicbop_block(&self) -> Option<u64> {
        self.value(ZICBOP_BLOCK_SIZE).filter(|size| *size != 0)
    }

    /// Frequency of the `time` register in Hz.
    pub fn time_frequency(&self) -> Option<u64> {
        self.value(TIME_CSR_FREQ)
    }

    /// mvendorid, marchid and mimpid; -1 where harts differ.
    pub fn ids(&self) -> [Option<u64>; 3] {
        [MVENDORID, MARCHID, MIMPID].map(|key| self.value(key))
    }

    /// Who told.
    pub fn source(&self) -> Source {
        self.source
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpuinfo_tells_extensions_and_identities() {
        let text = "processor\t: 0\nhart\t\t: 0\nisa\t\t: rv64imafdc_zba_zbb\nmvendorid\t: 0x489\nmarchid\t\t: 0x7\n\n\
                    processor\t: 1\nisa\t\t: rv64imafdc_zba\nmvendorid\t: 0x489\nmarchid\t\t: 0x8\nhart isa\t: rv64i\n\n";
        let features = Features::from_cpuinfo_text(text);
        assert_eq!(features.source(), Source::CpuInfo);
        assert!(features.has("zba") && features.has("c") && features.has("d") && !features.has("zbb"));
        assert_eq!(features.ids(), [Some(0x489), Some(u64::MAX), None]);
        assert_eq!(features.misaligned_scalar(), Misaligned::Unknown);
        assert_eq!(Features::from_cpuinfo_text("").source(), Source::Nothing);
    }

    #[test]
    #[cfg(not(all(target_arch = "riscv64", target_os = "linux")))]
    fn elsewhere_nothing_is_known() {
        assert_eq!(probe(&mut [Pair::ask(3)], None), Err(Errno(38)));
        assert!(which(&[], &Harts::default()).is_err());
        assert!(!features().has("zba"));
        assert_eq!(features().source(), Source::Nothing);
    }
}
