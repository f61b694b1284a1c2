//! Code that one hart stores and another runs: what runs is what was stored last.

use crate::team;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use kit::check::{Must, Outcome};
use kit::memory::{PAGE, map, protect, unmap};
use kit::uapi::mman::{MAP_ANONYMOUS, MAP_FIXED_NOREPLACE, MAP_PRIVATE, PROT_EXEC, PROT_READ, PROT_WRITE};
use kit::uapi::nr;
use kit::vdso::Vdso;
use kit::{call, equal, harts};
use rt::tap::Test;

pub const TESTS: &[Test] = &[
    Test::new("code/flushed-by-the-call", || rounds(Way::Call)),
    Test::new("code/flushed-by-the-vdso", || rounds(Way::Vdso)),
    Test::new("code/written-then-executable", || rounds(Way::Protect)),
    Test::new("code/in-new-pages-at-the-same-address", || rounds(Way::NewPages)),
];

const ROUNDS: u32 = 200;

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Call,
    Vdso,
    Protect,
    NewPages,
}

type Flush = extern "C" fn(usize, usize, usize) -> isize;

static FLUSH: AtomicUsize = AtomicUsize::new(0);
static WAY: AtomicUsize = AtomicUsize::new(0);
static PLACE: AtomicUsize = AtomicUsize::new(0);
/// Rounds written, and run.
static WRITTEN: AtomicU32 = AtomicU32::new(0);
static RUN: AtomicU32 = AtomicU32::new(0);

/// Finds the vDSO's function.
pub fn remember(args: rt::Args) {
    let found = Vdso::find(args).and_then(|vdso| vdso.function(c"__vdso_flush_icache"));
    FLUSH.store(found.unwrap_or(0), SeqCst);
}

const RW: u32 = PROT_READ | PROT_WRITE;
const FLAGS: u32 = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;

fn rounds(way: Way) -> Outcome {
    WAY.store(way as usize, SeqCst);
    let prot = if matches!(way, Way::Call | Way::Vdso) { RW | PROT_EXEC } else { RW };
    PLACE.store(map(0, PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0).must("mmap")?, SeqCst);
    equal!(way == Way::Vdso && FLUSH.load(SeqCst) == 0, false, "the vDSO has no function to flush");
    team::run(2, |me| if me == 0 { write() } else { run() })
}

/// Stores a function, different each time.
fn write() -> Outcome {
    let (place, way) = (PLACE.load(SeqCst), WAY.load(SeqCst));
    for round in 0..team::scaled(ROUNDS) {
        if way == Way::NewPages as usize && round > 0 {
            unmap(place, PAGE).must("munmap")?;
            equal!(map(place, PAGE, RW, FLAGS, -1, 0).must("mmap")?, place, "the same address");
        } else if way == Way::Protect as usize && round > 0 {
            protect(place, PAGE, RW).must("mprotect")?;
        }
        // lui a0, round; addi a0, a0, round & 0x7ff; ret
        let words = [0x0000_0537 | round << 12, 0x0005_0513 | (round & 0x7ff) << 20, 0x0000_8067];
        // SAFETY: the page is mapped and nobody runs it now.
        unsafe { (place as *mut [u32; 3]).write_volatile(words) };
        if way == Way::Vdso as usize {
            // SAFETY: the symbol is a function of this type.
            let flush = unsafe { core::mem::transmute::<usize, Flush>(FLUSH.load(SeqCst)) };
            equal!(flush(place, place + 12, 0), 0, "__vdso_flush_icache");
        } else {
            equal!(call!(nr::RISCV_FLUSH_ICACHE, place, place + 12, 0), 0, "riscv_flush_icache");
        }
        if way == Way::Protect as usize || way == Way::NewPages as usize {
            protect(place, PAGE, PROT_READ | PROT_EXEC).must("mprotect")?;
        }
        team::tell(&WRITTEN, round + 1);
        team::await_at_least(&RUN, round + 1)?;
    }
    Ok(())
}

/// Runs it, now and then on another hart.
fn run() -> Outcome {
    let place = PLACE.load(SeqCst);
    let all = harts::count();
    for round in 0..team::scaled(ROUNDS) {
        team::await_at_least(&WRITTEN, round + 1)?;
        if round % 50 == 49 && all > 2 {
            harts::allow(1 << (1 + round as usize / 50 % (all - 1))).must("sched_setaffinity")?;
        }
        // SAFETY: the page holds a function of that type.
        let function = unsafe { core::mem::transmute::<usize, extern "C" fn() -> u64>(place) };
        equal!(function(), u64::from((round << 12) + (round & 0x7ff)), "what the function returns");
        team::tell(&RUN, round + 1);
    }
    Ok(())
}
