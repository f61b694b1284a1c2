//! What an instruction is counted as and where it leads: RV64GCV, compressed forms, and the extensions that a kernel
//! uses at its boundary.
//!
//! The encodings are those of the unprivileged specification (chapters RV32/64G instruction listings, "C", "V", "CMO",
//! "Zawrs", "Zcb") and of the privileged one ("Supervisor instructions", "Svinval", "H"). A word that is no instruction
//! is counted as an instruction that does nothing; it traps, and a trap is not a completion.

use crate::Event;

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Bytes, 2 or 4.
    pub length: u8,
    /// The set of events that its completion is.
    pub events: u64,
    /// The control and status register that it accesses.
    pub csr: Option<Access>,
    /// Where it leads.
    pub flow: Flow,
    /// Whether the emulator may leave a block of code in its middle: memory, devices, halting, checks.
    pub may_leave: bool,
    /// Whether it may be left unfinished without a trap and started again: atomic accesses with several harts.
    pub may_retry: bool,
}

/// An access to a control and status register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// Its number.
    pub csr: u16,
    /// Its value is put into a register, or nothing but read.
    pub reads: bool,
    /// It is changed.
    pub writes: bool,
}

/// Where an instruction leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To the next one.
    Next,
    /// To the next one, and something begins or ends here: `slti x0, x0, N` with this N.
    Marker(u16),
    /// To the next one or to this distance.
    Branch(i64),
    /// To this distance; whether a return address is pushed.
    Jump(i64, bool),
    /// To an address in a register.
    Indirect(Hint),
    /// Into a trap by design: `ecall`, `ebreak`.
    Call,
    /// Out of one: `sret`, `mret`.
    Return,
}

/// What a `jalr` means to a return-address stack (unprivileged specification, "Return-address stack prediction hints").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Nothing.
    None,
    /// The return address is pushed.
    Push,
    /// The target was predicted by a pop.
    Pop,
    /// First a pop, then a push: a coroutine switch.
    PopPush,
}

impl Hint {
    /// The table: x1 and x5 are link registers.
    pub const fn of(rd: u32, rs1: u32) -> Self {
        match (is_link(rd), is_link(rs1)) {
            (false, false) => Hint::None,
            (false, true) => Hint::Pop,
            (true, true) if rd != rs1 => Hint::PopPush,
            (true, _) => Hint::Push,
        }
    }

    const fn events(self) -> u64 {
        match self {
            Hint::None => 0,
            Hint::Push => Event::Calls.bit(),
            Hint::Pop => Event::Returns.bit(),
            Hint::PopPush => Event::Calls.bit() | Event::Returns.bit(),
        }
    }
}

const fn is_link(register: u32) -> bool {
    register == 1 || register == 5
}

/// Bits `low..low + width` of a word.
const fn bits(word: u32, low: u32, width: u32) -> u32 {
    (word >> low) & ((1 << width) - 1)
}

/// The lowest `width` bits as a signed number.
const fn signed(value: u32, width: u32) -> i64 {
    ((value << (32 - width)) as i32 >> (32 - width)) as i64
}

/// Decodes the instruction in the lowest bytes of `word`; of a compressed one the upper half does not matter.
pub fn decode(word: u32) -> Instruction {
    if word & 3 == 3 { full(word) } else { compressed(word & 0xffff) }
}

fn plain(length: u8, events: u64) -> Instruction {
    let events = events | Event::Instructions.bit();
    Instruction { length, events, csr: None, flow: Flow::Next, may_leave: false, may_retry: false }
}

fn memory(length: u8, events: u64) -> Instruction {
    Instruction { may_leave: true, ..plain(length, events) }
}

fn flow(length: u8, events: u64, flow: Flow) -> Instruction {
    Instruction { flow, ..plain(length, events) }
}

fn jump(length: u8, distance: i64, push: bool) -> Instruction {
    flow(length, if push { Event::Calls.bit() } else { 0 }, Flow::Jump(distance, push))
}

fn indirect(length: u8, rd: u32, rs1: u32) -> Instruction {
    let hint = Hint::of(rd, rs1);
    flow(length, hint.events(), Flow::Indirect(hint))
}

fn full(word: u32) -> Instruction {
    let (rd, funct3, rs1) = (bits(word, 7, 5), bits(word, 12, 3), bits(word, 15, 5));
    // Width codes of FP loads and stores; the others are vector ones.
    let kind = if matches!(funct3, 1..=4) { Event::Fp } else { Event::Vector };
    match bits(word, 2, 5) {
        0x00 => memory(4, Event::Loads.bit()),
        0x01 => memory(4, Event::Loads.bit() | kind.bit()),
        0x03 => ordering(word, funct3),
        0x04 if funct3 == 2 && rd == 0 && rs1 == 0 && bits(word, 31, 1) == 0 => {
            flow(4, 0, Flow::Marker(bits(word, 20, 11) as u16))
        }
        0x08 => memory(4, Event::Stores.bit()),
        0x09 => memory(4, Event::Stores.bit() | kind.bit()),
        0x0b => atomic(word),
        0x10..=0x14 => plain(4, Event::Fp.bit()),
        0x15 | 0x1d => plain(4, Event::Vector.bit()),
        0x18 => {
            let distance =
                bits(word, 31, 1) << 12 | bits(word, 7, 1) << 11 | bits(word, 25, 6) << 5 | bits(word, 8, 4) << 1;
            flow(4, 0, Flow::Branch(signed(distance, 13)))
        }
        0x19 => indirect(4, rd, rs1),
        0x1b => {
            let distance =
                bits(word, 31, 1) << 20 | bits(word, 12, 8) << 12 | bits(word, 20, 1) << 11 | bits(word, 21, 10) << 1;
            jump(4, signed(distance, 21), is_link(rd))
        }
        0x1c => system(word, funct3, rd, rs1),
        _ => plain(4, 0),
    }
}

fn ordering(word: u32, funct3: u32) -> Instruction {
    const PAUSE: u32 = 0x0100_000f;
    match funct3 {
        0 => plain(4, if word == PAUSE { Event::Pause } else { Event::Fence }.bit()),
        1 => plain(4, Event::FenceI.bit()),
        2 => match bits(word, 20, 12) {
            0..=2 => memory(4, Event::CboManage.bit()),
            4 => memory(4, Event::CboZero.bit()),
            _ => plain(4, 0),
        },
        _ => plain(4, 0),
    }
}

fn atomic(word: u32) -> Instruction {
    let event = match bits(word, 27, 5) {
        0b00010 => Event::Lr,
        0b00011 => Event::Sc,
        // Zalasr
        0b00110 => Event::Loads,
        0b00111 => Event::Stores,
        _ => Event::Amo,
    };
    Instruction { may_retry: true, ..memory(4, event.bit()) }
}

fn system(word: u32, funct3: u32, rd: u32, rs1: u32) -> Instruction {
    match funct3 {
        0 => privileged(word, rs1),
        // Hypervisor loads and stores; the rest of this space are may-be-operations.
        4 => match bits(word, 25, 7) {
            0x30 | 0x32 | 0x34 | 0x36 => memory(4, Event::Loads.bit()),
            0x31 | 0x33 | 0x35 | 0x37 => memory(4, Event::Stores.bit()),
            _ => plain(4, 0),
        },
        _ => {
            let swaps = funct3 & 3 == 1;
            let writes = swaps || rs1 != 0;
            let access = Access { csr: bits(word, 20, 12) as u16, reads: rd != 0 || !writes, writes };
            Instruction { csr: Some(access), may_leave: true, ..plain(4, Event::Csr.bit()) }
        }
    }
}

fn privileged(word: u32, rs1: u32) -> Instruction {
    let rs2 = bits(word, 20, 5);
    let by_form = |all: Event, asid: Event, page: Event, both: Event| match (rs1, rs2) {
        (0, 0) => all,
        (0, _) => asid,
        (_, 0) => page,
        _ => both,
    };
    let checked = |event: Event| Instruction { may_leave: true, ..plain(4, event.bit()) };
    match (bits(word, 25, 7), bits(word, 20, 12)) {
        (0x09, _) => checked(by_form(Event::SfenceAll, Event::SfenceAsid, Event::SfencePage, Event::SfencePageAsid)),
        (0x0b, _) => checked(by_form(Event::SinvalAll, Event::SinvalAsid, Event::SinvalPage, Event::SinvalPageAsid)),
        (_, 0x180) => checked(Event::SfenceWInval),
        (_, 0x181) => checked(Event::SfenceInvalIr),
        (_, 0x105) => checked(Event::Wfi),
        (_, 0x000) => flow(4, Event::Ecall.bit(), Flow::Call),
        (_, 0x001) => flow(4, Event::Ebreak.bit(), Flow::Call),
        (_, 0x102) => flow(4, Event::Sret.bit(), Flow::Return),
        (_, 0x302) => flow(4, Event::Mret.bit(), Flow::Return),
        // Return from a resumable interrupt; hypervisor fences; wrs.nto, wrs.sto.
        (_, 0x702) => flow(4, 0, Flow::Return),
        _ => Instruction { may_leave: true, ..plain(4, 0) },
    }
}

fn compressed(word: u32) -> Instruction {
    let load = |extra: u64| memory(2, Event::Loads.bit() | extra);
    let store = |extra: u64| memory(2, Event::Stores.bit() | extra);
    let fp = Event::Fp.bit();
    match (word & 3, bits(word, 13, 3)) {
        (0, 1) | (2, 1) => load(fp),
        (0, 2 | 3) | (2, 2 | 3) => load(0),
        // Zcb: c.lbu, c.lhu, c.lh, c.sb, c.sh.
        (0, 4) => match bits(word, 10, 3) {
            0 | 1 => load(0),
            2 | 3 => store(0),
            _ => plain(2, 0),
        },
        (0, 5) | (2, 5) => store(fp),
        (0, 6 | 7) | (2, 6 | 7) => store(0),
        (1, 5) => {
            let distance = bits(word, 12, 1) << 11
                | bits(word, 8, 1) << 10
                | bits(word, 9, 2) << 8
                | bits(word, 6, 1) << 7
                | bits(word, 7, 1) << 6
                | bits(word, 2, 1) << 5
                | bits(word, 11, 1) << 4
                | bits(word, 3, 3) << 1;
            jump(2, signed(distance, 12), false)
        }
        (1, 6 | 7) => {
            let distance = bits(word, 12, 1) << 8
                | bits(word, 5, 2) << 6
                | bits(word, 2, 1) << 5
                | bits(word, 10, 2) << 3
                | bits(word, 3, 2) << 1;
            flow(2, 0, Flow::Branch(signed(distance, 9)))
        }
        (2, 4) => match (bits(word, 12, 1), bits(word, 7, 5), bits(word, 2, 5)) {
            (0, rs1, 0) if rs1 != 0 => indirect(2, 0, rs1),
            (1, 0, 0) => flow(2, Event::Ebreak.bit(), Flow::Call),
            (1, rs1, 0) => indirect(2, 1, rs1),
            _ => plain(2, 0),
        },
        _ => plain(2, 0),
    }
}

#[cfg(test)]
pub(crate) mod tests;
