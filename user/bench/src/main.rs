//! What an operation at the boundary costs, in instructions.
//!
//! Run it where the clock counts instructions (`cargo limen run --icount`): there one nanosecond is one instruction of
//! user, kernel and firmware together, and the `time` register shows 100 of them as one tick. On anything else the
//! figures are nanoseconds. A line is `name figure`, the figure with two decimals, the mean over a loop that has been
//! warmed up; a line that begins with `#` is a remark. `bench [--no-settle] [NAME…]`: without the option it first waits
//! until 20 seconds after boot, for a Linux has start-up work that would share the hart; with names it measures only
//! those.
//!
//! Loops are counted with what the program itself spends: `getppid` is a raw `ecall` in a loop of 4 instructions.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod calls;
#[cfg(target_os = "none")]
mod memory;
#[cfg(target_os = "none")]
mod processes;

rt::program!(run);

/// A measurement: sets itself up, warms up, gives the ticks of so many rounds; `None` if the kernel does not play along.
#[cfg(target_os = "none")]
struct Operation {
    name: &'static str,
    rounds: u32,
    measure: fn(u32, rt::Args) -> Option<u64>,
}

#[cfg(target_os = "none")]
const OPERATIONS: &[Operation] = &[
    Operation { name: "getppid", rounds: 20_000, measure: calls::getppid },
    Operation { name: "read_zero", rounds: 10_000, measure: calls::read_zero },
    Operation { name: "write_null", rounds: 10_000, measure: calls::write_null },
    Operation { name: "sched_yield", rounds: 10_000, measure: calls::sched_yield },
    Operation { name: "clock_gettime_vdso", rounds: 10_000, measure: calls::clock_gettime_vdso },
    Operation { name: "open_read_close", rounds: 2_000, measure: calls::open_read_close },
    Operation { name: "signal", rounds: 5_000, measure: calls::signal },
    Operation { name: "anonymous_fault", rounds: 4_096, measure: memory::anonymous_fault },
    Operation { name: "map_write_unmap_16", rounds: 500, measure: memory::map_write_unmap },
    Operation { name: "map_unmap", rounds: 2_000, measure: memory::map_unmap },
    Operation { name: "pipe_round_trip", rounds: 2_000, measure: processes::pipe_round_trip },
    Operation { name: "futex_round_trip", rounds: 2_000, measure: processes::futex_round_trip },
    Operation { name: "fork_exit_wait", rounds: 200, measure: processes::fork_exit_wait },
    Operation { name: "fork_exit_wait_32", rounds: 200, measure: processes::fork_exit_wait_32 },
    Operation { name: "fork_exec_wait", rounds: 50, measure: processes::fork_exec_wait },
];

/// Nanoseconds after boot from which on a kernel counts as settled.
#[cfg(target_os = "none")]
const SETTLED: u64 = 20_000_000_000;

#[cfg(target_os = "none")]
fn run(args: rt::Args) -> u8 {
    let is_option = |word: &&core::ffi::CStr| word.to_bytes().starts_with(b"--");
    if !args.iter().skip(1).any(|word| word == c"--no-settle") {
        kit::clock::sleep_until(SETTLED);
    }
    let names = || args.iter().skip(1).filter(|word| !is_option(word));
    let wanted = |name: &str| names().next().is_none() || names().any(|word| word.to_bytes() == name.as_bytes());
    let (mapped, resident) = kit::file::pages();
    rt::println!("# this program: {mapped} pages mapped, {resident} resident");
    let mut status = 0;
    for operation in OPERATIONS.iter().filter(|operation| wanted(operation.name)) {
        match (operation.measure)(operation.rounds, args) {
            Some(ticks) => {
                let hundredths = ticks * kit::clock::TICK * 100 / u64::from(operation.rounds);
                rt::println!("{} {}.{:02}", operation.name, hundredths / 100, hundredths % 100);
            }
            None => {
                rt::println!("# {}: not measured, the kernel refused a call", operation.name);
                status = 1;
            }
        }
    }
    // Last: the pages that it touches would count in the fork rows.
    if names().next().is_none() {
        boot();
    }
    status
}

/// From the kernel's entry to the first program's first instruction, where the kernel tells.
#[cfg(target_os = "none")]
fn boot() {
    let mut buffer = [0; 16_384];
    let text = kit::file::text(c"/proc/limen/boundary", &mut buffer).unwrap_or("");
    let ticks = |key| kit::file::number(text, key);
    if let (Some(entry), Some(user)) = (ticks("entry_ticks"), ticks("first_user_ticks")) {
        rt::println!("boot {}", user.saturating_sub(entry) * kit::clock::TICK);
    }
}

/// Ticks of `rounds` calls of `body`, after a tenth as many that are not counted; `None` as soon as one fails.
#[cfg(target_os = "none")]
#[inline(always)]
fn timed(rounds: u32, mut body: impl FnMut() -> bool) -> Option<u64> {
    for _ in 0..rounds.div_ceil(10) {
        body().then_some(())?;
    }
    let mut fine = true;
    let start = kit::clock::ticks();
    for _ in 0..rounds {
        fine &= body();
    }
    let ticks = kit::clock::ticks() - start;
    fine.then_some(ticks)
}
