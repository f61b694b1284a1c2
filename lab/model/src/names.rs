//! Names of traps and of control and status registers.

/// The name of a cause as scause and mcause give it, of an interrupt if `interrupt`. Interrupts: `software_s`, `timer_s`,
/// `external_s`, the same with `_m`; what has no name here is `exception_N` or `interrupt_N`.
pub fn trap_name(interrupt: bool, code: u64) -> String {
    let name = match (interrupt, code) {
        (false, 0) => "instruction_misaligned",
        (false, 1) => "instruction_access_fault",
        (false, 2) => "illegal_instruction",
        (false, 3) => "breakpoint",
        (false, 4) => "load_misaligned",
        (false, 5) => "load_access_fault",
        (false, 6) => "store_misaligned",
        (false, 7) => "store_access_fault",
        (false, 8) => "ecall_user",
        (false, 9) => "ecall_supervisor",
        (false, 10) => "ecall_virtual_supervisor",
        (false, 11) => "ecall_machine",
        (false, 12) => "instruction_page_fault",
        (false, 13) => "load_page_fault",
        (false, 15) => "store_page_fault",
        (false, 18) => "software_check",
        (false, 19) => "hardware_error",
        (true, 1) => "software_s",
        (true, 3) => "software_m",
        (true, 5) => "timer_s",
        (true, 7) => "timer_m",
        (true, 9) => "external_s",
        (true, 11) => "external_m",
        (true, 13) => "counter_overflow",
        (false, code) => return format!("exception_{code}"),
        (true, code) => return format!("interrupt_{code}"),
    };
    name.to_owned()
}

/// Named registers, in order of their numbers (privileged specification, chapter 2, and the chapters of extensions).
const CSRS: &[(u16, &str)] = &[
    (0x001, "fflags"),
    (0x002, "frm"),
    (0x003, "fcsr"),
    (0x008, "vstart"),
    (0x009, "vxsat"),
    (0x00a, "vxrm"),
    (0x00f, "vcsr"),
    (0x011, "ssp"),
    (0x015, "seed"),
    (0x017, "jvt"),
    (0x100, "sstatus"),
    (0x104, "sie"),
    (0x105, "stvec"),
    (0x106, "scounteren"),
    (0x10a, "senvcfg"),
    (0x10c, "sstateen0"),
    (0x10d, "sstateen1"),
    (0x10e, "sstateen2"),
    (0x10f, "sstateen3"),
    (0x120, "scountinhibit"),
    (0x140, "sscratch"),
    (0x141, "sepc"),
    (0x142, "scause"),
    (0x143, "stval"),
    (0x144, "sip"),
    (0x14d, "stimecmp"),
    (0x14e, "sctrctl"),
    (0x150, "siselect"),
    (0x151, "sireg"),
    (0x15c, "stopei"),
    (0x180, "satp"),
    (0x181, "srmcfg"),
    (0x200, "vsstatus"),
    (0x204, "vsie"),
    (0x205, "vstvec"),
    (0x240, "vsscratch"),
    (0x241, "vsepc"),
    (0x242, "vscause"),
    (0x243, "vstval"),
    (0x244, "vsip"),
    (0x24d, "vstimecmp"),
    (0x280, "vsatp"),
    (0x300, "mstatus"),
    (0x301, "misa"),
    (0x302, "medeleg"),
    (0x303, "mideleg"),
    (0x304, "mie"),
    (0x305, "mtvec"),
    (0x306, "mcounteren"),
    (0x308, "mvien"),
    (0x309, "mvip"),
    (0x30a, "menvcfg"),
    (0x30c, "mstateen0"),
    (0x30d, "mstateen1"),
    (0x30e, "mstateen2"),
    (0x30f, "mstateen3"),
    (0x320, "mcountinhibit"),
    (0x321, "mcyclecfg"),
    (0x322, "minstretcfg"),
    (0x340, "mscratch"),
    (0x341, "mepc"),
    (0x342, "mcause"),
    (0x343, "mtval"),
    (0x344, "mip"),
    (0x34a, "mtinst"),
    (0x34b, "mtval2"),
    (0x34e, "mctrctl"),
    (0x350, "miselect"),
    (0x351, "mireg"),
    (0x35c, "mtopei"),
    (0x5a8, "scontext"),
    (0x600, "hstatus"),
    (0x602, "hedeleg"),
    (0x603, "hideleg"),
    (0x604, "hie"),
    (0x605, "htimedelta"),
    (0x606, "hcounteren"),
    (0x607, "hgeie"),
    (0x60a, "henvcfg"),
    (0x643, "htval"),
    (0x644, "hip"),
    (0x645, "hvip"),
    (0x64a, "htinst"),
    (0x680, "hgatp"),
    (0x747, "mseccfg"),
    (0x7a0, "tselect"),
    (0x7a1, "tdata1"),
    (0x7a2, "tdata2"),
    (0x7a3, "tdata3"),
    (0x7a4, "tinfo"),
    (0x7a5, "tcontrol"),
    (0x7a8, "mcontext"),
    (0xb00, "mcycle"),
    (0xb02, "minstret"),
    (0xc00, "cycle"),
    (0xc01, "time"),
    (0xc02, "instret"),
    (0xc20, "vl"),
    (0xc21, "vtype"),
    (0xc22, "vlenb"),
    (0xda0, "scountovf"),
    (0xdb0, "stopi"),
    (0xe12, "hgeip"),
    (0xf11, "mvendorid"),
    (0xf12, "marchid"),
    (0xf13, "mimpid"),
    (0xf14, "mhartid"),
    (0xf15, "mconfigptr"),
    (0xfb0, "mtopi"),
];

/// The name of the register with this number; `csr_0x7c0` for one without.
pub fn csr_name(number: u16) -> String {
    if let Ok(index) = CSRS.binary_search_by_key(&number, |(known, _)| *known) {
        return CSRS[index].1.to_owned();
    }
    match number {
        0x323..=0x33f => format!("mhpmevent{}", number - 0x320),
        0x3a0..=0x3af => format!("pmpcfg{}", number - 0x3a0),
        0x3b0..=0x3ef => format!("pmpaddr{}", number - 0x3b0),
        0xb03..=0xb1f => format!("mhpmcounter{}", number - 0xb00),
        0xc03..=0xc1f => format!("hpmcounter{}", number - 0xc00),
        _ => format!("csr_{number:#05x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found() {
        assert!(CSRS.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(csr_name(0x100), "sstatus");
        assert_eq!(csr_name(0x3b1), "pmpaddr1");
        assert_eq!(csr_name(0x7c0), "csr_0x7c0");
        assert_eq!(trap_name(false, 13), "load_page_fault");
        assert_eq!(trap_name(true, 5), "timer_s");
        assert_eq!(trap_name(true, 44), "interrupt_44");
    }
}
