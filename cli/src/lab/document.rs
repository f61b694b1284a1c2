//! What a run of the lab leaves: all counts, and all that is needed to repeat them.
//!
//! The counts of a workload are a [`model::Region`] as the plugin wrote it; `lab/model` says what each figure means.
//! Nothing in the document depends on the day or on the place where it was made, so that two runs of the same things on
//! one hart give the same document.

use anyhow::{Context, Result, bail};
use model::{Mode, Region};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The name of the row that has no workload: from the kernel's first instruction to the first one in user mode.
pub const BOOT: &str = "boot";

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// The form of this document, [`Document::FORMAT`].
    pub format: u32,
    /// The repository's commit, with `-dirty` if files differed from it.
    pub revision: String,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// The machine.
    pub machine: MachineInfo,
    /// Versions of what it was made with: `qemu`, `firmware`, `compiler`, `plugin`.
    pub versions: BTreeMap<String, String>,
    /// SHA-256 of the files that are the same for all kernels: `plugin`, `workloads`, `init`, `busybox`, `firmware`.
    pub hashes: BTreeMap<String, String>,
    /// The results, by kernel; ratios are to the first.
    pub kernels: Vec<KernelResult>,
}

/// The machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineInfo {
    /// CPU model and properties.
    pub cpu: String,
    /// Harts, but for the workloads that need more.
    pub smp: u32,
    /// Memory.
    pub mem: String,
    /// What is set otherwise in its device tree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tree: Vec<String>,
    /// Whether the workloads began 20 seconds of the guest's time after boot.
    pub settled: bool,
}

/// One kernel's results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelResult {
    /// As it was named.
    pub name: String,
    /// What it says of itself.
    pub version: String,
    /// SHA-256 of its image.
    pub hash: String,
    /// Its command line.
    pub arguments: String,
    /// How QEMU was called, once a boot; `ROOT` and `COUNTS` stand for the root's archive and the plugin's output.
    pub qemu: Vec<String>,
    /// Why it could not be booted.
    pub failure: Option<String>,
    /// The rows.
    pub cells: Vec<Cell>,
}

/// One workload on one kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Its name.
    pub workload: String,
    /// How often the operation was done.
    pub operations: u64,
    /// Harts that it needed.
    pub harts: u32,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was counted.
    Counted {
        /// The guest's time for one operation, which on one hart is its instructions.
        nanoseconds: f64,
        /// Spurious page faults by the kernel's own count, from before the workload's setting up to its end; `None` for
        /// a kernel that does not tell.
        #[serde(default)]
        spurious: Option<u64>,
        /// Spin locks that were found taken, in the same way.
        #[serde(default)]
        lock_waits: Option<u64>,
        /// The counts of all operations together.
        region: Box<Region>,
    },
    /// The kernel lacks something that it needs.
    Lacks(String),
    /// It hung, or the kernel died of it.
    Failed(String),
}

impl Document {
    /// The form that this version writes and reads.
    pub const FORMAT: u32 = 1;

    /// Writes it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, file: &Path) -> Result<()> {
        let text = serde_json::to_string(self)?;
        fs::write(file, text + "\n").with_context(|| format!("cannot write {}", file.display()))
    }

    /// Reads what [`Document::write`] wrote.
    ///
    /// # Errors
    /// It is no such file.
    pub fn read(file: &Path) -> Result<Self> {
        let shown = file.display();
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {shown}"))?;
        let document: Self =
            serde_json::from_str(&text).with_context(|| format!("{shown} is no result of `lab run --json`"))?;
        if document.format != Self::FORMAT {
            bail!("{shown} has form {}, this version reads {}", document.format, Self::FORMAT);
        }
        Ok(document)
    }
}

impl Cell {
    /// The modes that make up its cost. On several harts the kernel alone: the other harts' threads are in user mode all
    /// the time, and who waits for them spins in the firmware for as long as the emulator lets them run. The boot is the
    /// kernel's own too, not the firmware's before it.
    pub fn own_modes(&self) -> &'static [Mode] {
        if self.workload == BOOT || self.harts > 1 { &[Mode::Kernel] } else { &Mode::ALL }
    }
}
