//! Parts of a test in a process of their own.

use crate::check::{Must, Outcome};
use rt::process::{self, Ended, Fork};

/// Starts a child that runs `body` and exits with 0, or says why it failed and exits with 1.
///
/// # Errors
/// fork(2) fails.
pub fn start(body: impl FnOnce() -> Outcome) -> Result<i32, &'static str> {
    match process::fork().must("fork")? {
        Fork::Parent(child) => Ok(child),
        Fork::Child => match body() {
            Ok(()) => process::exit(0),
            Err(reason) => {
                rt::println!("# in a child: {reason}");
                process::exit(1)
            }
        },
    }
}

/// Runs `body` in a child and gives how it ended.
///
/// # Errors
/// fork(2) or wait4(2) fails.
pub fn end(body: impl FnOnce() -> Outcome) -> Result<Ended, &'static str> {
    let child = start(body)?;
    process::wait(child).must("wait").map(|(_, ended)| ended)
}

/// Waits for a child of [`start`], which must have succeeded.
///
/// # Errors
/// It did not.
pub fn finish(child: i32) -> Outcome {
    match process::wait(child).must("wait")?.1 {
        Ended::Exited(0) => Ok(()),
        ended => {
            rt::println!("# child: {ended:?}");
            Err("a child failed")
        }
    }
}

/// Runs `body` in a child, which must succeed.
///
/// # Errors
/// It did not.
pub fn pass(body: impl FnOnce() -> Outcome) -> Outcome {
    finish(start(body)?)
}
