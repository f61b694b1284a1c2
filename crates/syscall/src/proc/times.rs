//! `/proc/uptime` and `/proc/stat`: how long, and how busy.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{Result, Write};

use hal::{hart, time};
use uapi::time::USER_HZ;

/// What a hart did with its time, in clock ticks.
#[derive(Clone, Copy, Default)]
struct Spent {
    index: usize,
    busy: u64,
    idle: u64,
}

/// The harts that run. All that was not idle counts as the time of programs: a system call reads no clock.
fn spent(now: u64) -> Vec<Spent> {
    let online = hart::online_mask();
    let of = |index| {
        let idle = task::sched::idle_time(index).min(now);
        Spent { index, busy: now - idle, idle }
    };
    (0..hart::count()).filter(|index| online >> index & 1 != 0).map(of).collect()
}

/// Seconds and hundredths.
fn seconds(out: &mut impl Write, ns: u64) -> Result {
    write!(out, "{}.{:02}", ns / 1_000_000_000, ns / 10_000_000 % 100)
}

pub(super) fn uptime_text() -> String {
    let now = time::now();
    let idle = spent(now).iter().map(|hart| hart.idle).sum();
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = uptime(&mut text, time::ns(now), time::ns(idle));
    text
}

/// proc_uptime(5): since power-on, and all harts' idle time.
fn uptime(out: &mut impl Write, up_ns: u64, idle_ns: u64) -> Result {
    seconds(out, up_ns)?;
    out.write_char(' ')?;
    seconds(out, idle_ns)?;
    out.write_char('\n')
}

/// What `/proc/stat` counts besides times.
struct Counts {
    interrupts: u64,
    switches: u64,
    /// When the machine was switched on, in seconds since 1970.
    boot: u64,
    /// Processes and threads ever made.
    made: u64,
    running: usize,
}

pub(super) fn stat_text() -> String {
    let now = time::now();
    let mut counts = Counts {
        interrupts: 0,
        switches: 0,
        boot: (fs::now().tv_sec as u64).saturating_sub(time::ns(now) / 1_000_000_000),
        made: task::threads_made(),
        running: task::sched::runnable(),
    };
    for hart in (0..hart::count()).filter_map(hart::get) {
        let c = &hart.counters;
        counts.switches += c.switches.get();
        counts.interrupts += c.timer_interrupts.get() + c.external_interrupts.get() + c.ipis.get();
    }
    let mut text = String::new();
    let _ = stat(&mut text, &spent(now), &counts);
    text
}

/// proc_stat(5).
fn stat(out: &mut impl Write, harts: &[Spent], counts: &Counts) -> Result {
    let user = |ticks| time::ns(ticks) / (1_000_000_000 / USER_HZ);
    let row = |out: &mut dyn Write, busy, idle| writeln!(out, " {} 0 0 {} 0 0 0 0 0 0", user(busy), user(idle));
    out.write_str("cpu ")?;
    row(out, harts.iter().map(|hart| hart.busy).sum(), harts.iter().map(|hart| hart.idle).sum())?;
    for hart in harts {
        write!(out, "cpu{}", hart.index)?;
        row(out, hart.busy, hart.idle)?;
    }
    writeln!(out, "intr {}\nctxt {}\nbtime {}", counts.interrupts, counts.switches, counts.boot)?;
    writeln!(out, "processes {}\nprocs_running {}\nprocs_blocked 0", counts.made, counts.running)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uptime_has_hundredths() {
        let mut text = String::new();
        uptime(&mut text, 2_539_999_999, 830_000_000).unwrap();
        assert_eq!(text, "2.53 0.83\n");
        text.clear();
        uptime(&mut text, 100_050_000_000, 0).unwrap();
        assert_eq!(text, "100.05 0.00\n");
    }

    #[test]
    fn the_lines_of_stat_are_those_of_linux() {
        let hz = time::ticks_per_second();
        let harts = [Spent { index: 0, busy: hz, idle: 2 * hz }, Spent { index: 2, busy: hz / 100, idle: 0 }];
        let counts = Counts { interrupts: 1700, switches: 1792, boot: 1_796_068_968, made: 139, running: 1 };
        let mut text = String::new();
        stat(&mut text, &harts, &counts).unwrap();
        let expected = "cpu  101 0 0 200 0 0 0 0 0 0\ncpu0 100 0 0 200 0 0 0 0 0 0\ncpu2 1 0 0 0 0 0 0 0 0 0\n\
                        intr 1700\nctxt 1792\nbtime 1796068968\nprocesses 139\nprocs_running 1\nprocs_blocked 0\n";
        assert_eq!(text, expected);
    }
}
