//! The tests that run on the host: `cargo test` of the default members, counted.

use super::tally::Tally;
use crate::process;
use crate::say;
use crate::toolchain::{Toolchain, cargo_command};
use crate::workspace::Workspace;
use anyhow::Result;
use std::process::Command;

const PREFIX: &str = "host/";

/// The part of the filter that cargo's runner gets, `None` if no host test can match.
fn own(filter: &str) -> Option<&str> {
    match filter.strip_prefix(PREFIX) {
        Some(rest) => Some(rest),
        None if ["boot/", "image/", "lab/"].iter().any(|other| filter.starts_with(other)) => None,
        None => Some(filter),
    }
}

fn cargo(workspace: &Workspace, toolchain: &Toolchain) -> Command {
    let mut cargo = cargo_command();
    toolchain.announce(&mut cargo);
    cargo.current_dir(&workspace.root).args(["test", "--no-fail-fast", "--quiet"]);
    cargo
}

/// Prints the names.
///
/// # Errors
/// The tests do not compile.
pub fn list(workspace: &Workspace, toolchain: &Toolchain, filter: &str) -> Result<()> {
    let Some(filter) = own(filter) else {
        return Ok(());
    };
    let text = process::capture(cargo(workspace, toolchain).args(["--", "--list", "--format", "terse", filter]))?;
    text.lines().filter_map(|line| line.strip_suffix(": test")).for_each(|name| println!("{PREFIX}{name}"));
    Ok(())
}

/// Runs them.
///
/// # Errors
/// Cargo cannot be started.
pub fn run(workspace: &Workspace, toolchain: &Toolchain, filter: &str, tally: &Tally) -> Result<()> {
    let Some(filter) = own(filter) else {
        return Ok(());
    };
    say!("host tests");
    let output = process::output(cargo(workspace, toolchain).args(["--", "--format", "pretty", filter]))?;
    let text = process::text(&output.stdout);
    let (passed, failed) = count(&text);
    if !output.status.success() {
        print!("{text}{}", process::text(&output.stderr));
        if failed.is_empty() {
            tally.result("host/build", Some("cargo test failed without a failed test"));
        }
    }
    println!("host tests: {passed} passed, {} failed", failed.len());
    tally.add(passed, failed);
    Ok(())
}

/// Passed tests and names of failed ones in the output of `cargo test`.
fn count(text: &str) -> (u64, Vec<String>) {
    let mut passed = 0;
    let mut failed = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("test result: ") {
            let number = |word: &str| {
                rest.split_once(word).and_then(|(before, _)| before.split_whitespace().next_back()?.parse::<u64>().ok())
            };
            passed += number(" passed").unwrap_or(0);
        } else if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
            failed.push(format!("{PREFIX}{name}"));
        }
    }
    (passed, failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_counted_over_crates() {
        let text = "test a::b ... ok\ntest a::c ... FAILED\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\n\ntest result: ok. 4 passed; 0 failed; 0 ignored\n";
        assert_eq!(count(text), (5, vec!["host/a::c".to_owned()]));
    }

    #[test]
    fn filters_of_other_kinds_leave_host_tests_out() {
        assert_eq!(
            (own("host/cpio"), own("cpio"), own("boot/x"), own("")),
            (Some("cpio"), Some("cpio"), None, Some(""))
        );
    }
}
