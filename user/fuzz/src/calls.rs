//! Random system calls.

use crate::sandbox;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use kit::check::{Must, Outcome};
use kit::memory::{self, PAGE};
use kit::random::Random;
use kit::uapi::mman::{MAP_ANONYMOUS, MAP_PRIVATE, PROT_NONE, PROT_READ};
use kit::uapi::signal::SIGALRM;
use kit::uapi::{Siginfo, Ucontext, nr};
use kit::{call, raw, signal};
use rt::process;

/// Calls of a child, then the next one starts afresh.
const CALLS: u64 = 250;
/// A child that blocks is ended after this.
const LIMIT: u64 = 60_000_000;

/// The numbers that are not tried: they only end the child.
const SKIPPED: [usize; 2] = [nr::EXIT, nr::EXIT_GROUP];

/// Makes `count` calls in as many children as that takes.
pub fn run(count: u64, seed: u64) -> Outcome {
    // Between pages that nobody can write to: the children's calls write before and behind what they are given.
    let guards = memory::shared(3 * GUARD).must("mmap")?;
    memory::protect(guards, GUARD, PROT_NONE).must("mprotect")?;
    memory::protect(guards + GUARD + PAGE, 2 * GUARD - PAGE, PROT_NONE).must("mprotect")?;
    // SAFETY: the page between the guards is mapped, full of zeroes, and stays until the end of this function.
    let made = unsafe { &*((guards + GUARD) as *const AtomicU64) };
    let (mut children, mut died, mut overdue) = (0_u64, 0_u64, 0_u64);
    while made.load(Relaxed) < count {
        let seed = seed.wrapping_mul(1 << 32).wrapping_add(children);
        match sandbox::child(LIMIT, || hammer(made, seed))? {
            sandbox::End::Exited(_) => {}
            sandbox::End::Died => died += 1,
            sandbox::End::Overdue => overdue += 1,
        }
        sandbox::kill_rest()?;
        children += 1;
        // A child that dies at once, each time, would keep us here.
        if children > 1_000 + count {
            return Err("the children make no calls");
        }
    }
    rt::println!("# {} calls by {children} children: {died} died, {overdue} killed", made.load(Relaxed));
    memory::unmap(guards, 3 * GUARD).must("munmap")
}

extern "C" fn nothing(_: i32, _: *const Siginfo, _: *mut Ucontext) {}

/// What arguments are made of.
struct Pool {
    buffer: usize,
    read_only: usize,
    none: usize,
    files: [i32; 6],
    own: i32,
}

const BUFFER: usize = 16 * PAGE;
const GUARD: usize = 32 * PAGE;

const STRINGS: [&core::ffi::CStr; 12] = [
    c"",
    c"/",
    c".",
    c"..",
    c"a",
    c"b/c",
    c"/dev/zero",
    c"/dev/null",
    c"/proc/self/maps",
    c"/proc/self/fd",
    c"/tmp/fuzz/x",
    c"/no/such/file",
];

fn hammer(made: &AtomicU64, seed: u64) {
    let mut random = Random::new(seed);
    let map = |length, protection| memory::map(0, length, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0).unwrap_or(0);
    let Ok(buffer) = memory::private(BUFFER) else { return };
    let mut pool = Pool {
        buffer,
        read_only: map(PAGE, PROT_READ),
        none: map(PAGE, PROT_NONE),
        files: [0, 1, 2, -1, kit::uapi::open::AT_FDCWD, 63],
        own: process::id(),
    };
    if let Ok((read, write)) = rt::io::pipe() {
        pool.files[3] = read;
        pool.files[5] = write;
    }
    // Calls that wait are interrupted, for as long as the child leaves its timer and handler alone.
    let _ = signal::handle(SIGALRM, nothing, 0);
    signal::timer(500, 500);
    for _ in 0..CALLS {
        scribble(&pool, &mut random);
        let number = if random.below(20) == 0 { random.next() as usize } else { random.below(473) as usize };
        if SKIPPED.contains(&number) {
            continue;
        }
        let arguments = core::array::from_fn(|_| argument(&pool, &mut random));
        made.fetch_add(1, Relaxed);
        raw(number, arguments);
        // A copy of this process made by the call is not to go on with it.
        if call!(nr::GETPID) != pool.own as isize || call!(nr::GETTID) != pool.own as isize {
            call!(nr::EXIT, 0);
        }
    }
}

/// Small numbers, addresses and strings in the buffer, as structures have them.
fn scribble(pool: &Pool, random: &mut Random) {
    for _ in 0..8 {
        let word = random.below(BUFFER as u64 / 8) as usize;
        let value = match random.below(4) {
            0 => random.below(16),
            1 => (pool.buffer + random.below(BUFFER as u64) as usize) as u64,
            2 => random.next(),
            _ => 0,
        };
        // SAFETY: within the buffer; a child that has lost it dies, which is its right.
        unsafe { ((pool.buffer + word * 8) as *mut u64).write_volatile(value) };
    }
}

fn argument(pool: &Pool, random: &mut Random) -> usize {
    let within = |random: &mut Random, bound: usize| random.below(bound as u64) as usize;
    match random.below(16) {
        0 => 0,
        1 => within(random, 16),
        2 => random.pick(&[8, 16, 24, 64, 128, 4096, 0x1_0000, 1 << 31, 1 << 32, usize::MAX, isize::MAX as usize]),
        3 | 4 => random.pick(&pool.files) as isize as usize,
        5 => within(random, 70),
        6 | 7 => pool.buffer + (within(random, BUFFER) & !7),
        8 => pool.buffer + within(random, BUFFER),
        9 => pool.buffer + BUFFER - 1 - within(random, 32),
        10 => random.pick(&[pool.read_only, pool.none, pool.none + PAGE - 4, 1, 0xffff_ffff_8000_0000, 1 << 38]),
        11 => random.pick(&STRINGS).as_ptr() as usize,
        12 => 1 << random.below(33),
        13 => (1_usize << random.below(33)) | (1 << random.below(33)) | within(random, 4),
        14 => random.pick(&[pool.own as usize, (-pool.own) as isize as usize, 1, usize::MAX, 1_000]),
        _ => random.next() as usize,
    }
}
