//! Clocks, sleeping, timers, and the scheduler's calls.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use kit::check::{Must, Outcome};
use kit::registers;
use kit::uapi::sched::SCHED_NORMAL;
use kit::uapi::signal::{SIGALRM, SIGPROF, SIGVTALRM};
use kit::uapi::time::{
    CLOCK_BOOTTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, CLOCK_REALTIME, CLOCK_THREAD_CPUTIME_ID, ITIMER_PROF,
    ITIMER_REAL, ITIMER_VIRTUAL, TIMER_ABSTIME,
};
use kit::uapi::{Itimerval, Siginfo, Sysinfo, Timespec, Timeval, Tms, Ucontext, nr};
use kit::{call, child, clock, ensure, equal, fails, signal};
use rt::tap::Test;

pub const TESTS: &[Test] = &[
    Test::new("time/sleep-is-long-enough", sleeps),
    Test::new("time/sleepers-wake-in-order", in_order),
    Test::new("time/sleep-until", until),
    Test::new("time/clocks", clocks),
    Test::new("time/processor-time", processor_time),
    Test::new("time/interval-timers", interval_timers),
    Test::new("time/timers-of-processor-time", processor_timers),
    Test::new("time/affinity", affinity),
    Test::new("time/policies", policies),
    Test::new("time/fair-shares", fair),
    Test::new("time/wrong-arguments", wrong),
];

fn sleeps() -> Outcome {
    for nanoseconds in [0, 1, 50_000, 1_000_000, 7_000_000, 40_000_000] {
        let start = clock::now();
        equal!(clock::sleep(nanoseconds), 0, "nanosleep");
        let slept = clock::now() - start;
        ensure!(slept >= nanoseconds, "it ended early");
        ensure!(slept < nanoseconds + 2_000_000_000, "it ended much too late");
    }
    Ok(())
}

fn in_order() -> Outcome {
    let order = kit::memory::shared_value::<[AtomicU32; 8]>().must("mmap")?;
    let start = clock::now() + 50_000_000;
    let mut children = [0; 6];
    for (index, child) in children.iter_mut().enumerate() {
        *child = child::start(|| {
            // The later made, the earlier it wakes; a fifth of a second apart, for the host may be busy.
            clock::sleep_until(start + (6 - index as u64) * 200_000_000);
            order[order[7].fetch_add(1, Relaxed) as usize].store(index as u32, Relaxed);
            Ok(())
        })?;
    }
    children.into_iter().try_for_each(child::finish)?;
    let seen: [u32; 6] = core::array::from_fn(|index| order[index].load(Relaxed));
    equal!(seen, [5, 4, 3, 2, 1, 0], "the order in which they woke");
    Ok(())
}

fn until() -> Outcome {
    for number in [CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME] {
        let point = clock::read(number) + 20_000_000;
        let request = Timespec::from_ns(point);
        equal!(call!(nr::CLOCK_NANOSLEEP, number, TIMER_ABSTIME, &raw const request, 0), 0, "clock_nanosleep");
        ensure!(clock::read(number) >= point, "it ended early");
        let past = Timespec::from_ns(1);
        equal!(call!(nr::CLOCK_NANOSLEEP, number, TIMER_ABSTIME, &raw const past, 0), 0, "a time that is over");
    }
    Ok(())
}

fn clocks() -> Outcome {
    // 2020 is over, 2100 is not near.
    let real = clock::read(CLOCK_REALTIME) / 1_000_000_000;
    ensure!((1_577_836_800..4_102_444_800).contains(&real), "the time of day");
    let mut last = 0;
    for _ in 0..1_000 {
        let now = clock::now();
        ensure!(now >= last, "the monotonic clock ran backwards");
        last = now;
    }
    let mut step = Timespec::default();
    for number in [0, 1, 2, 3, 4, 5, 6, 7, 11] {
        equal!(call!(nr::CLOCK_GETRES, number, &raw mut step), 0, "clock_getres");
        ensure!(step.tv_sec == 0 && (1..=10_000_000).contains(&step.tv_nsec), "a resolution");
    }
    fails!(call!(nr::CLOCK_GETTIME, 99, &raw mut step), EINVAL, "a clock that is none");
    fails!(call!(nr::CLOCK_GETTIME, 1, 8), EFAULT, "a bad address");
    let mut info = Sysinfo::default();
    equal!(call!(nr::SYSINFO, &raw mut info), 0, "sysinfo");
    let boot = clock::read(CLOCK_BOOTTIME) / 1_000_000_000;
    ensure!(boot.abs_diff(info.uptime as u64) <= 2, "the time since boot");
    Ok(())
}

fn spin(nanoseconds: u64) {
    let end = clock::now() + nanoseconds;
    while clock::now() < end {
        let mut given = registers::pattern(&mut kit::random::Random::new(1));
        given[registers::A7] = 100_000;
        registers::spin(&mut given);
    }
}

fn processor_time() -> Outcome {
    let both = || [CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID].map(clock::read);
    let before = both();
    clock::sleep(100_000_000);
    for (before, after) in before.into_iter().zip(both()) {
        ensure!(after - before < 80_000_000, "sleeping costs processor time");
    }
    let before = both();
    let start = clock::now();
    while both()[0] - before[0] < 50_000_000 {
        ensure!(clock::now() - start < 10_000_000_000, "running costs no processor time");
        spin(1_000_000);
    }
    ensure!(both()[1] > before[1], "the thread's clock stands still");
    ensure!(clock::now() - start >= 50_000_000, "more processor time than time");
    let mut times = Tms::default();
    ensure!(call!(nr::TIMES, &raw mut times) > 0, "times");
    ensure!(times.tms_utime + times.tms_stime >= 3, "ticks used");
    Ok(())
}

static TAKEN: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_: i32, _: *const Siginfo, _: *mut Ucontext) {
    TAKEN.fetch_add(1, Relaxed);
}

fn interval_timers() -> Outcome {
    signal::handle(SIGALRM, count, 0).must("sigaction")?;
    signal::timer(5_000, 5_000);
    let limit = clock::now() + 10_000_000_000;
    while TAKEN.load(Relaxed) < 5 {
        ensure!(clock::now() < limit, "too few signals");
        clock::sleep(1_000_000);
    }
    let mut left = Itimerval::default();
    equal!(call!(nr::GETITIMER, ITIMER_REAL, &raw mut left), 0, "getitimer");
    equal!(left.it_interval, Timeval { tv_sec: 0, tv_usec: 5_000 }, "the interval");
    ensure!(left.it_value.tv_sec == 0 && left.it_value.tv_usec <= 5_000, "what is left");
    signal::timer(0, 0);
    let taken = TAKEN.load(Relaxed);
    clock::sleep(30_000_000);
    ensure!(TAKEN.load(Relaxed) <= taken + 1, "a timer that was stopped goes on");
    // Children start without it.
    signal::timer(10_000_000, 0);
    child::pass(|| {
        let mut left = Itimerval { it_value: Timeval { tv_sec: 1, tv_usec: 1 }, ..Itimerval::default() };
        call!(nr::GETITIMER, ITIMER_REAL, &raw mut left);
        equal!(left, Itimerval::default(), "a child's timer");
        Ok(())
    })
}

fn processor_timers() -> Outcome {
    for (kind, number) in [(ITIMER_VIRTUAL, SIGVTALRM), (ITIMER_PROF, SIGPROF)] {
        TAKEN.store(0, Relaxed);
        signal::handle(number, count, 0).must("sigaction")?;
        let value = Itimerval { it_value: Timeval { tv_sec: 0, tv_usec: 30_000 }, ..Itimerval::default() };
        equal!(call!(nr::SETITIMER, kind, &raw const value, 0), 0, "setitimer");
        clock::sleep(60_000_000);
        equal!(TAKEN.load(Relaxed), 0, "sleeping runs the timer down");
        let limit = clock::now() + 10_000_000_000;
        while TAKEN.load(Relaxed) == 0 {
            ensure!(clock::now() < limit, "running does not");
            spin(1_000_000);
        }
    }
    Ok(())
}

fn affinity() -> Outcome {
    let mut set = [0_u64; 16];
    let size = call!(nr::SCHED_GETAFFINITY, 0, 128, set.as_mut_ptr());
    ensure!(size >= 8, "sched_getaffinity");
    let harts = set[0].count_ones();
    ensure!((1..=8).contains(&harts), "the number of harts");
    for hart in 0..harts {
        let one = 1_u64 << hart;
        equal!(call!(nr::SCHED_SETAFFINITY, 0, 8, &raw const one), 0, "sched_setaffinity");
        for _ in 0..20 {
            let mut here = 99_u32;
            call!(nr::GETCPU, &raw mut here, 0, 0);
            equal!(here, hart, "the hart we run on");
            call!(nr::SCHED_YIELD);
        }
        child::pass(|| {
            let mut own = [0_u64; 16];
            call!(nr::SCHED_GETAFFINITY, 0, 128, own.as_mut_ptr());
            equal!(own[0], one, "inherited");
            Ok(())
        })?;
    }
    let none = 0_u64;
    fails!(call!(nr::SCHED_SETAFFINITY, 0, 8, &raw const none), EINVAL, "no hart");
    fails!(call!(nr::SCHED_GETAFFINITY, 3_000_000, 128, set.as_mut_ptr()), ESRCH, "nobody");
    Ok(())
}

fn policies() -> Outcome {
    equal!(call!(nr::SCHED_GETSCHEDULER, 0), SCHED_NORMAL as isize, "the policy");
    equal!(call!(nr::SCHED_GET_PRIORITY_MAX, 1), 99, "the best priority");
    equal!(call!(nr::SCHED_GET_PRIORITY_MIN, 1), 1, "the worst");
    equal!(call!(nr::SCHED_GET_PRIORITY_MAX, SCHED_NORMAL), 0, "without priorities");
    fails!(call!(nr::SCHED_GET_PRIORITY_MAX, 77), EINVAL, "a policy that is none");
    equal!(call!(nr::SETPRIORITY, 0, 0, 5), 0, "setpriority");
    equal!(call!(nr::GETPRIORITY, 0, 0), 15, "getpriority gives 20 minus that");
    equal!(call!(nr::SETPRIORITY, 0, 0, 50), 0, "beyond the end");
    equal!(call!(nr::GETPRIORITY, 0, 0), 1, "is the end");
    Ok(())
}

/// Two that compute on one hart get a fair share each.
fn fair() -> Outcome {
    let one = 1_u64;
    call!(nr::SCHED_SETAFFINITY, 0, 8, &raw const one);
    let used = kit::memory::shared_value::<[AtomicU32; 2]>().must("mmap")?;
    let mut children = [0; 2];
    let start = clock::now() + 20_000_000;
    for (index, child) in children.iter_mut().enumerate() {
        *child = child::start(|| {
            clock::sleep_until(start);
            while clock::now() < start + 400_000_000 {
                spin(500_000);
            }
            used[index].store((clock::read(CLOCK_PROCESS_CPUTIME_ID) / 1_000) as u32, Relaxed);
            Ok(())
        })?;
    }
    children.into_iter().try_for_each(child::finish)?;
    let [a, b] = [0, 1].map(|index: usize| used[index].load(Relaxed));
    if a.min(b) * 4 < a.max(b) {
        rt::println!("# {a} and {b} microseconds");
        return Err("one of two got less than a fifth");
    }
    Ok(())
}

fn wrong() -> Outcome {
    for (sec, nsec) in [(0, 1_000_000_000), (0, -1), (-1, 0)] {
        let request = Timespec { tv_sec: sec, tv_nsec: nsec };
        fails!(call!(nr::NANOSLEEP, &raw const request, 0), EINVAL, "a time that is none");
    }
    fails!(call!(nr::NANOSLEEP, 8, 0), EFAULT, "a time at a bad address");
    let request = Timespec::from_ns(1);
    fails!(call!(nr::CLOCK_NANOSLEEP, 99, 0, &raw const request, 0), EINVAL, "a clock that is none");
    let value = Itimerval { it_value: Timeval { tv_sec: 0, tv_usec: 1_000_000 }, ..Itimerval::default() };
    fails!(call!(nr::SETITIMER, ITIMER_REAL, &raw const value, 0), EINVAL, "microseconds that are none");
    fails!(call!(nr::SETITIMER, 3, &raw const value, 0), EINVAL, "a timer that is none");
    Ok(())
}
