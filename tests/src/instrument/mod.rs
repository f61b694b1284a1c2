//! The lab's plugin, on machines whose whole software is known (`user/bare`): every count must be as computed here.

mod classes;
mod stack;

use model::{Counts, Mode, Region, Report};

/// A guest under the plugin, one hart, instructions counted, with `v=true,svinval=true`.
#[derive(Clone, Copy, Debug)]
pub struct InstrumentTest {
    /// `lab/plugin-…`
    pub name: &'static str,
    /// Program of `user/bare`.
    pub guest: &'static str,
    /// Judges what was counted; the runner makes sure that a second run counts the same.
    pub check: fn(&Report) -> Result<(), String>,
}

/// All of them.
pub const TESTS: &[InstrumentTest] = &[
    InstrumentTest { name: "lab/plugin-classes", guest: "bare-classes", check: classes::check },
    InstrumentTest { name: "lab/plugin-recursion", guest: "bare-fib", check: stack::recursion },
    InstrumentTest { name: "lab/plugin-old-entry", guest: "bare-entry-old", check: stack::old_entry },
    InstrumentTest { name: "lab/plugin-balanced-entry", guest: "bare-entry-balanced", check: stack::balanced_entry },
];

/// Arguments that the plugin refuses, and what its one line says.
pub const REFUSED: &[(&str, &str)] = &[
    ("", "out=FILE is missing"),
    (",out=", "out= names no file"),
    (",out=/dev/null,out=/dev/null", "out= is given twice"),
    (",out=/dev/null,all=on", "unknown argument \"all=on\""),
    (",out=/no/such/directory/counts.json", "cannot create /no/such/directory/counts.json"),
];

fn region(report: &Report, id: u16) -> Result<&Region, String> {
    let region = report.region(id).ok_or_else(|| format!("region {id} is not there"))?;
    match (region.complete, region.entries) {
        (true, 1) => Ok(region),
        (complete, entries) => Err(format!("region {id}: begun {entries} times, complete: {complete}")),
    }
}

/// Whether exactly these figures are not 0. Gives the differences.
fn same(what: &str, counts: &Counts, expected: &[(&str, u64)]) -> Vec<String> {
    let figures = counts.figures();
    let found = |name: &str| figures.iter().find(|(known, _)| known == name).map_or(0, |(_, count)| *count);
    let missing = expected.iter().filter(|(name, count)| found(name) != *count);
    let missing = missing.map(|(name, count)| format!("{what}: {name} is {}, not {count}", found(name)));
    let surplus =
        figures.iter().filter(|(name, count)| *count != 0 && !expected.iter().any(|(known, _)| known == name));
    let surplus = surplus.map(|(name, count)| format!("{what}: {name} is {count}, not 0"));
    missing.chain(surplus).collect()
}

fn verdict(differences: Vec<String>) -> Result<(), String> {
    if differences.is_empty() { Ok(()) } else { Err(differences.join("\n")) }
}

/// The buckets add up to the total, and the returns by context to the returns by mode.
fn adds_up(region: &Region) -> Result<(), String> {
    let mut sum = model::Modes::default();
    region.buckets.iter().for_each(|bucket| sum += &bucket.counts);
    if sum != region.total {
        return Err(format!("region {}: the buckets do not add up to the total", region.id));
    }
    for mode in Mode::ALL {
        let mut returns = 0;
        let mut missed = [0; 5];
        for part in region.returns.iter().filter(|part| part.mode == mode) {
            returns += part.returns;
            missed.iter_mut().zip(part.mispredicted).for_each(|(sum, count)| *sum += count);
        }
        let counts = region.total.of(mode);
        if (returns, missed) != (counts.returns, counts.mispredicted) {
            return Err(format!("region {}: the returns of {mode:?} do not add up", region.id));
        }
    }
    Ok(())
}
