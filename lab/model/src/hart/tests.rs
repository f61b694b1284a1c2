//! Random programs on a small machine that goes instruction by instruction and keeps its own counts; the hart sees only
//! the blocks that are entered, as from the emulator.

use super::*;
use crate::decode::tests::{branch, jal};
use crate::decode::{Flow, decode};
use crate::{Cause, Modes, trap_name};
use proptest::prelude::*;
use std::collections::BTreeMap;

const USER: u64 = 0x1000;
const VECTOR: u64 = 0x8000;
const REGION: u16 = 5;

#[derive(Clone, Debug)]
enum Kind {
    Add,
    Load,
    Amo,
    Wfi,
    Csr,
    Ret,
    Jr,
    Trap,
    Branch(usize),
    Jump(usize, bool),
}

fn kinds() -> impl Strategy<Value = Vec<Kind>> {
    use Kind::*;
    let one = prop_oneof![
        4 => Just(Add),
        4 => Just(Load),
        2 => Just(Amo),
        1 => Just(Wfi),
        1 => Just(Csr),
        1 => Just(Ret),
        1 => Just(Jr),
        1 => Just(Trap),
        3 => any::<usize>().prop_map(Branch),
        2 => (any::<usize>(), any::<bool>()).prop_map(|(target, link)| Jump(target, link)),
    ];
    prop::collection::vec(one, 3..16)
}

/// Instructions in memory, by address.
type Code = BTreeMap<u64, u32>;

/// Lays the instructions out. No jump leads to the first one, which may be the trap vector.
fn assemble(start: u64, kinds: &[Kind], mode: Mode) -> Code {
    let length = |kind: &Kind| if matches!(kind, Kind::Add | Kind::Ret | Kind::Jr) { 2 } else { 4 };
    let mut addresses = vec![start + 2];
    kinds.iter().for_each(|kind| addresses.push(addresses[addresses.len() - 1] + length(kind)));
    let target = |from: u64, index: usize| addresses[index % kinds.len()] as i32 - from as i32;
    let words = kinds.iter().zip(&addresses).map(|(kind, at)| {
        let word = match kind {
            Kind::Add => 0x952e,
            Kind::Load => 0x0005_3503,
            Kind::Amo => 0x00b5_352f,
            Kind::Wfi => 0x1050_0073,
            Kind::Csr => 0x1000_2573,
            Kind::Ret => 0x8082,
            Kind::Jr => 0x8582,
            Kind::Trap if mode == Mode::User => 0x0000_0073,
            Kind::Trap => 0x1020_0073,
            Kind::Branch(index) => branch(target(*at, *index)),
            Kind::Jump(index, link) => jal(u32::from(*link), target(*at, *index)),
        };
        (*at, word)
    });
    let mut code: Code = words.collect();
    code.insert(start, 0x952e);
    let end = addresses[kinds.len()];
    code.insert(end, jal(0, target(end, 0)));
    code
}

#[derive(Default)]
struct Registers {
    cause: u64,
    epc: u64,
    value: u64,
    from_kernel: bool,
    reached_end: bool,
}

impl super::Machine for Registers {
    fn read(&mut self, register: Register) -> u64 {
        match register {
            Register::Sepc => self.epc,
            Register::Scause => self.cause,
            Register::Stval => self.value,
            Register::Stvec => VECTOR,
            Register::Sstatus => u64::from(self.from_kernel) << 8,
            Register::A7 => 172,
            _ => 0,
        }
    }

    fn reached_end(&mut self) -> bool {
        self.reached_end
    }
}

struct Simulation {
    code: Code,
    choices: Vec<u8>,
    pc: u64,
    mode: Mode,
    /// Where each trap being handled returns to.
    stack: Vec<(u64, Mode)>,
    registers: Registers,
    ras: Ras,
    bucket: Cause,
    last_fault: Option<(u64, u64, u64, Mode)>,
    idle: bool,
    counts: BTreeMap<Cause, Modes>,
}

impl Simulation {
    fn choose(&mut self, of: u8) -> u8 {
        self.choices.pop().unwrap_or(0) % of
    }

    fn here(&mut self) -> &mut crate::Counts {
        self.counts.entry(self.bucket.clone()).or_default().of_mut(self.mode)
    }

    /// A place to go that the code of this mode has.
    fn somewhere(&mut self) -> u64 {
        let first = if self.mode == Mode::User { USER } else { VECTOR };
        let places: Vec<u64> = self.code.range(first + 1..first + 0x1000).map(|(address, _)| *address).collect();
        places[usize::from(self.choose(255)) % places.len()]
    }

    fn trap(&mut self, interrupt: bool, code: u64, epc: u64, value: u64) {
        let origin = self.mode;
        *self.here().traps.entry(trap_name(interrupt, code)).or_default() += 1;
        if interrupt {
            self.here().add(Event::Interrupts, 1);
        }
        if let 12 | 13 | 15 = code
            && !interrupt
        {
            let event =
                [Event::InstructionPageFaults, Event::LoadPageFaults, Event::StorePageFaults, Event::StorePageFaults];
            self.here().add(event[code as usize - 12], 1);
            let fault = Some((epc, value, code, origin));
            if self.idle && self.last_fault == fault {
                self.here().add(Event::RepeatedFaults, 1);
            }
            self.last_fault = fault;
            self.idle = true;
        }
        let cause = code | u64::from(interrupt) << 63;
        self.registers = Registers { cause, epc, value, from_kernel: origin == Mode::Kernel, ..self.registers };
        self.stack.push((epc + if code == 8 { 4 } else { 0 }, origin));
        if origin == Mode::User {
            self.bucket = match (interrupt, code) {
                (false, 8) => Cause::Call(Some(172)),
                (true, code) => Cause::Interrupt(trap_name(true, code)),
                (false, code) => Cause::Fault(trap_name(false, code)),
            };
        }
        (self.pc, self.mode) = (VECTOR, Mode::Kernel);
    }

    fn complete(&mut self, word: u32, target: u64) {
        let what = decode(word);
        if self.last_fault.is_some_and(|(.., mode)| mode == self.mode) {
            self.idle = false;
        }
        for event in Event::ALL.iter().filter(|event| what.events & event.bit() != 0) {
            self.here().add(*event, 1);
        }
        if let Some(access) = what.csr {
            let count = self.here().csrs.entry(crate::csr_name(access.csr)).or_default();
            count.accesses += 1;
            count.reads += u64::from(access.reads);
            count.writes += u64::from(access.writes);
        }
        if what.events & Event::Returns.bit() != 0 {
            let missed = self.ras.pop(target);
            self.here().mispredicted.iter_mut().zip(missed).for_each(|(sum, missed)| *sum += u64::from(missed));
        }
        if what.events & Event::Calls.bit() != 0 {
            self.ras.push(self.pc + u64::from(what.length));
        }
        self.pc = target;
    }

    /// The block at pc: some instructions up to one that ends it.
    fn block(&self, limit: usize) -> Vec<u32> {
        let mut words = Vec::new();
        let mut at = self.pc;
        while let Some(word) = self.code.get(&at).filter(|_| words.len() < limit) {
            words.push(*word);
            let what = decode(*word);
            at += u64::from(what.length);
            if what.flow != Flow::Next || what.csr.is_some() {
                break;
            }
        }
        words
    }

    /// Runs a block to its end, or to where it is left.
    fn run(&mut self, words: &[u32]) {
        self.registers.reached_end = false;
        let start = self.pc;
        for (index, word) in words.iter().enumerate() {
            let last = index + 1 == words.len();
            self.registers.reached_end |= last;
            let what = decode(*word);
            let next = self.pc + u64::from(what.length);
            match what.flow {
                Flow::Call => {
                    let at = self.pc;
                    self.complete(*word, next);
                    return self.trap(false, 8, at, 0);
                }
                Flow::Return => {
                    let (to, mode) = self.stack.pop().unwrap_or((USER, Mode::User));
                    self.complete(*word, to);
                    self.mode = mode;
                    if mode == Mode::User {
                        self.bucket = Cause::User;
                    }
                }
                Flow::Indirect(hint) => {
                    let mut to = self.somewhere();
                    // What a return leads to follows a call, so it is not inside the block of the return.
                    if hint == Hint::Pop && (start..=self.pc).contains(&to) {
                        to = next;
                    }
                    self.complete(*word, to);
                }
                Flow::Branch(distance) if self.choose(2) == 1 => {
                    self.complete(*word, self.pc.wrapping_add_signed(distance))
                }
                Flow::Jump(distance, _) => self.complete(*word, self.pc.wrapping_add_signed(distance)),
                _ if what.may_retry && self.choose(4) == 1 => return,
                _ if what.may_leave && what.csr.is_none() && self.choose(4) == 1 && self.stack.len() < 4 => {
                    let (at, address) = (self.pc, u64::from(self.choose(2)));
                    return self.trap(false, if what.may_retry { 15 } else { 13 }, at, address);
                }
                _ => {
                    self.complete(*word, next);
                    if what.may_leave && self.choose(3) == 1 {
                        return;
                    }
                }
            }
        }
    }

    /// What may happen between two blocks.
    fn between(&mut self) {
        // A trap's entry starts with interrupts off.
        if self.stack.len() >= 4 || self.pc == VECTOR {
            return;
        }
        match self.choose(8) {
            1 => self.trap(true, 5, self.pc, 0),
            2 => self.trap(false, 12, self.pc, self.pc),
            _ => {}
        }
    }
}

/// All figures that are not 0, a line each. The kernel's repeated faults are left out: its handler, in the same mode, may
/// do something between them, by which the hart takes the kernel for going on.
fn figures(buckets: impl IntoIterator<Item = (Cause, Modes)>) -> Vec<String> {
    let mut lines = Vec::new();
    for (cause, modes) in buckets {
        for mode in Mode::ALL {
            let figures = modes.of(mode).figures().into_iter().filter(|(_, count)| *count != 0);
            let figures = figures.filter(|(name, _)| mode == Mode::User || name != "repeated_faults");
            lines.extend(figures.map(|(name, count)| format!("{cause:?} {mode:?} {name} {count}")));
        }
    }
    lines.sort();
    lines
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn blocks_tell_all(user in kinds(), kernel in kinds(), choices in prop::collection::vec(any::<u8>(), 0..600), limit in 1_usize..9) {
        let mut code = assemble(USER, &user, Mode::User);
        code.extend(assemble(VECTOR, &kernel, Mode::Kernel));
        let mut simulation = Simulation {
            code,
            choices,
            pc: VECTOR,
            mode: Mode::Kernel,
            stack: Vec::new(),
            registers: Registers::default(),
            ras: Ras::default(),
            bucket: Cause::Boot,
            last_fault: None,
            idle: false,
            counts: BTreeMap::new(),
        };
        let (mut hart, mut blocks, open) = (Hart::default(), Blocks::default(), Open::new());
        open.region.store(REGION.into(), Relaxed);
        for _ in 0..200 {
            let words = simulation.block(limit);
            let block = blocks.block(simulation.pc, simulation.mode, &words);
            hart.enter(block, &open, &mut simulation.registers);
            simulation.run(&words);
            simulation.between();
        }
        let words = simulation.block(limit);
        let block = blocks.block(simulation.pc, simulation.mode, &words);
        hart.enter(block, &open, &mut simulation.registers);

        let all = regions([&hart], &blocks);
        let found = all.iter().find(|region| region.id == REGION).map(|region| region.buckets.clone()).unwrap_or_default();
        let found = figures(found.into_iter().map(|bucket| (bucket.cause, bucket.counts)));
        prop_assert_eq!(found, figures(simulation.counts));
    }
}

struct Fixed(BTreeMap<Register, u64>);

impl super::Machine for Fixed {
    fn read(&mut self, register: Register) -> u64 {
        self.0.get(&register).copied().unwrap_or(0)
    }

    fn reached_end(&mut self) -> bool {
        true
    }
}

/// The firmware's timer goes off between a system call and the first instruction of the kernel's entry, to which the
/// firmware then returns: the call is counted, once, and the interrupt is the kernel's.
#[test]
fn firmware_interrupts_the_entry() {
    const MTVEC: u64 = 0x9000;
    const MPP_KERNEL: u64 = 1 << 11;
    let (mut hart, mut blocks, open) = (Hart::default(), Blocks::default(), Open::new());
    open.region.store(REGION.into(), Relaxed);
    let firmware = blocks.block(MTVEC, Mode::Firmware, &[0x3020_0073]);
    let user = blocks.block(USER, Mode::User, &[0x952e, 0x0000_0073]);
    let kernel = blocks.block(VECTOR, Mode::Kernel, &[0x952e]);
    let mut machine = Fixed(BTreeMap::from([
        (Register::Stvec, VECTOR),
        (Register::Mtvec, MTVEC),
        (Register::Scause, 8),
        (Register::Sepc, USER + 2),
        (Register::A7, 172),
        (Register::Mcause, 1 << 63 | 7),
        (Register::Mepc, USER),
    ]));
    hart.enter(firmware, &open, &mut machine);
    hart.enter(user, &open, &mut machine);
    machine.0.extend([(Register::Mepc, VECTOR), (Register::Mstatus, MPP_KERNEL)]);
    hart.enter(firmware, &open, &mut machine);
    hart.enter(kernel, &open, &mut machine);
    hart.enter(blocks.block(VECTOR + 2, Mode::Kernel, &[0x952e]), &open, &mut machine);

    let all = regions([&hart], &blocks);
    let region = all.iter().find(|region| region.id == REGION).unwrap();
    assert_eq!(region.total.user.traps, BTreeMap::from([("ecall_user".to_owned(), 1)]));
    assert_eq!(region.total.kernel.traps, BTreeMap::from([("timer_m".to_owned(), 1)]));
    assert_eq!(region.total.user.instructions, 2);
    let call = region.buckets.iter().find(|bucket| bucket.cause == Cause::Call(Some(172))).unwrap();
    assert_eq!((call.entries, call.counts.kernel.instructions, call.counts.firmware.mret), (1, 1, 1));
}

/// A loop around a `pause` waits from its second turn on; what lies between two waits does not.
#[test]
fn turns_around_a_pause_are_waiting() {
    let (mut hart, mut blocks, open) = (Hart::default(), Blocks::default(), Open::new());
    open.region.store(REGION.into(), Relaxed);
    let mut machine = Fixed(BTreeMap::new());
    let pause = blocks.block(0x4000, Mode::Kernel, &[0x952e, 0x0100_000f]);
    let back = blocks.block(0x4006, Mode::Kernel, &[0x952e, jal(0, -8)]);
    let work = blocks.block(0x4008, Mode::Kernel, &[&[0x952e; 60][..], &[jal(0, -128)]].concat());
    let turns = [pause, back, pause, back, pause, back, pause, blocks.block(0x4006, Mode::Kernel, &[0x952e])];
    for _ in 0..2 {
        turns.iter().for_each(|block| hart.enter(block, &open, &mut machine));
        hart.enter(work, &open, &mut machine);
    }
    hart.enter(pause, &open, &mut machine);
    let all = regions([&hart], &blocks);
    let kernel = &all.iter().find(|region| region.id == REGION).unwrap().total.kernel;
    assert_eq!((kernel.instructions, kernel.pause, kernel.waiting), (2 * (4 * 2 + 3 * 2 + 1 + 61), 8, 2 * 3 * 4));
}
