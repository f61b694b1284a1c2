//! What a hart did, concluded from the blocks of code that it entered.
//!
//! Nothing is asked of the emulator while a block runs. When the next one is entered, the hart has either come to one of
//! the successors of the block before, and then that block was completed, or something else happened:
//!
//! - **A trap**: the hart is at the vector of a mode. The mode's registers say whether it was an exception, then the
//!   instruction at `epc` was begun and not completed (but for `ecall` and `ebreak`), or an interrupt or a fault of the
//!   fetch, then all before `epc` was completed.
//! - **A return from a trap**: the block ended with `sret` or `mret`.
//! - **A pause inside the block**: after an access to a device and after `wfi` the hart goes on behind the instruction, an
//!   atomic access may be started again.
//!
//! Where these cannot be told apart by address, the block asks for its end to be watched ([`Block::wants_end`]).
//! A target of a return is where the hart arrived, or `epc` if it was interrupted there.

use crate::block::{Block, Blocks, End};
use crate::decode::Hint;
use crate::ras::Ras;
use crate::slots;
use crate::tally::{self, Key, NOWHERE, Tally};
use crate::{BOOT, Context, DEPTHS, Event, Mode, Region, TURN};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// Registers that are read at traps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Register {
    A7,
    Sstatus,
    Stvec,
    Sepc,
    Scause,
    Stval,
    Mstatus,
    Mtvec,
    Mepc,
    Mcause,
    Mtval,
}

/// The hart as it is at the entry of a block.
pub trait Machine {
    /// The value of a register.
    fn read(&mut self, register: Register) -> u64;

    /// Whether the last instruction of the block before was begun. Asked only if that [wants it](Block::wants_end).
    fn reached_end(&mut self) -> bool;
}

/// Which region is open, for all harts.
#[derive(Debug)]
pub struct Open {
    region: AtomicU32,
    started: AtomicBool,
}

const CLOSED: u32 = u32::MAX;

impl Default for Open {
    fn default() -> Self {
        Self::new()
    }
}

impl Open {
    /// The boot is open.
    pub const fn new() -> Self {
        Self { region: AtomicU32::new(BOOT as u32), started: AtomicBool::new(false) }
    }

    fn close(&self, region: u16) -> bool {
        self.region.compare_exchange(region.into(), CLOSED, Relaxed, Relaxed).is_ok()
    }
}

struct Trap {
    interrupt: bool,
    code: u64,
    epc: u64,
    value: u64,
}

impl Trap {
    /// The trap that the mode's registers tell of.
    fn read(firmware: bool, machine: &mut impl Machine) -> Self {
        let [epc, cause, value] = match firmware {
            true => [Register::Mepc, Register::Mcause, Register::Mtval],
            false => [Register::Sepc, Register::Scause, Register::Stval],
        }
        .map(|register| machine.read(register));
        Self { interrupt: cause >> 63 != 0, code: cause & (u64::MAX >> 1), epc, value }
    }

    fn is_page_fault(&self) -> bool {
        !self.interrupt && matches!(self.code, 12 | 13 | 15)
    }

    /// Raised by an instruction that was begun, not by its fetch.
    fn is_of_instruction(&self) -> bool {
        !self.interrupt && !matches!(self.code, 0 | 1 | 12 | 20)
    }
}

/// One hart.
#[derive(Debug)]
pub struct Hart {
    block: Option<&'static Block>,
    /// The first instruction of `block` that is still to be counted.
    from: usize,
    /// `block` was entered out of a trap.
    resumed: bool,
    ras: Ras,
    /// The last trap from user mode.
    context: Context,
    bucket: Key,
    /// Region that is counted for, or [`CLOSED`].
    region: u32,
    /// Where `region` and `bucket` are counted.
    place: usize,
    tally: Tally,
    /// Trap vectors of S and M as their registers hold them.
    vectors: [u64; 2],
    last_fault: Option<(u64, u64, u64, Mode)>,
    /// The mode of the last fault has completed nothing since, as far as its traps tell.
    stuck: bool,
    /// The block of the last `pause`, and where it was counted as which instruction.
    paused: Option<(&'static Block, usize, u64)>,
}

impl Default for Hart {
    fn default() -> Self {
        Self {
            block: None,
            from: 0,
            resumed: false,
            ras: Ras::default(),
            context: Context::Boot,
            bucket: Key::BOOT,
            region: CLOSED,
            place: NOWHERE,
            tally: Tally::default(),
            vectors: [0; 2],
            last_fault: None,
            stuck: false,
            paused: None,
        }
    }
}

impl Hart {
    /// The hart is about to run `new`.
    #[inline]
    pub fn enter(&mut self, new: &'static Block, open: &Open, machine: &mut impl Machine) {
        let old = self.block.replace(new);
        if let Some(old) = old
            && old.mode == new.mode
            && (!old.wants_end() || machine.reached_end())
            && match old.end {
                End::Known | End::Call => old.next[0] == new.pc || old.next[1] == new.pc,
                End::Indirect(_) => !self.is_vector(new) && (old.wants_end() || !old.contains(new.pc)),
                End::Trap | End::Return | End::Vector => false,
            }
        {
            self.resumed = false;
            self.complete(old, new.pc);
        } else {
            self.arrive(old, new, open, machine);
        }
        if open.region.load(Relaxed) != self.region {
            self.follow(open);
        }
    }

    /// The marker `number` at instruction `index` of the block that was entered last is about to be run.
    pub fn marker(&mut self, index: usize, number: u16, open: &Open) {
        let Some(block) = self.block else { return };
        self.count_some(block, index);
        self.from = index + 1;
        let id = number / 2;
        if id == 0 {
            return;
        }
        if number.is_multiple_of(2) {
            open.region.store(id.into(), Relaxed);
            self.tally.begin(id);
        } else if open.close(id) {
            self.tally.end(id);
        }
        self.follow(open);
    }

    /// Counts for the region that is open now.
    #[cold]
    fn follow(&mut self, open: &Open) {
        self.region = open.region.load(Relaxed);
        self.find_place();
    }

    fn find_place(&mut self) {
        self.place = match u16::try_from(self.region) {
            Ok(region) => self.tally.place(region, self.bucket),
            Err(_) => NOWHERE,
        };
    }

    fn open_bucket(&mut self, bucket: Key) {
        self.bucket = bucket;
        self.find_place();
    }

    fn count(&mut self, mode: Mode, slot: usize) {
        if let Some(slots) = self.tally.slots(self.place, mode) {
            slots[slot] += 1;
        }
    }

    /// Counts the instructions before `end` that are not counted yet.
    fn count_some(&mut self, block: &Block, end: usize) {
        if let Some(slots) = self.tally.slots(self.place, block.mode) {
            block.slots(self.from..end.max(self.from)).for_each(|slot| slots[usize::from(slot)] += 1);
        }
    }

    /// `old` was completed and led to `target`.
    #[inline]
    fn complete(&mut self, old: &'static Block, target: u64) {
        if self.from == 0 {
            if let Some(slots) = self.tally.slots(self.place, old.mode) {
                for (slot, count) in &old.sums {
                    slots[usize::from(*slot) & (slots::COUNT - 1)] += u64::from(*count);
                }
            }
        } else {
            self.count_some(old, old.len());
            self.from = 0;
        }
        if old.pauses {
            self.wait(old);
        }
        match old.end {
            End::Call | End::Indirect(Hint::Push) => self.ras.push(old.after),
            End::Indirect(Hint::Pop) => self.pop(old.mode, target),
            End::Indirect(Hint::PopPush) => {
                self.pop(old.mode, target);
                self.ras.push(old.after);
            }
            _ => {}
        }
    }

    /// A block with a `pause` was completed: a turn of a loop that waits, if it follows another.
    fn wait(&mut self, block: &'static Block) {
        let Some(slots) = self.tally.slots(self.place, block.mode) else { return };
        let now = slots[Event::Instructions as usize];
        let before = self.paused.replace((block, self.place, now));
        if let Some((_, _, then)) = before.filter(|(old, place, _)| std::ptr::eq(*old, block) && *place == self.place)
            && now - then <= TURN
        {
            slots[Event::Waiting as usize] += now - then;
        }
    }

    #[inline]
    fn pop(&mut self, mode: Mode, target: u64) {
        let missed = self.ras.pop(target);
        let first = slots::returns(self.context);
        if let Some(slots) = self.tally.slots(self.place, mode) {
            slots[first] += 1;
            for (slot, missed) in slots[first + 1..=first + DEPTHS.len()].iter_mut().zip(missed) {
                *slot += u64::from(missed);
            }
        }
    }

    /// Whether a trap into the mode of `block` would have led to it.
    #[inline]
    fn is_vector(&self, block: &Block) -> bool {
        block.mode != Mode::User && self.is_vector_of(block.pc, block.mode)
    }

    #[inline]
    fn is_vector_of(&self, pc: u64, mode: Mode) -> bool {
        let vector = if mode == Mode::Firmware { self.vectors[1] } else { self.vectors[0] };
        let offset = pc.wrapping_sub(vector & !3);
        offset == 0 || (vector & 3 == 1 && offset < 4 * slots::CAUSES as u64 && offset.is_multiple_of(4))
    }

    #[cold]
    fn read_vectors(&mut self, machine: &mut impl Machine) {
        self.vectors = [machine.read(Register::Stvec), machine.read(Register::Mtvec)];
    }

    /// All that is not the plain way from one block to the next.
    #[cold]
    fn arrive(&mut self, old: Option<&'static Block>, new: &Block, open: &Open, machine: &mut impl Machine) {
        let Some(old) = old else {
            self.read_vectors(machine);
            if !open.started.swap(true, Relaxed) {
                self.tally.begin(BOOT);
            }
            return;
        };
        let raised = new.mode > old.mode && old.end != End::Return;
        let plain = new.mode == old.mode && matches!(old.end, End::Known | End::Call) && old.next.contains(&new.pc);
        if raised || (self.is_vector(new) && !plain) {
            self.trap(old, new, machine);
        } else {
            let reached_end = !old.wants_end() || machine.reached_end();
            let done = old.completed_before(new.pc, reached_end);
            self.leave(old, done, new.pc, machine);
            self.resumed = old.end == End::Return || (self.resumed && done == 0);
        }
        if new.mode == Mode::User {
            self.user(open);
        }
    }

    /// The hart is in user mode.
    fn user(&mut self, open: &Open) {
        if self.bucket != Key::USER {
            self.open_bucket(Key::USER);
        }
        if self.region == u32::from(BOOT) && open.close(BOOT) {
            self.tally.end(BOOT);
        }
    }

    /// `done` instructions of `old` were completed; if these were all, it led to `target`.
    fn leave(&mut self, old: &'static Block, done: usize, target: u64, machine: &mut impl Machine) {
        if done == old.len() {
            self.complete(old, target);
            if old.end == End::Vector {
                self.read_vectors(machine);
            }
        } else {
            self.count_some(old, done);
            self.from = 0;
        }
    }

    fn trap(&mut self, old: &'static Block, new: &Block, machine: &mut impl Machine) {
        let firmware = new.mode == Mode::Firmware;
        let trap = Trap::read(firmware, machine);
        if firmware && self.interrupts_entry(old, &trap, machine) {
            self.trap_out_of(old, Trap::read(false, machine), false, machine);
            self.take(&trap, Mode::Kernel, true, machine);
        } else if !firmware
            && old.end == End::Return
            && old.mode == Mode::Firmware
            && machine.read(Register::Mepc) == new.pc
        {
            // Firmware returned to the kernel's vector: it hands a trap on that was counted when it took it, or goes
            // back to an entry that it interrupted.
            self.leave(old, old.len(), new.pc, machine);
            self.resumed = false;
        } else {
            self.trap_out_of(old, trap, firmware, machine);
        }
    }

    /// Whether firmware interrupted the kernel's trap entry before its first instruction: two traps with no block between.
    fn interrupts_entry(&self, old: &Block, trap: &Trap, machine: &mut impl Machine) -> bool {
        trap.interrupt
            && self.is_vector_of(trap.epc, Mode::Kernel)
            && previous_mode(true, machine) == Mode::Kernel
            && !(old.mode == Mode::Kernel && old.next.contains(&trap.epc))
    }

    /// The trap was taken out of `old`, or where it led to.
    fn trap_out_of(&mut self, old: &'static Block, trap: Trap, firmware: bool, machine: &mut impl Machine) {
        let done = done_at_trap(old, &trap, machine);
        let returned = old.end == End::Return && done == old.len();
        let origin = if returned { previous_mode(firmware, machine) } else { old.mode };
        let nothing_done = returned || (self.resumed && done == 0);
        self.leave(old, done, trap.epc, machine);
        self.resumed = false;
        self.take(&trap, origin, nothing_done, machine);
    }

    /// Counts a trap and, if it came from user mode, opens its bucket.
    fn take(&mut self, trap: &Trap, origin: Mode, nothing_done: bool, machine: &mut impl Machine) {
        if origin == Mode::User && self.bucket != Key::USER {
            self.open_bucket(Key::USER);
        }
        self.count_trap(trap, origin, nothing_done);
        if origin == Mode::User {
            let bucket = match (trap.interrupt, trap.code) {
                (false, 8) => Key::call(machine.read(Register::A7)),
                (interrupt, code) => Key::trap(interrupt, code),
            };
            self.context = bucket.context();
            self.open_bucket(bucket);
            if let Ok(region) = u16::try_from(self.region) {
                self.tally.enter(region, bucket);
            }
        }
    }

    /// Counts a trap; `nothing_done` tells whether `origin` has completed nothing since the last return to it.
    fn count_trap(&mut self, trap: &Trap, origin: Mode, nothing_done: bool) {
        if !nothing_done && self.last_fault.is_some_and(|(.., mode)| mode == origin) {
            self.stuck = false;
        }
        self.count(origin, slots::trap(trap.interrupt, trap.code));
        if trap.interrupt {
            self.count(origin, Event::Interrupts as usize);
        }
        if trap.is_page_fault() {
            let event = match trap.code {
                12 => Event::InstructionPageFaults,
                13 => Event::LoadPageFaults,
                _ => Event::StorePageFaults,
            };
            self.count(origin, event as usize);
            let fault = Some((trap.epc, trap.value, trap.code, origin));
            if self.stuck && self.last_fault == fault {
                self.count(origin, Event::RepeatedFaults as usize);
            }
            self.last_fault = fault;
            self.stuck = true;
        }
    }
}

/// How many instructions of `old` were completed when the trap was taken.
fn done_at_trap(old: &Block, trap: &Trap, machine: &mut impl Machine) -> usize {
    if !trap.is_of_instruction() {
        return old.completed_before(trap.epc, !old.wants_end() || machine.reached_end());
    }
    match old.index(trap.epc) {
        Some(index) => index + usize::from(old.calls(index) && matches!(trap.code, 3 | 8..=11)),
        None => old.len(),
    }
}

/// The mode that the trap was taken from, by the status register.
fn previous_mode(firmware: bool, machine: &mut impl Machine) -> Mode {
    let previous = match firmware {
        true => machine.read(Register::Mstatus) >> 11 & 3,
        false => machine.read(Register::Sstatus) >> 8 & 1,
    };
    match previous {
        0 => Mode::User,
        1 => Mode::Kernel,
        _ => Mode::Firmware,
    }
}

/// The regions that `harts` counted, summed.
pub fn regions<'a>(harts: impl IntoIterator<Item = &'a Hart>, blocks: &Blocks) -> Vec<Region> {
    let tallies: Vec<&Tally> = harts.into_iter().map(|hart| &hart.tally).collect();
    tally::regions(&tallies, &blocks.registry)
}

#[cfg(test)]
mod tests;
