//! Mappings and the faults that fill them.

use crate::timed;
use kit::clock;
use kit::memory::{PAGE, advise, poke, private, unmap};
use kit::uapi::mman::MADV_NOHUGEPAGE;

/// The first write to each page of a mapping, without huge pages.
pub fn anonymous_fault(rounds: u32, _: rt::Args) -> Option<u64> {
    let pass = |pages: usize| {
        let base = private(pages * PAGE).ok()?;
        // A kernel without huge pages may not know the advice.
        let _ = advise(base, pages * PAGE, MADV_NOHUGEPAGE);
        let start = clock::ticks();
        for page in 0..pages {
            poke(base + page * PAGE, 1);
        }
        let ticks = clock::ticks() - start;
        unmap(base, pages * PAGE).ok()?;
        Some(ticks)
    };
    pass(rounds as usize / 10)?;
    pass(rounds as usize)
}

pub fn map_write_unmap(rounds: u32, _: rt::Args) -> Option<u64> {
    timed(rounds, || {
        let Ok(base) = private(16 * PAGE) else { return false };
        for page in 0..16 {
            poke(base + page * PAGE, 1);
        }
        unmap(base, 16 * PAGE).is_ok()
    })
}

/// A mapping that nobody touches.
pub fn map_unmap(rounds: u32, _: rt::Args) -> Option<u64> {
    timed(rounds, || private(16 * PAGE).is_ok_and(|base| unmap(base, 16 * PAGE).is_ok()))
}
