//! The cost of getppid, counted in the built kernel.
//!
//! The walk starts at the trap entry as an `ecall` from user mode enters it and takes no forward branch there (what the
//! assembly branches forward to is not the fast path), follows the call into the handler that the table holds, and ends
//! with `sret`. In the handler, which is compiled, the dearest way to its return counts.

use super::{Image, Instruction, Kind};

/// What the walk found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Instructions.
    pub instructions: u32,
    /// Accesses to control and status registers.
    pub csrs: u32,
}

/// Most instructions of the kernel's in a getppid.
pub const INSTRUCTIONS: u32 = 72;
/// Most CSR accesses in it.
pub const CSRS: u32 = 5;

const GETPPID: u64 = 173;
/// A function deeper than this does not belong on the fast path.
const DEPTH: u32 = 8;
/// A way longer than this is a loop.
const LONGEST: u32 = 2_000;

impl Cost {
    fn of(instruction: &Instruction) -> Self {
        Self { instructions: 1, csrs: u32::from(matches!(instruction.kind, Kind::Csr(_))) }
    }

    fn plus(self, other: Self) -> Self {
        Self { instructions: self.instructions + other.instructions, csrs: self.csrs + other.csrs }
    }
}

/// The check.
pub fn holds(image: &Image) -> Result<(), String> {
    let cost = getppid_cost(image)?;
    println!("getppid: {} instructions in the kernel, {} CSR accesses", cost.instructions, cost.csrs);
    if cost.instructions > INSTRUCTIONS || cost.csrs > CSRS {
        return Err(format!("{cost:?}, over the limit of {INSTRUCTIONS} instructions and {CSRS} CSR accesses"));
    }
    Ok(())
}

/// Walks the fast path.
///
/// # Errors
/// The path is not as the assembly's contract has it.
pub fn getppid_cost(image: &Image) -> Result<Cost, String> {
    // Slot 0 of the table answers for numbers that do not exist.
    let slot = image.symbol("LIMEN_CALLS")?.address + 8 * (GETPPID + 1);
    let handler = image.word(slot).ok_or("the call table is not in the image")?;
    let mut cost = Cost::default();
    let mut address = image.symbol("limen_trap_entry")?.address;
    let mut called = false;
    while cost.instructions < LONGEST {
        let instruction = image.instruction(address)?;
        cost = cost.plus(Cost::of(&instruction));
        address = instruction.next();
        match (instruction.kind, instruction.writes) {
            (Kind::Sret, _) if called => return Ok(cost),
            (Kind::Sret, _) => return Err("the fast path calls no handler".into()),
            (Kind::Indirect(..), 1) if !called => {
                called = true;
                cost = cost.plus(dearest(image, handler, handler, 0)?);
            }
            (Kind::Jump(target), 0) => address = target,
            (Kind::Branch(target), _) if target > instruction.address => {}
            (Kind::Branch(_) | Kind::Jump(_) | Kind::Indirect(..) | Kind::Illegal, _) => {
                return Err(format!("the fast path branches at {}", image.place(instruction.address)));
            }
            _ => {}
        }
    }
    Err("the fast path has no end".into())
}

/// The dearest way from `address` to the return of its function; ways that end in a call that does not come back do not
/// count.
fn dearest(image: &Image, function: u64, start: u64, depth: u32) -> Result<Cost, String> {
    let mut cost = Cost::default();
    let mut address = start;
    if depth > DEPTH {
        return Err(format!("the handler calls or branches too deep at {}", image.place(start)));
    }
    while cost.instructions < LONGEST {
        let instruction = image.instruction(address)?;
        cost = cost.plus(Cost::of(&instruction));
        address = instruction.next();
        match (instruction.kind, instruction.writes) {
            (Kind::Indirect(1, 0), 0) => return Ok(cost),
            (Kind::Jump(target), 1) => cost = cost.plus(dearest(image, target, target, depth + 1)?),
            (Kind::Indirect(..), _) | (Kind::Jump(_), 5) => {
                return Err(format!("the handler calls through a register at {}", image.place(instruction.address)));
            }
            (Kind::Jump(target), _) | (Kind::Branch(target), _)
                if target <= instruction.address && target >= function =>
            {
                return Err(format!("the handler loops at {}", image.place(instruction.address)));
            }
            (Kind::Jump(target), _) => address = target,
            (Kind::Branch(target), _) => {
                let ways =
                    [dearest(image, function, address, depth + 1)?, dearest(image, function, target, depth + 1)?];
                let longer = ways.into_iter().max_by_key(|way| way.instructions).unwrap_or_default();
                return Ok(cost.plus(longer));
            }
            (Kind::Illegal, _) => return Ok(Cost::default()),
            _ => {}
        }
    }
    Err(format!("no end of the handler's way from {}", image.place(start)))
}
