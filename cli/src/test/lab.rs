//! The tests of the lab: what it says to bad input, whether its counts repeat, and the budgets, which it counts.

use super::tally::Tally;
use crate::args::LabMachineArgs;
use crate::lab::{self, Document};
use crate::process;
use crate::say;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use limen_tests::budget::{BUDGETS, Budget};
use limen_tests::lab::LabTest;
use std::process::Command;
use std::time::Instant;

/// The tests that count, by name.
pub const COUNTED: [&str; 2] = ["lab/budget", "lab/repeats"];

/// Calls the command itself with bad input.
pub fn bad_input(workspace: &Workspace, tests: &[&LabTest], tally: &Tally) {
    if !tests.is_empty() {
        say!("calls of the lab with bad input: {}", tests.len());
    }
    for test in tests {
        let started = Instant::now();
        let failure = call(workspace, test).unwrap_or_else(|error| Some(format!("{error:#}")));
        tally.timed(test.name, started.elapsed().as_secs_f32(), failure.as_deref());
    }
}

/// What is wrong with the answer, if anything.
fn call(workspace: &Workspace, test: &LabTest) -> Result<Option<String>> {
    let dir = workspace.target().join("limen-run").join(test.name.replace('/', "-"));
    std::fs::create_dir_all(&dir)?;
    for (name, contents) in test.files {
        std::fs::write(dir.join(name), contents)?;
    }
    let fill = |word: &str| word.replace("DIR", &dir.display().to_string());
    let mut command = Command::new(std::env::current_exe().context("this command has no file")?);
    command.arg("lab").args(test.words.iter().map(|word| fill(word)));
    command.envs(test.environment.iter().map(|(name, value)| (name, fill(value))));
    let output = process::output(&mut command)?;
    let (stdout, stderr) = (process::text(&output.stdout), process::text(&output.stderr));
    let last = stderr.lines().last().unwrap_or_default();
    let errors = stderr.lines().filter(|line| line.contains("error:")).count();
    let as_expected = output.status.code() == Some(i32::from(test.status))
        && (last.contains(test.says) || stdout.contains(test.says))
        && errors <= 1;
    Ok((!as_expected).then(|| {
        format!("expected status {} and {:?}, got {}\n{stdout}{stderr}", test.status, test.says, output.status)
    }))
}

/// Counts the workloads of the budgets, those of the first machine twice.
pub fn counted(workspace: &Workspace, wanted: &[&str], tally: &Tally) {
    if wanted.is_empty() {
        return;
    }
    say!("the lab counts what the budgets name");
    let count = |budget: &Budget| {
        let machine = LabMachineArgs {
            kernels: vec!["limen".into()],
            cpu: "rv64".into(),
            smp: budget.harts,
            mem: "1G".into(),
            tree: budget.tree.iter().map(|&edit| edit.to_owned()).collect(),
            no_settle: false,
            timeout: 300,
        };
        lab::count_all(workspace, &machine, &budget.workloads()).map_err(|error| format!("{error:#}"))
    };
    let check = |budget: &Budget, counts: &Result<Document, String>| {
        let document = counts.as_ref().map_err(Clone::clone)?;
        budget.check(|workload, name| lab::figure(document, workload, name))
    };
    let Some((one, others)) = BUDGETS.split_first() else { return };
    let started = Instant::now();
    let first = count(one);
    if wanted.contains(&COUNTED[0]) {
        let results =
            std::iter::once(check(one, &first)).chain(others.iter().map(|budget| check(budget, &count(budget))));
        let wrong: Vec<String> = results.filter_map(Result::err).collect();
        let failure = (!wrong.is_empty()).then(|| wrong.join("\n"));
        tally.timed(COUNTED[0], started.elapsed().as_secs_f32(), failure.as_deref());
    }
    if wanted.contains(&COUNTED[1]) {
        let started = Instant::now();
        let result = match (first, count(one)) {
            (Ok(first), Ok(second)) if first == second => Ok(()),
            (Ok(first), Ok(second)) => Err(lab::what_differs(&first, &second)),
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
        tally.timed(COUNTED[1], started.elapsed().as_secs_f32(), result.err().as_deref());
    }
}
