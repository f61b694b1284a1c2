//! The figures themselves, one field an event.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::AddAssign;

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
    ($($(#[$doc:meta])* $event:ident $name:ident,)*) => {
        /// What an instruction or a trap is counted as; [`Counts`] has a field for each.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Event {
            $($(#[$doc])* $event,)*
        }

        impl Event {
            /// All of them, in order of their numbers.
            pub const ALL: &[Event] = &[$(Event::$event),*];

            /// Its bit in a set of events.
            pub const fn bit(self) -> u64 {
                1 << self as u32
            }
        }

        /// Events, each counted in the mode in which the instruction was executed, a trap in the mode it was taken from.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
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
            /// Adds `count` events.
            pub fn add(&mut self, event: Event, count: u64) {
                match event {
                    $(Event::$event => self.$name += count,)*
                }
            }

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
    Instructions instructions,
    /// Load instructions, FP and vector ones too; not LR, not AMO.
    Loads loads,
    /// Store instructions, FP and vector ones too; not SC, not AMO, not `cbo.zero`.
    Stores stores,
    /// Atomic read-modify-write instructions (Zaamo, Zacas).
    Amo amo,
    /// Load-reserved.
    Lr lr,
    /// Store-conditional, successful or not.
    Sc sc,
    /// `fence` of any kind but `pause`.
    Fence fence,
    /// `fence.i`.
    FenceI fence_i,
    /// `sfence.vma x0, x0`: everything.
    SfenceAll sfence_all,
    /// `sfence.vma x0, asid`: one address space.
    SfenceAsid sfence_asid,
    /// `sfence.vma page, x0`: one page in all spaces.
    SfencePage sfence_page,
    /// `sfence.vma page, asid`: one page in one space.
    SfencePageAsid sfence_page_asid,
    /// `sinval.vma x0, x0`.
    SinvalAll sinval_all,
    /// `sinval.vma x0, asid`.
    SinvalAsid sinval_asid,
    /// `sinval.vma page, x0`.
    SinvalPage sinval_page,
    /// `sinval.vma page, asid`.
    SinvalPageAsid sinval_page_asid,
    /// `sfence.w.inval`.
    SfenceWInval sfence_w_inval,
    /// `sfence.inval.ir`.
    SfenceInvalIr sfence_inval_ir,
    /// CSR instructions, the sum of `csrs`.
    Csr csr,
    /// `ecall`.
    Ecall ecall,
    /// `ebreak`.
    Ebreak ebreak,
    /// `sret`.
    Sret sret,
    /// `mret`.
    Mret mret,
    /// `wfi`.
    Wfi wfi,
    /// Vector instructions: arithmetic, configuration, loads and stores.
    Vector vector,
    /// Floating-point instructions: arithmetic, moves, loads and stores.
    Fp fp,
    /// `cbo.zero`.
    CboZero cbo_zero,
    /// `cbo.clean`, `cbo.flush`, `cbo.inval`.
    CboManage cbo_manage,
    /// Instructions that push a return address, by the hints of x1 and x5.
    Calls calls,
    /// Instructions that pop one.
    Returns returns,
    /// Page faults on an instruction fetch, taken from this mode.
    InstructionPageFaults instruction_page_faults,
    /// Page faults on a load.
    LoadPageFaults load_page_faults,
    /// Page faults on a store or AMO.
    StorePageFaults store_page_faults,
    /// Page faults with the pc, address and cause of the one before on the same hart, no instruction having completed in
    /// between where it was raised: an estimate of spurious ones, exact in user mode.
    RepeatedFaults repeated_faults,
    /// Interrupts taken from this mode.
    Interrupts interrupts,
    /// `pause`.
    Pause pause,
    /// Instructions spent waiting: those from one `pause` to the next at the same place, if they are at most
    /// [`TURN`](crate::TURN). They are among `instructions`.
    Waiting waiting,
}

#[cfg(test)]
mod tests {
    use super::*;

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
