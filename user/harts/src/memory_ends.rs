//! Memory that is used up: who must go goes, all others go on, and what was taken comes back.

use core::sync::atomic::{AtomicU32, Ordering::SeqCst};
use kit::check::{Must, Outcome};
use kit::memory::{PAGE, map, peek, poke, private, shared_value, unmap};
use kit::thread::Thread;
use kit::uapi::mman::{MAP_ANONYMOUS, MAP_NORESERVE, MAP_PRIVATE, MAP_SHARED, PROT_READ, PROT_WRITE};
use kit::uapi::signal::SIGKILL;
use kit::{child, clock, ensure, equal, file, usage};
use rt::process::{self, Ended};
use rt::tap::Test;

pub const TESTS: &[Test] = &[
    Test::new("memory-ends/private", || one(MAP_PRIVATE)),
    Test::new("memory-ends/shared", || one(MAP_SHARED)),
    Test::new("memory-ends/on-all-harts-at-once", many),
    Test::new("memory-ends/for-whom-it-may", protected),
];

/// Bytes of memory.
fn total() -> usize {
    let mut buffer = [0; 4096];
    let text = file::text(c"/proc/meminfo", &mut buffer).unwrap_or("");
    file::number(text, "MemTotal").unwrap_or(0) as usize * 1024
}

/// Maps `length` bytes and writes to each page.
fn take(length: usize, kind: u32) -> Result<usize, &'static str> {
    let flags = kind | MAP_ANONYMOUS | MAP_NORESERVE;
    let base = map(0, length, PROT_READ | PROT_WRITE, flags, -1, 0).must("mmap")?;
    (base..base + length).step_by(PAGE).for_each(|at| poke(at, 1));
    Ok(base)
}

extern "C" fn take_all(kind: usize) -> usize {
    let _ = take(4 * total(), kind as u32);
    0
}

/// Small processes that want a little memory now and then, and say how often they got it.
struct Bystanders {
    children: [i32; 2],
    turns: &'static [AtomicU32; 3],
}

impl Bystanders {
    fn start() -> Result<Self, &'static str> {
        let turns = shared_value::<[AtomicU32; 3]>().must("mmap")?;
        let mut children = [0; 2];
        for (index, child) in children.iter_mut().enumerate() {
            *child = child::start(|| {
                while turns[2].load(SeqCst) == 0 {
                    let base = private(4 * PAGE).must("mmap")?;
                    for page in 0..4 {
                        equal!(peek(base + page * PAGE), 0, "a new page");
                        poke(base + page * PAGE, 3);
                    }
                    unmap(base, 4 * PAGE).must("munmap")?;
                    turns[index].fetch_add(1, SeqCst);
                    clock::sleep(200_000);
                }
                Ok(())
            })?;
        }
        Ok(Self { children, turns })
    }

    /// They go on now that there is memory again, and have seen nothing wrong.
    fn end(self) -> Outcome {
        for turns in &self.turns[..2] {
            let before = turns.load(SeqCst);
            let end = clock::now() + 20_000_000_000;
            while turns.load(SeqCst) < before + 3 {
                ensure!(clock::now() < end, "a bystander does not go on");
                clock::sleep(1_000_000);
            }
        }
        self.turns[2].store(1, SeqCst);
        self.children.into_iter().try_for_each(child::finish)?;
        unmap(core::ptr::from_ref(self.turns) as usize, PAGE).must("munmap")
    }
}

/// Runs `body` beside bystanders; afterwards all memory is as before.
fn beside_others(body: impl Fn() -> Outcome) -> Outcome {
    let mut before = None;
    // Caches and tables grow to their size first.
    for round in 0..2 {
        let bystanders = Bystanders::start()?;
        body()?;
        bystanders.end()?;
        match &before {
            None => before = Some(usage::now()),
            Some(before) if round == 1 => usage::compare(before)?,
            Some(_) => {}
        }
    }
    Ok(())
}

fn one(kind: u32) -> Outcome {
    beside_others(|| {
        let ended = child::end(|| {
            take_all(kind as usize);
            Err("there was enough memory")
        })?;
        equal!(ended, Ended::Killed(SIGKILL as u8), "who takes all");
        Ok(())
    })
}

fn many() -> Outcome {
    beside_others(|| {
        let mut children = [0; 4];
        for (index, child) in children.iter_mut().enumerate() {
            let kind = if index == 3 { MAP_SHARED } else { MAP_PRIVATE };
            *child = child::start(|| {
                for _ in 0..3 {
                    // Others may have left nothing for its stack.
                    let _ = Thread::start(take_all, kind as usize);
                }
                take_all(kind as usize);
                Err("there was enough memory")
            })?;
        }
        for child in children {
            equal!(process::wait(child).must("wait")?.1, Ended::Killed(SIGKILL as u8), "one of those who take all");
        }
        Ok(())
    })
}

/// A large process that must not be killed, and a smaller one that then is.
fn protected() -> Outcome {
    beside_others(|| {
        let ready = shared_value::<[AtomicU32; 2]>().must("mmap")?;
        let large = child::start(|| {
            file::write(c"/proc/self/oom_score_adj", 0o644, b"-1000").must("oom_score_adj")?;
            let length = total() / 2;
            let base = take(length, MAP_PRIVATE)?;
            ready[0].store(1, SeqCst);
            while ready[1].load(SeqCst) == 0 {
                clock::sleep(1_000_000);
            }
            ensure!((base..base + length).step_by(PAGE).all(|at| peek(at) == 1), "contents");
            Ok(())
        })?;
        while ready[0].load(SeqCst) == 0 {
            ensure!(process::try_wait(large).must("wait")?.is_none(), "the large one has ended");
            clock::sleep(1_000_000);
        }
        let ended = child::end(|| {
            take_all(MAP_PRIVATE as usize);
            Err("there was enough memory")
        })?;
        equal!(ended, Ended::Killed(SIGKILL as u8), "the one that may be killed");
        ready[1].store(1, SeqCst);
        child::finish(large)?;
        unmap(core::ptr::from_ref(ready) as usize, PAGE).must("munmap")
    })
}
