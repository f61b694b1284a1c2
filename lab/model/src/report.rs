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

use crate::Counts;
use serde::{Deserialize, Serialize};
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

impl Context {
    /// All of them.
    pub const ALL: [Context; 4] = [Context::Boot, Context::Call, Context::Fault, Context::Interrupt];
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CsrCount;

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
}
