//! A mapped file that is cut short while others use the mapping.

use crate::team;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use kit::check::{Must, Outcome};
use kit::memory::{PAGE, map, peek};
use kit::random::Random;
use kit::uapi::mman::{MAP_PRIVATE, MAP_SHARED, PROT_READ, PROT_WRITE};
use kit::uapi::signal::SIGBUS;
use kit::uapi::{nr, open};
use kit::{call, ensure, equal, fails, harts, probe};
use rt::{io, tap::Test};

pub const TESTS: &[Test] = &[Test::new("truncation/under-faults-on-other-harts", cut)];

const PAGES: usize = 8;
const ROUNDS: u32 = 20;

static FILE: AtomicUsize = AtomicUsize::new(0);
/// The mappings: shared, private.
static PLACES: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
/// Odd while the file is empty, for sure.
static PHASE: AtomicU32 = AtomicU32::new(0);
/// The last odd phase in which each thread has tried all.
static TRIED: [AtomicU32; team::MAX] = [const { AtomicU32::new(0) }; team::MAX];

fn cut() -> Outcome {
    probe::catch().must("sigaction")?;
    let file = io::open(c"/tmp/cut", open::O_RDWR | open::O_CREAT | open::O_TRUNC, 0o600).must("open")?;
    call!(nr::UNLINKAT, open::AT_FDCWD, c"/tmp/cut".as_ptr(), 0);
    FILE.store(file as usize, SeqCst);
    for (place, flags) in PLACES.iter().zip([MAP_SHARED, MAP_PRIVATE]) {
        place.store(map(0, PAGES * PAGE, PROT_READ | PROT_WRITE, flags, file, 0).must("mmap")?, SeqCst);
    }
    team::run(harts::count().max(2), |me| if me == 0 { change() } else { touch(me) })
}

fn change() -> Outcome {
    let (file, [shared, private]) = (FILE.load(SeqCst), [0, 1].map(|which: usize| PLACES[which].load(SeqCst)));
    let zero = io::open(c"/dev/zero", open::O_RDONLY, 0).must("open")?;
    for round in 0..team::scaled(ROUNDS) {
        // From any page on.
        let keep = if round % 2 == 0 { 0 } else { round as usize % PAGES };
        equal!(call!(nr::FTRUNCATE, file, keep * PAGE), 0, "ftruncate");
        let odd = 2 * round + 1;
        PHASE.store(odd, SeqCst);
        if keep == 0 {
            for at in (0..PAGES).flat_map(|page| [shared + page * PAGE, private + page * PAGE]) {
                equal!(probe::try_load(at), SIGBUS, "a load beyond the file's end");
                fails!(call!(nr::READ, zero, at, 1), EFAULT, "a read to beyond the file's end");
            }
            for other in TRIED.iter().take(team::size()).skip(1) {
                team::await_at_least(other, odd)?;
            }
        }
        PHASE.store(odd + 1, SeqCst);
        equal!(call!(nr::FTRUNCATE, file, PAGES * PAGE), 0, "ftruncate");
        for page in keep..PAGES {
            equal!(peek(shared + page * PAGE), 0, "a page that came back");
        }
    }
    PHASE.store(u32::MAX, SeqCst);
    Ok(())
}

fn touch(me: usize) -> Outcome {
    let mut random = Random::new(me as u64);
    let (mut tries, mut last) = (0, 0);
    loop {
        let phase = PHASE.load(SeqCst);
        if phase == u32::MAX {
            return Ok(());
        }
        let place = PLACES[random.below(2) as usize].load(SeqCst) + random.below(PAGES as u64) as usize * PAGE + 8;
        let signal = if random.below(2) == 0 { probe::try_load(place) } else { probe::try_store(place, 1) };
        ensure!(signal == 0 || signal == SIGBUS, "another signal than SIGBUS");
        if PHASE.load(SeqCst) != phase || phase.is_multiple_of(2) {
            continue;
        }
        if phase != last {
            (tries, last) = (0, phase);
        }
        // Cut to nothing in even rounds only.
        if (phase / 2).is_multiple_of(2) {
            equal!(signal, SIGBUS, "an access beyond the file's end");
        }
        tries += 1;
        if tries == 16 {
            team::tell(&TRIED[me], phase);
        }
    }
}
