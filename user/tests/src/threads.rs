//! Threads and futexes.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use kit::check::{Must, Outcome};
use kit::thread::{self, Thread};
use kit::uapi::clone::{
    CLONE_CHILD_SETTID, CLONE_FILES, CLONE_FS, CLONE_PARENT_SETTID, CLONE_SIGHAND, CLONE_THREAD, CLONE_VM,
};
use kit::uapi::futex::{
    FUTEX_CMP_REQUEUE, FUTEX_OWNER_DIED, FUTEX_TID_MASK, FUTEX_WAIT, FUTEX_WAIT_BITSET, FUTEX_WAITERS,
    FUTEX_WAKE_BITSET, FUTEX_WAKE_OP,
};
use kit::uapi::signal::SIGCHLD;
use kit::uapi::{CloneArgs, Errno, RobustListHead, Timespec, nr, open};
use kit::{call, child, clock, ensure, equal, fails, memory, signal};
use rt::process::{self, Ended};
use rt::{io, tap::Test};

pub const TESTS: &[Test] = &[
    Test::new("threads/start-share-and-join", share),
    Test::new("threads/tls-in-tp", tls),
    Test::new("threads/identities", identities),
    Test::new("threads/thread-exit-is-not-process-exit", exits),
    Test::new("threads/signal-to-one-thread", one_signal),
    Test::new("threads/clone-flags", clone_flags),
    Test::new("threads/clone3", clone3),
    Test::new("threads/files-and-directory-shared-or-not", shared_tables),
    Test::new("threads/futex-wait-and-wake", wait_wake),
    Test::new("threads/futex-times-out", times_out),
    Test::new("threads/futex-bitset", bitset),
    Test::new("threads/futex-requeue", requeue),
    Test::new("threads/futex-wake-op", wake_op),
    Test::new("threads/futex-between-processes", between),
    Test::new("threads/robust-list", robust),
    Test::new("threads/many", many),
];

static SUM: AtomicUsize = AtomicUsize::new(0);
static GATE: AtomicU32 = AtomicU32::new(0);
static WOKEN: AtomicU32 = AtomicU32::new(0);

extern "C" fn add(value: usize) -> usize {
    SUM.fetch_add(value, SeqCst);
    0
}

fn share() -> Outcome {
    for round in 1..20 {
        let threads = [1, 10, 100].map(|value| Thread::start(add, value));
        for thread in threads {
            thread.must("thread")?.join();
        }
        equal!(SUM.load(SeqCst), 111 * round, "the sum");
    }
    Ok(())
}

extern "C" fn read_tp(place: usize) -> usize {
    let tp: usize;
    for _ in 0..100 {
        call!(nr::SCHED_YIELD);
    }
    // SAFETY: reads a register; the place is the test's.
    unsafe {
        core::arch::asm!("mv {}, tp", out(reg) tp, options(nomem, nostack));
        (*(place as *const AtomicUsize)).store(tp, SeqCst);
    }
    0
}

fn tls() -> Outcome {
    let places = [const { AtomicUsize::new(0) }; 4];
    let start = |index: usize| {
        Thread::start_with_tls(read_tp, (&raw const places[index]).expose_provenance(), 0x1234_5678_0000 + index)
    };
    for thread in [0, 1, 2, 3].map(start) {
        thread.must("thread")?.join();
    }
    for (index, place) in places.iter().enumerate() {
        equal!(place.load(SeqCst), 0x1234_5678_0000 + index, "tp of a thread");
    }
    Ok(())
}

extern "C" fn tell(_: usize) -> usize {
    SUM.store(call!(nr::GETTID) as usize * 1_000_000 + process::id() as usize, SeqCst);
    0
}

fn identities() -> Outcome {
    let thread = Thread::start(tell, 0).must("thread")?;
    let id = thread.id as usize;
    thread.join();
    equal!(SUM.load(SeqCst), id * 1_000_000 + process::id() as usize, "numbers of thread and process");
    ensure!(id != process::id() as usize, "a number of its own");
    equal!(call!(nr::GETTID), process::id() as isize, "the first thread");
    Ok(())
}

extern "C" fn long(_: usize) -> usize {
    clock::sleep(20_000_000);
    SUM.store(5, SeqCst);
    call!(nr::EXIT_GROUP, 44);
    0
}

fn exits() -> Outcome {
    let ended = child::end(|| {
        Thread::start(long, 0).must("thread")?;
        call!(nr::EXIT, 3);
        Err("exit returned")
    })?;
    equal!(ended, Ended::Exited(44), "the first thread went, the second ended the process");
    let ended = child::end(|| {
        (0..20).try_for_each(|_| Thread::start(add, 1).map(Thread::join)).must("thread")?;
        call!(nr::EXIT, 3);
        Err("exit returned")
    })?;
    equal!(
        ended,
        Ended::Exited(3),
        "the status of the last to exit, though the one that was joined may still be going"
    );
    Ok(())
}

extern "C" fn handled(_: i32, _: *const kit::uapi::Siginfo, _: *mut kit::uapi::Ucontext) {
    WOKEN.store(call!(nr::GETTID) as u32, SeqCst);
}

extern "C" fn wait_for_gate(_: usize) -> usize {
    while GATE.load(SeqCst) == 0 {
        let _ = thread::wait(&GATE, 0, None);
    }
    0
}

fn one_signal() -> Outcome {
    use kit::uapi::signal::SIGUSR1;
    signal::handle(SIGUSR1, handled, 0).must("sigaction")?;
    let threads = [0, 1, 2].map(|_| Thread::start(wait_for_gate, 0).must("thread"));
    for thread in &threads {
        let id = thread.as_ref().map_err(|reason| *reason)?.id;
        equal!(call!(nr::TGKILL, process::id(), id, SIGUSR1), 0, "tgkill");
        let limit = clock::now() + 5_000_000_000;
        while WOKEN.load(SeqCst) != id {
            ensure!(clock::now() < limit, "the thread did not take its signal");
            clock::sleep(100_000);
        }
    }
    GATE.store(1, SeqCst);
    thread::wake(&GATE, 9);
    for thread in threads {
        thread?.join();
    }
    Ok(())
}

fn clone_flags() -> Outcome {
    for flags in [CLONE_THREAD, CLONE_SIGHAND, CLONE_THREAD | CLONE_VM, CLONE_FS | kit::uapi::clone::CLONE_NEWNS] {
        fails!(call!(nr::CLONE, flags | u64::from(SIGCHLD), 0, 0, 0, 0), EINVAL, "flags that need others");
    }
    let mut ids = [0_u32; 2];
    let flags = CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | u64::from(SIGCHLD);
    let places = [&raw mut ids[0] as usize, &raw mut ids[1] as usize];
    let child = call!(nr::CLONE, flags, 0, places[0], 0, places[1]);
    if child == 0 {
        let own = call!(nr::GETTID) as u32;
        // SAFETY: the kernel has written the word.
        let seen = unsafe { (places[1] as *const u32).read_volatile() };
        process::exit(u8::from(seen != own));
    }
    // SAFETY: as above.
    let seen = [0, 1].map(|index: usize| unsafe { (places[index] as *const u32).read_volatile() });
    equal!(seen, [child as u32, 0], "the parent's words");
    child::finish(child as i32)
}

fn clone3() -> Outcome {
    let mut id = 0_u32;
    let arguments = CloneArgs {
        flags: CLONE_PARENT_SETTID,
        parent_tid: &raw mut id as u64,
        exit_signal: u64::from(SIGCHLD),
        ..CloneArgs::default()
    };
    let child = call!(nr::CLONE3, &raw const arguments, 64);
    if child == 0 {
        process::exit(21);
    }
    ensure!(child > 0, "clone3");
    equal!(process::wait(child as i32).must("wait")?, (child as i32, Ended::Exited(21)), "the child");
    // SAFETY: the kernel has written the word.
    equal!(unsafe { (&raw const id).read_volatile() }, child as u32, "the parent's word");
    fails!(call!(nr::CLONE3, &raw const arguments, 8), EINVAL, "a structure that is too small");
    fails!(call!(nr::CLONE3, 8, 64), EFAULT, "a structure at a bad address");
    let wrong = CloneArgs { exit_signal: 200, ..arguments };
    fails!(call!(nr::CLONE3, &raw const wrong, 88), EINVAL, "a signal that is none");
    let wrong = CloneArgs { stack: 4096, ..arguments };
    fails!(call!(nr::CLONE3, &raw const wrong, 88), EINVAL, "a stack without a size");
    Ok(())
}

extern "C" fn change_tables(_: usize) -> usize {
    call!(nr::CLOSE, 50);
    call!(nr::CHDIR, c"/proc".as_ptr());
    call!(nr::UMASK, 0o777);
    0
}

fn shared_tables() -> Outcome {
    let null = io::open(c"/dev/null", open::O_RDWR, 0).must("open")?;
    for (flags, shared) in [(CLONE_VM, false), (CLONE_VM | CLONE_FS | CLONE_FILES, true)] {
        equal!(call!(nr::DUP3, null, 50, 0), 50, "dup3");
        call!(nr::CHDIR, c"/tmp".as_ptr());
        call!(nr::UMASK, 0o22);
        let stack = memory::private(4 * memory::PAGE).must("mmap")? + 4 * memory::PAGE;
        // SAFETY: the stack is the child's alone.
        let child = unsafe { thread::clone(flags | u64::from(SIGCHLD), stack, [0, 0], 0, change_tables, 0) };
        child::finish(child.must("clone")? as i32)?;
        let mut path = [0_u8; 16];
        call!(nr::GETCWD, path.as_mut_ptr(), path.len());
        equal!(call!(nr::FCNTL, 50, open::F_GETFD) < 0, shared, "the descriptor is closed");
        equal!(path.starts_with(b"/proc\0"), shared, "the directory is changed");
        equal!(call!(nr::UMASK, 0o22) == 0o777, shared, "the mask is changed");
    }
    Ok(())
}

extern "C" fn wait_once(word: usize) -> usize {
    // SAFETY: a static of this program.
    let word = unsafe { &*(word as *const AtomicU32) };
    if thread::wait(word, 0, Some(10_000_000_000)).is_ok() {
        WOKEN.fetch_add(1, SeqCst);
    }
    0
}

fn waiters(count: usize, word: &AtomicU32) -> Result<[Option<Thread>; 8], &'static str> {
    let mut threads = [const { None }; 8];
    for slot in threads.iter_mut().take(count) {
        *slot = Some(Thread::start(wait_once, core::ptr::from_ref(word).expose_provenance()).must("thread")?);
    }
    // All are to be asleep.
    clock::sleep(100_000_000);
    Ok(threads)
}

fn wait_wake() -> Outcome {
    fails!(thread::wait(&GATE, 1, None).map_or_else(Errno::to_ret, |()| 0), EAGAIN, "another value");
    equal!(thread::wake(&GATE, 5), 0, "nobody to wake");
    let threads = waiters(5, &GATE)?;
    equal!(thread::wake(&GATE, 2), 2, "two are woken");
    equal!(thread::wake(&GATE, 100), 3, "and the rest");
    threads.into_iter().flatten().for_each(Thread::join);
    equal!(WOKEN.load(SeqCst), 5, "woken");
    fails!(call!(nr::FUTEX, 2, FUTEX_WAIT, 0, 0), EINVAL, "a word that is not aligned");
    fails!(call!(nr::FUTEX, 4096, FUTEX_WAIT, 0, 0), EFAULT, "a word that is not there");
    fails!(call!(nr::FUTEX, GATE.as_ptr(), 99, 0, 0), ENOSYS, "an operation that is none");
    Ok(())
}

fn times_out() -> Outcome {
    for nanoseconds in [1_000, 5_000_000, 30_000_000] {
        let start = clock::now();
        let result = thread::wait(&GATE, 0, Some(nanoseconds)).map_or_else(Errno::to_ret, |()| 0);
        fails!(result, ETIMEDOUT, "a wait with a limit");
        ensure!(clock::now() - start >= nanoseconds, "it ended early");
    }
    // FUTEX_WAIT_BITSET takes a point in time.
    let until = Timespec::from_ns(clock::now() + 10_000_000);
    let result = call!(nr::FUTEX, GATE.as_ptr(), FUTEX_WAIT_BITSET, 0, &raw const until, 0, u32::MAX);
    fails!(result, ETIMEDOUT, "a wait until a time");
    let past = Timespec::from_ns(1);
    let result = call!(nr::FUTEX, GATE.as_ptr(), FUTEX_WAIT_BITSET, 0, &raw const past, 0, u32::MAX);
    fails!(result, ETIMEDOUT, "a wait until a time that is over");
    let never = Timespec { tv_sec: 0, tv_nsec: -1 };
    fails!(call!(nr::FUTEX, GATE.as_ptr(), FUTEX_WAIT, 0, &raw const never), EINVAL, "a time that is none");
    Ok(())
}

extern "C" fn wait_bits(bits: usize) -> usize {
    if call!(nr::FUTEX, GATE.as_ptr(), FUTEX_WAIT_BITSET, 0, 0, 0, bits) == 0 {
        SUM.fetch_add(bits, SeqCst);
    }
    0
}

fn bitset() -> Outcome {
    let threads = [1, 2, 4].map(|bits| Thread::start(wait_bits, bits).must("thread"));
    clock::sleep(100_000_000);
    let wake = |bits: u32| call!(nr::FUTEX, GATE.as_ptr(), FUTEX_WAKE_BITSET, 9, 0, 0, bits);
    equal!(wake(8), 0, "none has this bit");
    equal!(wake(5), 2, "two have one of these");
    equal!(wake(u32::MAX), 1, "the last");
    for thread in threads {
        thread?.join();
    }
    equal!(SUM.load(SeqCst), 7, "all were woken");
    fails!(wake(0), EINVAL, "no bits");
    Ok(())
}

static OTHER: AtomicU32 = AtomicU32::new(0);

fn requeue() -> Outcome {
    let threads = waiters(5, &GATE)?;
    let requeue = |value: u32| call!(nr::FUTEX, GATE.as_ptr(), FUTEX_CMP_REQUEUE | 128, 1, 2, OTHER.as_ptr(), value);
    fails!(requeue(7), EAGAIN, "another value");
    equal!(requeue(0), 3, "one woken, two moved");
    equal!(thread::wake(&OTHER, 9), 2, "those that were moved");
    equal!(thread::wake(&GATE, 9), 2, "those that stayed");
    threads.into_iter().flatten().for_each(Thread::join);
    equal!(WOKEN.load(SeqCst), 5, "woken");
    Ok(())
}

fn wake_op() -> Outcome {
    let first = waiters(2, &GATE)?;
    let second = waiters(2, &OTHER)?;
    OTHER.store(5, SeqCst);
    // Adds 3 to the second word; wakes its waiters if it was greater than 4 (futex(2)).
    let operation = 1 << 28 | 4 << 24 | 3 << 12 | 4;
    let result = call!(nr::FUTEX, GATE.as_ptr(), FUTEX_WAKE_OP | 128, 1, 9, OTHER.as_ptr(), operation);
    equal!(result, 3, "one of the first, both of the second");
    equal!(OTHER.load(SeqCst), 8, "the second word");
    equal!(thread::wake(&GATE, 9), 1, "the other of the first");
    first.into_iter().chain(second).flatten().for_each(Thread::join);
    Ok(())
}

fn between() -> Outcome {
    let word = memory::shared_value::<AtomicU32>().must("mmap")?;
    let child = child::start(|| {
        clock::sleep(20_000_000);
        word.store(1, SeqCst);
        equal!(thread::wake_shared(word, 1), 1, "woken");
        Ok(())
    })?;
    thread::wait_shared(word, 0, Some(10_000_000_000)).must("wait for the other process")?;
    equal!(word.load(SeqCst), 1, "the word");
    child::finish(child)
}

struct Entry {
    next: AtomicUsize,
    word: AtomicU32,
}

static LOCKED: Entry = Entry { next: AtomicUsize::new(0), word: AtomicU32::new(0) };

/// Ends with a lock held.
extern "C" fn hold(_: usize) -> usize {
    let list = core::ptr::from_ref(&LOCKED).expose_provenance();
    let head = RobustListHead { list, futex_offset: core::mem::offset_of!(Entry, word) as isize, list_op_pending: 0 };
    let place = (&raw const head).expose_provenance();
    LOCKED.next.store(place, SeqCst);
    LOCKED.word.store(call!(nr::GETTID) as u32 | FUTEX_WAITERS, SeqCst);
    call!(nr::SET_ROBUST_LIST, place, size_of::<RobustListHead>());
    call!(nr::EXIT, 0);
    0
}

fn robust() -> Outcome {
    fails!(call!(nr::SET_ROBUST_LIST, 0, 8), EINVAL, "a head of another size");
    let thread = Thread::start(hold, 0).must("thread")?;
    let id = thread.id;
    thread.join();
    let word = LOCKED.word.load(SeqCst);
    equal!(word & FUTEX_OWNER_DIED, FUTEX_OWNER_DIED, "the owner's death is marked");
    ensure!(word & FUTEX_TID_MASK != id, "the owner is gone from the word");
    Ok(())
}

extern "C" fn come_and_go(_: usize) -> usize {
    for _ in 0..20 {
        call!(nr::SCHED_YIELD);
    }
    SUM.fetch_add(1, SeqCst);
    0
}

fn many() -> Outcome {
    for _ in 0..5 {
        let mut threads = [const { None }; 64];
        for slot in &mut threads {
            *slot = Some(Thread::start(come_and_go, 0).must("thread")?);
        }
        threads.into_iter().flatten().for_each(Thread::join);
    }
    equal!(SUM.load(SeqCst), 320, "threads that ran");
    Ok(())
}
