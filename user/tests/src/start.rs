//! What a program finds when it starts, and what can be started.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char};
use kit::check::{Must, Outcome};
use kit::registers;
use kit::thread::Thread;
use kit::uapi::auxv::{
    AT_CLKTCK, AT_EGID, AT_ENTRY, AT_EUID, AT_EXECFN, AT_GID, AT_HWCAP, AT_MINSIGSTKSZ, AT_PAGESZ, AT_PHDR, AT_PHENT,
    AT_PHNUM, AT_RANDOM, AT_SECURE, AT_SYSINFO_EHDR, AT_UID, hwcap,
};
use kit::uapi::elf::ET_DYN;
use kit::uapi::signal::{SIG_DFL, SIG_IGN, SIGUSR1, SIGUSR2, sigmask};
use kit::uapi::{Errno, Sigaction, Timespec, Timeval, nr, open};
use kit::vdso::Vdso;
use kit::{attempt, call, child, clock, elf, ensure, equal, fails, file, signal};
use rt::process::{self, Ended};
use rt::{Args, io, tap::Test};

pub const TESTS: &[Test] = &[
    Test::new("start/auxiliary-vector", auxiliary_vector),
    Test::new("start/random-bytes-differ", random_bytes),
    Test::new("start/vdso-functions", vdso_functions),
    Test::new("start/vdso-clocks-agree-with-the-call", vdso_clocks),
    Test::new("start/clock-does-not-run-backwards-on-any-hart", one_clock),
    Test::new("start/scripts", scripts),
    Test::new("start/position-independent", position_independent),
    Test::new("start/what-cannot-be-executed", refused),
    Test::new("start/too-many-arguments", too_many),
    Test::new("start/long-arguments-arrive", long_arguments),
    Test::new("start/signals-over-exec", signals_over_exec),
    Test::new("start/descriptors-over-exec", descriptors),
    Test::new("start/exec-from-a-thread", from_thread),
];

struct Kept(UnsafeCell<Option<Args>>);

// SAFETY: written once, before any other thread or test exists.
unsafe impl Sync for Kept {}

static ARGS: Kept = Kept(UnsafeCell::new(None));

/// Keeps the arguments for the tests.
pub fn remember(args: Args) {
    // SAFETY: called once, at the start.
    unsafe { *ARGS.0.get() = Some(args) };
}

fn args() -> Args {
    // SAFETY: written before the first test.
    unsafe { (*ARGS.0.get()).expect("the program has arguments") }
}

const SELF: &CStr = c"/tests/tests";

/// What this program does as a test's helper: `tests --helper WHAT …` ends with a status that tells.
pub fn helper(args: Args) -> Option<u8> {
    let word = |index| args.get(index).and_then(|word: &CStr| word.to_str().ok());
    if word(1)? != "--helper" {
        return None;
    }
    let ignored = |number| signal::action(number).is_ok_and(|action| action.handler == SIG_IGN);
    Some(match word(2)? {
        // The actions and the mask as the signal test leaves them: 3.
        "signals" => {
            let default = signal::action(SIGUSR1).is_ok_and(|action| action.handler == SIG_DFL);
            u8::from(default) + 2 * u8::from(ignored(SIGUSR2)) + 4 * u8::from(signal::mask() & sigmask(SIGUSR1) == 0)
        }
        // Whether descriptors 40 and 41 are open, and that there is one thread.
        "descriptors" => u8::from(call!(nr::FCNTL, 40, 1) >= 0) + 2 * u8::from(call!(nr::FCNTL, 41, 1) >= 0),
        "thread" => u8::from(call!(nr::GETTID) == process::id() as isize),
        // 16 bytes of the kernel's to standard output.
        "random" => {
            let bytes = args.auxv(AT_RANDOM as usize).unwrap_or(0);
            u8::from(call!(nr::WRITE, 1, bytes, 16) == 16)
        }
        // The number of arguments, and a sum over all that they hold.
        "arguments" => {
            let sum: usize = args.iter().flat_map(CStr::to_bytes).map(|byte| usize::from(*byte)).sum();
            (args.count() + sum) as u8
        }
        _ => 99,
    })
}

fn execute(path: &CStr, argv: &[*const c_char]) -> isize {
    call!(nr::EXECVE, path.as_ptr(), argv.as_ptr(), [core::ptr::null::<c_char>()].as_ptr())
}

/// Runs a program in a child; 120 means that it could not be executed.
fn run(path: &CStr, words: &[&CStr]) -> Result<Ended, &'static str> {
    let mut argv = [core::ptr::null(); 8];
    argv.iter_mut().zip(words).for_each(|(slot, word)| *slot = word.as_ptr());
    child::end(|| {
        execute(path, &argv);
        process::exit(120)
    })
}

fn auxiliary_vector() -> Outcome {
    let value = |key: u64| args().auxv(key as usize).ok_or("an entry of the auxiliary vector is missing");
    equal!(value(AT_PAGESZ)?, 4096, "AT_PAGESZ");
    equal!(value(AT_CLKTCK)?, 100, "AT_CLKTCK");
    equal!(value(AT_PHENT)?, 56, "AT_PHENT");
    ensure!((2..12).contains(&value(AT_PHNUM)?), "AT_PHNUM");
    for id in [AT_UID, AT_EUID, AT_GID, AT_EGID, AT_SECURE] {
        equal!(value(id)?, 0, "an identity");
    }
    // SAFETY: the program headers are mapped, says the vector.
    let first = unsafe { *(value(AT_PHDR)? as *const u32) };
    ensure!(matches!(first, 1..=7 | 0x6474_e550..=0x6474_e553 | 0x7000_0003), "AT_PHDR points to no program header");
    unsafe extern "C" {
        fn _start();
    }
    equal!(value(AT_ENTRY)?, _start as *const () as usize, "AT_ENTRY");
    let wanted = b"imafdc".iter().fold(0, |bits, letter| bits | hwcap(*letter));
    equal!(value(AT_HWCAP)? as u64 & wanted, wanted, "AT_HWCAP");
    ensure!(value(AT_MINSIGSTKSZ)? >= 1088, "AT_MINSIGSTKSZ");
    // SAFETY: strings.
    let name = unsafe { CStr::from_ptr(value(AT_EXECFN)? as *const c_char) };
    equal!(name, SELF, "AT_EXECFN");
    equal!(value(AT_SYSINFO_EHDR)? % 4096, 0, "AT_SYSINFO_EHDR");
    ensure!(value(AT_RANDOM)? != 0, "AT_RANDOM");
    Ok(())
}

fn random_bytes() -> Outcome {
    let mut seen = [[0_u8; 16]; 4];
    for bytes in &mut seen {
        let (read, write) = io::pipe().must("pipe")?;
        let child = child::start(|| {
            io::duplicate(write, 1).must("dup3")?;
            execute(SELF, &[SELF.as_ptr(), c"--helper".as_ptr(), c"random".as_ptr(), core::ptr::null()]);
            Err("exec")
        })?;
        equal!(io::read(read, bytes).must("read")?, 16, "bytes");
        process::wait(child).must("wait")?;
    }
    for (index, bytes) in seen.iter().enumerate() {
        ensure!(seen[index + 1..].iter().all(|other| other != bytes), "two programs got the same random bytes");
    }
    Ok(())
}

fn vdso_functions() -> Outcome {
    let vdso = Vdso::find(args()).ok_or("no vDSO")?;
    ensure!(vdso.tables() != (false, false), "no hash table");
    const NAMES: [&CStr; 6] = [
        c"__vdso_rt_sigreturn",
        c"__vdso_clock_gettime",
        c"__vdso_gettimeofday",
        c"__vdso_clock_getres",
        c"__vdso_getcpu",
        c"__vdso_flush_icache",
    ];
    for name in NAMES {
        let address = vdso.function(name).ok_or("a function of the vDSO is missing")?;
        ensure!((vdso.base..vdso.base + 0x4000).contains(&address), "a function outside the image");
        if vdso.tables() == (true, true) {
            equal!(vdso.by_hash(name), vdso.by_gnu_hash(name), "the two hash tables");
        }
    }
    equal!(vdso.function(c"__vdso_nothing"), None, "a function that is none");
    let function = |name| vdso.function(name).unwrap_or(0);
    // SAFETY: the functions have these signatures (vdso(7)).
    let (getcpu, flush, timeofday, resolution) = unsafe {
        (
            core::mem::transmute::<usize, extern "C" fn(*mut u32, *mut u32, usize) -> i32>(function(NAMES[4])),
            core::mem::transmute::<usize, extern "C" fn(usize, usize, usize) -> i32>(function(NAMES[5])),
            core::mem::transmute::<usize, extern "C" fn(*mut Timeval, usize) -> i32>(function(NAMES[2])),
            core::mem::transmute::<usize, extern "C" fn(i32, *mut Timespec) -> i32>(function(NAMES[3])),
        )
    };
    let (mut cpu, mut node) = (99, 99);
    equal!((getcpu(&raw mut cpu, &raw mut node, 0), cpu < 8, node), (0, true, 0), "getcpu");
    equal!((flush(0, 4096, 0), flush(0, 4096, 1)), (0, 0), "flush_icache");
    let mut now = Timeval::default();
    equal!(timeofday(&raw mut now, 0), 0, "gettimeofday");
    let real = clock::read(0);
    ensure!(real.abs_diff(now.to_ns().unwrap_or(0)) < 500_000_000, "gettimeofday is not now");
    let mut step = Timespec::default();
    equal!((resolution(1, &raw mut step), step), (0, Timespec { tv_sec: 0, tv_nsec: 1 }), "clock_getres");
    Ok(())
}

fn vdso_clocks() -> Outcome {
    let read = kit::vdso::clock_gettime(&Vdso::find(args()).ok_or("no vDSO")?).ok_or("no clock_gettime")?;
    for number in [0, 1, 2, 3, 4, 5, 6, 7, 11] {
        for _ in 0..20 {
            let mut by_vdso = Timespec::default();
            let before = clock::read(number);
            equal!(read(number, &raw mut by_vdso), 0, "clock_gettime");
            let after = clock::read(number);
            // The coarse clocks may lag behind by a tick.
            let slack = if matches!(number, 5 | 6) { 10_000_000 } else { 0 };
            let time = by_vdso.to_ns().unwrap_or(0);
            if time + slack < before || time > after + slack {
                rt::println!("# clock {number}: {before}, by the vDSO {time}, {after}");
                return Err("the vDSO's clock differs from the call's");
            }
        }
    }
    let mut time = Timespec::default();
    equal!(read(77, &raw mut time), Errno::EINVAL.to_ret() as i32, "a clock that is none");
    Ok(())
}

static LATEST: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(0);

extern "C" fn watch(_: usize) -> usize {
    use core::sync::atomic::Ordering::SeqCst;
    let Some(read) = Vdso::find(args()).and_then(|vdso| kit::vdso::clock_gettime(&vdso)) else { return 1 };
    let end = clock::now() + 100_000_000;
    let mut backwards = 0;
    while clock::now() < end {
        let before = LATEST.load(SeqCst);
        let mut time = Timespec::default();
        read(1, &raw mut time);
        let time = time.to_ns().unwrap_or(0);
        backwards += usize::from(time < before);
        LATEST.fetch_max(time, SeqCst);
        call!(nr::SCHED_YIELD);
    }
    if backwards > 0 {
        LATEST.store(u64::MAX, SeqCst);
    }
    0
}

fn one_clock() -> Outcome {
    let threads = [0, 1, 2].map(|_| Thread::start(watch, 0));
    watch(0);
    for thread in threads {
        thread.must("thread")?.join();
    }
    ensure!(LATEST.load(core::sync::atomic::Ordering::SeqCst) != u64::MAX, "a clock ran backwards");
    Ok(())
}

fn scripts() -> Outcome {
    file::write(c"/tmp/script", 0o755, b"#!/bin/sh -e\n[ \"$0\" = /tmp/script ] && exit $(($1 + $#))\n")
        .must("write")?;
    equal!(run(c"/tmp/script", &[c"x", c"40", c"two"])?, Ended::Exited(42), "a script");
    // The inner script gets the argument of the first line and the outer's path.
    file::write(c"/tmp/nested", 0o755, b"#!/tmp/script 30\n").must("write")?;
    equal!(run(c"/tmp/nested", &[c"x"])?, Ended::Exited(32), "a script of a script");
    file::write(c"/tmp/loop", 0o755, b"#!/tmp/loop\n").must("write")?;
    equal!(refusal(c"/tmp/loop"), Errno::ELOOP.to_ret(), "a script of itself");
    file::write(c"/tmp/lost", 0o755, b"#!/no/such/interpreter\n").must("write")?;
    equal!(refusal(c"/tmp/lost"), Errno::ENOENT.to_ret(), "a script of nothing");
    for name in [c"/tmp/script", c"/tmp/nested", c"/tmp/loop", c"/tmp/lost"] {
        call!(nr::UNLINKAT, open::AT_FDCWD, name.as_ptr(), 0);
    }
    Ok(())
}

fn position_independent() -> Outcome {
    let code = registers::entry_program();
    let (mut header, mut segment) = elf::headers(code.len());
    header.e_type = ET_DYN;
    header.e_entry -= elf::BASE;
    (segment.p_vaddr, segment.p_paddr) = (0, 0);
    let mut image = [0_u8; 4096];
    let length = elf::assemble(&header, &segment, code, &mut image).ok_or("the program is too long")?;
    file::write(c"/tmp/pie", 0o755, &image[..length]).must("write")?;
    let null = io::open(c"/dev/null", open::O_WRONLY, 0).must("open")?;
    let ended = child::end(|| {
        io::duplicate(null, 1).must("dup3")?;
        execute(c"/tmp/pie", &[c"pie".as_ptr(), core::ptr::null()]);
        process::exit(120)
    })?;
    equal!(ended, Ended::Exited(0), "a static position-independent program");
    call!(nr::UNLINKAT, open::AT_FDCWD, c"/tmp/pie".as_ptr(), 0);
    Ok(())
}

fn refusal(path: &CStr) -> isize {
    execute(path, &[c"x".as_ptr(), core::ptr::null()])
}

fn refused() -> Outcome {
    let code = registers::entry_program();
    let (good_header, good_segment) = elf::headers(code.len());
    let mut image = [0_u8; 4096];
    let mut check = |change: fn(&mut kit::uapi::Ehdr, &mut kit::uapi::Phdr), wanted: isize, what| -> Outcome {
        let (mut header, mut segment) = (good_header, good_segment);
        change(&mut header, &mut segment);
        let length = elf::assemble(&header, &segment, code, &mut image).ok_or("the program is too long")?;
        file::write(c"/tmp/bad", 0o755, &image[..length]).must("write")?;
        equal!(refusal(c"/tmp/bad"), wanted, what);
        Ok(())
    };
    let noexec = Errno::ENOEXEC.to_ret();
    check(|header, _| header.e_ident[0] = 0, noexec, "no magic number")?;
    check(|header, _| header.e_machine = 62, noexec, "another machine")?;
    check(|header, _| header.e_type = 1, noexec, "an object file")?;
    check(|header, _| header.e_phentsize = 32, noexec, "program headers of another size")?;
    check(|header, _| header.e_phnum = 0, noexec, "no program headers")?;
    file::write(c"/tmp/bad", 0o755, b"no program\n").must("write")?;
    equal!(refusal(c"/tmp/bad"), noexec, "a text");
    file::write(c"/tmp/bad", 0o755, b"").must("write")?;
    equal!(refusal(c"/tmp/bad"), noexec, "an empty file");
    call!(nr::UNLINKAT, open::AT_FDCWD, c"/tmp/bad".as_ptr(), 0);
    file::write(c"/tmp/data", 0o644, b"#!/bin/sh\n").must("write")?;
    equal!(refusal(c"/tmp/data"), Errno::EACCES.to_ret(), "a file without the right");
    call!(nr::UNLINKAT, open::AT_FDCWD, c"/tmp/data".as_ptr(), 0);
    equal!(refusal(c"/no/such"), Errno::ENOENT.to_ret(), "nothing");
    equal!(refusal(c"/bin/busybox/x"), Errno::ENOTDIR.to_ret(), "a file as a directory");
    equal!(refusal(c"/tmp"), Errno::EACCES.to_ret(), "a directory");
    fails!(call!(nr::EXECVE, 8, 0, 0), EFAULT, "a path at a bad address");
    fails!(call!(nr::EXECVE, SELF.as_ptr(), 8, 0), EFAULT, "arguments at a bad address");
    let bad = [8_usize, 0];
    fails!(call!(nr::EXECVE, SELF.as_ptr(), bad.as_ptr(), 0), EFAULT, "an argument at a bad address");
    Ok(())
}

fn too_many() -> Outcome {
    const LENGTH: usize = 128 * 1024;
    let text = kit::memory::private(2 * LENGTH).must("mmap")?;
    (0..LENGTH + 10).for_each(|at| kit::memory::poke(text + at, b'x'));
    let long = [text, 0];
    fails!(call!(nr::EXECVE, SELF.as_ptr(), long.as_ptr(), 0), E2BIG, "one argument too long");
    kit::memory::poke(text + LENGTH / 2, 0);
    let array = kit::memory::private(64 * 4096).must("mmap")?;
    for index in 0..100 {
        // SAFETY: within the mapping, which is zero after that.
        unsafe { ((array + 8 * index) as *mut usize).write(text) };
    }
    fails!(call!(nr::EXECVE, SELF.as_ptr(), array, 0), E2BIG, "too much in all");
    Ok(())
}

fn long_arguments() -> Outcome {
    let text = [b'y'; 5_000];
    let mut text: [u8; 5_001] = core::array::from_fn(|index| text.get(index).copied().unwrap_or(0));
    text[5_000] = 0;
    let mut argv = [text.as_ptr().cast::<c_char>(); 200];
    argv[0] = SELF.as_ptr();
    argv[1] = c"--helper".as_ptr();
    argv[2] = c"arguments".as_ptr();
    argv[199] = core::ptr::null();
    let words = [SELF, c"--helper", c"arguments"];
    let sum: usize = words.iter().flat_map(|word| word.to_bytes()).map(|byte| usize::from(*byte)).sum();
    let wanted = (199 + sum + 196 * 5_000 * usize::from(b'y')) as u8;
    let ended = child::end(|| {
        execute(SELF, &argv);
        process::exit(120)
    })?;
    equal!(ended, Ended::Exited(wanted), "a megabyte of arguments");
    Ok(())
}

fn signals_over_exec() -> Outcome {
    extern "C" fn nothing(_: i32, _: *const kit::uapi::Siginfo, _: *mut kit::uapi::Ucontext) {}
    signal::handle(SIGUSR1, nothing, 0).must("sigaction")?;
    signal::set(SIGUSR2, Sigaction { handler: SIG_IGN, ..Sigaction::default() }).must("sigaction")?;
    signal::block(sigmask(SIGUSR1));
    // The program clears the mask before anything else, so its fourth bit is always set.
    equal!(run(SELF, &[SELF, c"--helper", c"signals"])?, Ended::Exited(7), "handled is default, ignored stays");
    Ok(())
}

fn descriptors() -> Outcome {
    let null = io::open(c"/dev/null", open::O_RDWR, 0).must("open")?;
    attempt!(nr::DUP3, null, 40, 0).must("dup3")?;
    attempt!(nr::DUP3, null, 41, open::O_CLOEXEC).must("dup3")?;
    equal!(run(SELF, &[SELF, c"--helper", c"descriptors"])?, Ended::Exited(1), "open descriptors");
    equal!(call!(nr::FCNTL, 41, open::F_GETFD), 1, "a child's exec closes nothing here");
    Ok(())
}

extern "C" fn execute_helper(_: usize) -> usize {
    execute(SELF, &[SELF.as_ptr(), c"--helper".as_ptr(), c"thread".as_ptr(), core::ptr::null()]);
    process::exit(120)
}

extern "C" fn sleep_long(_: usize) -> usize {
    clock::sleep(60_000_000_000);
    0
}

fn from_thread() -> Outcome {
    let child = child::start(|| {
        Thread::start(sleep_long, 0).must("thread")?;
        Thread::start(execute_helper, 0).must("thread")?;
        clock::sleep(60_000_000_000);
        Err("exec by a thread did not end the others")
    })?;
    equal!(process::wait(child).must("wait")?, (child, Ended::Exited(1)), "the program, under the process's number");
    Ok(())
}
