//! Which harts there are, and on which of them a thread runs.

use crate::{attempt, call};
use rt::uapi::{Result, nr};

fn affinity() -> usize {
    let mut mask = [0_usize; 16];
    call!(nr::SCHED_GETAFFINITY, 0, size_of_val(&mask), mask.as_mut_ptr());
    mask[0]
}

/// How many there are, as far as this thread may use them: numbers from 0 on.
pub fn count() -> usize {
    affinity().trailing_ones() as usize
}

/// Keeps the calling thread on one hart from now on.
///
/// # Errors
/// sched_setaffinity(2) fails.
pub fn pin(hart: usize) -> Result<()> {
    allow(1 << hart)
}

/// Keeps the calling thread on these harts from now on.
///
/// # Errors
/// sched_setaffinity(2) fails.
pub fn allow(mask: usize) -> Result<()> {
    attempt!(nr::SCHED_SETAFFINITY, 0, size_of::<usize>(), &raw const mask).map(|_| ())
}

/// The hart that the calling thread is on.
pub fn here() -> usize {
    let mut hart = 0_u32;
    call!(nr::GETCPU, &raw mut hart, 0, 0);
    hart as usize
}
