//! Memory that is used up: who must go goes, all others go on, and what was taken comes back.

use core::sync::atomic::{AtomicU32, Ordering::SeqCst};
use kit::check::{Must, Outcome};
use kit::memory::{PAGE, map, peek, poke, private, shared_value, unmap};
use kit::thread::Thread;
use kit::uapi::mman::{MAP_ANONYMOUS, MAP_NORESERVE, MAP_PRIVATE, MAP_SHARED, MREMAP_MAYMOVE, PROT_READ, PROT_WRITE};
use kit::uapi::open::{F_SETFL, O_NONBLOCK, O_RDONLY};
use kit::uapi::signal::SIGKILL;
use kit::uapi::{Errno, nr};
use kit::{attempt, child, clock, ensure, equal, file, usage};
use rt::process::{self, Ended, Fork};
use rt::{io, tap::Test};

pub const TESTS: &[Test] = &[
    Test::new("memory-ends/private", || one(MAP_PRIVATE)),
    Test::new("memory-ends/shared", || one(MAP_SHARED)),
    Test::new("memory-ends/on-all-harts-at-once", many),
    Test::new("memory-ends/for-whom-it-may", protected),
    Test::new("memory-ends/in-the-middle-of-calls", in_calls),
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

/// Whether a call did what it is for, or said that there is no memory.
fn refused<T>(result: Result<T, Errno>) -> Result<Option<T>, &'static str> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Errno::ENOMEM | Errno::EAGAIN | Errno::ENOSPC) => Ok(None),
        Err(error) => Err(error).must("a call without memory"),
    }
}

extern "C" fn nothing(_: usize) -> usize {
    0
}

/// One of each call that needs memory, and all of it given back.
fn calls() -> Outcome {
    if let Some(thread) = refused(Thread::start(nothing, 0))? {
        thread.join();
    }
    match refused(process::fork())? {
        Some(Fork::Child) => process::exit(3),
        Some(Fork::Parent(child)) => equal!(process::wait(child).must("wait")?.1, Ended::Exited(3), "a child"),
        None => {}
    }
    if let Some((read, write)) = refused(io::pipe())? {
        refused(attempt!(nr::FCNTL, write, F_SETFL, O_NONBLOCK))?;
        refused(attempt!(nr::WRITE, write, calls as *const (), 8 * PAGE))?;
        io::close(read).and_then(|()| io::close(write)).must("close")?;
    }
    if let Some(memory) = refused(attempt!(nr::MEMFD_CREATE, c"calls".as_ptr(), 0))? {
        refused(attempt!(nr::FALLOCATE, memory, 0, 0, 32 * PAGE))?;
        io::close(memory as i32).must("close")?;
    }
    if let Some(base) = refused(private(16 * PAGE))? {
        let zero = io::open(c"/dev/zero", O_RDONLY, 0);
        if let Some(zero) = refused(zero)? {
            refused(attempt!(nr::READ, zero, base, 16 * PAGE))?;
            io::close(zero).must("close")?;
        }
        refused(attempt!(nr::MREMAP, base, 16 * PAGE, 32 * PAGE, MREMAP_MAYMOVE, 0))?
            .map_or_else(|| unmap(base, 16 * PAGE), |moved| unmap(moved, 32 * PAGE))
            .must("munmap")?;
    }
    Ok(())
}

/// Two go on making calls, while a third uses all memory up again and again.
fn in_calls() -> Outcome {
    beside_others(|| {
        let done = shared_value::<[AtomicU32; 3]>().must("mmap")?;
        let mut workers = [0; 2];
        for (index, worker) in workers.iter_mut().enumerate() {
            *worker = child::start(|| {
                while done[2].load(SeqCst) == 0 {
                    calls()?;
                    done[index].fetch_add(1, SeqCst);
                }
                Ok(())
            })?;
        }
        for turn in 0.. {
            let ended = child::end(|| {
                take_all(MAP_PRIVATE as usize);
                Err("there was enough memory")
            })?;
            equal!(ended, Ended::Killed(SIGKILL as u8), "who takes all");
            if turn >= 3 && done[..2].iter().all(|count| count.load(SeqCst) >= 10) {
                break;
            }
        }
        done[2].store(1, SeqCst);
        workers.into_iter().try_for_each(child::finish)?;
        unmap(core::ptr::from_ref(done) as usize, PAGE).must("munmap")
    })
}
