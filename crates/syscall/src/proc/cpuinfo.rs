//! `/proc/cpuinfo`, in the format of Linux on riscv (arch/riscv, documented in uabi.rst).

use alloc::string::String;
use core::fmt::{Result, Write};

use hal::boot::HartInfo;
use hal::isa::Isa;

pub(super) fn text() -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut text, hal::boot::info().harts(), hal::hart::online_mask(), hal::machine::ids());
    text
}

/// A paragraph for each of `harts` whose bit is in `online`; `ids` are mvendorid, marchid and mimpid.
fn write(out: &mut impl Write, harts: &[HartInfo], online: usize, ids: (usize, usize, usize)) -> Result {
    let common = Isa::common(harts);
    for (index, hart) in harts.iter().enumerate().filter(|(index, _)| online >> index & 1 != 0) {
        let mmu = hart.mmu.strip_prefix("riscv,").unwrap_or("none");
        writeln!(out, "processor\t: {index}\nhart\t\t: {}\nisa\t\t: {common}\nmmu\t\t: {mmu}", hart.id)?;
        if !hart.compatible.is_empty() && hart.compatible != "riscv" {
            writeln!(out, "uarch\t\t: {}", hart.compatible)?;
        }
        writeln!(out, "mvendorid\t: {:#x}\nmarchid\t\t: {:#x}\nmimpid\t\t: {:#x}", ids.0, ids.1, ids.2)?;
        writeln!(out, "hart isa\t: {}\n", Isa::of(hart))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_for_each_hart_that_runs() {
        let hart = HartInfo { id: 3, isa: "rv64imac", mmu: "riscv,sv57", compatible: "riscv", ..HartInfo::default() };
        let other = HartInfo { isa: "rv64imac_zba", compatible: "sifive,u74", ..hart };
        let mut text = String::new();
        write(&mut text, &[hart, other, hart], 0b011, (0x489, 0, 7)).unwrap();
        let isa = "rv64imac_zicntr_zicsr_zifencei_zihpm_zaamo_zalrsc_zca";
        let expected = std::format!(
            "processor\t: 0\nhart\t\t: 3\nisa\t\t: {isa}\nmmu\t\t: sv57\nmvendorid\t: 0x489\nmarchid\t\t: 0x0\n\
             mimpid\t\t: 0x7\nhart isa\t: {isa}\n\n\
             processor\t: 1\nhart\t\t: 3\nisa\t\t: {isa}\nmmu\t\t: sv57\nuarch\t\t: sifive,u74\nmvendorid\t: 0x489\n\
             marchid\t\t: 0x0\nmimpid\t\t: 0x7\nhart isa\t: {isa}_zba\n\n"
        );
        assert_eq!(text, expected);
    }
}
