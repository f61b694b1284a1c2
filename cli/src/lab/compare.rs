//! `lab compare`: two results, row by row.

use super::count::{Count, short};
use super::document::{Document, KernelResult, Outcome};
use crate::args::LabCompareArgs;
use anyhow::{Result, bail};
use std::fmt::Write;

/// Changes smaller than this, in per cent, do not show.
const VISIBLE: f64 = 0.005;

/// Prints what changed; the status is 1 if `--fail-above` was passed.
///
/// # Errors
/// A file cannot be read, or the two have no kernel in common.
pub fn compare(args: &LabCompareArgs) -> Result<u8> {
    if args.fail_above.is_some_and(|limit| limit.is_nan() || limit < 0.0) {
        bail!("--fail-above takes a percentage of 0 or more");
    }
    let counts = Count::parse_all(&args.count)?;
    let (before, after) = (Document::read(&args.before)?, Document::read(&args.after)?);
    let (text, worst) = difference(&before, &after, &counts, args.all)?;
    print!("{text}");
    match args.fail_above {
        Some(limit) if worst > limit => {
            let worst = if worst.is_finite() { format!("{worst:+.2} %") } else { "a workload is lost".into() };
            eprintln!("limen: {worst}, more than {limit} % allowed");
            Ok(1)
        }
        _ => Ok(0),
    }
}

/// The text, and the largest growth in per cent; infinite if a workload is no longer counted.
///
/// # Errors
/// The two have no kernel in common.
pub fn difference(before: &Document, after: &Document, counts: &[Count], all: bool) -> Result<(String, f64)> {
    let mut text = String::new();
    if before.machine != after.machine {
        let _ = writeln!(text, "the machines differ: {:?}\n                     {:?}\n", before.machine, after.machine);
    }
    let mut pairs: Vec<(&KernelResult, &KernelResult)> = Vec::new();
    for kernel in &before.kernels {
        pairs.extend(after.kernels.iter().find(|other| other.name == kernel.name).map(|other| (kernel, other)));
    }
    if let ([one], [other], true) = (&before.kernels[..], &after.kernels[..], pairs.is_empty()) {
        pairs.push((one, other));
    }
    if pairs.is_empty() {
        bail!("the two results have no kernel in common");
    }
    let mut worst = 0.0_f64;
    for (old, new) in pairs {
        for count in counts {
            let (rows, growth) = rows(old, new, count, all);
            worst = worst.max(growth);
            let same = if rows.is_empty() { ": no difference" } else { "" };
            let title = if old.name == new.name { old.name.clone() } else { format!("{}, {}", old.name, new.name) };
            let _ = writeln!(text, "{title}, {} per operation{same}", count.name());
            if !rows.is_empty() {
                let _ = writeln!(text, "{rows}");
            }
        }
    }
    Ok((text, worst))
}

fn rows(old: &KernelResult, new: &KernelResult, count: &Count, all: bool) -> (String, f64) {
    let (mut text, mut worst) = (String::new(), 0.0_f64);
    let word = |outcome: &Outcome| match outcome {
        Outcome::Counted { .. } => String::new(),
        Outcome::Lacks(reason) => format!("n/a {reason}"),
        Outcome::Failed(_) => "failed".into(),
    };
    for cell in &old.cells {
        let Some(other) = new.cells.iter().find(|other| other.workload == cell.workload) else { continue };
        let (before, after) = (count.per_operation(cell), count.per_operation(other));
        let shown = |figure: Option<f64>, outcome| figure.map_or_else(|| word(outcome), short);
        let (left, right) = (shown(before, &cell.outcome), shown(after, &other.outcome));
        let change = match (before, after) {
            (Some(before), Some(after)) if before == after => 0.0,
            (Some(before), Some(after)) if before > 0.0 => (after / before - 1.0) * 100.0,
            (Some(_), _) => f64::INFINITY,
            (None, _) => 0.0,
        };
        worst = worst.max(change);
        if all || change.abs() >= VISIBLE || before.is_some() != after.is_some() {
            let percent = if change.is_finite() { format!("{change:+.2} %") } else { String::new() };
            let _ = writeln!(text, "  {:18} {left:>12} {right:>12} {percent:>10}", cell.workload);
        }
    }
    (text, worst)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::table::tests::sample;

    fn count() -> Vec<Count> {
        vec![Count::parse("instructions").unwrap()]
    }

    fn change(document: &mut Document, instructions: u64) {
        if let Outcome::Counted { region, .. } = &mut document.kernels[0].cells[0].outcome {
            region.total.kernel.instructions = instructions;
        }
    }

    #[test]
    fn equal_results_differ_in_nothing() {
        let (text, worst) = difference(&sample(), &sample(), &count(), false).unwrap();
        assert_eq!(worst, 0.0);
        assert!(text.lines().all(|line| line.ends_with("no difference")), "{text}");
    }

    #[test]
    fn growth_and_loss_are_found() {
        let mut other = sample();
        change(&mut other, 781);
        let (text, worst) = difference(&sample(), &other, &count(), false).unwrap();
        assert!((worst - 10.0).abs() < 0.01, "{worst}");
        assert!(text.contains("71         78.1   +10.00 %"), "{text}");
        change(&mut other, 700);
        assert_eq!(difference(&sample(), &other, &count(), false).unwrap().1, 0.0);
        other.kernels[0].cells[0].outcome = Outcome::Failed("dead".into());
        assert_eq!(difference(&sample(), &other, &count(), false).unwrap().1, f64::INFINITY);
        other.kernels.clear();
        assert!(difference(&sample(), &other, &count(), false).is_err());
    }
}
