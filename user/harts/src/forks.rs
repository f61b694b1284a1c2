//! Forks while the program's other threads fault, map, protect and unmap.

use crate::team;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};
use kit::check::{Must, Outcome};
use kit::memory::{PAGE, advise, peek, poke, private, protect, unmap};
use kit::uapi::mman::{MADV_DONTNEED, PROT_READ, PROT_WRITE};
use kit::{child, ensure, equal, usage};
use rt::tap::Test;

pub const TESTS: &[Test] = &[Test::new("forks/of-a-busy-program", busy)];

const PAGES: usize = 32;

static FORKS: AtomicU32 = AtomicU32::new(0);
static DONE: AtomicU32 = AtomicU32::new(0);
static PLACE: AtomicUsize = AtomicUsize::new(0);

fn word(page: usize) -> &'static AtomicU64 {
    // SAFETY: the pages stay mapped and are only used so.
    unsafe { &*((PLACE.load(SeqCst) + page * PAGE) as *const AtomicU64) }
}

fn busy() -> Outcome {
    let all = |forks: u32| {
        child::pass(|| {
            FORKS.store(forks, SeqCst);
            PLACE.store(private(2 * PAGE).must("mmap")?, SeqCst);
            team::run(4, |me| match me {
                0 => fork(),
                1 => count(),
                2 => map(),
                _ => change(),
            })
        })
    };
    // Caches and tables grow to their size first.
    all(3)?;
    let before = usage::now();
    all(team::scaled(8))?;
    usage::compare(&before)
}

fn fork() -> Outcome {
    for _ in 0..FORKS.load(SeqCst) {
        child::pass(|| {
            // The second is stored after the first, so that no moment shows it ahead, or more than one behind.
            let (first, second) = (word(0).load(SeqCst), word(1).load(SeqCst));
            ensure!(first.wrapping_sub(second) <= 1, "two pages of different moments");
            let base = private(PAGES * PAGE).must("mmap")?;
            (0..PAGES).for_each(|page| poke(base + page * PAGE, 1));
            word(0).store(7, SeqCst);
            equal!(word(0).load(SeqCst), 7, "a word of the child's own");
            Ok(())
        })?;
    }
    DONE.store(1, SeqCst);
    Ok(())
}

fn busy_until_done(mut step: impl FnMut() -> Outcome) -> Outcome {
    while DONE.load(SeqCst) == 0 {
        step()?;
    }
    Ok(())
}

/// Counts in two pages, one after the other. Forks are the only others to count, each in a copy of its own.
fn count() -> Outcome {
    let mut number = 0;
    busy_until_done(|| {
        number += 1;
        word(0).store(number, SeqCst);
        word(1).store(number, SeqCst);
        equal!((word(0).load(SeqCst), word(1).load(SeqCst)), (number, number), "words that nobody else writes to");
        Ok(())
    })
}

fn map() -> Outcome {
    busy_until_done(|| {
        let base = private(PAGES * PAGE).must("mmap")?;
        for page in 0..PAGES {
            equal!(peek(base + page * PAGE), 0, "a new page");
            poke(base + page * PAGE, page as u8 + 1);
        }
        for page in 0..PAGES {
            equal!(peek(base + page * PAGE), page as u8 + 1, "a page that was written to");
        }
        unmap(base, PAGES * PAGE).must("munmap")
    })
}

fn change() -> Outcome {
    let base = private(PAGES * PAGE).must("mmap")?;
    let mut turn = 0_u8;
    busy_until_done(|| {
        turn = turn % 200 + 1;
        (0..PAGES).for_each(|page| poke(base + page * PAGE, turn));
        protect(base, PAGES * PAGE / 2, PROT_READ).must("mprotect")?;
        advise(base + PAGES * PAGE / 2, PAGES * PAGE / 4, MADV_DONTNEED).must("madvise")?;
        for page in 0..PAGES {
            let gone = (PAGES / 2..PAGES / 2 + PAGES / 4).contains(&page);
            equal!(peek(base + page * PAGE), if gone { 0 } else { turn }, "a page");
        }
        protect(base, PAGES * PAGE / 2, PROT_READ | PROT_WRITE).must("mprotect")
    })?;
    unmap(base, PAGES * PAGE).must("munmap")
}
