//! What the operations of the boundary may cost, in instructions on one hart, user, kernel and firmware together.
//!
//! One boot with instructions counted runs `/tests/bench`, 20 virtual seconds after boot, and every line is held
//! against the table. The figures repeat exactly for one image; another compiler moves them a little, so the limits are
//! those of the plan with a small margin.

use crate::{BootTest, Expect, Outcome};

/// A row: the name in the bench's report, Linux 6.12's figure on the same machine, the most we may spend.
struct Row {
    name: &'static str,
    linux: f64,
    must: Option<f64>,
}

const fn row(name: &'static str, linux: f64, must: Option<f64>) -> Row {
    Row { name, linux, must }
}

/// The table. Linux's figures are Debian's 6.12.117, measured by the same program.
const ROWS: &[Row] = &[
    // Linux's figure was measured from outside.
    row("boot", 943_600_000.0, Some(10_000_000.0)),
    row("getppid", 429.0, Some(76.0)),
    row("read_zero", 871.0, Some(220.0)),
    row("write_null", 784.0, None),
    row("sched_yield", 1_410.0, None),
    row("clock_gettime_vdso", 58.0, None),
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
];

/// A limit may be passed by this factor, and by half an instruction for the loop's own start and end.
const MARGIN: f64 = 1.01;

/// The tests.
pub const TESTS: &[BootTest] =
    &[BootTest::new("boot/budget", &["/tests/bench"], Expect::Holds(holds)).icount().timeout(300)];

fn holds(outcome: &Outcome) -> Result<(), String> {
    let text = String::from_utf8_lossy(&outcome.stdout);
    let measured = |name: &str| -> Option<f64> {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
    };
    let mut table = String::from("instructions               Limen      must       Linux\n");
    let mut over = Vec::new();
    for row in ROWS {
        let Some(figure) = measured(row.name) else {
            over.push(format!("{}: not measured", row.name));
            continue;
        };
        let must = row.must.map_or(String::new(), |must| format!("{must:.0}"));
        table += &format!("{:<20} {figure:>11.1} {must:>9} {:>11.0}\n", row.name, row.linux);
        if row.must.is_some_and(|must| figure > must * MARGIN + 0.5) {
            over.push(format!("{}: {figure:.1}, over the limit of {must}", row.name));
        }
    }
    print!("{table}");
    if over.is_empty() { Ok(()) } else { Err(over.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(getppid: &str) -> Outcome {
        let text: String = ROWS
            .iter()
            .map(|row| match row.name {
                "getppid" => format!("getppid {getppid}\n"),
                name => format!("{name} {:.2}\n", row.must.unwrap_or(1.0)),
            })
            .collect();
        Outcome { status: 0, stdout: text.into_bytes() }
    }

    #[test]
    fn figures_at_the_limit_pass_and_above_it_fail() {
        assert_eq!(holds(&report("76.00")), Ok(()));
        assert!(holds(&report("80.00")).unwrap_err().starts_with("getppid: 80.0"));
        assert!(holds(&report("")).unwrap_err().contains("getppid: not measured"));
    }
}
