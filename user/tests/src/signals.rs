//! Signals: what a handler gets, what is blocked meanwhile, how interrupted calls go on, other stacks.

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use kit::check::{Must, Outcome};
use kit::random::Random;
use kit::registers::{self, A0, SP};
use kit::uapi::signal::{
    SA_NODEFER, SA_ONSTACK, SA_RESETHAND, SA_RESTART, SA_SIGINFO, SI_TKILL, SIG_DFL, SIG_IGN, SIGALRM, SIGCHLD,
    SIGCONT, SIGKILL, SIGSEGV, SIGSTOP, SIGTERM, SIGUSR1, SIGUSR2, SS_DISABLE, SS_ONSTACK, sigmask,
};
use kit::uapi::{Errno, Sigaction, Siginfo, Timespec, Ucontext, nr, wait};
use kit::{attempt, call, child, clock, ensure, equal, fails, memory, signal};
use rt::io;
use rt::process::{self, Ended};
use rt::tap::Test;

pub const TESTS: &[Test] = &[
    Test::new("signals/frame-holds-the-interrupted-state", frame),
    Test::new("signals/handler-blocks-itself-and-its-mask", masks),
    Test::new("signals/nodefer-and-resethand", flags),
    Test::new("signals/pending-once-until-unblocked", pending),
    Test::new("signals/nested-handlers", nested),
    Test::new("signals/read-restarts-if-asked", restart),
    Test::new("signals/sleep-is-cut-short-with-the-rest-told", cut_short),
    Test::new("signals/alternate-stack", alternate_stack),
    Test::new("signals/stack-overflow-handled-elsewhere", stack_overflow),
    Test::new("signals/suspend-swaps-the-mask", suspend),
    Test::new("signals/stop-and-continue", stop),
    Test::new("signals/wrong-arguments", wrong),
    Test::new("signals/fork-keeps-actions-drops-pending", over_fork),
    Test::new("signals/groups", groups),
    Test::dies("signals/blocked-fault-kills", blocked_fault, SIGSEGV as u8),
    Test::dies("signals/frame-nowhere-kills", || registers::sigreturn(64), SIGSEGV as u8),
    Test::dies(
        "signals/default-action-kills",
        || {
            signal::raise(SIGTERM);
            Ok(())
        },
        SIGTERM as u8,
    ),
];

static COUNT: AtomicU32 = AtomicU32::new(0);
static ORDER: AtomicU64 = AtomicU64::new(0);
static MASK: AtomicU64 = AtomicU64::new(0);
static STACK: AtomicUsize = AtomicUsize::new(0);

extern "C" fn count(_: i32, _: *const Siginfo, _: *mut Ucontext) {
    COUNT.fetch_add(1, Relaxed);
    MASK.store(signal::mask(), Relaxed);
}

fn action(handler: signal::Handler, flags: u64, mask: u64) -> Sigaction {
    Sigaction { handler: handler as usize, flags: flags | SA_SIGINFO, mask }
}

struct Seen {
    number: AtomicI32,
    info: core::cell::UnsafeCell<core::mem::MaybeUninit<(Siginfo, Ucontext)>>,
    places: [AtomicUsize; 2],
}

// SAFETY: written by the handler, read after it, by one thread.
unsafe impl Sync for Seen {}

static SEEN: Seen = Seen {
    number: AtomicI32::new(0),
    info: core::cell::UnsafeCell::new(core::mem::MaybeUninit::uninit()),
    places: [AtomicUsize::new(0), AtomicUsize::new(0)],
};

extern "C" fn keep(number: i32, info: *const Siginfo, context: *mut Ucontext) {
    SEEN.number.store(number, Relaxed);
    SEEN.places[0].store(info.addr(), Relaxed);
    SEEN.places[1].store(context.addr(), Relaxed);
    // SAFETY: both are in the frame; nobody reads the copy meanwhile.
    unsafe { (*SEEN.info.get()).write((*info, *context)) };
}

fn frame() -> Outcome {
    signal::handle(SIGUSR1, keep, 0).must("sigaction")?;
    let before = signal::block(sigmask(SIGUSR2));
    let own = [process::id() as usize, call!(nr::GETTID) as usize, SIGUSR1 as usize];
    let mut given = registers::call_pattern(&mut Random::new(1), nr::TGKILL, &own);
    registers::call(&mut given);
    equal!(SEEN.number.load(Relaxed), SIGUSR1 as i32, "the handler's first argument");
    // SAFETY: the handler has run.
    let (info, context) = unsafe { (*SEEN.info.get()).assume_init_ref() };
    equal!((info.si_signo, info.si_code, info.si_errno), (SIGUSR1 as i32, SI_TKILL, 0), "siginfo");
    equal!((info.pid(), info.uid()), (process::id(), 0), "the sender");
    given[A0] = 0;
    let mut shown = context.uc_mcontext.gregs;
    shown[0] = 0;
    ensure!(registers::difference(&given, &shown, &[]) == 0, "a register in the frame");
    equal!(context.uc_sigmask, before | sigmask(SIGUSR2), "the mask in the frame");
    equal!((context.uc_flags, context.uc_link), (0, 0), "flags and link");
    equal!(context.uc_mcontext.reserved, 0, "the reserved word");
    let [info_place, context_place] = [0, 1].map(|index: usize| SEEN.places[index].load(Relaxed));
    equal!(context_place - info_place, 128, "distance of siginfo and ucontext");
    equal!(info_place % 16, 0, "alignment of the frame");
    ensure!(info_place + 1088 <= given[SP] as usize, "the frame lies below the interrupted stack pointer");
    signal::set_mask(before);
    Ok(())
}

fn masks() -> Outcome {
    signal::set(SIGUSR1, action(count, 0, sigmask(SIGUSR2) | sigmask(SIGKILL))).must("sigaction")?;
    equal!(signal::action(SIGUSR1).must("sigaction")?.mask, sigmask(SIGUSR2), "SIGKILL leaves the mask");
    signal::raise(SIGUSR1);
    equal!(MASK.load(Relaxed), sigmask(SIGUSR1) | sigmask(SIGUSR2), "the mask in the handler");
    equal!(signal::mask(), 0, "the mask after it");
    Ok(())
}

fn flags() -> Outcome {
    signal::handle(SIGUSR1, count, SA_NODEFER).must("sigaction")?;
    signal::raise(SIGUSR1);
    equal!(MASK.load(Relaxed), 0, "SA_NODEFER leaves the signal unblocked");
    signal::handle(SIGUSR1, count, SA_RESETHAND).must("sigaction")?;
    signal::raise(SIGUSR1);
    equal!(signal::action(SIGUSR1).must("sigaction")?.handler, SIG_DFL, "SA_RESETHAND");
    signal::set(SIGUSR1, Sigaction { handler: SIG_IGN, ..Sigaction::default() }).must("sigaction")?;
    signal::raise(SIGUSR1);
    equal!(COUNT.load(Relaxed), 2, "handlers run");
    Ok(())
}

fn pending() -> Outcome {
    signal::handle(SIGUSR1, count, 0).must("sigaction")?;
    signal::block(sigmask(SIGUSR1));
    (0..3).for_each(|_| signal::raise(SIGUSR1));
    equal!(signal::pending(), sigmask(SIGUSR1), "pending");
    equal!(COUNT.load(Relaxed), 0, "nothing is delivered while blocked");
    signal::unblock(sigmask(SIGUSR1));
    equal!((COUNT.load(Relaxed), signal::pending()), (1, 0), "delivered once, before the call returns");
    signal::block(sigmask(SIGUSR1));
    signal::raise(SIGUSR1);
    signal::set(SIGUSR1, Sigaction { handler: SIG_IGN, ..Sigaction::default() }).must("sigaction")?;
    equal!(signal::pending(), 0, "ignoring drops what is pending");
    Ok(())
}

extern "C" fn outer(_: i32, _: *const Siginfo, _: *mut Ucontext) {
    ORDER.store(ORDER.load(Relaxed) * 10 + 1, Relaxed);
    signal::raise(SIGUSR2);
    ORDER.store(ORDER.load(Relaxed) * 10 + 3, Relaxed);
}

extern "C" fn inner(_: i32, _: *const Siginfo, _: *mut Ucontext) {
    ORDER.store(ORDER.load(Relaxed) * 10 + 2, Relaxed);
}

fn nested() -> Outcome {
    signal::handle(SIGUSR1, outer, 0).must("sigaction")?;
    signal::handle(SIGUSR2, inner, 0).must("sigaction")?;
    signal::raise(SIGUSR1);
    equal!(ORDER.load(Relaxed), 123, "the inner runs within the outer");
    // The outer's mask keeps the inner until its end.
    ORDER.store(0, Relaxed);
    signal::set(SIGUSR1, action(outer, 0, sigmask(SIGUSR2))).must("sigaction")?;
    signal::raise(SIGUSR1);
    equal!(ORDER.load(Relaxed), 132, "the inner runs after the outer");
    Ok(())
}

/// Where the handler tells another process that it has run.
static TOLD: AtomicUsize = AtomicUsize::new(0);

extern "C" fn tell(_: i32, _: *const Siginfo, _: *mut Ucontext) {
    COUNT.fetch_add(1, Relaxed);
    memory::poke(TOLD.load(Relaxed), 1);
}

fn restart() -> Outcome {
    let (read, write) = io::pipe().must("pipe")?;
    let told = memory::shared(memory::PAGE).must("mmap")?;
    TOLD.store(told, Relaxed);
    for (flags, wanted) in [(SA_RESTART, 1), (0, Errno::EINTR.to_ret())] {
        COUNT.store(0, Relaxed);
        memory::poke(told, 0);
        signal::handle(SIGALRM, tell, flags).must("sigaction")?;
        // Nothing comes before the signal has been taken.
        let writer = child::start(|| {
            while memory::peek(told) == 0 {
                clock::sleep(500_000);
            }
            clock::sleep(10_000_000);
            io::write(write, b"x").must("write")?;
            Ok(())
        })?;
        let mut byte = 0_u8;
        signal::timer(50_000, 0);
        equal!(call!(nr::READ, read, &raw mut byte, 1), wanted, "read after a signal");
        equal!(COUNT.load(Relaxed), 1, "handlers run");
        child::finish(writer)?;
    }
    // wait4 with SA_RESTART goes on as well.
    signal::handle(SIGALRM, count, SA_RESTART).must("sigaction")?;
    let sleeper = child::start(|| {
        clock::sleep(40_000_000);
        Ok(())
    })?;
    signal::timer(10_000, 0);
    equal!(call!(nr::WAIT4, sleeper, 0, 0, 0), sleeper as isize, "wait4 after a signal");
    Ok(())
}

fn cut_short() -> Outcome {
    signal::handle(SIGALRM, count, SA_RESTART).must("sigaction")?;
    signal::timer(20_000, 0);
    let request = Timespec::from_ns(5_000_000_000);
    let mut left = Timespec::default();
    fails!(call!(nr::NANOSLEEP, &raw const request, &raw mut left), EINTR, "nanosleep is not restarted");
    let left = left.to_ns().unwrap_or(0);
    ensure!((3_000_000_000..5_000_000_000).contains(&left), "the rest of the sleep");
    Ok(())
}

extern "C" fn on_stack(_: i32, _: *const Siginfo, context: *mut Ucontext) {
    let here = 0_u8;
    STACK.store((&raw const here).addr(), Relaxed);
    let mut own = kit::uapi::StackT::default();
    call!(nr::SIGALTSTACK, 0, &raw mut own);
    COUNT.store(own.ss_flags, Relaxed);
    let none = kit::uapi::StackT { ss_flags: SS_DISABLE, ..Default::default() };
    ORDER.store(call!(nr::SIGALTSTACK, &raw const none, 0) as u64, Relaxed);
    // SAFETY: the frame is ours.
    MASK.store(unsafe { (*context).uc_stack.ss_sp } as u64, Relaxed);
}

fn alternate_stack() -> Outcome {
    const SIZE: usize = 16 * memory::PAGE;
    fails!(
        signal::alternate_stack(1 << 20, 100, 0).map_or_else(Errno::to_ret, |_| 0),
        ENOMEM,
        "a stack that is too small"
    );
    let base = memory::private(SIZE).must("mmap")?;
    let old = signal::alternate_stack(base, SIZE, 0).must("sigaltstack")?;
    equal!(old.ss_flags, SS_DISABLE, "there was none before");
    signal::handle(SIGUSR1, on_stack, SA_ONSTACK).must("sigaction")?;
    signal::raise(SIGUSR1);
    ensure!((base..base + SIZE).contains(&STACK.load(Relaxed)), "the handler runs on the other stack");
    equal!(COUNT.load(Relaxed), SS_ONSTACK, "the stack's state in the handler");
    equal!(ORDER.load(Relaxed) as i64, -1, "it cannot be changed while in use");
    equal!(MASK.load(Relaxed), base as u64, "the stack in the frame");
    signal::handle(SIGUSR1, on_stack, 0).must("sigaction")?;
    signal::raise(SIGUSR1);
    ensure!(!(base..base + SIZE).contains(&STACK.load(Relaxed)), "without SA_ONSTACK it does not");
    let mut own = kit::uapi::StackT::default();
    call!(nr::SIGALTSTACK, 0, &raw mut own);
    equal!((own.ss_sp, own.ss_flags), (base, 0), "the handler switched it off, its return brought it back");
    Ok(())
}

/// Ends the process from the other stack when the first has no room left.
extern "C" fn overflown(_: i32, info: *const Siginfo, context: *mut Ucontext) {
    // SAFETY: both are in the frame.
    let (address, sp) = unsafe { ((*info).addr(), (*context).uc_mcontext.gregs[SP] as usize) };
    process::exit(if address.abs_diff(sp) < 1 << 16 { 55 } else { 56 })
}

#[inline(never)]
fn recurse(depth: u64) -> u64 {
    let room = core::hint::black_box([depth; 256]);
    if depth == u64::MAX { 0 } else { recurse(depth + 1) + room[(depth % 256) as usize] }
}

fn stack_overflow() -> Outcome {
    let base = memory::private(16 * memory::PAGE).must("mmap")?;
    let ended = child::end(|| {
        signal::alternate_stack(base, 16 * memory::PAGE, 0).must("sigaltstack")?;
        signal::handle(SIGSEGV, overflown, SA_ONSTACK).must("sigaction")?;
        core::hint::black_box(recurse(0));
        Ok(())
    })?;
    equal!(ended, Ended::Exited(55), "endless recursion with a handler");
    let ended = child::end(|| {
        core::hint::black_box(recurse(0));
        Ok(())
    })?;
    equal!(ended, Ended::Killed(SIGSEGV as u8), "endless recursion without");
    Ok(())
}

fn suspend() -> Outcome {
    signal::handle(SIGALRM, count, 0).must("sigaction")?;
    signal::block(sigmask(SIGALRM));
    signal::timer(5_000, 0);
    let open = 0_u64;
    fails!(call!(nr::RT_SIGSUSPEND, &raw const open, signal::SET_SIZE), EINTR, "sigsuspend");
    equal!((COUNT.load(Relaxed), signal::mask()), (1, sigmask(SIGALRM)), "handlers run, mask afterwards");
    fails!(call!(nr::RT_SIGSUSPEND, &raw const open, 4), EINVAL, "sigsuspend with a set of another size");
    Ok(())
}

fn stop() -> Outcome {
    let (read, write) = io::pipe().must("pipe")?;
    let child = child::start(|| {
        signal::raise(SIGSTOP);
        let _ = io::read(read, &mut [0]);
        process::exit(9)
    })?;
    let mut status = 0_i32;
    let mut wait_for = |options: u32| call!(nr::WAIT4, child, &raw mut status, options, 0);
    equal!(wait_for(wait::WUNTRACED), child as isize, "wait for the stop");
    equal!(status, wait::stopped(SIGSTOP), "status of a stopped child");
    let mut wait_for = |options: u32| call!(nr::WAIT4, child, &raw mut status, options, 0);
    equal!(wait_for(wait::WUNTRACED | wait::WNOHANG), 0, "a stop is told once");
    process::kill(child, SIGCONT as i32).must("kill")?;
    equal!(wait_for(wait::WCONTINUED), child as isize, "wait for the continuation");
    equal!(status, wait::CONTINUED, "status of a continued child");
    io::write_all(write, b"x").must("write")?;
    equal!(process::wait(child).must("wait")?.1, Ended::Exited(9), "the end");
    // A stopped process can be killed.
    let child = child::start(|| {
        signal::raise(SIGSTOP);
        Ok(())
    })?;
    equal!(call!(nr::WAIT4, child, 0, wait::WUNTRACED, 0), child as isize, "wait for the stop");
    process::kill(child, SIGKILL as i32).must("kill")?;
    equal!(process::wait(child).must("wait")?.1, Ended::Killed(SIGKILL as u8), "the end");
    Ok(())
}

fn wrong() -> Outcome {
    let mine = action(count, 0, 0);
    for number in [0, SIGKILL, SIGSTOP, 65, 1 << 20] {
        fails!(call!(nr::RT_SIGACTION, number, &raw const mine, 0, 8), EINVAL, "an action that cannot be set");
    }
    fails!(call!(nr::RT_SIGACTION, SIGUSR1, &raw const mine, 0, 4), EINVAL, "a set of another size");
    let set = 1_u64;
    fails!(call!(nr::RT_SIGPROCMASK, 3, &raw const set, 0, 8), EINVAL, "a way of changing the mask that is none");
    fails!(call!(nr::RT_SIGPROCMASK, 0, 8, 0, 8), EFAULT, "a mask at a bad address");
    fails!(call!(nr::KILL, process::id(), 65), EINVAL, "a signal that is none");
    fails!(call!(nr::KILL, 4_000_000, 0), ESRCH, "a process that is none");
    fails!(call!(nr::TGKILL, 0, 1, 0), EINVAL, "a thread group that is none");
    fails!(call!(nr::TGKILL, process::id(), 1, 0), ESRCH, "a thread of another process");
    equal!(call!(nr::KILL, process::id(), 0), 0, "signal 0 is a question");
    signal::set_mask(u64::MAX);
    equal!(signal::mask(), !sigmask(SIGKILL) & !sigmask(SIGSTOP), "what cannot be blocked");
    Ok(())
}

fn over_fork() -> Outcome {
    signal::handle(SIGUSR1, count, 0).must("sigaction")?;
    signal::block(sigmask(SIGUSR1));
    signal::raise(SIGUSR1);
    child::pass(|| {
        equal!(signal::pending(), 0, "pending signals are not inherited");
        equal!(signal::mask(), sigmask(SIGUSR1), "the mask is");
        equal!(signal::action(SIGUSR1).must("sigaction")?.handler, count as signal::Handler as usize, "handlers are");
        Ok(())
    })?;
    equal!(signal::pending(), sigmask(SIGUSR1), "the parent's signal waits");
    Ok(())
}

fn groups() -> Outcome {
    signal::handle(SIGCHLD, keep, 0).must("sigaction")?;
    let mut members = [0; 3];
    for index in 0..3 {
        let leader = members[0];
        members[index] = child::start(|| {
            clock::sleep(20_000_000_000);
            Ok(())
        })?;
        process::set_group(members[index], leader).must("setpgid")?;
    }
    process::kill(-members[0], SIGTERM as i32).must("kill the group")?;
    for member in members {
        equal!(process::wait(member).must("wait")?.1, Ended::Killed(SIGTERM as u8), "a member's end");
    }
    ensure!(attempt!(nr::KILL, -members[0], 0) == Err(Errno::ESRCH), "the group is gone");
    // SAFETY: the handler has run for the first of them at least.
    let (info, _) = unsafe { (*SEEN.info.get()).assume_init_ref() };
    equal!(
        (info.si_signo, info.is_child(), info.status()),
        (SIGCHLD as i32, true, SIGTERM as i32),
        "SIGCHLD's information"
    );
    ensure!(members.contains(&info.pid()), "the child in SIGCHLD's information");
    Ok(())
}

fn blocked_fault() -> Outcome {
    signal::handle(SIGSEGV, count, 0).must("sigaction")?;
    signal::block(sigmask(SIGSEGV));
    memory::poke(24, 1);
    Ok(())
}
