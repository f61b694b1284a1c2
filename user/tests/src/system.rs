//! What the system tells of itself, and random numbers.

use crate::entry::is_linux;
use kit::check::{Must, Outcome};
use kit::uapi::system::{GRND_NONBLOCK, GRND_RANDOM};
use kit::uapi::{Sysinfo, Utsname, nr};
use kit::{call, child, ensure, equal, fails, file, memory};
use rt::process;
use rt::tap::Test;

pub const TESTS: &[Test] = &[
    Test::new("system/threads-max", threads_max),
    Test::new("system/names", names),
    Test::new("system/random-numbers", random),
    Test::new("system/memory", memory_figures),
    Test::new("system/processors", processors),
    Test::new("system/own-mappings", mappings),
    Test::new("system/own-process", own_process),
    Test::new("system/processes-in-proc", processes),
    Test::new("system/byte-order", byte_order),
    Test::new("system/boundary-counters", boundary),
    Test::new("system/calls-that-are-none", none),
];

fn c_string(bytes: &[u8]) -> &str {
    let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    core::str::from_utf8(&bytes[..length]).unwrap_or("?")
}

fn names() -> Outcome {
    // SAFETY: arrays of bytes.
    let mut name: Utsname = unsafe { core::mem::zeroed() };
    equal!(call!(nr::UNAME, &raw mut name), 0, "uname");
    equal!((c_string(&name.sysname), c_string(&name.machine)), ("Linux", "riscv64"), "system and machine");
    ensure!(c_string(&name.release).split('.').count() >= 2, "the release has numbers");
    equal!(call!(nr::SETHOSTNAME, c"another".as_ptr(), 7), 0, "sethostname");
    call!(nr::UNAME, &raw mut name);
    equal!(c_string(&name.nodename), "another", "the node's name");
    fails!(call!(nr::SETHOSTNAME, c"x".as_ptr(), 65), EINVAL, "a name that is too long");
    equal!(call!(nr::SETHOSTNAME, c"limen".as_ptr(), 5), 0, "sethostname");
    Ok(())
}

fn random() -> Outcome {
    let mut seen = [[0_u8; 32]; 3];
    for (bytes, flags) in seen.iter_mut().zip([0, GRND_NONBLOCK, GRND_RANDOM]) {
        equal!(call!(nr::GETRANDOM, bytes.as_mut_ptr(), 32, flags), 32, "getrandom");
    }
    ensure!(seen[0] != seen[1] && seen[1] != seen[2] && seen[0] != [0; 32], "random bytes");
    let large = memory::private(1 << 20).must("mmap")?;
    equal!(call!(nr::GETRANDOM, large, 1 << 20, 0), 1 << 20, "a megabyte");
    let ones: u32 = (0..1 << 16).map(|at| memory::peek(large + at).count_ones()).sum();
    ensure!((250_000..275_000).contains(&ones), "half of the bits are set");
    fails!(call!(nr::GETRANDOM, large, 1, 0x100), EINVAL, "flags that are none");
    fails!(call!(nr::GETRANDOM, 8, 16, 0), EFAULT, "a bad address");
    Ok(())
}

fn memory_figures() -> Outcome {
    let mut buffer = [0; 4096];
    let text = file::text(c"/proc/meminfo", &mut buffer).must("read")?;
    let kilobytes = |key| file::number(text, key).ok_or("a line of meminfo is missing");
    let (total, free, available) = (kilobytes("MemTotal")?, kilobytes("MemFree")?, kilobytes("MemAvailable")?);
    ensure!(free <= total && available <= total, "more free than there is");
    let mut info = Sysinfo::default();
    equal!(call!(nr::SYSINFO, &raw mut info), 0, "sysinfo");
    equal!(info.totalram * u64::from(info.mem_unit) / 1024, total, "the same in sysinfo");
    // Memory that is used is missing; a Linux may free some of its own meanwhile.
    let used = memory::private(64 << 20).must("mmap")?;
    (0..64 << 20).step_by(memory::PAGE).for_each(|at| memory::poke(used + at, 1));
    let mut buffer = [0; 4096];
    let text = file::text(c"/proc/meminfo", &mut buffer).must("read")?;
    let less = file::number(text, "MemFree").unwrap_or(0);
    ensure!(less + (32 << 10) < free, "64 MiB in use do not show");
    Ok(())
}

fn processors() -> Outcome {
    let mut buffer = [0; 16_384];
    let text = file::text(c"/proc/cpuinfo", &mut buffer).must("read")?;
    let mut set = [0_u64; 16];
    call!(nr::SCHED_GETAFFINITY, 0, 128, set.as_mut_ptr());
    let harts = set[0].count_ones() as usize;
    let count = |key: &str| text.lines().filter(|line| line.split('\t').next() == Some(key)).count();
    for key in ["processor", "hart", "isa", "mmu", "mvendorid", "marchid", "mimpid", "hart isa"] {
        equal!(count(key), harts, key);
    }
    let isa = text.lines().find_map(|line| line.strip_prefix("isa\t\t: ")).ok_or("a line of cpuinfo")?;
    ensure!(isa.starts_with("rv64imafdc"), "the instruction set");
    let mmu = text.lines().find_map(|line| line.strip_prefix("mmu\t\t: ")).ok_or("a line of cpuinfo")?;
    ensure!(["sv39", "sv48", "sv57"].contains(&mmu), "the form of the page tables");
    Ok(())
}

/// Each line: `start-end rwxp offset dev inode [path]`, in order.
fn mappings() -> Outcome {
    let mut buffer = [0; 8192];
    let text = file::text(c"/proc/self/maps", &mut buffer).must("read")?;
    let here = 0_u8;
    let (mut last, mut code, mut stack, mut vdso) = (0, false, false, false);
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let (range, rights) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let (start, end) = range.split_once('-').ok_or("a range")?;
        let number = |text| usize::from_str_radix(text, 16).map_err(|_| "an address");
        let (start, end) = (number(start)?, number(end)?);
        ensure!(start >= last && end > start && start % memory::PAGE == 0, "the order of the mappings");
        last = end;
        ensure!(rights.len() == 4, "the rights");
        words.nth(1).ok_or("the device")?;
        let name = words.nth(1).unwrap_or("");
        let holds = |address: usize| (start..end).contains(&address);
        code |= holds(mappings as *const () as usize) && rights == "r-xp" && name == "/tests/tests";
        stack |= holds((&raw const here).addr()) && rights == "rw-p" && name == "[stack]";
        vdso |= name == "[vdso]" && rights == "r-xp";
    }
    ensure!(code && stack && vdso, "a mapping is missing");
    let (mapped, resident) = file::pages();
    ensure!(mapped > 10 && resident > 3 && resident <= mapped, "pages in statm");
    Ok(())
}

fn own_process() -> Outcome {
    let mut buffer = [0; 4096];
    let text = file::text(c"/proc/self/status", &mut buffer).must("read")?;
    equal!(file::number(text, "Pid"), Some(process::id() as u64), "Pid");
    equal!(file::number(text, "PPid"), Some(call!(nr::GETPPID) as u64), "PPid");
    equal!(file::number(text, "Threads"), Some(1), "Threads");
    ensure!(text.starts_with("Name:\ttests\n"), "Name");
    let mut buffer = [0; 512];
    let text = file::text(c"/proc/self/stat", &mut buffer).must("read")?;
    let (before, after) = text.rsplit_once(") ").ok_or("the form of stat")?;
    ensure!(before.ends_with("(tests") && after.starts_with("R "), "name and state");
    equal!(after.split(' ').count(), 50, "fields of stat");
    let mut buffer = [0; 512];
    let line = file::read(c"/proc/self/cmdline", &mut buffer).must("read")?;
    ensure!(line.starts_with(b"/tests/tests\0"), "the command line");
    let mut name = [0_u8; 32];
    let at = kit::uapi::open::AT_FDCWD;
    equal!(call!(nr::READLINKAT, at, c"/proc/self/exe".as_ptr(), name.as_mut_ptr(), 32), 12, "exe");
    ensure!(name.starts_with(b"/tests/tests"), "the program");
    let mut own = [0_u8; 32];
    let length = call!(nr::READLINKAT, at, c"/proc/self".as_ptr(), own.as_mut_ptr(), 32);
    equal!(c_string(&own[..length.max(0) as usize]).parse(), Ok(process::id()), "self");
    let (read, _write) = rt::io::pipe().must("pipe")?;
    let mut link = *b"/proc/self/fd/0\0";
    link[14] = b'0' + read as u8;
    let length = call!(nr::READLINKAT, at, link.as_ptr(), name.as_mut_ptr(), 32);
    ensure!(length > 6 && name.starts_with(b"pipe:["), "a descriptor's name");
    Ok(())
}

fn processes() -> Outcome {
    let (read, write) = rt::io::pipe().must("pipe")?;
    let child = child::start(|| {
        let _ = rt::io::read(read, &mut [0]);
        Ok(())
    })?;
    let mut path = *b"/proc/0000000/stat\0";
    let mut number = child;
    for digit in path[6..13].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    // Leading zeroes are no number of a process: the digits move to the front.
    let zeroes = path[6..13].iter().take_while(|digit| **digit == b'0').count();
    let mut name = [0_u8; 32];
    name[..6].copy_from_slice(b"/proc/");
    let rest = &path[6 + zeroes..];
    name[6..6 + rest.len()].copy_from_slice(rest);
    let path = core::ffi::CStr::from_bytes_until_nul(&name).map_err(|_| "a path")?;
    let mut buffer = [0; 512];
    let state =
        |buffer: &mut [u8]| file::text(path, buffer).ok().and_then(|text| text.rsplit_once(") ")?.1.chars().next());
    let limit = kit::clock::now() + 5_000_000_000;
    while state(&mut buffer) != Some('S') {
        ensure!(kit::clock::now() < limit, "a child that waits does not sleep");
        kit::clock::sleep(1_000_000);
    }
    rt::io::write_all(write, b"x").must("write")?;
    while state(&mut buffer) != Some('Z') {
        ensure!(kit::clock::now() < limit, "a child that has ended is no zombie");
        kit::clock::sleep(1_000_000);
    }
    child::finish(child)?;
    equal!(state(&mut buffer), None, "a child that was waited for");
    Ok(())
}

/// How many threads there may be follows the memory, and the first process may have half of them.
fn threads_max() -> Outcome {
    let mut buffer = [0; 32];
    let text = file::text(c"/proc/sys/kernel/threads-max", &mut buffer).must("read")?;
    let most = text.trim().parse::<u64>().map_err(|_| "a number")?;
    let mut limit = [0_u64; 2];
    equal!(call!(nr::PRLIMIT64, 0, 6, 0, limit.as_mut_ptr()), 0, "prlimit");
    equal!(limit[0], most / 2, "RLIMIT_NPROC");
    let mut info = [0_u64; 16];
    equal!(call!(nr::SYSINFO, info.as_mut_ptr()), 0, "sysinfo");
    ensure!(most <= (info[4] >> 17) + 16 + (info[4] >> 20), "a thread for 128 KiB of memory");
    Ok(())
}

fn byte_order() -> Outcome {
    let mut buffer = [0; 32];
    equal!(file::text(c"/sys/kernel/cpu_byteorder", &mut buffer).must("read")?, "little\n", "the byte order");
    Ok(())
}

/// The sum of a counter over all harts.
fn counter(key: &str) -> u64 {
    let mut buffer = [0; 16_384];
    let text = file::text(c"/proc/limen/boundary", &mut buffer).unwrap_or("");
    let value = |line: &str| line.trim_start().strip_prefix(key)?.strip_prefix(' ')?.trim().parse::<u64>().ok();
    text.lines().filter_map(value).sum()
}

/// Limen's own counters count what they say.
fn boundary() -> Outcome {
    if is_linux() {
        return Ok(());
    }
    let before = counter("calls_fast");
    for _ in 0..1_000 {
        call!(nr::GETPPID);
    }
    let fast = counter("calls_fast") - before;
    ensure!((1_000..1_200).contains(&fast), "calls on the fast path");
    let before = (counter("faults_write"), counter("calls_full"));
    let base = memory::private(100 * memory::PAGE).must("mmap")?;
    (0..100).for_each(|page| memory::poke(base + page * memory::PAGE, 1));
    child::pass(|| Ok(()))?;
    ensure!(counter("faults_write") - before.0 >= 100, "write faults");
    ensure!(counter("calls_full") > before.1, "calls on the full path");
    let before = counter("switches");
    for _ in 0..10 {
        kit::clock::sleep(100_000);
    }
    ensure!(counter("switches") - before >= 10, "switches");
    Ok(())
}

fn none() -> Outcome {
    for number in [38, 244, 257, 295, 423, 600, 1 << 20] {
        fails!(call!(number), ENOSYS, "a call that is none");
    }
    Ok(())
}
