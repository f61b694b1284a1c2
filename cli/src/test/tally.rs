//! Counting and showing results, from several threads.

use std::sync::Mutex;

/// What passed and what failed.
#[derive(Debug, Default)]
pub struct Tally {
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    passed: u64,
    failed: Vec<String>,
}

impl Tally {
    /// One test ended; `failure` says why it failed.
    pub fn result(&self, name: &str, failure: Option<&str>) {
        self.show(name, "", failure);
    }

    /// As [`Tally::result`], with how long it took.
    pub fn timed(&self, name: &str, seconds: f32, failure: Option<&str>) {
        self.show(name, &format!(" ({seconds:.1} s)"), failure);
    }

    fn show(&self, name: &str, note: &str, failure: Option<&str>) {
        let Ok(mut counts) = self.counts.lock() else {
            return;
        };
        match failure {
            None => {
                counts.passed += 1;
                println!("ok      {name}{note}");
            }
            Some(reason) => {
                counts.failed.push(name.to_owned());
                println!("FAILED  {name}{note}\n{}", indent(reason));
            }
        }
    }

    /// Tests counted elsewhere; each name has failed.
    pub fn add(&self, passed: u64, failed: Vec<String>) {
        if let Ok(mut counts) = self.counts.lock() {
            counts.passed += passed;
            counts.failed.extend(failed);
        }
    }

    /// The closing lines and the status; `filter` is what the names were to contain.
    pub fn close(&self, filter: &str) -> u8 {
        let Ok(counts) = self.counts.lock() else {
            return 1;
        };
        for name in &counts.failed {
            println!("failed: {name}");
        }
        if counts.passed == 0 && counts.failed.is_empty() {
            println!("no test to run has {filter:?} in its name: see `cargo limen test --list`");
        }
        println!("{} passed, {} failed", counts.passed, counts.failed.len());
        u8::from(!counts.failed.is_empty() || counts.passed == 0)
    }
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("        | {line}\n")).collect()
}
