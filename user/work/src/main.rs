//! The lab's program in the guest: `work [--no-settle] [NAME…]` measures workloads by the `time` register.
//!
//! Where instructions are counted (`cargo limen run --icount`) one nanosecond is one instruction of user, kernel and
//! firmware together. A line is `name figure`, the mean over a loop that has been warmed up; a line that begins with `#`
//! is a remark. Without `--no-settle` it first waits until 20 seconds after boot, for a Linux has start-up work that would
//! share the hart. With names it measures only those, and status 1 says that one of them could not be measured.
//!
//! `work --profile PROGRAM ARGS…` runs a program between the markers and ends with its status.

#![cfg_attr(target_os = "none", no_std, no_main)]

rt::program!(main);

#[cfg(target_os = "none")]
fn main(args: rt::Args) -> u8 {
    use limen_user_work::{WORKLOADS, find, run};
    let mut first = 1;
    let mut settled = true;
    while args.get(first).is_some_and(|word| word == c"--no-settle") {
        settled = false;
        first += 1;
    }
    if settled {
        run::settle();
    }
    match args.get(first) {
        Some(word) if word == c"--profile" => return run::profile(first + 1, args),
        _ => {}
    }
    let (mapped, resident) = kit::file::pages();
    rt::println!("# this program: {mapped} pages mapped, {resident} resident");
    let mut all = true;
    for word in args.iter().skip(first) {
        match word.to_str().ok().and_then(find) {
            Some(workload) => all &= run::measure(workload, args),
            None if word == c"--nothing" => {}
            None => {
                rt::println!("# no workload {}", word.to_str().unwrap_or("?"));
                all = false;
            }
        }
    }
    if first == args.count() {
        for workload in WORKLOADS.iter().filter(|workload| workload.harts == 1 && workload.memory == 0) {
            run::measure(workload, args);
        }
    }
    u8::from(!all)
}
