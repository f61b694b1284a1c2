//! Traps in strange circumstances: any stack pointer, a reservation held, wrong instructions, wrong addresses.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use kit::check::{Must, Outcome};
use kit::probe::{self, Fault};
use kit::random::Random;
use kit::registers;
use kit::uapi::mman::{MAP_ANONYMOUS, MAP_PRIVATE, PROT_EXEC, PROT_NONE, PROT_READ, PROT_WRITE};
use kit::uapi::signal::{
    BUS_ADRERR, ILL_ILLOPC, SA_ONSTACK, SEGV_ACCERR, SEGV_MAPERR, SIGALRM, SIGBUS, SIGILL, SIGSEGV, SIGTRAP, SIGUSR1,
    TRAP_BRKPT,
};
use kit::uapi::{Siginfo, Ucontext, nr, open};
use kit::{attempt, call, child, clock, ensure, equal, memory, signal};
use rt::process::{self, Ended};
use rt::tap::Test;

pub const TESTS: &[Test] = &[
    Test::new("traps/bad-stack-pointer-call-fault-interrupt", bad_sp_harmless),
    Test::new("traps/bad-stack-pointer-signal-on-other-stack", bad_sp_other_stack),
    Test::new("traps/bad-stack-pointer-signal-kills", bad_sp_kills),
    Test::new("traps/lr-signal-sc-fails", lr_signal_sc),
    Test::new("traps/lr-in-handler-does-not-help", lr_in_handler),
    Test::new("traps/lr-preempted-by-timer-sc-fails", lr_timer_sc),
    Test::new("traps/unmapped", unmapped),
    Test::new("traps/protected", protected),
    Test::new("traps/kernel-and-noncanonical-addresses", kernel_addresses),
    Test::new("traps/beyond-a-mapped-file", beyond_file),
    Test::new("traps/illegal-and-breakpoint", illegal),
    Test::new("traps/illegal-keeps-registers", illegal_registers),
    Test::new("traps/fault-while-blocked-kills", blocked_kills),
    Test::dies(
        "traps/null-store-kills",
        || {
            memory::poke(8, 1);
            Ok(())
        },
        SIGSEGV as u8,
    ),
];

/// No stack, odd ones, negative ones as the kernel's are, the kernel's.
const BAD: [usize; 10] = [
    0,
    1,
    7,
    4096,
    usize::MAX,
    (-16_isize).cast_unsigned(),
    isize::MIN.cast_unsigned(),
    0xffff_ffff_8000_0000,
    0xffff_ffd8_0000_0000,
    1 << 62,
];

fn bad_sp_harmless() -> Outcome {
    crate::registers::compete(2)?;
    let parent = call!(nr::GETPPID);
    for sp in BAD {
        let fresh = memory::private(memory::PAGE).must("mmap")?;
        // Enough rounds for a few timer interrupts.
        equal!(registers::bad_stack(sp, nr::GETPPID, 4_000_000, fresh, false), parent, "getppid without a stack");
        equal!(registers::bad_stack(sp, 9_999, 1, fresh, false), -38, "an unknown call without a stack");
    }
    Ok(())
}

static SEEN_SP: AtomicUsize = AtomicUsize::new(0);

extern "C" fn skip_illegal(_: i32, _: *const Siginfo, context: *mut Ucontext) {
    // SAFETY: the frame is ours until we return.
    let registers = unsafe { &mut (*context).uc_mcontext.gregs };
    SEEN_SP.store(registers[registers::SP] as usize, Relaxed);
    registers[0] += 4;
}

fn bad_sp_other_stack() -> Outcome {
    let stack = memory::private(8 * memory::PAGE).must("mmap")?;
    signal::alternate_stack(stack, 8 * memory::PAGE, 0).must("sigaltstack")?;
    signal::handle(SIGILL, skip_illegal, SA_ONSTACK).must("sigaction")?;
    for sp in BAD {
        let fresh = memory::private(memory::PAGE).must("mmap")?;
        let parent = call!(nr::GETPPID);
        equal!(registers::bad_stack(sp, nr::GETPPID, 1, fresh, true), parent, "a handler on the other stack");
        equal!(SEEN_SP.load(Relaxed), sp, "the stack pointer in the frame");
    }
    Ok(())
}

fn bad_sp_kills() -> Outcome {
    signal::handle(SIGILL, skip_illegal, 0).must("sigaction")?;
    for sp in BAD {
        let fresh = memory::private(memory::PAGE).must("mmap")?;
        let ended = child::end(|| {
            registers::bad_stack(sp, nr::GETPPID, 1, fresh, true);
            Ok(())
        })?;
        equal!(ended, Ended::Killed(SIGSEGV as u8), "a handler without a stack");
    }
    Ok(())
}

extern "C" fn nothing(_: i32, _: *const Siginfo, _: *mut Ucontext) {}

fn own(number: u32) -> [usize; 3] {
    [process::id() as usize, call!(nr::GETTID) as usize, number as usize]
}

fn lr_signal_sc() -> Outcome {
    signal::handle(SIGUSR1, nothing, 0).must("sigaction")?;
    let mut word = 1_u64;
    let arguments = own(SIGUSR1);
    for _ in 0..100 {
        ensure!(!registers::lr_call_sc(&mut word, nr::TGKILL, arguments), "sc stored after a signal");
    }
    Ok(())
}

static WORD: AtomicU64 = AtomicU64::new(5);

/// Reserves the very word that the interrupted code has reserved.
extern "C" fn reserve(_: i32, _: *const Siginfo, _: *mut Ucontext) {
    // SAFETY: only loads.
    unsafe { core::arch::asm!("lr.d {}, ({})", out(reg) _, in(reg) WORD.as_ptr(), options(nostack)) };
}

fn lr_in_handler() -> Outcome {
    signal::handle(SIGUSR1, reserve, 0).must("sigaction")?;
    let arguments = own(SIGUSR1);
    // SAFETY: nobody else uses the word.
    let word = unsafe { &mut *WORD.as_ptr() };
    for _ in 0..100 {
        ensure!(!registers::lr_call_sc(word, nr::TGKILL, arguments), "sc stored with the handler's reservation");
    }
    Ok(())
}

static INTERRUPTED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn note_pc(_: i32, _: *const Siginfo, context: *mut Ucontext) {
    // SAFETY: the frame is ours until we return.
    INTERRUPTED.store(unsafe { (*context).uc_mcontext.gregs[0] } as usize, Relaxed);
}

fn lr_timer_sc() -> Outcome {
    signal::handle(SIGALRM, note_pc, 0).must("sigaction")?;
    let mut word = 3_u64;
    let mut between = 0;
    for _ in 0..15 {
        // The signal comes in the loop between the two, which goes on for long enough; on a busy host it may come before.
        signal::timer(2_000, 0);
        let stored = registers::lr_spin_sc(&mut word, 10_000_000);
        if registers::lr_spin_sc_between().contains(&INTERRUPTED.swap(0, Relaxed)) {
            between += 1;
            ensure!(!stored, "sc stored after an interrupt");
        }
    }
    ensure!(between > 1, "the signal hardly ever came between the two");
    Ok(())
}

fn fault(signal: u32, code: i32, address: usize, found: Option<Fault>, reason: &'static str) -> Outcome {
    equal!(found.map(|found| (found.signal, found.code, found.address)), Some((signal, code, address)), reason);
    Ok(())
}

fn unmapped() -> Outcome {
    let base = memory::private(4 * memory::PAGE).must("mmap")?;
    memory::unmap(base, 4 * memory::PAGE).must("munmap")?;
    for address in [0, 8, base, base + 4097] {
        fault(SIGSEGV, SEGV_MAPERR, address, probe::load(address), "load")?;
        fault(SIGSEGV, SEGV_MAPERR, address, probe::store(address), "store")?;
        let jump = probe::jump(address & !1);
        fault(SIGSEGV, SEGV_MAPERR, address & !1, jump, "jump")?;
        equal!(jump.map(|fault| fault.pc), Some(address & !1), "pc of a jump to nowhere");
    }
    Ok(())
}

fn protected() -> Outcome {
    let page = |protection| memory::map(0, memory::PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0).must("mmap");
    let none = page(PROT_NONE)?;
    fault(SIGSEGV, SEGV_ACCERR, none, probe::load(none), "load without any right")?;
    fault(SIGSEGV, SEGV_ACCERR, none, probe::store(none), "store without any right")?;
    fault(SIGSEGV, SEGV_ACCERR, none, probe::jump(none), "jump without any right")?;
    let read = page(PROT_READ)?;
    equal!(probe::load(read), None, "load from a page to read");
    fault(SIGSEGV, SEGV_ACCERR, read + 5, probe::store(read + 5), "store to a page to read")?;
    fault(SIGSEGV, SEGV_ACCERR, read, probe::jump(read), "jump to a page to read")?;
    let write = page(PROT_WRITE)?;
    equal!(probe::store(write), None, "store to a page to write");
    equal!(probe::load(write), None, "load from a page to write: write implies read");
    fault(SIGSEGV, SEGV_ACCERR, write, probe::jump(write), "jump to a page to write")?;
    // Code of this program can be read, not written.
    let code = probe::illegal().1;
    equal!(probe::load(code), None, "load from code");
    fault(SIGSEGV, SEGV_ACCERR, code, probe::store(code), "store to code")?;
    // A return in a page made executable.
    memory::poke(write, 0x82);
    memory::poke(write + 1, 0x80);
    memory::protect(write, memory::PAGE, PROT_READ | PROT_EXEC).must("mprotect")?;
    call!(nr::RISCV_FLUSH_ICACHE, write, write + 2, 0);
    equal!(probe::jump(write), None, "jump to a page to execute");
    fault(SIGSEGV, SEGV_ACCERR, write, probe::store(write), "store to a page no longer to write")
}

fn kernel_addresses() -> Outcome {
    for address in [0xffff_ffff_8000_0000_usize, (-4096_isize).cast_unsigned(), 0xffff_ffd8_0000_0000, 1 << 62] {
        for found in [probe::load(address), probe::store(address), probe::jump(address)] {
            let Some(found) = found else { return Err("an access to the kernel's addresses went through") };
            equal!(found.signal, SIGSEGV, "signal for an address of the kernel's");
        }
        equal!(call!(nr::UNAME, address), -14, "a call with the kernel's address");
        equal!(call!(nr::RT_SIGACTION, SIGUSR1, address, 0, 8), -14, "a call that reads the kernel's address");
    }
    Ok(())
}

fn beyond_file() -> Outcome {
    let file = rt::io::open(c"/tmp/beyond", open::O_RDWR | open::O_CREAT | open::O_TRUNC, 0o600).must("open")?;
    rt::io::write_all(file, b"short").must("write")?;
    let base = memory::map(0, 2 * memory::PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0).must("mmap")?;
    equal!(memory::peek(base + 4), b't', "the file's last byte");
    equal!(memory::peek(base + 5), 0, "the rest of its page");
    let address = base + memory::PAGE;
    fault(SIGBUS, BUS_ADRERR, address, probe::load(address), "load beyond the file")?;
    call!(nr::UNLINKAT, open::AT_FDCWD, c"/tmp/beyond".as_ptr(), 0);
    Ok(())
}

fn illegal() -> Outcome {
    let (found, address) = probe::illegal();
    fault(SIGILL, ILL_ILLOPC, address, found, "an illegal instruction")?;
    equal!(found.map(|fault| fault.pc), Some(address), "pc of an illegal instruction");
    let (found, address) = probe::breakpoint();
    fault(SIGTRAP, TRAP_BRKPT, address, found, "a breakpoint")?;
    equal!(found.map(|fault| fault.pc), Some(address), "pc of a breakpoint");
    Ok(())
}

fn illegal_registers() -> Outcome {
    signal::handle(SIGILL, skip_illegal, 0).must("sigaction")?;
    let mut random = Random::new(4);
    for _ in 0..50 {
        let mut given = registers::pattern(&mut random);
        let left = registers::illegal(&mut given);
        ensure!(registers::difference(&given, &left, &[]) == 0, "a trap and its signal changed a register");
    }
    Ok(())
}

/// A thread faults while another is blocked in a call: the process ends, blocked thread and all.
fn blocked_kills() -> Outcome {
    extern "C" fn sleeper(_: usize) -> usize {
        clock::sleep(60_000_000_000);
        0
    }
    let ended = child::end(|| {
        kit::thread::Thread::start(sleeper, 0).must("thread")?;
        clock::sleep(10_000_000);
        memory::poke(16, 1);
        Ok(())
    })?;
    equal!(ended, Ended::Killed(SIGSEGV as u8), "the process");
    ensure!(attempt!(nr::WAIT4, -1_isize, 0, 0, 0).is_err(), "no child is left");
    Ok(())
}
