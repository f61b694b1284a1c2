//! Memory that several have, or believe to have.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use kit::check::{Must, Outcome};
use kit::memory::{PAGE, peek, poke};
use kit::random::Random;
use kit::thread::{self, Thread};
use kit::uapi::mman::{MADV_DONTNEED, MREMAP_MAYMOVE, PROT_NONE, PROT_READ, PROT_WRITE};
use kit::uapi::nr;
use kit::{attempt, call, child, equal, memory};
use rt::process;

static LOCK: AtomicU32 = AtomicU32::new(0);
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// A mutex of three states (Drepper, "Futexes are tricky").
fn lock() {
    if LOCK.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
        return;
    }
    while LOCK.swap(2, Ordering::Acquire) != 0 {
        let _ = thread::wait(&LOCK, 2, None);
    }
}

fn unlock() {
    if LOCK.swap(0, Ordering::Release) == 2 {
        thread::wake(&LOCK, 1);
    }
}

extern "C" fn count(rounds: usize) -> usize {
    for round in 0..rounds {
        lock();
        let seen = COUNT.load(Ordering::Relaxed);
        if round % 8 == 0 {
            call!(nr::SCHED_YIELD);
        }
        COUNT.store(seen + 1, Ordering::Relaxed);
        unlock();
    }
    0
}

/// Threads that count under a lock: no count is lost.
pub fn mutex(random: &mut Random) -> Outcome {
    COUNT.store(0, Ordering::Relaxed);
    let rounds = 100 + random.below(200) as usize;
    let mut threads = [const { None }; 4];
    for slot in &mut threads {
        *slot = Some(Thread::start(count, rounds).must("thread")?);
    }
    count(rounds);
    threads.into_iter().flatten().for_each(Thread::join);
    equal!(COUNT.load(Ordering::Relaxed), 5 * rounds, "the count under a lock");
    Ok(())
}

/// After a fork both sides write to the same pages, and see their own only.
pub fn copy_on_write(random: &mut Random) -> Outcome {
    let pages = 1 + random.below(64) as usize;
    let base = memory::private(pages * PAGE).must("mmap")?;
    (0..pages).for_each(|page| poke(base + page * PAGE, page as u8));
    let seed = random.next();
    let side = |own: u8, seed: u64| -> Outcome {
        let mut random = Random::new(seed);
        let mut written = [false; 64];
        for _ in 0..2 * pages {
            let page = random.below(pages as u64) as usize;
            let expected = if written[page] { own } else { page as u8 };
            equal!(peek(base + page * PAGE), expected, "a byte after fork");
            poke(base + page * PAGE, own);
            written[page] = true;
        }
        Ok(())
    };
    let child = child::start(|| {
        let grandchild = child::start(|| side(202, seed + 2))?;
        side(201, seed + 1)?;
        child::finish(grandchild)
    })?;
    side(200, seed)?;
    child::finish(child)?;
    memory::unmap(base, pages * PAGE).must("munmap")
}

/// Mappings split, moved, protected and given back, with the contents followed.
pub fn mappings(random: &mut Random) -> Outcome {
    const PAGES: usize = 32;
    let mut base = memory::private(PAGES * PAGE).must("mmap")?;
    let mut model = [0_u8; PAGES];
    for step in 0..60_u8 {
        let page = random.below(PAGES as u64) as usize;
        let count = 1 + random.below((PAGES - page) as u64) as usize;
        let (at, length) = (base + page * PAGE, count * PAGE);
        match random.below(5) {
            0 => {
                poke(at + 9, step);
                model[page] = step;
            }
            1 => {
                memory::protect(at, length, PROT_NONE).must("mprotect")?;
                memory::protect(at, length, PROT_READ).must("mprotect")?;
                equal!(peek(at + 9), model[page], "a byte behind mprotect");
                memory::protect(at, length, PROT_READ | PROT_WRITE).must("mprotect")?;
            }
            2 => {
                memory::advise(at, length, MADV_DONTNEED).must("madvise")?;
                model[page..page + count].fill(0);
            }
            3 => {
                memory::unmap(at, length).must("munmap")?;
                let fixed = kit::uapi::mman::MAP_FIXED | kit::uapi::mman::MAP_PRIVATE | kit::uapi::mman::MAP_ANONYMOUS;
                memory::map(at, length, PROT_READ | PROT_WRITE, fixed, -1, 0).must("mmap")?;
                model[page..page + count].fill(0);
            }
            _ => {
                let larger = attempt!(nr::MREMAP, base, PAGES * PAGE, 2 * PAGES * PAGE, MREMAP_MAYMOVE, 0);
                base = match larger {
                    Ok(moved) => moved,
                    // Neighbouring mappings with different pasts may not be one to the kernel.
                    Err(kit::uapi::Errno::EFAULT) => continue,
                    Err(error) => return Err(error).must("mremap"),
                };
                attempt!(nr::MREMAP, base, 2 * PAGES * PAGE, PAGES * PAGE, 0, 0).must("mremap to the old size")?;
            }
        }
        for (page, byte) in model.iter().enumerate() {
            equal!(peek(base + page * PAGE + 9), *byte, "a byte of a mapping");
        }
    }
    memory::unmap(base, PAGES * PAGE).must("munmap")
}

extern "C" fn forever(kind: usize) -> usize {
    loop {
        match kind {
            0 => drop(kit::clock::sleep(1_000_000_000)),
            1 => drop(thread::wait(&LOCK, LOCK.load(Ordering::Relaxed), None)),
            _ => core::hint::spin_loop(),
        }
    }
}

/// A process that ends while its threads sleep, wait and run.
pub fn threads_end_with_process(random: &mut Random) -> Outcome {
    let last = random.next() as u8;
    let ended = child::end(|| {
        for kind in [0, 1, 2, 2] {
            Thread::start(forever, kind).must("thread")?;
        }
        kit::clock::sleep(500_000);
        process::exit(last)
    })?;
    equal!(ended, process::Ended::Exited(last), "a process with threads");
    Ok(())
}
