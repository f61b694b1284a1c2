//! Integer registers: a call changes a0 and nothing else, whatever happens meanwhile; preemption, faults and signals
//! change nothing.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use kit::check::{Must, Outcome};
use kit::random::Random;
use kit::registers::{self, A0, A1, A7, Integers, SP, checked_call};
use kit::thread;
use kit::uapi::clone::{CLONE_SETTLS, CLONE_VFORK, CLONE_VM};
use kit::uapi::signal::{SIGALRM, SIGCHLD, SIGUSR1};
use kit::uapi::{Siginfo, Timespec, Ucontext, nr, open};
use kit::{call, child, clock, ensure, equal, memory, signal};
use rt::io;
use rt::process;
use rt::tap::Test;

pub const TESTS: &[Test] = &[
    Test::new("registers/fast-calls", fast_calls),
    Test::new("registers/blocking-calls", blocking_calls),
    Test::new("registers/two-programs-with-different-gp", different_gp),
    Test::new("registers/preempted", preempted),
    Test::new("registers/signals-in-a-loop", signals_in_a_loop),
    Test::new("registers/signals-during-calls", signals_during_calls),
    Test::new("registers/a-handler-may-change-all-in-its-frame", changed_by_handler),
    Test::new("registers/page-faults", page_faults),
    Test::new("registers/fork-child", fork_child),
    Test::new("registers/clone-and-vfork-children", clone_children),
    Test::new("registers/blocked-while-others-fault-in-copies", copies_and_blocking),
];

fn fast_calls() -> Outcome {
    let mut random = Random::new(1);
    let zero = io::open(c"/dev/zero", open::O_RDONLY, 0).must("open /dev/zero")?;
    let mut bytes = [1_u8; 32];
    for _ in 0..500 {
        equal!(checked_call(&mut random, nr::GETPID, &[])?, process::id() as isize, "getpid");
        let arguments = [zero as usize, bytes.as_mut_ptr() as usize, bytes.len()];
        equal!(checked_call(&mut random, nr::READ, &arguments)?, 32, "read");
        equal!(checked_call(&mut random, nr::READ, &[zero as usize, 8, 8])?, -14, "read to a bad address");
        equal!(checked_call(&mut random, nr::SCHED_YIELD, &[])?, 0, "sched_yield");
        equal!(checked_call(&mut random, nr::CLOSE, &[usize::MAX])?, -9, "close of nothing");
        for number in [511, 9_999, usize::MAX, isize::MIN.cast_unsigned(), 1 << 32, 38, 244, 295] {
            equal!(checked_call(&mut random, number, &[])?, -38, "a call that does not exist");
        }
    }
    Ok(())
}

fn blocking_calls() -> Outcome {
    let mut random = Random::new(2);
    let pause = Timespec::from_ns(2_000_000);
    let (read, write) = io::pipe().must("pipe")?;
    let writer = child::start(|| {
        for _ in 0..20 {
            clock::sleep(3_000_000);
            io::write(write, b"x").must("write")?;
        }
        Ok(())
    })?;
    let mut byte = 0_u8;
    for _ in 0..20 {
        equal!(checked_call(&mut random, nr::READ, &[read as usize, &raw mut byte as usize, 1])?, 1, "blocking read");
        equal!(byte, b'x', "the byte");
        equal!(checked_call(&mut random, nr::NANOSLEEP, &[&raw const pause as usize, 0])?, 0, "nanosleep");
    }
    child::finish(writer)?;
    let quick = child::start(|| Ok(()))?;
    let mut status = 0_u32;
    let arguments = [quick as usize, &raw mut status as usize, 0, 0];
    equal!(checked_call(&mut random, nr::WAIT4, &arguments)?, quick as isize, "wait4");
    Ok(())
}

/// Each side has a gp, tp and everything else of its own, and the two are switched at every byte.
fn different_gp() -> Outcome {
    let (there_read, there_write) = io::pipe().must("pipe")?;
    let (back_read, back_write) = io::pipe().must("pipe")?;
    let rounds = 1_000;
    let side = |seed: u64, read: i32, write: i32, first: bool| -> Outcome {
        let mut random = Random::new(seed);
        let mut byte = 7_u8;
        let address = &raw mut byte as usize;
        for _ in 0..rounds {
            if first {
                equal!(checked_call(&mut random, nr::WRITE, &[write as usize, address, 1])?, 1, "write");
            }
            equal!(checked_call(&mut random, nr::READ, &[read as usize, address, 1])?, 1, "read");
            if !first {
                equal!(checked_call(&mut random, nr::WRITE, &[write as usize, address, 1])?, 1, "write");
            }
        }
        Ok(())
    };
    let other = child::start(|| side(3, there_read, back_write, false))?;
    side(4, back_read, there_write, true)?;
    child::finish(other)
}

/// Children that do nothing but count, so that the scheduler has to take the hart away; killed with the test's group.
pub fn compete(children: usize) -> Outcome {
    for _ in 0..children {
        child::start(|| {
            let mut given = registers::pattern(&mut Random::new(99));
            loop {
                given[A7] = 1 << 20;
                registers::spin(&mut given);
            }
        })?;
    }
    Ok(())
}

fn spin(random: &mut Random, rounds: u64) -> Outcome {
    let mut given = registers::pattern(random);
    given[A7] = rounds;
    let left = registers::spin(&mut given);
    ensure!(registers::difference(&given, &left, &[A7]) == 0, "a register changed in a loop");
    equal!(left[A7], 0, "the counter");
    Ok(())
}

fn preempted() -> Outcome {
    compete(4)?;
    let mut random = Random::new(5);
    let start = clock::now();
    while clock::now() - start < 300_000_000 {
        spin(&mut random, 1_000_000)?;
    }
    Ok(())
}

static TAKEN: AtomicU32 = AtomicU32::new(0);

/// A handler that leaves rubbish in every register it may, and in those that it must keep until it restores them.
extern "C" fn rubbish(_: i32, _: *const Siginfo, _: *mut Ucontext) {
    TAKEN.fetch_add(1, Relaxed);
    let mut given = registers::pattern(&mut Random::new(u64::from(TAKEN.load(Relaxed)) + 1000));
    given[A7] = 1;
    registers::spin(&mut given);
    call!(nr::GETPPID);
}

fn signals_in_a_loop() -> Outcome {
    signal::handle(SIGALRM, rubbish, 0).must("sigaction")?;
    signal::timer(1_000, 1_000);
    let mut random = Random::new(6);
    let limit = clock::now() + 10_000_000_000;
    while TAKEN.load(Relaxed) < 50 {
        ensure!(clock::now() < limit, "too few signals");
        spin(&mut random, 300_000)?;
    }
    signal::timer(0, 0);
    Ok(())
}

fn signals_during_calls() -> Outcome {
    signal::handle(SIGUSR1, rubbish, 0).must("sigaction")?;
    signal::handle(SIGALRM, rubbish, 0).must("sigaction")?;
    let mut random = Random::new(7);
    let own = [process::id() as usize, call!(nr::GETTID) as usize, SIGUSR1 as usize];
    for round in 1..=200 {
        equal!(checked_call(&mut random, nr::TGKILL, &own)?, 0, "tgkill");
        equal!(TAKEN.load(Relaxed), round, "handlers run before the call returns");
    }
    let (read, _write) = io::pipe().must("pipe")?;
    let long = Timespec::from_ns(60_000_000_000);
    let mut byte = 0_u8;
    for _ in 0..10 {
        signal::timer(2_000, 0);
        let arguments = [read as usize, &raw mut byte as usize, 1];
        equal!(checked_call(&mut random, nr::READ, &arguments)?, -4, "a read that a signal ends");
        signal::timer(2_000, 0);
        equal!(
            checked_call(&mut random, nr::NANOSLEEP, &[&raw const long as usize, 0])?,
            -4,
            "a sleep that a signal ends"
        );
    }
    Ok(())
}

/// Adds its number to every register in the frame but sp and the stack's own.
extern "C" fn change_all(_: i32, _: *const Siginfo, context: *mut Ucontext) {
    // SAFETY: the frame is ours until we return.
    let registers = unsafe { &mut (*context).uc_mcontext.gregs };
    for (index, word) in registers.iter_mut().enumerate().filter(|(index, _)| *index != 0 && *index != SP) {
        *word = word.wrapping_add(index as u64);
    }
}

/// rt_sigreturn loads what the frame holds, callee-saved registers and gp too.
fn changed_by_handler() -> Outcome {
    signal::handle(SIGUSR1, change_all, 0).must("sigaction")?;
    let mut random = Random::new(20);
    let own = [process::id() as usize, call!(nr::GETTID) as usize, SIGUSR1 as usize];
    for _ in 0..20 {
        let mut given = registers::call_pattern(&mut random, nr::TGKILL, &own);
        let left = registers::call(&mut given);
        given[A0] = 0;
        for (index, word) in given.iter_mut().enumerate().filter(|(index, _)| *index != SP) {
            *word = word.wrapping_add(index as u64);
        }
        ensure!(registers::difference(&given, &left, &[]) == 0, "a register is not what the handler left in the frame");
    }
    Ok(())
}

fn page_faults() -> Outcome {
    let mut random = Random::new(8);
    let pages = 256;
    let base = memory::private(pages * memory::PAGE).must("mmap")?;
    for page in 0..pages {
        let mut given = registers::pattern(&mut random);
        given[A1] = (base + page * memory::PAGE + 17) as u64;
        let left = registers::store(&mut given);
        ensure!(registers::difference(&given, &left, &[]) == 0, "a fault changed a register");
    }
    Ok(())
}

fn fork_child() -> Outcome {
    let mut random = Random::new(9);
    for _ in 0..10 {
        let mut given = registers::call_pattern(&mut random, nr::CLONE, &[SIGCHLD as usize, 0, 0, 0, 0]);
        let left = registers::call(&mut given);
        if left[A0] == 0 {
            process::exit(u8::from(registers::difference(&given, &left, &[A0]) != 0));
        }
        ensure!(registers::difference(&given, &left, &[A0]) == 0, "clone changed a register of the parent");
        child::finish(left[A0] as i32)?;
    }
    Ok(())
}

/// Children on a stack of their own get the caller's registers but for a0, sp and, if asked for, tp.
fn clone_children() -> Outcome {
    const STACK: usize = 4 * memory::PAGE;
    let mut random = Random::new(10);
    let found = memory::shared(memory::PAGE).must("mmap")? as *mut Integers;
    let kinds: [u64; 5] = [0, CLONE_SETTLS, CLONE_VM, CLONE_VM | CLONE_VFORK, CLONE_VM | CLONE_VFORK | CLONE_SETTLS];
    for flags in kinds.map(|kind| kind | u64::from(SIGCHLD)) {
        let base = memory::private(STACK).must("mmap")?;
        let stack = base + STACK - 64;
        // What `registers::call` looks for above the stack pointer: where to leave the registers, and not to return.
        let words = stack as *mut usize;
        // SAFETY: the words lie in the mapping.
        unsafe {
            words.add(1).write(found as usize);
            words.add(2).write(1);
        }
        let tls = random.next() as usize;
        let mut given = registers::call_pattern(&mut random, nr::CLONE, &[flags as usize, stack, 0, tls, 0]);
        let left = registers::call(&mut given);
        ensure!(registers::difference(&given, &left, &[A0]) == 0, "clone changed a register of the parent");
        child::finish(left[A0] as i32)?;
        given[SP] = stack as u64;
        given[A0] = 0;
        if flags & CLONE_SETTLS != 0 {
            given[registers::TP] = tls as u64;
        }
        // SAFETY: the child has written them and is gone.
        let seen = unsafe { found.read_volatile() };
        ensure!(registers::difference(&given, &seen, &[]) == 0, "a child's register");
    }
    Ok(())
}

static STOP: AtomicU32 = AtomicU32::new(0);

/// Fills fresh pages through read(2), so that the kernel's copy faults on each.
extern "C" fn copy_into_fresh_pages(file: usize) -> usize {
    let mut random = Random::new(12);
    let length = 64 * memory::PAGE;
    while STOP.load(Relaxed) == 0 {
        let Ok(base) = memory::private(length) else { return 1 };
        if checked_call(&mut random, nr::READ, &[file, base + 1, length - 1]) != Ok(length as isize - 1) {
            STOP.store(2, Relaxed);
            return 1;
        }
        let _ = memory::unmap(base, length);
    }
    0
}

/// Some tasks wait in calls on the fast path while others are taken off the hart in the middle of copies that fault.
fn copies_and_blocking() -> Outcome {
    compete(2)?;
    let zero = io::open(c"/dev/zero", open::O_RDONLY, 0).must("open")?;
    let copiers = [(); 3].map(|()| thread::Thread::start(copy_into_fresh_pages, zero as usize));
    let (there_read, there_write) = io::pipe().must("pipe")?;
    let (back_read, back_write) = io::pipe().must("pipe")?;
    let echo = child::start(|| {
        let _ = io::close(there_write);
        let mut random = Random::new(13);
        let mut byte = 0_u8;
        while checked_call(&mut random, nr::READ, &[there_read as usize, &raw mut byte as usize, 1])? == 1 {
            checked_call(&mut random, nr::WRITE, &[back_write as usize, &raw const byte as usize, 1])?;
        }
        Ok(())
    })?;
    let mut random = Random::new(14);
    let end = clock::now() + 500_000_000;
    let mut byte = 5_u8;
    while clock::now() < end {
        equal!(checked_call(&mut random, nr::WRITE, &[there_write as usize, &raw const byte as usize, 1])?, 1, "write");
        equal!(checked_call(&mut random, nr::READ, &[back_read as usize, &raw mut byte as usize, 1])?, 1, "read");
    }
    let failed = STOP.swap(1, Relaxed) == 2;
    for copier in copiers {
        copier.must("thread")?.join();
    }
    ensure!(!failed, "a copy into fresh pages failed or changed a register");
    io::close(there_write).must("close")?;
    child::finish(echo)
}
