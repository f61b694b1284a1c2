//! What `user/bare/src/classes.S` executes, region by region, counted by hand.

use super::{adds_up, region, same, verdict};
use model::{Cause, Mode, Report};

type Figures = &'static [(&'static str, u64)];

/// The macro `classes`.
const CLASSES: Figures = &[
    ("instructions", 61),
    ("loads", 6 + 2 + 1),
    ("stores", 5 + 1 + 1),
    ("amo", 4),
    ("lr", 2),
    ("sc", 3),
    ("fence", 3),
    ("pause", 1),
    ("fence_i", 2),
    ("fp", 7),
    ("vector", 4),
    ("cbo_zero", 2),
    ("cbo_manage", 3),
    ("calls", 3),
    ("returns", 3),
];

/// Region, mode, whether `classes` is part of it, what else.
const TOTALS: &[(u16, Mode, bool, Figures)] = &[
    (
        1,
        Mode::Firmware,
        true,
        &[
            ("instructions", 6),
            ("csr", 6),
            ("csr_mstatus_accesses", 2),
            ("csr_mstatus_reads", 2),
            ("csr_mscratch_accesses", 4),
            ("csr_mscratch_reads", 1),
            ("csr_mscratch_writes", 4),
        ],
    ),
    (
        2,
        Mode::Kernel,
        true,
        &[
            ("instructions", 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 2 + 3 + 8),
            ("sfence_all", 1),
            ("sfence_asid", 2),
            ("sfence_page", 3),
            ("sfence_page_asid", 4),
            ("sinval_all", 5),
            ("sinval_asid", 6),
            ("sinval_page", 7),
            ("sinval_page_asid", 8),
            ("sfence_w_inval", 2),
            ("sfence_inval_ir", 3),
            ("csr", 8),
            ("csr_sstatus_accesses", 2),
            ("csr_sstatus_reads", 2),
            ("csr_sscratch_accesses", 6),
            ("csr_sscratch_reads", 3),
            ("csr_sscratch_writes", 5),
        ],
    ),
    (3, Mode::User, true, &[("instructions", 1 + 7), ("ecall", 7), ("trap_ecall_user", 7)]),
    (
        3,
        Mode::Kernel,
        false,
        &[
            ("instructions", 7 * 12),
            ("sret", 7),
            ("csr", 7 * 3),
            ("csr_scause_accesses", 7),
            ("csr_scause_reads", 7),
            ("csr_sepc_accesses", 14),
            ("csr_sepc_reads", 7),
            ("csr_sepc_writes", 7),
        ],
    ),
    // Page faults: an instruction that faults is counted once, when it completes.
    (
        4,
        Mode::User,
        false,
        &[
            ("instructions", 13),
            ("loads", 1),
            ("stores", 1),
            ("amo", 1),
            ("calls", 1),
            ("returns", 1),
            ("load_page_faults", 1),
            ("store_page_faults", 1 + 3),
            ("instruction_page_faults", 1),
            ("repeated_faults", 2),
            ("trap_load_page_fault", 1),
            ("trap_store_page_fault", 4),
            ("trap_instruction_page_fault", 1),
        ],
    ),
    (
        4,
        Mode::Kernel,
        false,
        &[
            ("instructions", 4 * 18 + 2 * 11),
            ("stores", 4),
            ("sfence_page", 4),
            ("sret", 6),
            ("csr", 4 * 3 + 2),
            ("csr_scause_accesses", 6),
            ("csr_scause_reads", 6),
            ("csr_stval_accesses", 8),
            ("csr_stval_reads", 8),
        ],
    ),
    // An interrupt between the return to user mode and its first instruction.
    (
        5,
        Mode::User,
        false,
        &[("instructions", 4), ("ecall", 1), ("trap_ecall_user", 1), ("interrupts", 1), ("trap_software_s", 1)],
    ),
    (
        5,
        Mode::Kernel,
        false,
        &[
            ("instructions", 11 + 4),
            ("sret", 2),
            ("csr", 4 + 2),
            ("csr_scause_accesses", 2),
            ("csr_scause_reads", 2),
            ("csr_sepc_accesses", 2),
            ("csr_sepc_reads", 1),
            ("csr_sepc_writes", 1),
            ("csr_sip_accesses", 2),
            ("csr_sip_writes", 2),
        ],
    ),
    // Exceptions whose instruction never completes, one of them by way of the firmware.
    (
        6,
        Mode::User,
        false,
        &[("instructions", 2), ("ebreak", 2), ("trap_breakpoint", 2), ("trap_illegal_instruction", 1)],
    ),
    (
        6,
        Mode::Kernel,
        false,
        &[
            ("instructions", 2 * 10 + 12),
            ("sret", 3),
            ("csr", 3 * 3),
            ("csr_scause_accesses", 3),
            ("csr_scause_reads", 3),
            ("csr_sepc_accesses", 6),
            ("csr_sepc_reads", 3),
            ("csr_sepc_writes", 3),
        ],
    ),
    (
        6,
        Mode::Firmware,
        false,
        &[
            ("instructions", 16),
            ("mret", 1),
            ("csr", 10),
            ("csr_mcause_accesses", 1),
            ("csr_mcause_reads", 1),
            ("csr_mepc_accesses", 2),
            ("csr_mepc_reads", 1),
            ("csr_mepc_writes", 1),
            ("csr_mtval_accesses", 1),
            ("csr_mtval_reads", 1),
            ("csr_mstatus_accesses", 2),
            ("csr_mstatus_writes", 2),
            ("csr_scause_accesses", 1),
            ("csr_scause_writes", 1),
            ("csr_sepc_accesses", 1),
            ("csr_sepc_writes", 1),
            ("csr_stval_accesses", 1),
            ("csr_stval_writes", 1),
            ("csr_stvec_accesses", 1),
            ("csr_stvec_reads", 1),
        ],
    ),
    // Blocks left in the middle by device accesses, five times to where a loop begins.
    (7, Mode::Kernel, false, &[("instructions", 5 * 10 + 4), ("loads", 5 + 2)]),
    (
        8,
        Mode::Kernel,
        false,
        &[
            ("instructions", 9 + 4),
            ("wfi", 2),
            ("sret", 1),
            ("interrupts", 1),
            ("trap_software_s", 1),
            ("csr", 5 + 2),
            ("csr_sip_accesses", 3 + 1),
            ("csr_sip_writes", 3 + 1),
            ("csr_sstatus_accesses", 2),
            ("csr_sstatus_writes", 2),
            ("csr_scause_accesses", 1),
            ("csr_scause_reads", 1),
        ],
    ),
    (9, Mode::Kernel, false, &[("instructions", 2), ("ecall", 2), ("trap_ecall_supervisor", 2)]),
    (
        9,
        Mode::Firmware,
        false,
        &[
            ("instructions", 2 * 7),
            ("mret", 2),
            ("csr", 6),
            ("csr_mcause_accesses", 2),
            ("csr_mcause_reads", 2),
            ("csr_mepc_accesses", 4),
            ("csr_mepc_reads", 2),
            ("csr_mepc_writes", 2),
        ],
    ),
];

/// Region, reason, entries, instructions of the kernel.
fn buckets() -> Vec<(u16, Cause, u64, u64)> {
    let fault = |name: &str| Cause::Fault(name.to_owned());
    vec![
        (2, Cause::Boot, 0, 61 + 49),
        (3, Cause::User, 0, 0),
        (3, Cause::Call(Some(100)), 7, 7 * 12),
        (4, Cause::User, 0, 0),
        (4, fault("instruction_page_fault"), 1, 18),
        (4, fault("load_page_fault"), 1, 18),
        (4, fault("store_page_fault"), 4, 2 * 18 + 2 * 11),
        (5, Cause::User, 0, 0),
        (5, Cause::Call(Some(101)), 1, 11),
        (5, Cause::Interrupt("software_s".into()), 1, 4),
        (6, Cause::User, 0, 0),
        (6, fault("illegal_instruction"), 1, 12),
        (6, fault("breakpoint"), 2, 2 * 10),
        // What goes on in the kernel after call 102 is that call's.
        (8, Cause::Call(Some(102)), 0, 9 + 4),
    ]
}

fn sum(parts: &[Figures]) -> Vec<(&'static str, u64)> {
    let mut sum: Vec<(&str, u64)> = Vec::new();
    for (name, count) in parts.iter().copied().flatten() {
        match sum.iter_mut().find(|(known, _)| known == name) {
            Some((_, total)) => *total += count,
            None => sum.push((name, *count)),
        }
    }
    sum
}

/// Holds all regions against the tables.
pub fn check(report: &Report) -> Result<(), String> {
    let mut differences = Vec::new();
    for id in 1..=9 {
        let region = region(report, id)?;
        adds_up(region)?;
        for mode in Mode::ALL {
            let parts = TOTALS.iter().filter(|(of, in_mode, ..)| (*of, *in_mode) == (id, mode));
            let parts: Vec<Figures> =
                parts.flat_map(|(_, _, classes, others)| [if *classes { CLASSES } else { &[] }, *others]).collect();
            differences.extend(same(&format!("region {id} {mode:?}"), region.total.of(mode), &sum(&parts)));
        }
    }
    for id in 2..=6 {
        let found: Vec<_> = region(report, id)?
            .buckets
            .iter()
            .map(|bucket| (id, bucket.cause.clone(), bucket.entries, bucket.counts.kernel.instructions))
            .collect();
        let expected: Vec<_> = buckets().into_iter().filter(|(of, ..)| *of == id).collect();
        if found != expected {
            differences.push(format!("region {id}: buckets are {found:?}, not {expected:?}"));
        }
    }
    verdict(differences)
}
