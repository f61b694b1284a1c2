//! All harts interrupt each other at once: fences, wake-ups and signals, each counted.

use crate::team::{self, LOST, MAX};
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use kit::check::{Must, Outcome};
use kit::memory::{PAGE, map, poke, private, protect, unmap};
use kit::random::Random;
use kit::uapi::futex::FUTEX_PRIVATE_FLAG;
use kit::uapi::mman::{
    MAP_ANONYMOUS, MAP_FIXED, MAP_PRIVATE, MEMBARRIER_CMD_PRIVATE_EXPEDITED, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED,
    PROT_READ, PROT_WRITE,
};
use kit::uapi::signal::{SI_QUEUE, SIGSEGV, sigmask};
use kit::uapi::{Errno, Siginfo, Ucontext, nr};
use kit::{call, clock, ensure, equal, harts, probe, signal, thread};
use rt::process;
use rt::tap::Test;

pub const TESTS: &[Test] = &[
    Test::new("storm/everything-at-once", everything),
    Test::new("storm/signals", signals),
    Test::new("storm/wake-ups", wake_ups),
    Test::new("storm/membarrier-orders-stores", orders),
];

/// A real-time signal: each one that is sent is delivered, in order.
const SIGNAL: u32 = 40;
const SCRATCH: usize = 0x20_0000_0000;
const ROUNDS: u32 = 40;
const SIGNALS: u32 = 100;
const WAKE_UPS: u32 = 100;

static PAGES: AtomicUsize = AtomicUsize::new(0);
static IDS: [AtomicU32; MAX] = [const { AtomicU32::new(0) }; MAX];
static TOKENS: [AtomicU32; MAX] = [const { AtomicU32::new(0) }; MAX];
static STORED: [AtomicU64; MAX] = [const { AtomicU64::new(0) }; MAX];
/// Signals from one to another.
static SENT: [[AtomicU32; MAX]; MAX] = [const { [const { AtomicU32::new(0) }; MAX] }; MAX];
static TAKEN: [[AtomicU32; MAX]; MAX] = [const { [const { AtomicU32::new(0) }; MAX] }; MAX];
static DISORDER: AtomicU32 = AtomicU32::new(0);

extern "C" fn take(_: i32, info: *const Siginfo, _: *mut Ucontext) {
    // SAFETY: the kernel passes it.
    let value = unsafe { (*info).fields[1] };
    let (from, to, number) = (value as usize >> 8 & 0xff, value as usize & 0xff, (value >> 16) as u32);
    let expected = TAKEN[from % MAX][to % MAX].fetch_add(1, SeqCst);
    if expected != number || call!(nr::GETTID) as u32 != IDS[to % MAX].load(SeqCst) {
        DISORDER.store(1, SeqCst);
    }
}

/// Sends the next signal from one to another.
fn send(from: usize, to: usize) -> Outcome {
    let number = SENT[from][to].load(SeqCst);
    let mut info = Siginfo { si_signo: SIGNAL as i32, si_code: SI_QUEUE, ..Siginfo::default() };
    info.fields[1] = u64::from(number) << 16 | (from as u64) << 8 | to as u64;
    let end = clock::now() + LOST;
    loop {
        let result = call!(nr::RT_TGSIGQUEUEINFO, process::id(), IDS[to].load(SeqCst), SIGNAL, &raw const info);
        if result != Errno::EAGAIN.to_ret() {
            equal!(result, 0, "rt_tgsigqueueinfo");
            SENT[from][to].fetch_add(1, SeqCst);
            return Ok(());
        }
        // As many wait as may.
        ensure!(clock::now() < end, "signals are not taken");
        call!(nr::SCHED_YIELD);
    }
}

/// All signals that were sent arrive.
fn all_taken(me: usize) -> Outcome {
    for other in 0..team::size() {
        team::until(|| TAKEN[other][me].load(SeqCst) >= SENT[other][me].load(SeqCst))?;
    }
    team::meet(3)?;
    for other in 0..team::size() {
        equal!(TAKEN[other][me].load(SeqCst), SENT[other][me].load(SeqCst), "signals taken");
    }
    equal!(DISORDER.load(SeqCst), 0, "signals out of order or on another thread");
    Ok(())
}

fn prepare() -> Outcome {
    probe::catch().must("sigaction")?;
    signal::handle(SIGNAL, take, kit::uapi::signal::SA_RESTART).must("sigaction")?;
    equal!(call!(nr::MEMBARRIER, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0), 0, "membarrier");
    PAGES.store(private(MAX * PAGE).must("mmap")?, SeqCst);
    Ok(())
}

fn everything() -> Outcome {
    prepare()?;
    team::run(harts::count().max(2), |me| {
        let (team, page) = (team::size(), |index: usize| PAGES.load(SeqCst) + index * PAGE);
        let others = |random: &mut Random| (me + 1 + random.below(team as u64 - 1) as usize) % team;
        IDS[me].store(call!(nr::GETTID) as u32, SeqCst);
        team::meet(1)?;
        let mut random = Random::new(me as u64);
        for round in 0..team::scaled(ROUNDS) {
            // Nobody is more than a round ahead of who comes before.
            let next = (me + 1) % team;
            TOKENS[next].fetch_add(1, SeqCst);
            thread::wake(&TOKENS[next], 1);
            match random.below(5) {
                0 => equal!(call!(nr::MEMBARRIER, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0), 0, "membarrier"),
                1 => equal!(call!(nr::RISCV_FLUSH_ICACHE, page(0), page(1), 0), 0, "riscv_flush_icache"),
                2 => still(page(me))?,
                3 => {
                    // At an address where nobody else maps anything.
                    let scratch = SCRATCH + me * 16 * PAGE;
                    map(scratch, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)
                        .must("mmap")?;
                    poke(scratch, 1);
                    unmap(scratch, PAGE).must("munmap")?;
                    equal!(probe::try_load(scratch), SIGSEGV, "a page that is gone");
                }
                _ => send(me, others(&mut random))?,
            }
            let other = others(&mut random);
            if probe::try_store(page(other), 1) == 0 {
                STORED[other].fetch_add(1, Relaxed);
            }
            team::await_at_least(&TOKENS[me], round + 1)?;
        }
        team::meet(2)?;
        equal!(TOKENS[me].load(SeqCst), team::scaled(ROUNDS), "wake-ups");
        // SAFETY: the pages stay mapped.
        let count = unsafe { (page(me) as *const u64).read_volatile() };
        equal!(count, STORED[me].load(SeqCst), "stores to a page that others protected");
        all_taken(me)
    })
}

/// Once mprotect has returned, nobody writes to the page any more.
fn still(page: usize) -> Outcome {
    protect(page, PAGE, PROT_READ).must("mprotect")?;
    // SAFETY: the page can be read.
    let look = || unsafe { (page as *const u64).read_volatile() };
    let seen = look();
    for _ in 0..100 {
        core::hint::spin_loop();
        equal!(look(), seen, "a page that nobody may write to");
    }
    protect(page, PAGE, PROT_READ | PROT_WRITE).must("mprotect")
}

fn signals() -> Outcome {
    prepare()?;
    team::run(harts::count().max(2), |me| {
        IDS[me].store(call!(nr::GETTID) as u32, SeqCst);
        team::meet(1)?;
        for round in 0..team::scaled(SIGNALS) {
            for other in (0..team::size()).filter(|other| *other != me) {
                send(me, other)?;
            }
            // Blocked for a while, they wait.
            if round % 16 == 3 {
                let before = signal::block(sigmask(SIGNAL));
                call!(nr::SCHED_YIELD);
                signal::set_mask(before);
            }
        }
        team::meet(2)?;
        all_taken(me)
    })
}

fn wake_ups() -> Outcome {
    static ROUND: AtomicU32 = AtomicU32::new(0);
    static HERE: AtomicU32 = AtomicU32::new(0);
    team::run(harts::count().max(2), |_| {
        for round in 0..team::scaled(WAKE_UPS) {
            // The last to come wakes all others at once.
            if HERE.fetch_add(1, SeqCst) + 1 == (round + 1) * team::size() as u32 {
                ROUND.store(round + 1, SeqCst);
                thread::wake(&ROUND, u32::MAX >> 1);
            } else {
                team::await_at_least(&ROUND, round + 1)?;
            }
        }
        Ok(())
    })?;
    equal!(ROUND.load(SeqCst), team::scaled(WAKE_UPS), "rounds");
    equal!(call!(nr::FUTEX, ROUND.as_ptr(), 1 | FUTEX_PRIVATE_FLAG, 9), 0, "threads that still sleep");
    Ok(())
}

/// Two threads store to one word and load another. The one makes a full barrier for both: not both load zeroes.
fn orders() -> Outcome {
    const TURNS: u32 = 200;
    static WORDS: [[AtomicU32; 32]; 2] = [const { [const { AtomicU32::new(0) }; 32] }; 2];
    static SEEN: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];
    prepare()?;
    team::run(2, |me| {
        // Both go at once, as nearly as that can be done: not by a sleep.
        let spin = |turn: usize| {
            static AT: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
            AT[me].store(turn, SeqCst);
            let end = clock::now() + LOST;
            while AT[1 - me].load(SeqCst) < turn {
                ensure!(clock::now() < end, "another thread is stuck");
            }
            Ok(())
        };
        for turn in 0..team::scaled(TURNS) as usize {
            spin(3 * turn + 1)?;
            WORDS[me][0].store(1, Relaxed);
            core::sync::atomic::compiler_fence(SeqCst);
            if me == 0 {
                equal!(call!(nr::MEMBARRIER, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0), 0, "membarrier");
            }
            SEEN[me].store(WORDS[1 - me][0].load(Relaxed), Relaxed);
            spin(3 * turn + 2)?;
            ensure!(SEEN[0].load(Relaxed) | SEEN[1].load(Relaxed) != 0, "both stores came after both loads");
            spin(3 * turn + 3)?;
            WORDS[me][0].store(0, Relaxed);
        }
        Ok(())
    })
}
