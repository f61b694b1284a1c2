//! Fences of translations that an operation costs, by the counters of `/proc/limen/boundary`: a line is `name figure`, in
//! hundredths' precision, the mean over a loop. Run it on one hart: elsewhere the counters are of several.

#![cfg_attr(target_os = "none", no_std, no_main)]

rt::program!(run);

/// All fences so far, but those of instruction fetches.
#[cfg(target_os = "none")]
fn fences() -> u64 {
    static mut BUFFER: [u8; 16_384] = [0; 16_384];
    // SAFETY: one thread, and no reference lives on.
    let buffer = unsafe { &mut *(&raw mut BUFFER) };
    let text = kit::file::text(c"/proc/limen/boundary", buffer).unwrap_or("");
    let count = |line: &str| {
        let (name, count) = line.trim_start().strip_prefix("fence_")?.split_once(' ')?;
        if name.ends_with("_fetch") { None } else { count.parse::<u64>().ok() }
    };
    text.lines().filter_map(count).sum()
}

#[cfg(target_os = "none")]
fn measure(name: &str, rounds: u64, mut operation: impl FnMut() -> bool) -> bool {
    let mut fine = (0..3).all(|_| operation());
    fences();
    let before = fences();
    for _ in 0..rounds {
        fine &= operation();
    }
    let hundredths = (fences() - before) * 100 / rounds;
    rt::println!("{name} {}.{:02}", hundredths / 100, hundredths % 100);
    fine
}

#[cfg(target_os = "none")]
fn run(args: rt::Args) -> u8 {
    use kit::memory::{PAGE, poke, private, unmap};
    use rt::process::{self, Ended, Fork};

    let at_start = fences();
    rt::println!("start {at_start}");
    let mut fine = true;
    let pages = 512;
    if let Ok(base) = private(pages * PAGE) {
        let mut at = base;
        fine &= measure("anonymous_fault", 500, || {
            poke(at, 1);
            at += PAGE;
            true
        });
        fine &= unmap(base, pages * PAGE).is_ok();
    }
    fine &= measure("map_write_unmap_16", 100, || {
        private(16 * PAGE).is_ok_and(|base| {
            (0..16).for_each(|page| poke(base + page * PAGE, 1));
            unmap(base, 16 * PAGE).is_ok()
        })
    });
    fine &= measure("fork_exit_wait", 50, || match process::fork() {
        Ok(Fork::Child) => process::exit(7),
        Ok(Fork::Parent(child)) => process::wait(child) == Ok((child, Ended::Exited(7))),
        Err(_) => false,
    });
    let argv = [c"busybox".as_ptr(), c"true".as_ptr(), core::ptr::null()];
    fine &= measure("fork_exec_wait", 20, || match process::fork() {
        Ok(Fork::Child) => {
            // SAFETY: both arrays hold strings and end with a null pointer.
            unsafe { process::execute(c"/bin/busybox", argv.as_ptr(), args.environment_pointer()) };
            process::exit(127)
        }
        Ok(Fork::Parent(child)) => process::wait(child) == Ok((child, Ended::Exited(0))),
        Err(_) => false,
    });
    u8::from(!fine)
}
