//! `/proc/meminfo` and `/proc/vmstat`.
//!
//! Every file's pages are tmpfs pages here: they count as cached and as shared memory, like those of a Linux that runs
//! from its initial ramdisk, and cannot be had back; so what is available is what is free.

use alloc::string::String;
use core::fmt::{Result, Write};

use hal::addr::PAGE_SIZE;
use hal::hart;
use hal::mem::frame::{self, Stats};

const KIB: usize = PAGE_SIZE / 1024;

pub(super) fn meminfo_text() -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = meminfo(&mut text, &frame::stats());
    text
}

/// proc_meminfo(5). Without lines on huge pages, commitments and mappings of files: nobody counts those.
fn meminfo(out: &mut impl Write, s: &Stats) -> Result {
    let active = s.anonymous + s.page_cache;
    let rows = [
        ("MemTotal", s.total),
        ("MemFree", s.free),
        ("MemAvailable", s.free),
        ("Buffers", 0),
        ("Cached", s.page_cache),
        ("SwapCached", 0),
        ("Active", active),
        ("Inactive", 0),
        ("Active(anon)", active),
        ("Inactive(anon)", 0),
        ("Active(file)", 0),
        ("Inactive(file)", 0),
        ("Unevictable", 0),
        ("Mlocked", 0),
        ("SwapTotal", 0),
        ("SwapFree", 0),
        ("Dirty", 0),
        ("Writeback", 0),
        ("AnonPages", s.anonymous),
        ("Shmem", s.page_cache),
        ("KReclaimable", 0),
        ("Slab", s.heap),
        ("SReclaimable", 0),
        ("SUnreclaim", s.heap),
        ("KernelStack", s.kernel_stacks),
        ("PageTables", s.page_tables),
        ("VmallocTotal", 0),
        ("VmallocUsed", 0),
        ("VmallocChunk", 0),
    ];
    // The name and its number share 24 columns, the name at least 16 of them.
    rows.iter().try_for_each(|(name, pages)| {
        writeln!(out, "{:<16}{:>width$} kB", alloc::format!("{name}:"), pages * KIB, width = 8)
    })
}

/// Page faults since boot.
fn faults() -> u64 {
    let faults = |hart: &hart::Hart| {
        let c = &hart.counters;
        c.read_faults.get() + c.write_faults.get() + c.execute_faults.get() + c.copy_faults.get()
    };
    (0..hart::count()).filter_map(hart::get).map(faults).sum()
}

pub(super) fn vmstat_text() -> String {
    let mut text = String::new();
    let _ = vmstat(&mut text, &frame::stats(), faults());
    text
}

/// `vmstat`: a name and a number a line; pages, but for the kernel stacks.
fn vmstat(out: &mut impl Write, s: &Stats, faults: u64) -> Result {
    let rows = [
        ("nr_free_pages", s.free),
        ("nr_anon_pages", s.anonymous),
        ("nr_file_pages", s.page_cache),
        ("nr_dirty", 0),
        ("nr_writeback", 0),
        ("nr_slab_reclaimable", 0),
        ("nr_slab_unreclaimable", s.heap),
        ("nr_shmem", s.page_cache),
        ("nr_kernel_stack", s.kernel_stacks * KIB),
        ("nr_page_table_pages", s.page_tables),
        ("pgpgin", 0),
        ("pgpgout", 0),
        ("pswpin", 0),
        ("pswpout", 0),
    ];
    rows.iter().try_for_each(|(name, n)| writeln!(out, "{name} {n}"))?;
    writeln!(out, "pgfault {faults}\npgmajfault 0")
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATS: Stats = Stats {
        total: 240_995,
        free: 230_867,
        anonymous: 24,
        page_cache: 440,
        page_tables: 28,
        kernel_stacks: 246,
        heap: 1611,
    };

    #[test]
    fn the_lines_of_meminfo_are_those_of_linux() {
        let mut text = String::new();
        meminfo(&mut text, &STATS).unwrap();
        let linux = [
            "MemTotal:         963980 kB",
            "MemFree:          923468 kB",
            "Buffers:               0 kB",
            "Cached:             1760 kB",
            "Active(anon):       1856 kB",
            "Inactive(anon):        0 kB",
            "AnonPages:            96 kB",
            "KernelStack:         984 kB",
            "PageTables:          112 kB",
            "Slab:               6444 kB",
        ];
        for line in linux {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn vmstat_is_names_and_numbers() {
        let mut text = String::new();
        vmstat(&mut text, &STATS, 77).unwrap();
        assert!(text.starts_with("nr_free_pages 230867\n") && text.ends_with("pgfault 77\npgmajfault 0\n"), "{text}");
        assert!(text.lines().all(|l| l.split_once(' ').is_some_and(|(_, n)| n.parse::<u64>().is_ok())), "{text}");
    }
}
