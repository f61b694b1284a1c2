//! `/proc/limen/boundary`: what crossing the boundary has cost since boot, a hart a section.

use alloc::string::String;
use core::fmt::{Result, Write};
use core::sync::atomic::{AtomicU64, Ordering};

use hal::hart::{self, Counters};
use hal::mem::{frame, tlb};

static FIRST_USER: AtomicU64 = AtomicU64::new(0);

/// Notes the clock, in ticks, when the first program is about to run.
pub fn note_first_user(ticks: u64) {
    FIRST_USER.store(ticks, Ordering::Relaxed);
}

/// The file. Counts are exact but for what other harts do at this moment.
pub(super) fn text() -> String {
    let mut text = String::new();
    hart::collect_calls();
    // Writing to a String cannot fail.
    let _ = boot(&mut text, hal::boot::info().entry_ticks, FIRST_USER.load(Ordering::Relaxed));
    let _ = translation(&mut text, tlb::mode(), tlb::features(), tlb::asid_width(), tlb::by_ipi());
    for index in 0..hart::count() {
        let Some(hart) = hart::get(index) else { continue };
        let fences = |reason, form| tlb::fences(index, reason, form);
        let _ = section(&mut text, index, hart.id(), &hart.counters, fences);
        let _ = faults(&mut text, &tlb::hart_report(index), tlb::served(index));
    }
    let _ = pages(&mut text, &frame::stats());
    text
}

fn boot(out: &mut impl Write, entry: u64, first_user: u64) -> Result {
    writeln!(out, "entry_ticks {entry}\nfirst_user_ticks {first_user}")
}

/// How translations are fenced, as boot decided.
fn translation(out: &mut impl Write, mode: tlb::Mode, f: tlb::Features, asid_bits: u32, by_ipi: bool) -> Result {
    writeln!(out, "tlb {} asid_bits {asid_bits} rfence {}", mode.name(), if by_ipi { "ipi" } else { "sbi" })?;
    writeln!(out, "svvptc {} svinval {} svadu {}", u8::from(f.svvptc), u8::from(f.svinval), u8::from(f.svadu))
}

/// What a hart's translations did by themselves, and what it did for others.
fn faults(out: &mut impl Write, report: &tlb::HartReport, served: u64) -> Result {
    writeln!(out, "  faults_spurious {}\n  longest_chain {}", report.spurious, report.longest_chain)?;
    let (links, widening) = (u8::from(report.fences_links), u8::from(report.fences_widening));
    writeln!(out, "  fences_links {links}\n  fences_widening {widening}\n  requests_served {served}")
}

/// One hart's counters; fences of a reason and form that never happened are left out.
fn section(
    out: &mut impl Write,
    index: usize,
    id: usize,
    c: &Counters,
    fences: impl Fn(tlb::Reason, tlb::Form) -> u64,
) -> Result {
    writeln!(out, "hart {index} id {id}")?;
    let rows = [
        ("calls_fast", &c.fast_calls),
        ("calls_full", &c.full_calls),
        ("faults_read", &c.read_faults),
        ("faults_write", &c.write_faults),
        ("faults_execute", &c.execute_faults),
        ("faults_copy", &c.copy_faults),
        ("exceptions_other", &c.other_exceptions),
        ("interrupts_timer", &c.timer_interrupts),
        ("interrupts_external", &c.external_interrupts),
        ("interrupts_ipi", &c.ipis),
        ("switches", &c.switches),
        ("longest_off_ticks", &c.longest_off),
        ("lock_waits", &c.lock_waits),
        ("lock_wait_ticks", &c.lock_wait_ticks),
        ("zeroed_idle", &c.zeroed_idle),
        ("zeroed_taken", &c.zeroed_taken),
        ("discovery_ticks", &c.discovery_ticks),
    ];
    for (name, counter) in rows {
        writeln!(out, "  {name} {}", counter.get())?;
    }
    for (reason, name) in tlb::Reason::ALL {
        for (form, form_name) in tlb::Form::ALL {
            let n = fences(reason, form);
            if n != 0 {
                writeln!(out, "  fence_{name}_{form_name} {n}")?;
            }
        }
    }
    Ok(())
}

fn pages(out: &mut impl Write, s: &frame::Stats) -> Result {
    writeln!(out, "pages total {} free {}", s.total, s.free)?;
    writeln!(out, "pages anonymous {} page_cache {}", s.anonymous, s.page_cache)?;
    writeln!(out, "pages page_tables {} kernel_stacks {} heap {}", s.page_tables, s.kernel_stacks, s.heap)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn a_hart_shows_its_counters_and_the_fences_that_happened() {
        let counters = Counters::default();
        counters.fast_calls.add(12);
        counters.switches.add(3);
        let mut text = String::new();
        let fences = |reason, form| u64::from(reason == tlb::Reason::Unmap && form == tlb::Form::Asid) * 7;
        section(&mut text, 1, 4, &counters, fences).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!((lines[0], lines[1]), ("hart 1 id 4", "  calls_fast 12"));
        assert!(lines.contains(&"  switches 3"), "{text}");
        // Of the fences, the one that happened.
        assert_eq!(lines.last(), Some(&"  fence_unmap_asid 7"));
        assert_eq!(lines.iter().filter(|line| line.contains("fence_")).count(), 1);
    }

    #[test]
    fn every_line_below_a_hart_is_a_name_and_a_number() {
        let mut text = String::new();
        boot(&mut text, 5, 6).unwrap();
        section(&mut text, 0, 0, &Counters::default(), |_, _| 1).unwrap();
        faults(&mut text, &tlb::HartReport::default(), 3).unwrap();
        for line in text.lines().filter(|line| !line.starts_with("hart")) {
            let (name, value) = line.trim_start().split_once(' ').unwrap();
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_') && value.parse::<u64>().is_ok(), "{line}");
        }
    }
}
