//! Which of the many counts is meant: names as the user writes them.

use super::document::{BOOT, Cell, Outcome};
use anyhow::{Result, bail};
use model::{Counts, Mode, Modes};

/// A count, of all modes that make up a workload's cost, or of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    mode: Option<Mode>,
    name: String,
}

/// The kernel's own counts, which do not come from the plugin: of spurious faults, and of locks found taken.
const SPURIOUS: &str = "spurious";
const LOCK_WAITS: &str = "lock_waits";

/// Names for sums and short forms, each with what it is.
pub const NAMES: &[(&str, &str)] = &[
    ("instructions", "instructions completed; on several harts the kernel's, without those of waiting"),
    ("waiting", "instructions of loops around a pause, from the second turn on"),
    ("sfence", "sfence.vma and sinval.vma of every form"),
    ("csr", "instructions that access a control and status register; csr_NAME_writes and so on for one"),
    ("ras4", "mispredicted returns of a return-address stack of 4 entries; ras8, ras16, ras32"),
    ("ras", "the same of an unbounded stack"),
    ("loads", "loads; also stores, amo, lrsc, fence, fence_i, vector, fp, ecall, sret, calls, returns"),
    ("faults", "page faults; repeated_faults are those with pc, address and cause of the one before"),
    (SPURIOUS, "spurious page faults by the kernel's own count, setting up and warming up included (Limen)"),
    (LOCK_WAITS, "spin locks found taken, by the same"),
    ("interrupts", "interrupts; trap_NAME for a trap of one kind"),
    ("time", "nanoseconds of the guest's time"),
];

impl Count {
    /// Reads a name, `kernel.NAME`, `user.NAME` or `firmware.NAME`.
    ///
    /// # Errors
    /// There is no such count.
    pub fn parse(text: &str) -> Result<Self> {
        let (mode, name) = match text.split_once('.') {
            Some(("user", name)) => (Some(Mode::User), name),
            Some(("kernel", name)) => (Some(Mode::Kernel), name),
            Some(("firmware", name)) => (Some(Mode::Firmware), name),
            _ => (None, text),
        };
        let count = Self { mode, name: name.to_owned() };
        let is_known = name.starts_with("csr_")
            || name.starts_with("trap_")
            || ((["time", SPURIOUS, LOCK_WAITS].contains(&name)) && mode.is_none())
            || count.figure(&Counts::default()).is_some();
        if !is_known {
            bail!("no count {text:?}: see `cargo limen lab list`");
        }
        Ok(count)
    }

    /// Reads several.
    ///
    /// # Errors
    /// There is no such count.
    pub fn parse_all(texts: &[String]) -> Result<Vec<Self>> {
        texts.iter().filter(|text| !text.is_empty()).map(|text| Self::parse(text)).collect()
    }

    /// The head of its column.
    pub fn head(&self) -> String {
        let name = match self.name.as_str() {
            "instructions" => "instr",
            name => name,
        };
        match self.mode {
            None => name.to_owned(),
            Some(Mode::User) => format!("u.{name}"),
            Some(Mode::Kernel) => format!("k.{name}"),
            Some(Mode::Firmware) => format!("m.{name}"),
        }
    }

    /// Its name in full.
    pub fn name(&self) -> String {
        match self.mode {
            None => self.name.clone(),
            Some(mode) => format!("{}.{}", format!("{mode:?}").to_lowercase(), self.name),
        }
    }

    /// What it is in `modes`, of which those in `own` count.
    pub fn total(&self, modes: &Modes, own: &[Mode]) -> u64 {
        let one = |mode: &Mode| self.figure(modes.of(*mode)).unwrap_or(0);
        match self.mode {
            Some(mode) => one(&mode),
            None => own.iter().map(one).sum(),
        }
    }

    /// What it is for one operation of a cell that was counted.
    pub fn per_operation(&self, cell: &Cell) -> Option<f64> {
        let Outcome::Counted { nanoseconds, spurious, lock_waits, region } = &cell.outcome else { return None };
        if let Some((_, own)) =
            [(SPURIOUS, spurious), (LOCK_WAITS, lock_waits)].iter().find(|(name, _)| *name == self.name)
        {
            return own.map(|count| count as f64 / cell.operations.max(1) as f64);
        }
        if self.name == "time" {
            return Some(*nanoseconds);
        }
        // The firmware's waiting does not touch these, and it fences for the kernel on other harts.
        let is_fence = self.name.starts_with("sfence") || self.name.starts_with("sinval");
        let own = if is_fence && cell.workload != BOOT { &Mode::ALL } else { cell.own_modes() };
        let mut total = self.total(&region.total, own);
        if self.name == "instructions" && self.mode.is_none() && cell.harts > 1 {
            total -= own.iter().map(|mode| region.total.of(*mode).waiting).sum::<u64>();
        }
        Some(total as f64 / cell.operations.max(1) as f64)
    }

    /// `None` for a name that is not known; registers and traps that never occurred count as 0.
    fn figure(&self, counts: &Counts) -> Option<u64> {
        let figures = counts.figures();
        let sum = |wanted: fn(&str) -> bool| {
            Some(figures.iter().filter(|(name, _)| wanted(name)).map(|(_, count)| count).sum())
        };
        let one = |wanted: &str| figures.iter().find(|(name, _)| name == wanted).map(|(_, count)| *count);
        match self.name.as_str() {
            "sfence" => {
                sum(|name| (name.starts_with("sfence_") || name.starts_with("sinval_")) && !name.contains("_inval"))
            }
            "faults" => sum(|name| name.ends_with("_page_faults")),
            "lrsc" => sum(|name| name == "lr" || name == "sc"),
            "ras" => one("mispredicted_unbounded"),
            name => one(name).or_else(|| one(&format!("mispredicted_{}", name.strip_prefix("ras")?))),
        }
    }
}

/// A figure in at most 7 characters.
pub fn short(value: f64) -> String {
    let text = match value {
        _ if value < 9.995 => format!("{value:.2}"),
        _ if value < 9_999.95 => format!("{value:.1}"),
        _ if value < 9_999_999.5 => format!("{value:.0}"),
        _ if value < 99_999.5e6 => return format!("{:.1}M", value / 1e6),
        _ => return format!("{value:.1e}"),
    };
    match text.strip_suffix(".00").or_else(|| text.strip_suffix(".0")) {
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_understood() {
        for (name, _) in NAMES {
            assert!(Count::parse(name).is_ok(), "{name}");
        }
        for name in ["kernel.loads", "ras16", "csr_sstatus_writes", "user.ras", "sret", "firmware.trap_timer_m"] {
            assert!(Count::parse(name).is_ok(), "{name}");
        }
        for name in ["", "load", "kernel.time", "guest.loads", "ras5"] {
            assert!(Count::parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn sums_leave_out_what_is_no_fence_of_entries() {
        let mut modes = Modes::default();
        modes.kernel.sfence_all = 1;
        modes.kernel.sfence_page_asid = 2;
        modes.kernel.sinval_asid = 4;
        modes.kernel.sfence_w_inval = 8;
        modes.kernel.sfence_inval_ir = 16;
        modes.firmware.sfence_all = 32;
        modes.user.mispredicted[1] = 5;
        let total = |name: &str, own: &[Mode]| Count::parse(name).unwrap().total(&modes, own);
        assert_eq!(total("sfence", &Mode::ALL), 39);
        assert_eq!(total("sfence", &[Mode::Kernel]), 7);
        assert_eq!(total("firmware.sfence", &[Mode::Kernel]), 32);
        assert_eq!((total("ras8", &Mode::ALL), total("csr_satp_writes", &Mode::ALL)), (5, 0));
    }

    #[test]
    fn figures_stay_short() {
        let shown = [0.0, 0.04, 71.0, 204.006, 429.44, 15_929.1, 972_358.2, 943_600_000.0].map(short);
        assert_eq!(shown, ["0", "0.04", "71", "204", "429.4", "15929", "972358", "943.6M"]);
    }
}
