//! Threads of one program that change and use neighbouring pages, each its own, and fork in between: nobody's change may
//! be seen in another's pages, nor a child's by its parent or the other way round.

use crate::team;
use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use kit::check::{Must, Outcome};
use kit::memory::{PAGE, advise, map, protect, unmap};
use kit::random::Random;
use kit::uapi::mman::{
    MADV_DONTNEED, MAP_ANONYMOUS, MAP_FIXED, MAP_PRIVATE, MREMAP_FIXED, MREMAP_MAYMOVE, PROT_NONE, PROT_READ,
    PROT_WRITE,
};
use kit::uapi::nr;
use kit::uapi::signal::{SIG_IGN, SIGALRM, Sigaction};
use kit::{attempt, child, equal, harts, signal};
use rt::tap::Test;

pub const TESTS: &[Test] =
    &[Test::new("slices/of-one-program", || slices(false)), Test::new("slices/interleaved", || slices(true))];

const ROUNDS: u32 = 25;
/// Pages of each thread.
const PAGES: usize = 40;

static BASE: AtomicUsize = AtomicUsize::new(0);
static STRIDE: AtomicUsize = AtomicUsize::new(0);

fn slices(interleaved: bool) -> Outcome {
    child::pass(|| {
        signal::set(SIGALRM, Sigaction { handler: SIG_IGN, ..Sigaction::default() }).must("sigaction")?;
        signal::timer(100, 100);
        let size = harts::count().max(4);
        let length = size * PAGES * PAGE;
        let base = map(0, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0).must("mmap")?;
        BASE.store(base, SeqCst);
        STRIDE.store(if interleaved { size } else { 1 }, SeqCst);
        team::run(size, work)?;
        unmap(base, length).must("munmap")
    })
}

/// Where a thread's page lies.
fn place(me: usize, page: usize) -> usize {
    let (base, stride) = (BASE.load(SeqCst), STRIDE.load(SeqCst));
    base + PAGE * if stride == 1 { me * PAGES + page } else { page * stride + me }
}

fn word(at: usize) -> *mut u64 {
    (at + at / PAGE % 500 * 8) as *mut u64
}

fn get(at: usize) -> u64 {
    // SAFETY: the thread's own page, which it has mapped for reading.
    unsafe { word(at).read_volatile() }
}

fn set(at: usize, value: u64) {
    // SAFETY: as above, for writing.
    unsafe { word(at).write_volatile(value) }
}

fn verify(me: usize, model: &[u64; PAGES]) -> Outcome {
    for (page, value) in model.iter().enumerate() {
        equal!(get(place(me, page)), *value, "a word of a page of one's own");
    }
    Ok(())
}

fn work(me: usize) -> Outcome {
    let mut random = Random::new(me as u64 + 1);
    let mut model = [0_u64; PAGES];
    let all = PROT_READ | PROT_WRITE;
    for round in 0..team::scaled(ROUNDS) {
        let page = random.below(PAGES as u64) as usize;
        let at = place(me, page);
        let mark = u64::from(round) << 16 | (me as u64) << 8 | page as u64;
        match random.below(12) {
            0..=3 => {
                set(at, mark);
                model[page] = mark;
            }
            4 => {
                protect(at, PAGE, PROT_READ).must("mprotect")?;
                equal!(get(at), model[page], "a word of a page that cannot be written to");
                protect(at, PAGE, all).must("mprotect")?;
                set(at, mark);
                model[page] = mark;
            }
            5 => {
                protect(at, PAGE, PROT_NONE).must("mprotect")?;
                protect(at, PAGE, all).must("mprotect")?;
            }
            6 => {
                advise(at, PAGE, MADV_DONTNEED).must("madvise")?;
                model[page] = 0;
            }
            7 => {
                map(at, PAGE, all, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0).must("mmap")?;
                model[page] = 0;
            }
            8 => {
                // To another page of one's own, with its contents, and a new page where it was.
                let to = (page + 1) % PAGES;
                let moves = MREMAP_MAYMOVE | MREMAP_FIXED;
                // What is in the word depends on where it lies: moved at the same place in the page only.
                let (value, target) = (model[page], place(me, to));
                attempt!(nr::MREMAP, at, PAGE, PAGE, moves, target).must("mremap")?;
                map(at, PAGE, all, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0).must("mmap")?;
                // SAFETY: the page that was moved.
                let seen = unsafe { ((target + at / PAGE % 500 * 8) as *const u64).read_volatile() };
                equal!(seen, value, "a word of a page that was moved");
                advise(target, PAGE, MADV_DONTNEED).must("madvise")?;
                set(target, mark);
                (model[page], model[to]) = (0, mark);
            }
            9 | 10 => {
                let child = child::start(|| {
                    verify(me, &model)?;
                    for page in (0..PAGES).step_by(3) {
                        set(place(me, page), 1);
                        equal!(get(place(me, page)), 1, "a word that a child has written");
                    }
                    for page in (0..PAGES).filter(|page| page % 3 != 0) {
                        equal!(get(place(me, page)), model[page], "a word that a child has inherited");
                    }
                    Ok(())
                })?;
                for page in (0..PAGES).step_by(2) {
                    let mark = mark | 1 << 40 | (page as u64) << 48;
                    set(place(me, page), mark);
                    model[page] = mark;
                }
                verify(me, &model)?;
                child::finish(child)?;
            }
            _ => verify(me, &model)?,
        }
    }
    verify(me, &model)
}
