//! The form of the counts: one [`Report`] for a run, written as JSON by the plugin and read by the command.
//!
//! A program marks what is to be counted by two instructions that do nothing else, in any mode: `slti x0, x0, 2 * id`
//! begins region `id` (1 to [`REGIONS`](crate::REGIONS)), `slti x0, x0, 2 * id + 1` ends it. The markers themselves are
//! not counted. One region is open at a time, on all harts alike: a second begin ends the first region, an end of a region
//! that is not open does nothing. A region that is opened again goes on adding to the same counts.
//!
//! An instruction is counted when it completes: one that faults and is executed again is counted once. `ecall` and
//! `ebreak` count as instructions of the mode they are executed in.
//!
//! Everything between a trap taken from user mode and the next instruction in user mode, in whatever mode and through
//! whatever nested traps, belongs to the [`Bucket`] of that trap; a task switch inside ends with the other task's
//! return. User instructions are the bucket [`Cause::User`]. The buckets of a region add up to its total.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// All that one run of a machine counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The form of this document, [`Report::FORMAT`].
    pub format: u32,
    /// Version of the plugin.
    pub plugin: String,
    /// QEMU's name of the guest architecture.
    pub target: String,
    /// Harts of the machine. With more than one the counts do not repeat exactly.
    pub harts: u32,
    /// [`DEPTHS`](crate::DEPTHS): the depths modelled, in the order of each `mispredicted`; null is unbounded.
    pub depths: Vec<Option<u32>>,
    /// The regions that were ever open, by number.
    pub regions: Vec<Region>,
}

impl Report {
    /// The form that this version writes and reads.
    pub const FORMAT: u32 = 1;

    /// The region with this number.
    pub fn region(&self, id: u16) -> Option<&Region> {
        self.regions.iter().find(|region| region.id == id)
    }
}

/// What was counted between the markers of one number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// Its number; 0 is the boot, from reset to the first user instruction.
    pub id: u16,
    /// How often it was begun.
    pub entries: u64,
    /// Whether each begin had its end (for the boot: whether user mode was reached).
    pub complete: bool,
    /// The sum of the buckets.
    pub total: Modes,
    /// The same counts by what the hart was in the kernel for.
    pub buckets: Vec<Bucket>,
    /// Returns by mode and by kind of trap.
    pub returns: Vec<Returns>,
}

/// The counts of one reason for being in the kernel, or of user mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// The reason.
    pub cause: Cause,
    /// Traps from user mode that opened it inside the region (0 for boot and user).
    pub entries: u64,
    /// The counts.
    pub counts: Modes,
}

/// Why a hart is where it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It has not been in user mode yet.
    Boot,
    /// It is in user mode.
    User,
    /// System call with this number in a7; `None` for numbers above 1023.
    Call(Option<u16>),
    /// Exception of this name, see [`crate::trap_name`].
    Fault(String),
    /// Interrupt of this name, see [`crate::trap_name`].
    Interrupt(String),
}

/// A mode's share of the returns, by the kind of trap that matters to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returns {
    /// Where the return was executed.
    pub mode: Mode,
    /// In kernel and firmware: the kind of trap being handled. In user mode: the kind of the last one, which may have
    /// left its calls in the stack.
    pub context: Context,
    /// Returns executed (`ret` and its like, by the hints of x1 and x5).
    pub returns: u64,
    /// Of these mispredicted, at each of the depths.
    pub mispredicted: [u64; 5],
}

/// The kinds of trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Context {
    /// None yet.
    Boot,
    /// System call.
    Call,
    /// Exception other than a call.
    Fault,
    /// Interrupt.
    Interrupt,
}

/// The privilege modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// U.
    User,
    /// S (and HS).
    Kernel,
    /// M.
    Firmware,
}

impl Mode {
    /// All of them, in order of privilege.
    pub const ALL: [Mode; 3] = [Mode::User, Mode::Kernel, Mode::Firmware];
}

/// Counts of each mode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Modes {
    /// User mode.
    pub user: Counts,
    /// Supervisor mode.
    pub kernel: Counts,
    /// Machine mode.
    pub firmware: Counts,
}

impl Modes {
    /// The counts of `mode`.
    pub fn of(&self, mode: Mode) -> &Counts {
        match mode {
            Mode::User => &self.user,
            Mode::Kernel => &self.kernel,
            Mode::Firmware => &self.firmware,
        }
    }

    /// The counts of `mode`, to change.
    pub fn of_mut(&mut self, mode: Mode) -> &mut Counts {
        match mode {
            Mode::User => &mut self.user,
            Mode::Kernel => &mut self.kernel,
            Mode::Firmware => &mut self.firmware,
        }
    }

    /// The three together.
    pub fn all(&self) -> Counts {
        let mut sum = self.user.clone();
        sum += &self.kernel;
        sum += &self.firmware;
        sum
    }
}

impl AddAssign<&Modes> for Modes {
    fn add_assign(&mut self, other: &Modes) {
        self.user += &other.user;
        self.kernel += &other.kernel;
        self.firmware += &other.firmware;
    }
}

/// Accesses to one control and status register, by instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsrCount {
    /// Instructions that name it.
    pub accesses: u64,
    /// Of these, that put its value into a register, or only read it.
    pub reads: u64,
    /// Of these, that change it. One instruction can do both.
    pub writes: u64,
}

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Events, each counted in the mode in which the instruction was executed, a trap in the mode it was taken from.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
            /// Returns mispredicted at each of the depths.
            pub mispredicted: [u64; 5],
            /// Accesses to control and status registers by name.
            pub csrs: BTreeMap<String, CsrCount>,
            /// Traps taken, by name (see [`crate::trap_name`]).
            pub traps: BTreeMap<String, u64>,
        }

        impl Counts {
            /// Every figure with its name: `loads`, `mispredicted_16`, `mispredicted_unbounded`, `csr_sstatus_writes`,
            /// `trap_load_page_fault`.
            pub fn figures(&self) -> Vec<(String, u64)> {
                let mut all: Vec<(String, u64)> = vec![$((stringify!($name).to_owned(), self.$name),)*];
                for (depth, count) in crate::DEPTHS.iter().zip(self.mispredicted) {
                    let depth = depth.map_or("unbounded".to_owned(), |depth| depth.to_string());
                    all.push((format!("mispredicted_{depth}"), count));
                }
                for (name, count) in &self.csrs {
                    all.push((format!("csr_{name}_accesses"), count.accesses));
                    all.push((format!("csr_{name}_reads"), count.reads));
                    all.push((format!("csr_{name}_writes"), count.writes));
                }
                all.extend(self.traps.iter().map(|(name, count)| (format!("trap_{name}"), *count)));
                all
            }
        }

        impl AddAssign<&Counts> for Counts {
            fn add_assign(&mut self, other: &Counts) {
                $(self.$name += other.$name;)*
                for (sum, count) in self.mispredicted.iter_mut().zip(other.mispredicted) {
                    *sum += count;
                }
                for (name, count) in &other.csrs {
                    let sum = self.csrs.entry(name.clone()).or_default();
                    sum.accesses += count.accesses;
                    sum.reads += count.reads;
                    sum.writes += count.writes;
                }
                for (name, count) in &other.traps {
                    *self.traps.entry(name.clone()).or_default() += count;
                }
            }
        }
    };
}

counts! {
    /// Instructions completed, with `ecall` and `ebreak`.
    instructions,
    /// Load instructions, FP and vector ones too; not LR, not AMO.
    loads,
    /// Store instructions, FP and vector ones too; not SC, not AMO, not `cbo.zero`.
    stores,
    /// Atomic read-modify-write instructions (Zaamo, Zacas).
    amo,
    /// Load-reserved.
    lr,
    /// Store-conditional, successful or not.
    sc,
    /// `fence` of any kind but `pause`.
    fence,
    /// `fence.i`.
    fence_i,
    /// `sfence.vma x0, x0`: everything.
    sfence_all,
    /// `sfence.vma x0, asid`: one address space.
    sfence_asid,
    /// `sfence.vma page, x0`: one page in all spaces.
    sfence_page,
    /// `sfence.vma page, asid`: one page in one space.
    sfence_page_asid,
    /// `sinval.vma x0, x0`.
    sinval_all,
    /// `sinval.vma x0, asid`.
    sinval_asid,
    /// `sinval.vma page, x0`.
    sinval_page,
    /// `sinval.vma page, asid`.
    sinval_page_asid,
    /// `sfence.w.inval`.
    sfence_w_inval,
    /// `sfence.inval.ir`.
    sfence_inval_ir,
    /// CSR instructions, the sum of `csrs`.
    csr,
    /// `ecall`.
    ecall,
    /// `ebreak`.
    ebreak,
    /// `sret`.
    sret,
    /// `mret`.
    mret,
    /// `wfi`.
    wfi,
    /// Vector instructions: arithmetic, configuration, loads and stores.
    vector,
    /// Floating-point instructions: arithmetic, moves, loads and stores.
    fp,
    /// `cbo.zero`.
    cbo_zero,
    /// `cbo.clean`, `cbo.flush`, `cbo.inval`.
    cbo_manage,
    /// Instructions that push a return address, by the hints of x1 and x5.
    calls,
    /// Instructions that pop one.
    returns,
    /// Page faults on an instruction fetch, taken from this mode.
    instruction_page_faults,
    /// Page faults on a load.
    load_page_faults,
    /// Page faults on a store or AMO.
    store_page_faults,
    /// Page faults with the pc, address and cause of the one before on the same hart, no instruction of this mode having
    /// completed in between: an estimate of spurious ones.
    repeated_faults,
    /// Interrupts taken from this mode.
    interrupts,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_writing_and_reading() {
        let mut counts = Counts { loads: 3, mispredicted: [5, 4, 3, 2, 1], ..Counts::default() };
        counts.csrs.insert("sstatus".into(), CsrCount { accesses: 2, reads: 1, writes: 2 });
        let modes = Modes { kernel: counts, ..Modes::default() };
        let cause = |cause| Bucket { cause, entries: 1, counts: modes.clone() };
        let report = Report {
            format: Report::FORMAT,
            depths: crate::DEPTHS.to_vec(),
            regions: vec![Region {
                id: 7,
                entries: 1,
                buckets: vec![
                    cause(Cause::Call(Some(64))),
                    cause(Cause::Call(None)),
                    cause(Cause::Fault("load_page_fault".into())),
                    cause(Cause::User),
                ],
                returns: vec![Returns {
                    mode: Mode::Kernel,
                    context: Context::Call,
                    returns: 9,
                    mispredicted: [1, 0, 0, 0, 0],
                }],
                ..Region::default()
            }],
            ..Report::default()
        };
        let text = serde_json::to_string(&report).unwrap();
        assert!(text.contains(r#""cause":{"call":64}"#) && text.contains(r#""cause":"user""#), "{text}");
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    }

    #[test]
    fn figures_carry_their_names() {
        let mut counts = Counts { fence_i: 2, mispredicted: [0, 0, 7, 0, 1], ..Counts::default() };
        counts.csrs.insert("satp".into(), CsrCount { accesses: 3, reads: 1, writes: 2 });
        counts.traps.insert("breakpoint".into(), 4);
        let doubled = {
            let mut sum = counts.clone();
            sum += &counts;
            sum
        };
        let find = |name: &str| doubled.figures().into_iter().find(|(known, _)| known == name).map(|(_, count)| count);
        assert_eq!(find("fence_i"), Some(4));
        assert_eq!(find("mispredicted_16"), Some(14));
        assert_eq!(find("mispredicted_unbounded"), Some(2));
        assert_eq!(find("csr_satp_writes"), Some(4));
        assert_eq!(find("trap_breakpoint"), Some(8));
    }
}
