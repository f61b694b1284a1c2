//! What the operations of the boundary may cost, in instructions, user, kernel and firmware together.
//!
//! One run of the lab for each machine counts the workloads of its table, 20 virtual seconds after boot, and every count is
//! held against it. The counts repeat exactly for one image; another compiler moves them a little, so the limits are those
//! of the plan with a small margin.

use std::fmt::Write;

/// A machine, and what operations may cost there.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Harts.
    pub harts: u32,
    /// Edits of the device tree.
    pub tree: &'static [&'static str],
    rows: &'static [Row],
    /// None for programs of one thread, which wait for nobody.
    rules: &'static [Rule],
}

/// Another count of a workload than its instructions, which are the table's, and the most that it may be.
#[derive(Clone, Copy, Debug)]
struct Rule {
    workload: &'static str,
    count: &'static str,
    most: Most,
}

#[derive(Clone, Copy, Debug)]
enum Most {
    /// So much.
    Figure(f64),
    /// So many times the same count of this workload.
    Times(f64, &'static str),
}

const fn rule(workload: &'static str, count: &'static str, most: Most) -> Rule {
    Rule { workload, count, most }
}

/// A row: the workload, the figures of Linux 6.12 and 7.2 on the same machine, the most we may spend.
#[derive(Clone, Copy, Debug)]
struct Row {
    name: &'static str,
    linux: [f64; 2],
    must: Option<f64>,
    /// Without a system call.
    quiet: bool,
}

const fn row(name: &'static str, linux: [f64; 2], must: f64) -> Row {
    Row { name, linux, must: Some(must), quiet: false }
}

const fn free(name: &'static str, linux: [f64; 2]) -> Row {
    Row { name, linux, must: None, quiet: false }
}

const fn quiet(name: &'static str, linux: [f64; 2], must: f64) -> Row {
    Row { name, linux, must: Some(must), quiet: true }
}

/// All of them. Linux's figures are Debian's 6.12.117 and 7.2.13, counted the same way; its hwprobe makes the call wherever
/// a set of harts is given.
pub const BUDGETS: &[Budget] = &[
    Budget {
        harts: 1,
        tree: &[],
        rows: &[
            row("getppid", [429.0, 393.0], 76.0),
            row("read_zero", [872.0, 808.0], 220.0),
            free("write_null", [784.0, 748.0]),
            free("sched_yield", [1_411.0, 1_477.0]),
            free("clock_gettime_vdso", [56.0, 56.0]),
            quiet("hwprobe_vdso", [32.0, 36.0], 30.0),
            quiet("hwprobe_set", [1_724.0, 2_084.0], 60.0),
            quiet("hwprobe_others", [1_724.0, 2_088.0], 60.0),
            quiet("hwprobe_all_set", [1_724.0, 2_088.0], 60.0),
            quiet("hwprobe_six", [77.0, 82.0], 90.0),
            quiet("hwprobe_which", [2_065.0, 2_451.0], 120.0),
            quiet("hwprobe_which_all", [2_109.0, 2_508.0], 120.0),
            row("hwprobe_call", [1_493.0, 1_847.0], 300.0),
            row("open_read_close", [15_912.0, 14_327.0], 3_500.0),
            free("signal", [5_289.0, 5_863.0]),
            row("anonymous_fault", [3_902.0, 4_495.0], 480.0),
            row("map_write_unmap_16", [97_116.0, 92_811.0], 9_500.0),
            row("map_unmap", [12_924.0, 10_734.0], 1_500.0),
            row("mprotect", [6_580.0, 6_835.0], 1_500.0),
            row("pipe_round_trip", [14_164.0, 17_022.0], 3_000.0),
            free("futex_round_trip", [10_299.0, 15_754.0]),
            row("fork_exit_wait", [126_608.0, 140_235.0], 20_000.0),
            free("fork_exit_wait_32", [149_253.0, 155_882.0]),
            row("fork_100", [170_986.0, 182_489.0], 27_000.0),
            row("fork_1000", [511_866.0, 526_784.0], 68_000.0),
            row("fork_10000", [3_909_770.0, 3_934_834.0], 470_000.0),
            row("fork_exec_wait", [974_606.0, 1_052_887.0], 400_000.0),
            row("boot", [915_700_000.0, 752_700_000.0], 10_000_000.0),
        ],
        rules: &[],
    },
    Budget { harts: 1, tree: &[], rows: &[row("fork_262144", [98_201_007.0, 98_128_443.0], 12_000_000.0)], rules: &[] },
    Budget {
        harts: 4,
        tree: &[],
        rows: &[
            row("faults_4", [4_281.0, 5_138.0], 480.0),
            row("faults_1_of_4", [3_793.0, 4_520.0], 480.0),
            free("map_write_unmap_4", [108_796.0, 95_493.0]),
            row("mprotect_2", [14_393.0, 14_109.0], 2_600.0),
            row("mprotect_4", [13_413.0, 13_333.0], 3_100.0),
            row("mprotect_left_4", [10_684.0, 11_882.0], 1_500.0),
        ],
        rules: &[
            // With all turns of waiting for each other. With one lock around free frames it is 1.29 times.
            rule("faults_4", "kernel.instructions", Most::Times(1.15, "faults_1_of_4")),
            // One in a hundred faults. `boot/faults-on-4-harts` counts them on harts that run in parallel.
            rule("faults_4", "lock_waits", Most::Figure(0.01)),
            rule("map_write_unmap_4", "lock_waits", Most::Figure(0.01 * 16.0)),
            rule("mprotect_4", "sfence", Most::Figure(4.0)),
            // Only the fence of its own page: no call of the firmware, and so no interrupt to another hart. Linux 6.12 fences 8
            // times, and is in the firmware for 29 347 instructions.
            rule("mprotect_left_4", "sfence", Most::Figure(1.0)),
            rule("mprotect_left_4", "firmware.instructions", Most::Figure(0.0)),
        ],
    },
    Budget {
        harts: 8,
        tree: &[],
        rows: &[
            quiet("hwprobe_vdso", [32.0, 36.0], 30.0),
            quiet("hwprobe_set", [1_739.0, 2_214.0], 60.0),
            quiet("hwprobe_others", [7_015.0, 9_613.0], 60.0),
            quiet("hwprobe_all_set", [7_898.0, 10_870.0], 60.0),
            quiet("hwprobe_six", [77.0, 81.0], 90.0),
            quiet("hwprobe_which", [2_099.0, 2_489.0], 120.0),
            quiet("hwprobe_which_all", [9_668.0, 12_763.0], 120.0),
            row("hwprobe_call", [7_672.0, 10_618.0], 300.0),
            row("open_read_close", [15_923.0, 14_366.0], 3_500.0),
        ],
        rules: &[],
    },
    Budget {
        harts: 4,
        tree: crate::hwprobe::THREE_KINDS,
        rows: &[
            quiet("hwprobe_vdso", [32.0, 36.0], 30.0),
            quiet("hwprobe_set", [1_773.0, 2_143.0], 100.0),
            quiet("hwprobe_others", [3_549.0, 4_659.0], 100.0),
            quiet("hwprobe_all_set", [4_451.0, 5_912.0], 60.0),
            quiet("hwprobe_six", [77.0, 83.0], 90.0),
            quiet("hwprobe_which", [2_144.0, 2_534.0], 120.0),
            quiet("hwprobe_which_all", [5_479.0, 7_234.0], 120.0),
            row("hwprobe_call", [4_199.0, 5_834.0], 300.0),
            row("open_read_close", [16_067.0, 14_505.0], 3_500.0),
        ],
        rules: &[],
    },
];

/// A limit may be passed by this factor, and by half an instruction for the loop's own start and end.
const MARGIN: f64 = 1.01;

impl Budget {
    /// The workloads of the table.
    pub fn workloads(&self) -> Vec<String> {
        self.rows.iter().map(|row| row.name.to_owned()).collect()
    }

    /// Holds counts against the table, which is printed. `counted` gives a count for one operation of a workload, by the
    /// names of both.
    ///
    /// # Errors
    /// What is over its limit or was not counted, a line each.
    pub fn check(&self, counted: impl Fn(&str, &str) -> Option<f64>) -> Result<(), String> {
        let kinds = if self.tree.is_empty() { "" } else { " that differ" };
        let harts = format!("{} hart{}{kinds}", self.harts, if self.harts == 1 { "" } else { "s" });
        let mut table = format!("{harts:<20} {:>11} {:>9} {:>11} {:>11}\n", "Limen", "must", "Linux 6.12", "Linux 7.2");
        let mut over = Vec::new();
        for row in self.rows {
            let Some(figure) = counted(row.name, "instructions") else {
                over.push(format!("{}: not counted", row.name));
                continue;
            };
            // The plugin may miss some where several harts take turns; the guest's clock counts them all, but waiting too.
            let time = counted(row.name, "time").filter(|_| self.harts > 1 && self.rules.is_empty());
            let figure = time.map_or(figure, |time| time.max(figure));
            let must = row.must.map_or(String::new(), |must| format!("{must:.0}"));
            let [old, new] = row.linux;
            let _ = writeln!(table, "{:<20} {figure:>11.1} {must:>9} {old:>11.0} {new:>11.0}", row.name);
            if row.must.is_some_and(|must| figure > must * MARGIN + 0.5) {
                over.push(format!("{}: {figure:.1}, over the limit of {}", row.name, row.must.unwrap_or_default()));
            }
            if row.quiet && counted(row.name, "user.ecall") != Some(0.0) {
                over.push(format!("{}: makes calls", row.name));
            }
        }
        for rule in self.rules {
            let figure = counted(rule.workload, rule.count);
            let (most, of) = match rule.most {
                Most::Figure(most) => (Some(most), String::new()),
                Most::Times(times, other) => {
                    (counted(other, rule.count).map(|count| count * times), format!(", {times} times that of {other}"))
                }
            };
            match (figure, most) {
                (Some(figure), Some(most)) if figure <= most => {
                    let _ = writeln!(table, "{}: {figure:.3} {}, must {most:.3}{of}", rule.workload, rule.count);
                }
                (figure, most) => over.push(format!("{}: {figure:?} {}, must {most:?}{of}", rule.workload, rule.count)),
            }
        }
        print!("{table}");
        if over.is_empty() { Ok(()) } else { Err(format!("{harts}\n{}", over.join("\n"))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(getppid: Option<f64>, calls: f64) -> Result<(), String> {
        let budget = BUDGETS[0];
        budget.check(|name, count| match (name, count) {
            (_, "time") => Some(1e9),
            (_, "user.ecall") => Some(calls),
            ("getppid", _) => getppid,
            _ => budget.rows.iter().find(|row| row.name == name)?.must.or(Some(1.0)),
        })
    }

    #[test]
    fn rules_hold_other_counts_and_ratios() {
        let budget = BUDGETS.iter().find(|budget| !budget.rules.is_empty()).unwrap();
        let with = |of_faults: f64, fences: f64| {
            budget.check(|name, count| match (name, count) {
                ("faults_4", "kernel.instructions") => Some(of_faults),
                ("mprotect_left_4", "sfence") => Some(fences),
                (_, "instructions" | "kernel.instructions") => Some(400.0),
                _ => Some(0.0),
            })
        };
        assert_eq!(with(459.0, 1.0), Ok(()));
        assert!(with(461.0, 1.0).unwrap_err().contains("faults_4: Some(461.0) kernel.instructions"));
        assert!(with(400.0, 1.02).unwrap_err().contains("mprotect_left_4: Some(1.02) sfence"));
    }

    #[test]
    fn figures_at_the_limit_pass_and_above_it_fail() {
        assert_eq!(with(Some(76.0), 0.0), Ok(()));
        assert!(with(Some(80.0), 0.0).unwrap_err().contains("getppid: 80.0"));
        assert!(with(None, 0.0).unwrap_err().contains("getppid: not counted"));
        assert!(with(Some(76.0), 0.01).unwrap_err().contains("hwprobe_set: makes calls"));
    }
}
