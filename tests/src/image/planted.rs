//! One fault of each kind, planted in the real kernel in memory: each rule must find its own.

use super::{Image, Instruction, Kind, budget, rules};

/// A fault and the rule that must find it.
struct Fault {
    what: &'static str,
    plant: fn(&mut Image) -> Result<(), String>,
    rule: fn(&Image) -> Result<(), String>,
}

const FAULTS: &[Fault] = &[
    Fault {
        what: "jr x5 in compiled code",
        plant: |image| replace_compiled(image, &jalr(0, 5)),
        rule: rules::no_jump_through_x5,
    },
    Fault {
        what: "jalr x5 in compiled code",
        plant: |image| replace_compiled(image, &jalr(5, 6)),
        rule: rules::no_jump_through_x5,
    },
    Fault {
        what: "fadd.d in compiled code",
        plant: |image| replace_compiled(image, &0x0200_0053_u32.to_le_bytes()),
        rule: rules::no_float_or_vector,
    },
    Fault {
        what: "a read of fcsr in compiled code",
        plant: |image| replace_compiled(image, &0x0030_2573_u32.to_le_bytes()),
        rule: rules::no_float_or_vector,
    },
    Fault {
        what: "vsetvli in compiled code",
        plant: |image| replace_compiled(image, &0x0cd5_7557_u32.to_le_bytes()),
        rule: rules::no_float_or_vector,
    },
    Fault {
        what: "a handler jumped to instead of called",
        plant: |image| replace_in_entry(image, |i| matches!(i.kind, Kind::Indirect(..)) && i.writes == 1, &jalr(0, 6)),
        rule: rules::matched_calls,
    },
    Fault {
        what: "ra written between call and return",
        plant: |image| replace_in(image, "limen_spill", |_| true, &addi(1, 6)),
        rule: rules::matched_calls,
    },
    Fault {
        what: "a return after a call without loading ra again",
        plant: |image| {
            let reload = |i: &Instruction| matches!(i.kind, Kind::Load(..)) && i.writes == 1;
            replace_in(image, "limen_full_call", reload, &addi(0, 0))
        },
        rule: rules::matched_calls,
    },
    Fault {
        what: "a tail jump into compiled code",
        plant: |image| {
            let (from, to) = (image.symbol("limen_spill")?.address, compiled(image)?.0);
            image.patch(from, &jump(from, to))
        },
        rule: rules::matched_calls,
    },
    Fault {
        what: "a CSR access more on the fast path",
        plant: |image| {
            let plain = |i: &Instruction| i.length == 4 && i.kind == Kind::Other && i.writes == 0;
            replace_in_entry(image, plain, &0x1000_2073_u32.to_le_bytes())
        },
        rule: budget::holds,
    },
    Fault { what: "instructions more on the fast path", plant: lengthen, rule: budget::holds },
];

/// Plants each in turn.
pub fn all(image: &Image) -> Result<(), String> {
    for fault in FAULTS {
        (fault.rule)(image).map_err(|error| format!("before anything is planted: {error}"))?;
        let mut broken = image.clone();
        (fault.plant)(&mut broken).map_err(|error| format!("cannot plant {}: {error}", fault.what))?;
        match (fault.rule)(&broken) {
            Ok(()) => return Err(format!("{} was not found", fault.what)),
            Err(report) => println!("planted {}: {}", fault.what, report.lines().next().unwrap_or_default()),
        }
    }
    Ok(())
}

fn jalr(link: u32, register: u32) -> [u8; 4] {
    (0x67 | link << 7 | register << 15).to_le_bytes()
}

fn addi(to: u32, from: u32) -> [u8; 4] {
    (0x13 | to << 7 | from << 15).to_le_bytes()
}

fn jump(from: u64, to: u64) -> [u8; 4] {
    let offset = to.wrapping_sub(from) as u32;
    let bit = |at: u32, count: u32| offset >> at & ((1 << count) - 1);
    (0x6f | bit(20, 1) << 31 | bit(1, 10) << 21 | bit(11, 1) << 20 | bit(12, 8) << 12).to_le_bytes()
}

/// A function that the compiler made: address and size.
fn compiled(image: &Image) -> Result<(u64, u64), String> {
    let fits = |symbol: &&super::Symbol| {
        let in_code = image.sections.iter().any(|section| {
            section.code && (section.address..section.address + section.bytes.len() as u64).contains(&symbol.address)
        });
        symbol.name.starts_with("_R") && symbol.size >= 64 && in_code
    };
    let by_name = |symbol: &&super::Symbol| symbol.name == "limen_user_trap" && symbol.size >= 64;
    let found = image.symbols.iter().find(by_name).or_else(|| image.symbols.iter().find(fits));
    found.map(|symbol| (symbol.address, symbol.size)).ok_or_else(|| "no compiled function".into())
}

/// Overwrites the first instruction of four bytes in a compiled function.
fn replace_compiled(image: &mut Image, bytes: &[u8]) -> Result<(), String> {
    let (address, size) = compiled(image)?;
    let place = image.instructions(address, size)?.into_iter().find(|i| i.length == 4);
    let place = place.ok_or("no instruction of four bytes")?.address;
    image.patch(place, bytes)
}

fn replace_in(image: &mut Image, name: &str, which: fn(&Instruction) -> bool, bytes: &[u8]) -> Result<(), String> {
    let symbol = image.symbol(name)?.clone();
    let all = image.instructions(symbol.address, symbol.size)?;
    let place = all.iter().find(|i| which(i)).ok_or("no such instruction")?;
    // A short one, with its neighbour: the rest of that, if it was long, becomes a short nop.
    let mut whole = bytes.to_vec();
    let mut covered = 0;
    for instruction in all.iter().filter(|i| i.address >= place.address) {
        if covered >= bytes.len() as u64 {
            break;
        }
        covered += instruction.length;
    }
    if covered == bytes.len() as u64 + 2 {
        whole.extend([0x01, 0x00]);
    }
    image.patch(place.address, &whole)
}

fn replace_in_entry(image: &mut Image, which: fn(&Instruction) -> bool, bytes: &[u8]) -> Result<(), String> {
    replace_in(image, "limen_trap_entry", which, bytes)
}

/// Points the table's slot of getppid at a handler of one instruction that jumps to a compiled function longer than it.
fn lengthen(image: &mut Image) -> Result<(), String> {
    let slot = image.symbol("LIMEN_CALLS")?.address + 8 * 174;
    let (place, size) = compiled(image)?;
    // Two dozen instructions that do nothing, then a return.
    let nops = (size as usize / 4 - 1).min(40);
    let mut code: Vec<u8> = (0..nops).flat_map(|_| [addi(10, 10), addi(11, 11)]).flatten().collect();
    code.truncate(nops * 4);
    code.extend(jalr(0, 1));
    image.patch(place, &code)?;
    image.patch(slot, &place.to_le_bytes())
}
