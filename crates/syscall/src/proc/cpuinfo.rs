//! `/proc/cpuinfo`, in the format of Linux on riscv (arch/riscv, documented in uabi.rst).

use alloc::string::String;
use core::fmt::{Result, Write};

use hal::boot::HartInfo;
use hal::isa::Isa;
use hal::{hart, probe};

pub(super) fn text() -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let info = hal::boot::info();
    let _ = write(&mut text, info.harts(), info.common_isa(), hart::online_mask(), probe::ids);
    text
}

/// A paragraph for each of `harts` whose bit is in `online`; all have `common`; `ids` gives mvendorid, marchid and mimpid.
fn write(
    out: &mut impl Write,
    harts: &[HartInfo],
    common: Isa,
    online: usize,
    ids: impl Fn(usize) -> [usize; 3],
) -> Result {
    for (index, hart) in harts.iter().enumerate().filter(|(index, _)| online >> index & 1 != 0) {
        let mmu = hart.mmu.strip_prefix("riscv,").unwrap_or("none");
        writeln!(out, "processor\t: {index}\nhart\t\t: {}\nisa\t\t: {common}\nmmu\t\t: {mmu}", hart.id)?;
        if !hart.compatible.is_empty() && hart.compatible != "riscv" {
            writeln!(out, "uarch\t\t: {}", hart.compatible)?;
        }
        let [vendor, architecture, implementation] = ids(index);
        writeln!(out, "mvendorid\t: {vendor:#x}\nmarchid\t\t: {architecture:#x}\nmimpid\t\t: {implementation:#x}")?;
        writeln!(out, "hart isa\t: {}\n", hart.isa)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_for_each_hart_that_runs() {
        let common = Isa::from_old_text("rv64imac");
        let hart = HartInfo { id: 3, isa: common, mmu: "riscv,sv57", compatible: "riscv", ..HartInfo::default() };
        let other = HartInfo { isa: Isa::from_old_text("rv64imac_zba"), compatible: "sifive,u74", ..hart };
        let mut text = String::new();
        write(&mut text, &[hart, other, hart], common, 0b011, |index| [0x489, index, 7]).unwrap();
        let isa = "rv64imac_zicntr_zicsr_zifencei_zihpm_zaamo_zalrsc_zca";
        let expected = std::format!(
            "processor\t: 0\nhart\t\t: 3\nisa\t\t: {isa}\nmmu\t\t: sv57\nmvendorid\t: 0x489\nmarchid\t\t: 0x0\n\
             mimpid\t\t: 0x7\nhart isa\t: {isa}\n\n\
             processor\t: 1\nhart\t\t: 3\nisa\t\t: {isa}\nmmu\t\t: sv57\nuarch\t\t: sifive,u74\nmvendorid\t: 0x489\n\
             marchid\t\t: 0x1\nmimpid\t\t: 0x7\nhart isa\t: {isa}_zba\n\n"
        );
        assert_eq!(text, expected);
    }
}
