//! `lab readme`: the measured table of the README, written by the lab and by nothing else.

use super::count::{Count, short};
use super::document::{BOOT, Cell, Document, Outcome};
use crate::args::{LabMachineArgs, LabReadmeArgs};
use crate::say;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::fmt::Write;

const BEGIN: &str = "<!-- lab: begin -->";
const END: &str = "<!-- lab: end -->";

/// The rows of the README: what a reader looks for first. All others are in the lab's own table.
const ROWS: &[&str] = &[
    "getppid",
    "getppid_vsetvli",
    "getppid_vector",
    "nested_12",
    "read_zero",
    "write_null",
    "sched_yield",
    "hwprobe_vdso",
    "hwprobe_call",
    "open_read_close",
    "signal",
    "anonymous_fault",
    "file_fault",
    "map_write_unmap_16",
    "mprotect",
    "pipe_round_trip",
    "futex_round_trip",
    "switch_processes",
    "fork_exit_wait",
    "fork_exec_wait",
    BOOT,
];

/// Writes the table, or checks it.
///
/// # Errors
/// Counting fails, or the README has no place for the table.
pub fn readme(workspace: &Workspace, args: &LabReadmeArgs) -> Result<u8> {
    let document = match &args.from {
        Some(file) => Document::read(file)?,
        None => {
            let machine = LabMachineArgs {
                kernels: Vec::new(),
                cpu: "v=true".into(),
                smp: 1,
                mem: "1G".into(),
                tree: Vec::new(),
                no_settle: false,
                timeout: 300,
            };
            super::count_all(workspace, &machine, &ROWS.iter().map(|row| (*row).to_owned()).collect::<Vec<_>>())?
        }
    };
    if let Some(kernel) = document.kernels.iter().find(|kernel| kernel.failure.is_some()) {
        bail!("{} {}", kernel.name, kernel.failure.as_deref().unwrap_or_default());
    }
    let file = workspace.root.join("README.md");
    let before = std::fs::read_to_string(&file).context("cannot read README.md")?;
    let after = replace(&before, &markdown(&document)?)?;
    if after == before {
        say!("the README's table is what the lab counts");
        return Ok(0);
    }
    if args.check {
        bail!("the README's table is not what the lab counts: run `cargo limen lab readme`");
    }
    std::fs::write(&file, after).context("cannot write README.md")?;
    say!("the README's table is new");
    Ok(0)
}

/// The text with what stands between the two comments replaced.
fn replace(text: &str, table: &str) -> Result<String> {
    let (before, rest) = text.split_once(BEGIN).with_context(|| format!("README.md has no line {BEGIN}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("README.md has no line {END}"))?;
    Ok(format!("{before}{BEGIN}\n\n{table}\n{END}{after}"))
}

fn markdown(document: &Document) -> Result<String> {
    let count = Count::parse("instructions")?;
    let mut text = String::from("| instructions for one |");
    text.extend(document.kernels.iter().map(|kernel| format!(" {} |", kernel.name)));
    text += "\n|---|";
    text += &"---:|".repeat(document.kernels.len());
    text += "\n";
    for row in ROWS {
        let about = match work::find(row) {
            Some(workload) => workload.about,
            None => "boot: the kernel's first instruction to the first one in user mode",
        };
        let cells: Vec<Option<&Cell>> =
            document.kernels.iter().map(|kernel| kernel.cells.iter().find(|cell| cell.workload == *row)).collect();
        let first = cells.first().copied().flatten().and_then(|cell| count.per_operation(cell));
        let _ = write!(text, "| {about} |");
        for (index, cell) in cells.into_iter().enumerate() {
            let shown = match cell.map(|cell| (&cell.outcome, count.per_operation(cell))) {
                Some((_, Some(own))) => match first.filter(|first| index > 0 && *first > 0.0) {
                    Some(first) if own / first >= 99.5 => format!("{} ({:.0} ×)", grouped(own), own / first),
                    Some(first) => format!("{} ({:.1} ×)", grouped(own), own / first),
                    None => grouped(own),
                },
                Some((Outcome::Lacks(reason), _)) => format!("n/a ({reason})"),
                _ => "–".into(),
            };
            let _ = write!(text, " {shown} |");
        }
        text += "\n";
    }
    let versions: Vec<String> = document
        .kernels
        .iter()
        .filter(|kernel| !kernel.version.starts_with("limen"))
        .map(|kernel| format!("{} is {}", kernel.name, kernel.version))
        .collect();
    let version = |name: &str| document.versions.get(name).cloned().unwrap_or_default();
    let _ = write!(
        text,
        "\nUser, kernel and firmware together on one hart, by `cargo limen lab run`; × is the ratio to the first column. {}; {}, {}, {}, CPU `{}`.\n",
        versions.join(", "),
        version("qemu"),
        version("firmware"),
        version("compiler"),
        document.machine.cpu,
    );
    Ok(text)
}

/// A figure of four digits and more with thin groups of three.
fn grouped(value: f64) -> String {
    let text = if value >= 1_000.0 { format!("{value:.0}") } else { short(value) };
    if value >= 1e7 {
        return short(value).replace('M', " M");
    }
    let digits = text.len();
    if digits <= 4 || text.contains('.') {
        return text;
    }
    let mut out = String::new();
    for (index, digit) in text.chars().enumerate() {
        if index > 0 && (digits - index).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::table::tests::sample;

    #[test]
    fn only_what_stands_between_the_comments_changes() {
        let text = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        let once = replace(&text, "| new |\n").unwrap();
        assert_eq!(once, format!("a\n{BEGIN}\n\n| new |\n\n{END}\nb\n"));
        assert_eq!(replace(&once, "| new |\n").unwrap(), once);
        assert!(replace("a\n", "").is_err());
    }

    #[test]
    fn rows_name_workloads() {
        assert!(ROWS.iter().all(|row| *row == BOOT || work::find(row).is_some()));
        let mut document = sample();
        for kernel in &mut document.kernels {
            kernel.cells[0].workload = "getppid".into();
        }
        let text = markdown(&document).unwrap();
        assert!(text.contains("| getppid, in a loop of 4 instructions | 71 | 429 (6.0 ×) |"), "{text}");
    }

    #[test]
    fn digits_are_grouped() {
        assert_eq!(
            [71.0, 429.4, 1_270.0, 97_058.2, 925_969.0, 943.6e6].map(grouped),
            ["71", "429.4", "1270", "97 058", "925 969", "943.6 M"]
        );
    }
}
