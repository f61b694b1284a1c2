//! Rules over all code, and over the assembly of the trap path.

use super::{Image, Instruction, Kind};
use std::collections::BTreeMap;

const RA: u8 = 1;
/// The alternate link register of the calling convention: a return-address stack takes a jump through it for a return.
const X5: u8 = 5;

/// The assembly that calls, returns and switches: everything of `entry.S` and its neighbours.
pub const ENTRY: &[&str] = &[
    "limen_trap_entry",
    "limen_spill",
    "limen_full_call",
    "limen_kernel_trap_entry",
    "limen_switch",
    "limen_user_start",
    "limen_kernel_start",
];

/// The only code that may name an FP register.
const FLOAT_CODE: &[&str] = &["limen_fp_save", "limen_fp_load"];

/// Joins what was found wrong.
fn verdict(found: Vec<String>) -> Result<(), String> {
    if found.is_empty() { Ok(()) } else { Err(found.join("\n")) }
}

/// No jump anywhere reads or links x5.
pub fn no_jump_through_x5(image: &Image) -> Result<(), String> {
    let bad = |instruction: &Instruction| match instruction.kind {
        Kind::Jump(_) => instruction.writes == X5,
        Kind::Indirect(register, _) => register == X5 || instruction.writes == X5,
        _ => false,
    };
    let all = image.all_instructions()?;
    verdict(all.iter().filter(|i| bad(i)).map(|i| format!("a jump through x5 at {}", image.place(i.address))).collect())
}

/// No instruction of F, D or V, nor an access to their CSRs, outside the code that saves and loads FP registers.
pub fn no_float_or_vector(image: &Image) -> Result<(), String> {
    let allowed: Vec<_> = image
        .symbols
        .iter()
        .filter(|symbol| FLOAT_CODE.contains(&symbol.name.as_str()))
        .map(|symbol| symbol.address..symbol.address + symbol.size)
        .collect();
    let bad = |instruction: &&Instruction| {
        let here = || allowed.iter().any(|range| range.contains(&instruction.address));
        instruction.kind == Kind::Vector || instruction.kind == Kind::Float && !here()
    };
    let all = image.all_instructions()?;
    verdict(all.iter().filter(bad).map(|i| format!("{:?} instruction at {}", i.kind, image.place(i.address))).collect())
}

/// What ra holds on the way through a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Link {
    /// The caller's address, as at the function's beginning or loaded again.
    Caller,
    /// Where the last call returned to.
    Spent,
}

/// In the assembly of the trap path every call has its return and every return its call:
/// a jump that links does so in ra, its callee comes back behind it; ra is written by calls and loads only; the only
/// jump through a register without link is `ret`, with the caller's address in ra; a jump without link stays within the
/// assembly, for one into Rust would return past its caller.
pub fn matched_calls(image: &Image) -> Result<(), String> {
    let mut found = Vec::new();
    let mut code = BTreeMap::new();
    let mut starts = Vec::new();
    for name in ENTRY {
        let symbol = image.symbol(name)?;
        if symbol.size == 0 {
            return Err(format!("{name} has no size"));
        }
        starts.push(symbol.address);
        for instruction in image.instructions(symbol.address, symbol.size)? {
            code.insert(instruction.address, instruction);
        }
    }
    let say = |text: &str, address: u64| format!("{text} at {}", image.place(address));
    // Every way through the code, by address and what ra holds there.
    let mut seen = std::collections::BTreeSet::new();
    let mut todo: Vec<(u64, Link)> = starts.iter().map(|start| (*start, Link::Caller)).collect();
    while let Some((address, link)) = todo.pop() {
        if !seen.insert((address, link)) {
            continue;
        }
        let Some(instruction) = code.get(&address) else {
            found.push(say("the way leaves the assembly", address));
            continue;
        };
        let next = instruction.next();
        match (instruction.kind, instruction.writes) {
            (Kind::Jump(_), RA) | (Kind::Indirect(..), RA) => todo.push((next, Link::Spent)),
            (Kind::Jump(target), 0) if code.contains_key(&target) => todo.push((target, link)),
            (Kind::Jump(_), 0) => found.push(say("a jump out of the assembly without a link", address)),
            (Kind::Indirect(RA, 0), 0) if link == Link::Caller => {}
            (Kind::Indirect(RA, 0), 0) => found.push(say("a return without the caller's address in ra", address)),
            (Kind::Indirect(..), 0) => found.push(say("an indirect jump without a link", address)),
            (Kind::Jump(_) | Kind::Indirect(..), _) => found.push(say("a call that links another register", address)),
            (Kind::Branch(target), _) => todo.extend([(next, link), (target, link)]),
            (Kind::Load(..), RA) => todo.push((next, Link::Caller)),
            // The first half of a far call.
            (Kind::Auipc(_), RA)
                if code.get(&next).is_some_and(|i| i.writes == RA && matches!(i.kind, Kind::Indirect(RA, _))) =>
            {
                todo.push((next, link));
            }
            (_, RA) => found.push(say("ra is written by something else than a call or a load", address)),
            (Kind::Sret | Kind::Illegal, _) => {}
            // `unimp` of four bytes is a write to a read-only CSR.
            (Kind::Csr(0xc00), 0) => {}
            _ => todo.push((next, link)),
        }
    }
    let unreached = code.keys().filter(|address| !seen.iter().any(|(other, _)| other == *address));
    found.extend(unreached.map(|address| say("code that nothing reaches", *address)));
    verdict(found)
}
