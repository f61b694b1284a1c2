//! What an interrupt's handler looks at while the kernel lets interrupts in in the middle of a long call: the sizes of the
//! very memory that the call has locked.

use crate::team;
use core::sync::atomic::{AtomicU32, Ordering::SeqCst};
use kit::check::{Must, Outcome};
use kit::memory::{PAGE, map, poke, unmap};
use kit::uapi::mman::{MAP_ANONYMOUS, MAP_POPULATE, MAP_PRIVATE, PROT_READ, PROT_WRITE};
use kit::uapi::signal::{SIG_IGN, SIGALRM, SIGPROF, SIGVTALRM, Sigaction};
use kit::uapi::{Itimerval, Timeval, nr, time};
use kit::{call, child, equal, harts, signal};
use rt::tap::Test;

pub const TESTS: &[Test] = &[
    Test::new("windows/timers-of-running-time", || storm(1)),
    Test::new("windows/timers-of-running-time-of-many-threads", || storm(harts::count().max(2))),
    Test::new("windows/usage-is-asked-for", asked),
];

const ROUNDS: u32 = 20;
/// Enough that a call lets interrupts in many times.
const LENGTH: usize = 1024 * PAGE;

fn timers() -> Outcome {
    let ignore = Sigaction { handler: SIG_IGN, ..Sigaction::default() };
    for number in [SIGALRM, SIGVTALRM, SIGPROF] {
        signal::set(number, ignore).must("sigaction")?;
    }
    let often = Timeval { tv_sec: 0, tv_usec: 100 };
    let value = Itimerval { it_interval: often, it_value: often };
    for kind in [time::ITIMER_REAL, time::ITIMER_VIRTUAL, time::ITIMER_PROF] {
        equal!(call!(nr::SETITIMER, kind, &raw const value, 0), 0, "setitimer");
    }
    Ok(())
}

/// Memory that comes, is shared with a child, and goes, in calls that take long.
fn busy(me: usize) -> Outcome {
    for round in 0..team::scaled(ROUNDS) {
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | if round % 2 == 0 { MAP_POPULATE } else { 0 };
        let base = map(0, LENGTH, PROT_READ | PROT_WRITE, flags, -1, 0).must("mmap")?;
        (base..base + LENGTH).step_by(PAGE).for_each(|at| poke(at, me as u8));
        if round % 4 == 0 {
            child::pass(|| Ok(()))?;
        }
        unmap(base, LENGTH).must("munmap")?;
    }
    Ok(())
}

fn storm(threads: usize) -> Outcome {
    child::pass(|| {
        timers()?;
        team::run(threads, busy)
    })
}

/// Others ask how much a process has used while it changes its memory.
fn asked() -> Outcome {
    let asker = |process: i32, stop: &AtomicU32| -> Outcome {
        let mut buffer = [0; 4096];
        while stop.load(SeqCst) == 0 {
            let path = path(process);
            for name in [c"stat", c"status", c"statm", c"maps"] {
                let mut full = [0; 64];
                let len = join(&mut full, &path, name.to_bytes());
                let full = core::ffi::CStr::from_bytes_until_nul(&full[..=len]).map_err(|_| "a path")?;
                let _ = kit::file::text(full, &mut buffer);
            }
        }
        Ok(())
    };
    let stop = kit::memory::shared_value::<AtomicU32>().must("mmap")?;
    let worker = child::start(|| {
        timers()?;
        team::run(2, busy)
    })?;
    let mut askers = [0; 2];
    for child in &mut askers {
        *child = child::start(|| asker(worker, stop))?;
    }
    child::finish(worker)?;
    stop.store(1, SeqCst);
    askers.into_iter().try_for_each(child::finish)?;
    Ok(())
}

/// `/proc/PID/`, with zeroes behind it.
fn path(process: i32) -> [u8; 32] {
    let mut digits = [0; 12];
    let mut at = digits.len();
    let mut rest = process;
    while rest > 0 {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let mut path = [0; 32];
    let len = join(&mut path, b"/proc/", &digits[at..]);
    path[len] = b'/';
    path
}

/// Puts `first`, up to its first zero, and `second` into `out`; gives the length.
fn join(out: &mut [u8], first: &[u8], second: &[u8]) -> usize {
    let mut len = 0;
    for byte in first.iter().take_while(|byte| **byte != 0).chain(second) {
        out[len] = *byte;
        len += 1;
    }
    len
}
