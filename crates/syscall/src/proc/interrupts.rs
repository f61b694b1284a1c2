//! `/proc/interrupts`: proc(5). A row for each kind that a hart counts, with the cause of scause as its number.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{Result, Write};

use hal::hart;

/// A kind of interrupt: number, controller, name.
const KINDS: [(&str, &str); 3] = [
    ("5", "RISC-V INTC   5 Edge      riscv-timer"),
    ("9", "RISC-V INTC   9 Level     external"),
    ("IPI0", "Software interrupts"),
];

pub(super) fn text() -> String {
    let online = hart::online_mask();
    let harts = (0..hart::count()).filter(|index| online >> index & 1 != 0);
    let counts: Vec<_> = harts
        .filter_map(|index| Some((index, &hart::get(index)?.counters)))
        .map(|(index, c)| (index, [c.timer_interrupts.get(), c.external_interrupts.get(), c.ipis.get()]))
        .collect();
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut text, &counts);
    text
}

/// `harts`: each one's number and its counts, a kind each.
fn write(out: &mut impl Write, harts: &[(usize, [u64; KINDS.len()])]) -> Result {
    write!(out, "{:11}", "")?;
    for (index, _) in harts {
        write!(out, "CPU{index:<8}")?;
    }
    for (kind, (number, name)) in KINDS.iter().enumerate() {
        write!(out, "\n{number:>3}:")?;
        for count in harts.iter().filter_map(|(_, counts)| counts.get(kind)) {
            write!(out, " {count:10}")?;
        }
        write!(out, "  {name}")?;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_for_each_hart() {
        let mut text = String::new();
        write(&mut text, &[(0, [591, 16, 53]), (1, [622, 0, 56])]).unwrap();
        let expected = "           CPU0       CPU1       \n  5:        591        622  RISC-V INTC   5 Edge      riscv-timer\n\
                        \x20 9:         16          0  RISC-V INTC   9 Level     external\n\
                        IPI0:         53         56  Software interrupts\n";
        assert_eq!(text, expected);
    }
}
