//! A file that is cut short while it is written, and while its mappings move to other addresses and other processes.

use crate::team;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use kit::check::{Must, Outcome};
use kit::memory::{PAGE, map, poke, private, shared_value, unmap};
use kit::uapi::mman::{
    MAP_ANONYMOUS, MAP_FIXED, MAP_PRIVATE, MAP_SHARED, MREMAP_FIXED, MREMAP_MAYMOVE, PROT_NONE, PROT_READ, PROT_WRITE,
};
use kit::uapi::signal::SIGBUS;
use kit::uapi::{nr, open};
use kit::{attempt, call, child, ensure, equal, harts, probe};
use rt::{io, tap::Test};

pub const TESTS: &[Test] = &[
    Test::new("truncation/of-mappings-that-move", moving),
    Test::new("truncation/of-mappings-that-are-inherited", inherited),
    Test::new("truncation/under-writes", written),
    Test::new("truncation/of-a-page-mapped-often", often),
    Test::new("truncation/holes-without-end", sparse),
];

const ROUNDS: u32 = 40;
const PAGES: usize = 4;

static FILE: AtomicUsize = AtomicUsize::new(0);
static TURN: AtomicU32 = AtomicU32::new(0);

fn new_file() -> Result<i32, &'static str> {
    let file = io::open(c"/tmp/races", open::O_RDWR | open::O_CREAT | open::O_TRUNC, 0o600).must("open")?;
    call!(nr::UNLINKAT, open::AT_FDCWD, c"/tmp/races".as_ptr(), 0);
    Ok(file)
}

/// Moves a mapping back and forth while `word` is 0, and notes each move there.
fn move_until_told(file: i32, places: [usize; 2], word: &AtomicU32, done: &AtomicU32) -> Result<usize, &'static str> {
    let len = PAGES * PAGE;
    let mut at = 0;
    map(places[0], len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0).must("mmap")?;
    (0..PAGES).for_each(|page| poke(places[0] + page * PAGE, 7));
    done.fetch_add(1, SeqCst);
    while word.load(SeqCst) == 0 {
        let (from, to) = (places[at], places[1 - at]);
        attempt!(nr::MREMAP, from, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, to).must("mremap")?;
        at = 1 - at;
    }
    Ok(places[at])
}

/// Wherever a mapping was while the file lost its pages, it has lost them.
fn moving() -> Outcome {
    probe::catch().must("sigaction")?;
    let words = shared_value::<[AtomicU32; 3]>().must("mmap")?;
    let [stop, ready, _] = words;
    for round in 0..team::scaled(ROUNDS) {
        let file = new_file()?;
        equal!(call!(nr::FTRUNCATE, file, PAGES * PAGE), 0, "ftruncate");
        // Places that are free again, so that the mappings that move take those of others.
        let many = round as usize % 48;
        let hold = private(2 * PAGE).must("mmap")?;
        let mut others = [0; 48];
        for other in others.iter_mut().take(many) {
            *other = map(0, PAGE, PROT_READ, MAP_SHARED, file, 0).must("mmap")?;
        }
        stop.store(0, SeqCst);
        ready.store(0, SeqCst);
        let movers = 2.min(harts::count().max(2) - 1);
        let mut children = [0; 2];
        for child in children.iter_mut().take(movers) {
            *child = child::start(|| {
                let room = map(0, 2 * PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                let room = room.must("mmap")?;
                let at = move_until_told(file, [room, room + PAGES * PAGE], stop, ready)?;
                for page in 0..PAGES {
                    equal!(probe::try_load(at + page * PAGE), SIGBUS, "a load from a page that the file has lost");
                }
                Ok(())
            })?;
        }
        for other in others.iter().take(many).step_by(2) {
            unmap(*other, PAGE).must("munmap")?;
        }
        while (ready.load(SeqCst) as usize) < movers {
            core::hint::spin_loop();
        }
        for _ in 0..round % 13 * 50 {
            core::hint::spin_loop();
        }
        equal!(call!(nr::FTRUNCATE, file, 0), 0, "ftruncate");
        stop.store(1, SeqCst);
        children.into_iter().take(movers).try_for_each(child::finish)?;
        for other in others.iter().take(many).skip(1).step_by(2) {
            unmap(*other, PAGE).must("munmap")?;
        }
        unmap(hold, 2 * PAGE).must("munmap")?;
        call!(nr::CLOSE, file);
    }
    Ok(())
}

/// A child that is forked while the file loses its pages has none of them either, nor copies of them.
fn inherited() -> Outcome {
    probe::catch().must("sigaction")?;
    let words = shared_value::<[AtomicU32; 3]>().must("mmap")?;
    let [stop, ready, _] = words;
    for round in 0..team::scaled(ROUNDS) {
        let file = new_file()?;
        equal!(call!(nr::FTRUNCATE, file, PAGES * PAGE), 0, "ftruncate");
        let mut others = [0; 16];
        for other in &mut others {
            *other = map(0, PAGE, PROT_READ, MAP_SHARED, file, 0).must("mmap")?;
        }
        stop.store(0, SeqCst);
        ready.store(0, SeqCst);
        let forker = child::start(|| {
            let base = map(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0).must("mmap")?;
            (0..PAGES).for_each(|page| poke(base + page * PAGE, 7));
            ready.store(1, SeqCst);
            let mut last = 0;
            while stop.load(SeqCst) == 0 && last == 0 {
                let child = child::start(|| {
                    while stop.load(SeqCst) == 0 {
                        core::hint::spin_loop();
                    }
                    for page in 0..PAGES {
                        equal!(probe::try_load(base + page * PAGE), SIGBUS, "a load of a child's copy");
                    }
                    Ok(())
                })?;
                last = child;
            }
            if last == 0 { Ok(()) } else { child::finish(last) }
        })?;
        for other in others.iter().step_by(2) {
            unmap(*other, PAGE).must("munmap")?;
        }
        while ready.load(SeqCst) == 0 {
            core::hint::spin_loop();
        }
        for _ in 0..round % 29 * 100 {
            core::hint::spin_loop();
        }
        equal!(call!(nr::FTRUNCATE, file, 0), 0, "ftruncate");
        stop.store(1, SeqCst);
        child::finish(forker)?;
        for other in others.iter().skip(1).step_by(2) {
            unmap(*other, PAGE).must("munmap")?;
        }
        call!(nr::CLOSE, file);
    }
    Ok(())
}

/// A file that is written and cut short at once is either what was written or short, but has no holes.
fn written() -> Outcome {
    let file = new_file()?;
    FILE.store(file as usize, SeqCst);
    TURN.store(0, SeqCst);
    team::run(2, |me| {
        let file = FILE.load(SeqCst);
        let bytes = [5_u8; 2 * PAGE];
        for round in 0..team::scaled(3 * ROUNDS) {
            // The two do theirs at about the same time.
            TURN.fetch_add(1, SeqCst);
            while TURN.load(SeqCst) < 4 * round + 2 {
                core::hint::spin_loop();
            }
            if me == 0 {
                equal!(call!(nr::PWRITE64, file, bytes.as_ptr(), bytes.len(), 0), 2 * PAGE as isize, "pwrite");
            } else {
                for _ in 0..round % 64 * 16 {
                    core::hint::spin_loop();
                }
                equal!(call!(nr::FTRUNCATE, file, if round % 2 == 0 { 0 } else { 100 }), 0, "ftruncate");
            }
            TURN.fetch_add(1, SeqCst);
            while TURN.load(SeqCst) < 4 * round + 4 {
                core::hint::spin_loop();
            }
            if me == 0 {
                let mut seen = [0_u8; 2 * PAGE];
                let got = call!(nr::PREAD64, file, seen.as_mut_ptr(), seen.len(), 0);
                let got = usize::try_from(got).unwrap_or(usize::MAX);
                ensure!(matches!(got, 0 | 100) || got == seen.len(), "another size than any that was asked for");
                ensure!(seen[..got].iter().all(|byte| *byte == 5), "a hole in what was written");
                // What was cut off does not come back.
                equal!(call!(nr::FTRUNCATE, file, 2 * PAGE), 0, "ftruncate");
                equal!(call!(nr::PREAD64, file, seen.as_mut_ptr(), seen.len(), 0), 2 * PAGE as isize, "pread");
                ensure!(seen[got..].iter().all(|byte| *byte == 0), "bytes beyond the end");
            }
            if round % 8 < 4 && me == 0 {
                call!(nr::FTRUNCATE, file, 0);
            }
        }
        Ok(())
    })
}

/// A file that a program maps in very many places is cut short in one go.
fn often() -> Outcome {
    const TIMES: usize = 20_000;
    probe::catch().must("sigaction")?;
    let file = new_file()?;
    equal!(call!(nr::FTRUNCATE, file, PAGE), 0, "ftruncate");
    let room = map(0, TIMES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0).must("mmap")?;
    for at in (0..TIMES).map(|turn| room + turn * PAGE) {
        map(at, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0).must("mmap")?;
        poke(at, 1);
    }
    equal!(call!(nr::FTRUNCATE, file, 0), 0, "ftruncate");
    for at in (0..TIMES).step_by(333).map(|turn| room + turn * PAGE) {
        equal!(probe::try_load(at), SIGBUS, "a load from a page that the file has lost");
    }
    call!(nr::CLOSE, file);
    unmap(room, TIMES * PAGE).must("munmap")
}

/// What is found in the largest file that there can be is found at once.
fn sparse() -> Outcome {
    const SEEK_DATA: usize = 3;
    const SEEK_HOLE: usize = 4;
    let file = new_file()?;
    let size = 1_isize << 50;
    equal!(call!(nr::FTRUNCATE, file, size), 0, "ftruncate");
    equal!(call!(nr::LSEEK, file, 0, SEEK_DATA), -6, "the first data of a file without any");
    equal!(call!(nr::PWRITE64, file, c"x".as_ptr(), 1, size - 1), 1, "pwrite");
    equal!(call!(nr::LSEEK, file, 5, SEEK_DATA), size - PAGE as isize, "the first data");
    equal!(call!(nr::LSEEK, file, 5, SEEK_HOLE), 5, "the first hole");
    equal!(call!(nr::LSEEK, file, size - 5, SEEK_HOLE), size, "the hole at the end");
    call!(nr::CLOSE, file);
    Ok(())
}
