//! Where each figure lies while it is counted: a flat array for each region, bucket and mode.

use crate::decode::Access;
use crate::{Context, Counts, DEPTHS, Event, csr_name, trap_name};
use std::collections::HashMap;

/// Figures of one region, bucket and mode.
pub(crate) type Slots = [u64; COUNT];
pub(crate) const COUNT: usize = 1024;

/// For each context: the returns, then the mispredicted ones of each depth.
const RETURNS: usize = 64;
const RETURNS_EACH: usize = 8;
/// By cause, exceptions then interrupts.
const TRAPS: usize = RETURNS + 4 * RETURNS_EACH;
pub(crate) const CAUSES: usize = 64;
/// Kinds of accesses to registers, as they turn up; the last slot takes what finds no room.
const CSRS: usize = TRAPS + 2 * CAUSES;
const OTHER: usize = COUNT - 1;

const _: () = assert!(Event::ALL.len() <= RETURNS && DEPTHS.len() < RETURNS_EACH);

pub(crate) const fn returns(context: Context) -> usize {
    RETURNS + context as usize * RETURNS_EACH
}

pub(crate) const fn trap(interrupt: bool, code: u64) -> usize {
    TRAPS + if interrupt { CAUSES } else { 0 } + (code as usize & (CAUSES - 1))
}

/// Which slot each kind of access to a register has.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    known: HashMap<Access, u16>,
    list: Vec<Access>,
}

impl Registry {
    pub(crate) fn slot(&mut self, access: Access) -> u16 {
        let next = CSRS + self.list.len();
        *self.known.entry(access).or_insert_with(|| {
            if next >= OTHER {
                return OTHER as u16;
            }
            self.list.push(access);
            next as u16
        })
    }

    /// The figures in `slots` by their names.
    pub(crate) fn counts(&self, slots: &Slots) -> Counts {
        let mut counts = Counts::default();
        for event in Event::ALL {
            counts.add(*event, slots[*event as usize]);
        }
        for context in Context::ALL {
            for (sum, count) in counts.mispredicted.iter_mut().zip(&slots[returns(context) + 1..]) {
                *sum += count;
            }
        }
        for code in 0..2 * CAUSES {
            let count = slots[TRAPS + code];
            if count != 0 {
                counts.traps.insert(trap_name(code >= CAUSES, (code % CAUSES) as u64), count);
            }
        }
        for (access, count) in self.list.iter().zip(&slots[CSRS..OTHER]).filter(|(_, count)| **count != 0) {
            let sum = counts.csrs.entry(csr_name(access.csr)).or_default();
            sum.accesses += count;
            sum.reads += if access.reads { *count } else { 0 };
            sum.writes += if access.writes { *count } else { 0 };
        }
        if slots[OTHER] != 0 {
            counts.csrs.entry("other".to_owned()).or_default().accesses += slots[OTHER];
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_find_their_names_again() {
        let mut registry = Registry::default();
        let mut slots = [0; COUNT];
        for csr in 0..2048 {
            let slot = registry.slot(Access { csr, reads: true, writes: false });
            slots[usize::from(slot)] += 1;
        }
        slots[usize::from(registry.slot(Access { csr: 0x100, reads: false, writes: true }))] += 1;
        slots[trap(true, 5)] = 3;
        let counts = registry.counts(&slots);
        assert_eq!(counts.csrs["sstatus"].reads, 1);
        assert_eq!(counts.csrs.values().map(|count| count.accesses).sum::<u64>(), 2049);
        assert!(counts.csrs["other"].accesses > 0);
        assert_eq!(counts.traps["timer_s"], 3);
    }
}
