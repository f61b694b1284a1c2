//! A translated block of guest code: what it counts as, where it may lead, where it may be left early.
//!
//! The emulator translates straight-line code in blocks and tells the plugin when a block is entered, nothing more. What
//! happened to the block before follows from what it is made of and from where the hart arrived. So all that can be
//! known beforehand is worked out here, once for each block.

use crate::decode::{Flow, Hint, Instruction, decode};
use crate::slots::Registry;
use crate::{Event, Mode};
use std::collections::HashMap;

/// How a block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// At one of its two known successors.
    Known,
    /// The same, by a call that pushes the return address.
    Call,
    /// At an address in a register.
    Indirect(Hint),
    /// In a trap (`ecall`, `ebreak`).
    Trap,
    /// Out of a trap (`sret`, `mret`).
    Return,
    /// At the next instruction, the trap vector of a mode having been written.
    Vector,
}

/// One instruction of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Distance from the block's start in bytes.
    offset: u64,
    /// Slot of its access to a control and status register.
    csr: Option<u16>,
    what: Instruction,
}

/// A block, the same for each translation of the same code at the same address in the same mode.
#[derive(Debug)]
pub struct Block {
    pub(crate) pc: u64,
    pub(crate) mode: Mode,
    pub(crate) end: End,
    wants_end: bool,
    /// Whether there is a `pause` in it.
    pub(crate) pauses: bool,
    /// Addresses at which it may continue, the same twice if there is one.
    pub(crate) next: [u64; 2],
    /// The address after it.
    pub(crate) after: u64,
    /// What its completion adds to which slots.
    pub(crate) sums: Box<[(u16, u16)]>,
    steps: Box<[Step]>,
}

const STVEC: u16 = 0x105;
const MTVEC: u16 = 0x305;

impl Block {
    fn new(pc: u64, mode: Mode, words: &[u32], registry: &mut Registry) -> Self {
        let mut steps = Vec::with_capacity(words.len());
        let mut sums: Vec<(u16, u16)> = Vec::new();
        let mut add = |slot: u16| match sums.iter_mut().find(|(known, _)| *known == slot) {
            Some((_, count)) => *count += 1,
            None => sums.push((slot, 1)),
        };
        let mut offset = 0;
        for word in words {
            let what = decode(*word);
            let csr = what.csr.map(|access| registry.slot(access));
            if !matches!(what.flow, Flow::Marker(_)) {
                Event::ALL.iter().filter(|event| what.events & event.bit() != 0).for_each(|event| add(*event as u16));
                csr.into_iter().for_each(&mut add);
            }
            steps.push(Step { offset, csr, what });
            offset += u64::from(what.length);
        }
        let after = pc.wrapping_add(offset);
        let mut block = Self {
            pc,
            mode,
            end: End::Known,
            wants_end: false,
            pauses: false,
            next: [after; 2],
            after,
            sums: sums.into(),
            steps: steps.into(),
        };
        block.find_end();
        block.pauses = block.steps.iter().any(|step| step.what.events & Event::Pause.bit() != 0);
        block.wants_end = block.is_ambiguous();
        block
    }

    fn find_end(&mut self) {
        let Some(last) = self.steps.last() else { return };
        let from = self.pc.wrapping_add(last.offset);
        match last.what.flow {
            Flow::Branch(distance) => self.next[1] = from.wrapping_add_signed(distance),
            Flow::Jump(distance, push) => {
                self.next = [from.wrapping_add_signed(distance); 2];
                self.end = if push { End::Call } else { End::Known };
            }
            Flow::Indirect(hint) => self.end = End::Indirect(hint),
            Flow::Call => self.end = End::Trap,
            Flow::Return => self.end = End::Return,
            Flow::Next | Flow::Marker(_) => {
                if last.what.csr.is_some_and(|access| access.writes && matches!(access.csr, STVEC | MTVEC)) {
                    self.end = End::Vector;
                }
            }
        }
    }

    /// Whether arriving at one of the successors may mean two things: that the block was completed, or that it was left
    /// behind or before an instruction inside, which happens to lie there. A return cannot lead into its own block:
    /// what it leads to follows a call, which ends a block.
    fn is_ambiguous(&self) -> bool {
        match self.end {
            End::Known | End::Call | End::Vector => self.next.iter().any(|next| self.may_be_left_at(*next)),
            End::Return | End::Indirect(Hint::None | Hint::Push) => {
                self.steps.iter().rev().skip(1).any(|step| step.what.may_leave || step.what.may_retry)
            }
            End::Indirect(Hint::Pop | Hint::PopPush) | End::Trap => false,
        }
    }

    /// Whether leaving the block early can leave the hart at `address`.
    fn may_be_left_at(&self, address: u64) -> bool {
        self.index(address).is_some_and(|index| {
            self.steps[index].what.may_retry || index.checked_sub(1).is_some_and(|one| self.steps[one].what.may_leave)
        })
    }

    /// Whether `address` lies in it.
    #[inline]
    pub(crate) fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.pc) < self.after.wrapping_sub(self.pc)
    }

    /// Which instruction lies at `address`.
    pub(crate) fn index(&self, address: u64) -> Option<usize> {
        let offset = address.wrapping_sub(self.pc);
        self.steps.binary_search_by_key(&offset, |step| step.offset).ok()
    }

    /// Instructions.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether instruction `index` traps when it completes.
    pub(crate) fn calls(&self, index: usize) -> bool {
        self.steps.get(index).is_some_and(|step| step.what.flow == Flow::Call)
    }

    /// How many instructions were completed if the hart continued at `address` and no exception was raised inside.
    /// `reached_end` tells whether the last one was begun, for blocks that [want it](Self::wants_end).
    pub(crate) fn completed_before(&self, address: u64, reached_end: bool) -> usize {
        let whole = match self.end {
            _ if self.wants_end => reached_end,
            End::Known | End::Call | End::Vector => self.next.contains(&address),
            End::Indirect(_) | End::Return => !self.may_be_left_at(address),
            End::Trap => false,
        };
        if whole { self.len() } else { self.index(address).unwrap_or(self.len()) }
    }

    /// What completing the instructions `range` adds to which slots, one by one.
    pub(crate) fn slots(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = u16> + '_ {
        let steps = self.steps.get(range).unwrap_or_default();
        steps.iter().filter(|step| !matches!(step.what.flow, Flow::Marker(_))).flat_map(|step| {
            let events = Event::ALL.iter().filter(move |event| step.what.events & event.bit() != 0);
            events.map(|event| *event as u16).chain(step.csr)
        })
    }

    /// Whether it must be known at the next block if the last instruction of this one was begun.
    #[inline]
    pub fn wants_end(&self) -> bool {
        self.wants_end
    }

    /// The markers in it: index of the instruction and number.
    pub fn markers(&self) -> impl Iterator<Item = (usize, u16)> + '_ {
        self.steps.iter().enumerate().filter_map(|(index, step)| match step.what.flow {
            Flow::Marker(number) => Some((index, number)),
            _ => None,
        })
    }
}

/// All blocks of a run. Translations come and go, blocks stay, so that a hart can refer to its last one.
#[derive(Debug, Default)]
pub struct Blocks {
    known: HashMap<(u64, Mode, Box<[u32]>), &'static Block>,
    pub(crate) registry: Registry,
}

impl Blocks {
    /// The block at `pc` made of these instructions. A compressed one is in the lower half of its word.
    pub fn block(&mut self, pc: u64, mode: Mode, words: &[u32]) -> &'static Block {
        let words: Box<[u32]> = words.iter().map(|word| if word & 3 == 3 { *word } else { word & 0xffff }).collect();
        let registry = &mut self.registry;
        self.known
            .entry((pc, mode, words))
            .or_insert_with_key(|(pc, mode, words)| Box::leak(Box::new(Block::new(*pc, *mode, words, registry))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: u32 = 0x0005_3503; // ld a0, 0(a0)
    const AMO: u32 = 0x00b5_352f; // amoadd.d a0, a1, (a0)
    const ADD: u32 = 0x952e; // c.add a0, a1

    fn branch(distance: i32) -> u32 {
        // beq x0, x0, with a distance of -64 to 62
        let bits = distance as u32;
        (bits >> 12 & 1) << 31 | (bits >> 5 & 0x3f) << 25 | (bits >> 1 & 0xf) << 8 | (bits >> 11 & 1) << 7 | 0x63
    }

    fn block(words: &[u32]) -> &'static Block {
        Blocks::default().block(0x1000, Mode::Kernel, words)
    }

    #[test]
    fn the_same_code_is_one_block() {
        let mut blocks = Blocks::default();
        let first: *const Block = blocks.block(0x1000, Mode::User, &[LOAD, ADD]);
        assert!(std::ptr::eq(first, blocks.block(0x1000, Mode::User, &[LOAD, ADD | 0xabcd_0000])));
        assert!(!std::ptr::eq(first, blocks.block(0x1000, Mode::Kernel, &[LOAD, ADD])));
    }

    #[test]
    fn successors() {
        let loops = block(&[ADD, branch(-2)]);
        assert_eq!((loops.next, loops.after, loops.end), ([0x1006, 0x1000], 0x1006, End::Known));
        assert_eq!(block(&[ADD, 0x0100_00ef]).next, [0x1012; 2]); // jal ra, 16
        assert_eq!(block(&[0x1055_1073]).end, End::Vector); // csrw stvec, a0
        assert_eq!(block(&[0x1050_2573]).end, End::Known); // csrr a0, stvec
    }

    #[test]
    fn the_end_is_asked_for_where_arrival_does_not_tell() {
        // A loop around a load: left behind it, the hart is at the addition, to which nothing jumps.
        assert!(!block(&[LOAD, ADD, branch(-6)]).wants_end());
        // A jump to just behind the load.
        assert!(block(&[LOAD, ADD, branch(-2)]).wants_end());
        // An atomic access started again looks like the next round of the loop.
        assert!(block(&[AMO, branch(-4)]).wants_end());
        assert!(block(&[LOAD, 0x8582]).wants_end()); // jr a1
        assert!(!block(&[LOAD, 0x8082]).wants_end()); // ret
        assert!(!block(&[ADD, 0x8582]).wants_end());
    }

    #[test]
    fn completed_instructions() {
        let plain = block(&[LOAD, ADD, branch(-6)]);
        assert_eq!(plain.completed_before(0x100a, false), 3);
        assert_eq!(plain.completed_before(0x1000, false), 3);
        assert_eq!(plain.completed_before(0x1004, false), 1);
        let unclear = block(&[LOAD, ADD, branch(-2)]);
        assert_eq!(unclear.completed_before(0x1004, false), 1);
        assert_eq!(unclear.completed_before(0x1004, true), 3);
        let slots: Vec<u16> = plain.slots(0..1).collect();
        assert_eq!(slots, [Event::Instructions as u16, Event::Loads as u16]);
    }
}
