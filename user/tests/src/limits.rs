//! As many mappings as there may be, and stacks that grow into others.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use kit::check::{Must, Outcome};
use kit::memory::{PAGE, map, peek, poke, private, protect, unmap};
use kit::uapi::mman::{
    MADV_DONTFORK, MAP_ANONYMOUS, MAP_FIXED, MAP_FIXED_NOREPLACE, MAP_GROWSDOWN, MAP_NORESERVE, MAP_PRIVATE,
    MREMAP_FIXED, MREMAP_MAYMOVE, PROT_GROWSDOWN, PROT_NONE, PROT_READ, PROT_WRITE,
};
use kit::uapi::signal::{SA_ONSTACK, SEGV_ACCERR, SEGV_MAPERR, SIGSEGV};
use kit::uapi::{Errno, Siginfo, Ucontext, nr, open};
use kit::{attempt, call, child, clock, ensure, equal, fails, file, probe, signal};
use rt::process::{self, Ended};
use rt::{io, tap::Test};

pub const TESTS: &[Test] = &[
    Test::new("limits/mappings-split-by-mprotect", by_mprotect),
    Test::new("limits/mappings-made-by-mmap", by_mmap),
    Test::new("limits/stack-keeps-its-distance", distance),
    Test::new("limits/stack-overflow-is-a-signal", overflow),
    Test::new("limits/mapping-that-grows-down", grows_down),
];

const RW: u32 = PROT_READ | PROT_WRITE;
const FLAGS: u32 = MAP_PRIVATE | MAP_ANONYMOUS;
/// vm.max_map_count.
const MOST: usize = 65_530;
/// Pages that are kept free below a stack.
const GAP: usize = 256 * PAGE;

/// Mappings of this process.
fn count() -> Result<usize, &'static str> {
    let file = io::open(c"/proc/self/maps", open::O_RDONLY, 0).must("open")?;
    let (mut lines, mut buffer) = (0, [0_u8; 4096]);
    loop {
        let length = io::read(file, &mut buffer).must("read")?;
        if length == 0 {
            break;
        }
        lines += buffer[..length].iter().filter(|byte| **byte == b'\n').count();
    }
    io::close(file).must("close")?;
    Ok(lines)
}

/// Makes mappings that do not join until there are too many; gives how many.
fn fill() -> Result<usize, &'static str> {
    for made in 0.. {
        let prot = if made % 2 == 0 { RW } else { PROT_READ };
        match map(0, PAGE, prot, FLAGS, -1, 0) {
            Ok(_) => {}
            Err(Errno::ENOMEM) => return Ok(made),
            Err(error) => return Err(error).must("mmap"),
        }
    }
    Err("there is no end")
}

/// A moment in which a program's memory is given back, though it be in very many pieces.
fn soon(start: u64) -> Outcome {
    ensure!(clock::now() - start < 30_000_000_000, "it takes long");
    Ok(())
}

/// Each second page of a large mapping gets other rights, until there are too many mappings; then what can and what
/// cannot be done with so many.
fn by_mprotect() -> Outcome {
    let before = count()?;
    let pages = 80_000;
    let base = map(0, pages * PAGE, RW, FLAGS | MAP_NORESERVE, -1, 0).must("mmap")?;
    let at = |page: usize| base + page * PAGE;
    (0..pages).step_by(997).for_each(|page| poke(at(page), 5));
    let mut last = 1;
    while protect(at(last), PAGE, PROT_READ).is_ok() {
        last += 2;
    }
    fails!(call!(nr::MPROTECT, at(last), PAGE, PROT_READ), ENOMEM, "mprotect");
    // A page makes two mappings more, the large one counts for the first.
    ensure!((MOST - 1..=MOST).contains(&(before + last)), "mappings that mprotect has made");
    fill()?;
    equal!(count()?, MOST + 1, "mappings at the most");
    let rest = at(last + 100);
    fails!(call!(nr::MUNMAP, rest, PAGE), ENOMEM, "munmap in the middle");
    fails!(call!(nr::MPROTECT, rest, PAGE, PROT_NONE), ENOMEM, "mprotect in the middle");
    fails!(call!(nr::MADVISE, rest, PAGE, MADV_DONTFORK), EAGAIN, "madvise in the middle");
    let fixed = |page: usize| map(at(page), PAGE, PROT_NONE, FLAGS | MAP_FIXED, -1, 0).err();
    equal!(fixed(4), Some(Errno::ENOMEM), "a mapping in the place of another");
    let remap = |page: usize| attempt!(nr::MREMAP, at(page), PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at(pages - 9));
    equal!(remap(3).err(), Some(Errno::ENOMEM), "a move");
    let heap = call!(nr::BRK, 0);
    equal!(call!(nr::BRK, heap + PAGE as isize), heap, "the heap");
    // What makes none more goes on.
    unmap(at(pages - 1), PAGE).must("munmap at the end")?;
    protect(rest, 1, RW).must("mprotect of what is so already")?;
    equal!(attempt!(nr::MREMAP, at(pages - 2), PAGE, 2 * PAGE, 0, 0), Ok(at(pages - 2)), "growing in place");
    unmap(at(1), PAGE).must("munmap of a whole one")?;
    equal!(fixed(4), None, "a mapping in the place of another, with one fewer");
    fails!(call!(nr::MUNMAP, rest, PAGE), ENOMEM, "munmap in the middle, with one fewer");
    equal!(probe::store(at(997)).is_some(), true, "a store to a page to read");
    equal!((peek(at(997)), peek(at(997 * 2)), peek(at(997 * 3 + 1))), (5, 5, 0), "contents");
    let start = clock::now();
    child::pass(|| {
        equal!((peek(at(997)), peek(at(997 * 2))), (5, 5), "contents in a child");
        poke(at(997 * 2), 6);
        Ok(())
    })?;
    equal!(peek(at(997 * 2)), 5, "contents beside a child");
    unmap(base, pages * PAGE).must("munmap")?;
    soon(start)
}

fn by_mmap() -> Outcome {
    let before = count()?;
    let start = clock::now();
    equal!(before + fill()?, MOST + 1, "mappings at the most");
    child::pass(|| Ok(()))?;
    // As large as they were together, they are gone at once.
    let lowest = lowest()?;
    let end = lowest + (MOST - before) * PAGE;
    unmap(lowest, end - lowest).must("munmap")?;
    soon(start)
}

/// The lowest of the pages that [`fill`] has mapped, each below the one before.
fn lowest() -> Result<usize, &'static str> {
    let last = private(PAGE);
    equal!(last.err(), Some(Errno::ENOMEM), "one more");
    let mut buffer = [0; 4096];
    let text = file::text(c"/proc/self/maps", &mut buffer).must("maps")?;
    // The program's own mappings come first, each with a name.
    let line = text.lines().find(|line| line.trim_end().ends_with(" 0")).ok_or("no mapping without a name")?;
    let (start, _) = line.split_once('-').ok_or("a line of maps")?;
    usize::from_str_radix(start, 16).map_err(|_| "a line of maps")
}

fn stack_page() -> usize {
    let here = 0_u8;
    (&raw const here).addr() & !(PAGE - 1)
}

fn distance() -> Outcome {
    let top = stack_page();
    for (prot, gap, code) in [(RW, GAP, SEGV_MAPERR), (PROT_READ, GAP, SEGV_MAPERR), (PROT_NONE, 0, SEGV_ACCERR)] {
        child::pass(|| {
            let below = top - (4 << 20);
            map(below, PAGE, prot, FLAGS | MAP_FIXED_NOREPLACE, -1, 0).must("mmap")?;
            let mut lowest = top;
            while lowest > below + PAGE && probe::store(lowest - PAGE).is_none() {
                lowest -= PAGE;
            }
            equal!(lowest - below - PAGE, gap, "bytes between the stack and a mapping");
            let fault = probe::store(lowest - PAGE).map(|fault| (fault.signal, fault.code));
            equal!(fault, Some((SIGSEGV, code)), "the fault below");
            if gap == 0 {
                return Ok(());
            }
            let hinted = map(lowest - 16 * PAGE, PAGE, RW, FLAGS, -1, 0).must("mmap")?;
            ensure!(!(lowest - GAP..lowest).contains(&hinted), "a hint is followed into the gap");
            // Who insists gets it, and the stack grows no more.
            let fixed = map(lowest - 16 * PAGE, PAGE, RW, FLAGS | MAP_FIXED_NOREPLACE, -1, 0);
            equal!(fixed, Ok(lowest - 16 * PAGE), "a fixed address in the gap");
            ensure!(probe::store(lowest - PAGE).is_some(), "a stack that grows towards it");
            Ok(())
        })?;
    }
    Ok(())
}

core::arch::global_asm!(
    ".globl tests_overflow",
    "tests_overflow:", // uses up the stack
    "addi sp, sp, -1024",
    "sd zero, 0(sp)",
    "j tests_overflow",
);

unsafe extern "C" {
    fn tests_overflow() -> !;
}

const ALTERNATE: usize = 8 * PAGE;
static PLACE: AtomicUsize = AtomicUsize::new(0);

/// Ends the process with the number of MiB between the fault and where the stack began, if it runs on the alternate
/// stack.
extern "C" fn overflown(_: i32, info: *const Siginfo, _: *mut Ucontext) {
    let (here, place) = (stack_page(), PLACE.load(Relaxed));
    // SAFETY: the kernel passes it.
    let address = unsafe { (*info).addr() };
    let on_alternate = (place..place + ALTERNATE).contains(&here);
    process::exit(if on_alternate { (BEGAN.load(Relaxed) - address).div_ceil(1 << 20) as u8 } else { 100 });
}

static BEGAN: AtomicUsize = AtomicUsize::new(0);

fn overflow() -> Outcome {
    let top = stack_page();
    BEGAN.store(top, Relaxed);
    // SAFETY: the process ends by it.
    let ended = child::end(|| unsafe { tests_overflow() })?;
    equal!(ended, Ended::Killed(SIGSEGV as u8), "without another stack");
    let below = top - (5 << 20) - GAP;
    for wall in [false, true] {
        let ended = child::end(|| {
            PLACE.store(private(ALTERNATE).must("mmap")?, Relaxed);
            signal::alternate_stack(PLACE.load(Relaxed), ALTERNATE, 0).must("sigaltstack")?;
            signal::handle(SIGSEGV, overflown, SA_ONSTACK).must("sigaction")?;
            if wall {
                map(below, PAGE, RW, FLAGS | MAP_FIXED_NOREPLACE, -1, 0).must("mmap")?;
            }
            // SAFETY: the handler ends the process.
            unsafe { tests_overflow() }
        })?;
        // The limit is 8 MiB, of which the arguments and what runs already have a little.
        equal!(ended, Ended::Exited(if wall { 5 } else { 8 }), "MiB of stack, with another stack for the signal");
    }
    Ok(())
}

fn grows_down() -> Outcome {
    let room = private(2_000 * PAGE).must("mmap")?;
    unmap(room, 2_000 * PAGE).must("munmap")?;
    let at = room + 1_500 * PAGE;
    map(at, PAGE, RW, FLAGS | MAP_GROWSDOWN | MAP_FIXED_NOREPLACE, -1, 0).must("mmap")?;
    for step in [1, 5, 100, 900] {
        equal!(probe::store(at - step * PAGE), None, "a store below");
    }
    equal!(peek(at - 899 * PAGE), 0, "a page that it grew by");
    let below = map(at - 1_300 * PAGE, PAGE, RW, FLAGS | MAP_FIXED_NOREPLACE, -1, 0).must("mmap")?;
    equal!(probe::store(below + PAGE + GAP), None, "a store that leaves the gap");
    ensure!(probe::store(below + GAP).is_some(), "a store into the gap");
    protect(at, PAGE, PROT_READ | PROT_GROWSDOWN).must("mprotect")?;
    ensure!(probe::store(at - 3 * PAGE).is_some(), "rights of all that it grew by");
    Ok(())
}
