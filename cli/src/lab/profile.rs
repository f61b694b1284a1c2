//! `lab profile`: where a program's boundary cost goes, by system call, fault and interrupt.

use super::boot::{Boot, Setting};
use super::count::{Count, short};
use super::kernels::{self, Candidate};
use super::progress::Progress;
use super::{instrument, table};
use crate::args::LabProfileArgs;
use crate::root::Settings;
use crate::run::parse_copy;
use crate::say;
use crate::setup;
use crate::vm::End;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use model::{Bucket, Cause, Mode, Region};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The region that `work --profile` opens.
const REGION: u16 = 1;
/// Width of the first column.
const NAME: usize = 24;

/// Counts the program on each kernel and shows where its cost lies; the status is that of the program on the first kernel
/// on which it did not end with 0.
///
/// # Errors
/// Something named does not exist, QEMU does not start, or a kernel does not get to the program's end.
pub fn profile(workspace: &Workspace, args: &LabProfileArgs) -> Result<u8> {
    let count = Count::parse(&args.count)?;
    let tools = setup::tools(workspace)?;
    let kernels = kernels::prepare(workspace, &tools, &args.machine.kernels)?;
    let instrument = instrument::prepare(workspace, &tools)?;
    let root = Settings {
        packages: args.packages.clone(),
        copies: args.copies.iter().map(|text| parse_copy(text)).collect::<Result<_>>()?,
        ..Settings::default()
    };
    let setting = Setting { workspace, tools: &tools, instrument: &instrument, machine: &args.machine, root };
    let mut words = vec!["--profile"];
    words.extend(args.program.iter().map(String::as_str));
    let mut status = 0;
    let mut regions: BTreeMap<usize, Region> = BTreeMap::new();
    let mut failures = String::new();
    for (index, kernel) in kernels.iter().enumerate() {
        match one(&setting, kernel, &words) {
            Ok((region, ended)) => {
                regions.insert(index, region);
                status = if status == 0 { ended } else { status };
            }
            Err(error) => {
                failures += &format!("{}: {error:#}\n", kernel.name);
                status = if status == 0 { 1 } else { status };
            }
        }
    }
    if let Some(file) = &args.json {
        let all: BTreeMap<&str, &Region> =
            regions.iter().map(|(index, region)| (kernels[*index].name.as_str(), region)).collect();
        std::fs::write(file, serde_json::to_string(&all)? + "\n")
            .with_context(|| format!("cannot write {}", file.display()))?;
        say!("all counts are in {}", file.display());
    }
    let columns: Vec<(&str, &Region)> =
        regions.iter().map(|(index, region)| (kernels[*index].name.as_str(), region)).collect();
    if !columns.is_empty() {
        print!("{}", render(&columns, &count, table::columns()));
    }
    print!("{failures}");
    Ok(status)
}

fn one(setting: &Setting, kernel: &Candidate, words: &[&str]) -> Result<(Region, u8)> {
    let progress = Progress::start(kernel.name.clone(), 0);
    let boot: Boot = setting.boot(kernel, (setting.machine.smp, 0), words, &progress)?;
    let timeout = setting.machine.timeout;
    let End::Exit(status) = boot.end else {
        progress.end(&boot.ending(timeout));
        anyhow::bail!("{}", boot.ending(timeout));
    };
    progress.end(&format!("status {status}"));
    if status != 0 {
        boot.lines.iter().for_each(|line| eprintln!("{line}"));
    }
    let region = boot.counts.and_then(|counts| counts.region(REGION).cloned());
    Ok((region.context("the plugin did not see the program's markers")?, status))
}

/// A row's name: the call, the fault, the interrupt.
fn name(cause: &Cause) -> String {
    match cause {
        Cause::Boot => "boot".into(),
        Cause::User => "user mode".into(),
        Cause::Call(Some(number)) => match uapi::nr::name(usize::from(*number)) {
            Some(name) => name.into(),
            None => format!("call {number}"),
        },
        Cause::Call(None) => "calls above 1023".into(),
        Cause::Fault(name) => name.replace('_', " "),
        Cause::Interrupt(name) => format!("{} interrupt", name.replace('_', " ")),
    }
}

fn render(columns: &[(&str, &Region)], count: &Count, width: usize) -> String {
    let figure = |bucket: &Bucket| count.total(&bucket.counts, &Mode::ALL);
    let mut causes: BTreeMap<&Cause, u64> = BTreeMap::new();
    for (_, region) in columns {
        for bucket in &region.buckets {
            *causes.entry(&bucket.cause).or_default() += figure(bucket);
        }
    }
    let mut rows: Vec<(&Cause, u64)> = causes.into_iter().filter(|(_, sum)| *sum > 0).collect();
    // User mode first, then whatever costs most on all kernels together.
    rows.sort_by_key(|(cause, sum)| (**cause != Cause::User, std::cmp::Reverse(*sum)));
    // As many kernels beside each other as fit.
    const COLUMN: usize = 8 + 9 + 8 + 2;
    let beside = (width.saturating_sub(NAME) / COLUMN).max(1);
    let mut text = String::new();
    for part in columns.chunks(beside) {
        let _ = writeln!(text, "{}, and for one entry.\n", count.name());
        let _ = write!(text, "{:NAME$}", "");
        text.extend(part.iter().map(|(name, _)| format!("{name:>COLUMN$}")));
        let _ = write!(text, "\n{:NAME$}", "");
        text.extend(part.iter().map(|_| format!("  {:>8} {:>8} {:>7}", "entries", "all", "one")));
        text += "\n";
        for (cause, _) in &rows {
            let mut line = format!("{:NAME$}", name(cause));
            for (_, region) in part {
                line += &match region.buckets.iter().find(|bucket| bucket.cause == **cause) {
                    Some(bucket) if bucket.entries > 0 => {
                        let (entries, all) = (bucket.entries as f64, figure(bucket) as f64);
                        format!("  {:>8} {:>8} {:>7}", short(entries), short(all), short(all / entries))
                    }
                    Some(bucket) => format!("  {:>8} {:>8} {:>7}", "", short(figure(bucket) as f64), ""),
                    None => " ".repeat(COLUMN - 1),
                };
            }
            text += line.trim_end();
            text += "\n";
        }
        let mut line = format!("{:NAME$}", "all");
        for (_, region) in part {
            let _ = write!(line, "  {:>8} {:>8} {:>7}", "", short(count.total(&region.total, &Mode::ALL) as f64), "");
        }
        text += line.trim_end();
        text += "\n\n";
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Modes;

    #[test]
    fn buckets_are_rows() {
        let bucket = |cause, entries, instructions| {
            let mut counts = Modes::default();
            counts.kernel.instructions = instructions;
            Bucket { cause, entries, counts }
        };
        let region = |factor: u64| {
            let buckets = vec![
                bucket(Cause::User, 0, 500),
                bucket(Cause::Call(Some(63)), 2, 100 * factor),
                bucket(Cause::Fault("load_page_fault".into()), 1, 300 * factor),
            ];
            let mut region = Region { buckets, ..Region::default() };
            region.total.kernel.instructions = 500 + 400 * factor;
            region
        };
        let (one, two) = (region(1), region(10));
        let columns = [("limen", &one), ("linux", &two)];
        let expected = "\
instructions, and for one entry.

                                              limen                      linux
                           entries      all     one   entries      all     one
user mode                               500                        500
load page fault                  1      300     300         1     3000    3000
read                             2      100      50         2     1000     500
all                                     900                       4500
";
        assert_eq!(render(&columns, &Count::parse("instructions").unwrap(), 80), expected);
        assert!(render(&columns, &Count::parse("instructions").unwrap(), 60).matches("for one entry").count() == 2);
    }
}
