//! How long operations keep interrupts out, by the counter `longest_off_ticks` of `/proc/limen/boundary`: a line is `name
//! ticks`, the longest by which a timer came late since boot, after the operation. So the first line that is high names who is
//! to blame. Processes that sleep for short and various times see to it that timers run out at all moments.

#![cfg_attr(target_os = "none", no_std, no_main)]

rt::program!(run);

/// Pages that an operation has to do with: 64 MiB.
#[cfg(target_os = "none")]
const PAGES: usize = 16_384;
/// Processes that sleep.
#[cfg(target_os = "none")]
const SLEEPERS: u64 = 8;

/// The highest counter of all harts.
#[cfg(target_os = "none")]
fn longest() -> u64 {
    static mut BUFFER: [u8; 32_768] = [0; 32_768];
    // SAFETY: one thread, and no reference lives on.
    let buffer = unsafe { &mut *(&raw mut BUFFER) };
    let text = kit::file::text(c"/proc/limen/boundary", buffer).unwrap_or("");
    let value = |line: &str| line.trim_start().strip_prefix("longest_off_ticks ")?.parse().ok();
    text.lines().filter_map(value).max().unwrap_or(u64::MAX)
}

#[cfg(target_os = "none")]
fn run(_: rt::Args) -> u8 {
    let mut sleepers = [0; SLEEPERS as usize];
    for (index, sleeper) in sleepers.iter_mut().enumerate() {
        match rt::process::fork() {
            Ok(rt::process::Fork::Child) => loop {
                for turn in 1..40 {
                    kit::clock::sleep((index as u64 + 1) * turn * 13_000);
                }
            },
            Ok(rt::process::Fork::Parent(child)) => *sleeper = child,
            Err(_) => return 1,
        }
    }
    let result = operations();
    for sleeper in sleepers {
        kit::call!(kit::uapi::nr::KILL, sleeper, kit::uapi::signal::SIGKILL);
        let _ = rt::process::wait(sleeper);
    }
    u8::from(result.is_err())
}

#[cfg(target_os = "none")]
fn operations() -> Result<(), kit::uapi::Errno> {
    use kit::memory::{PAGE, map, poke, private, protect, unmap};
    use kit::uapi::mman::{MAP_ANONYMOUS, MAP_POPULATE, MAP_PRIVATE, MREMAP_MAYMOVE, PROT_READ, PROT_WRITE};
    use kit::uapi::{nr, open};
    use kit::{attempt, call};
    use rt::io;
    use rt::process::{self, Fork};

    const BYTES: usize = PAGES * PAGE;
    let told = |name: &str| rt::println!("{name} {}", longest());
    told("before");
    let rounds = 3;
    for _ in 0..rounds {
        let base = private(BYTES)?;
        (0..PAGES).for_each(|page| poke(base + page * PAGE, 1));
        told("faults");
        match process::fork()? {
            Fork::Child => process::exit(0),
            Fork::Parent(child) => drop(process::wait(child)),
        }
        told("fork");
        protect(base, BYTES, PROT_READ)?;
        protect(base, BYTES, PROT_READ | PROT_WRITE)?;
        told("mprotect");
        let moved = attempt!(nr::MREMAP, base, BYTES, 2 * BYTES, MREMAP_MAYMOVE)?;
        told("mremap");
        unmap(moved, 2 * BYTES)?;
        told("munmap");

        let base = map(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)?;
        told("populate");
        let zero = io::open(c"/dev/zero", open::O_RDONLY, 0)?;
        call!(nr::READ, zero, base, BYTES);
        io::close(zero)?;
        told("read_zero");
        call!(nr::GETRANDOM, base, 1 << 20, 0);
        told("getrandom");
        let file = io::open(c"/tmp/latency", open::O_RDWR | open::O_CREAT | open::O_TRUNC, 0o600)?;
        call!(nr::WRITE, file, base, BYTES);
        told("write");
        call!(nr::PREAD64, file, base, BYTES, 0);
        told("read");
        let mapped = map(0, BYTES, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0)?;
        told("map_file");
        call!(nr::FTRUNCATE, file, 0);
        told("truncate");
        unmap(mapped, BYTES)?;
        io::close(file)?;
        attempt!(nr::UNLINKAT, open::AT_FDCWD, c"/tmp/latency".as_ptr(), 0)?;
        told("unlink");
        unmap(base, BYTES)?;
    }
    areas(told)
}

/// As many areas as there may be, nearly.
#[cfg(target_os = "none")]
fn areas(told: impl Fn(&str)) -> Result<(), kit::uapi::Errno> {
    use kit::memory::{PAGE, map, private, protect, unmap};
    use kit::uapi::mman::{MAP_ANONYMOUS, MAP_FIXED, MAP_PRIVATE, PROT_NONE, PROT_READ, PROT_WRITE};
    use rt::process::{self, Fork};

    const COUNT: usize = 65_000;
    let base = map(0, COUNT * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)?;
    for page in (0..COUNT).step_by(2) {
        protect(base + page * PAGE, PAGE, PROT_READ)?;
    }
    told("areas");
    match process::fork()? {
        Fork::Child => process::exit(0),
        Fork::Parent(child) => drop(process::wait(child)),
    }
    told("fork_areas");
    // A gap that is too small, above all others, so that the search goes by all of them.
    for page in (1..16).rev() {
        unmap(base + (COUNT - page) * PAGE, PAGE)?;
        unmap(private(2 * PAGE)?, 2 * PAGE)?;
        map(base + (COUNT - page) * PAGE, PAGE, PROT_NONE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)?;
    }
    told("search_areas");
    kit::call!(kit::uapi::nr::MSYNC, base, COUNT * PAGE, kit::uapi::mman::MS_ASYNC);
    told("msync_areas");
    kit::call!(kit::uapi::nr::MADVISE, base, COUNT * PAGE, kit::uapi::mman::MADV_DONTNEED);
    told("madvise_areas");
    protect(base, COUNT * PAGE, PROT_READ | PROT_WRITE)?;
    told("join_areas");
    for page in (0..COUNT).step_by(2) {
        protect(base + page * PAGE, PAGE, PROT_READ)?;
    }
    unmap(base, COUNT * PAGE)?;
    told("munmap_areas");
    Ok(())
}
