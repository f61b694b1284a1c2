//! What the operations of the boundary may cost, in instructions on one hart, user, kernel and firmware together.
//!
//! One run of the lab counts the workloads of the table, 20 virtual seconds after boot, and every count is held against
//! it. The counts repeat exactly for one image; another compiler moves them a little, so the limits are those of the
//! plan with a small margin.

use std::fmt::Write;

/// A row: the workload, Linux 6.12's figure on the same machine, the most we may spend.
struct Row {
    name: &'static str,
    linux: f64,
    must: Option<f64>,
}

const fn row(name: &'static str, linux: f64, must: Option<f64>) -> Row {
    Row { name, linux, must }
}

/// The table. Linux's figures are Debian's 6.12.117, counted the same way.
const ROWS: &[Row] = &[
    row("getppid", 429.0, Some(76.0)),
    row("read_zero", 871.0, Some(220.0)),
    row("write_null", 784.0, None),
    row("sched_yield", 1_410.0, None),
    row("clock_gettime_vdso", 58.0, None),
    // By 7.2: 6.12's function makes the call wherever a set is given.
    row("hwprobe_vdso", 36.6, Some(30.0)),
    row("hwprobe_set", 2_083.4, Some(60.0)),
    row("hwprobe_all_set", 2_087.7, Some(60.0)),
    row("hwprobe_six", 82.1, Some(90.0)),
    row("hwprobe_which", 2_454.8, Some(120.0)),
    row("hwprobe_call", 1_845.4, Some(300.0)),
    row("open_read_close", 15_915.0, Some(3_500.0)),
    row("signal", 5_320.0, None),
    row("anonymous_fault", 3_902.0, Some(700.0)),
    row("map_write_unmap_16", 96_924.0, Some(16_000.0)),
    row("map_unmap", 12_905.0, None),
    row("pipe_round_trip", 13_968.0, Some(3_000.0)),
    row("futex_round_trip", 10_274.0, None),
    row("fork_exit_wait", 106_702.0, Some(30_000.0)),
    row("fork_exit_wait_32", 134_626.0, None),
    row("fork_exec_wait", 964_874.0, Some(400_000.0)),
    row("boot", 943_600_000.0, Some(10_000_000.0)),
];

/// A limit may be passed by this factor, and by half an instruction for the loop's own start and end.
const MARGIN: f64 = 1.01;

/// The workloads of the table.
pub fn workloads() -> Vec<String> {
    ROWS.iter().map(|row| row.name.to_owned()).collect()
}

/// Holds counts against the table, which is printed.
///
/// # Errors
/// What is over its limit or was not counted, a line each.
pub fn check(counted: impl Fn(&str) -> Option<f64>) -> Result<(), String> {
    let mut table = String::from("instructions               Limen      must       Linux\n");
    let mut over = Vec::new();
    for row in ROWS {
        let Some(figure) = counted(row.name) else {
            over.push(format!("{}: not counted", row.name));
            continue;
        };
        let must = row.must.map_or(String::new(), |must| format!("{must:.0}"));
        let _ = writeln!(table, "{:<20} {figure:>11.1} {must:>9} {:>11.0}", row.name, row.linux);
        if row.must.is_some_and(|must| figure > must * MARGIN + 0.5) {
            over.push(format!("{}: {figure:.1}, over the limit of {}", row.name, row.must.unwrap_or_default()));
        }
    }
    print!("{table}");
    if over.is_empty() { Ok(()) } else { Err(over.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(getppid: Option<f64>) -> Result<(), String> {
        check(|name| match name {
            "getppid" => getppid,
            name => ROWS.iter().find(|row| row.name == name)?.must.or(Some(1.0)),
        })
    }

    #[test]
    fn figures_at_the_limit_pass_and_above_it_fail() {
        assert_eq!(with(Some(76.0)), Ok(()));
        assert!(with(Some(80.0)).unwrap_err().starts_with("getppid: 80.0"));
        assert!(with(None).unwrap_err().contains("getppid: not counted"));
    }
}
