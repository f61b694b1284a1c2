//! System calls that touch nothing but their own task, and a signal to it.

use crate::meter::{Meter, Outcome, holds};
use core::arch::{asm, global_asm};
use kit::signal::Handler;
use kit::uapi::signal::SIGUSR1;
use kit::uapi::{Siginfo, Ucontext, nr, open};
use kit::{attempt, signal as signals};
use rt::io;

/// The raw loop: 4 instructions of user code a round.
fn getppid_loop(rounds: u32) {
    // SAFETY: the call changes a0 only.
    unsafe {
        asm!("2: li a7, 173", "ecall", "addi {n}, {n}, -1", "bnez {n}, 2b", n = inout(reg) u64::from(rounds) => _, out("a0") _, out("a7") _, options(nostack));
    }
}

pub fn getppid(meter: &mut Meter) -> Outcome {
    getppid_loop(meter.rounds / 10);
    meter.between(|| {
        getppid_loop(meter.rounds);
        Ok(())
    })
}

// The nested functions are assembly, so that no compiler can flatten them: 8 instructions a level, 6 for the innermost
// and the loop around it. Only the returns matter: each expects the address that its own call pushed.
global_asm!(
    ".globl work_nested",
    ".type work_nested, @function",
    "work_nested:", // a0 = depth
    "beqz a0, 1f",
    "addi sp, sp, -16",
    "sd ra, 8(sp)",
    "addi a0, a0, -1",
    "jal work_nested",
    "ld ra, 8(sp)",
    "addi sp, sp, 16",
    "ret",
    "1: li a7, 173",
    "ecall",
    "ret",
    ".size work_nested, . - work_nested",
);

pub fn nested(meter: &mut Meter, depth: usize) -> Outcome {
    let pass = |rounds: u32| {
        // SAFETY: `work_nested` follows the C calling convention, and changes a0, a7 and ra.
        unsafe {
            asm!("2: mv a0, {depth}", "call work_nested", "addi {n}, {n}, -1", "bnez {n}, 2b", n = inout(reg) u64::from(rounds) => _, depth = in(reg) depth, out("a0") _, out("a7") _, out("ra") _);
        }
    };
    pass(meter.rounds / 10);
    meter.between(|| {
        pass(meter.rounds);
        Ok(())
    })
}

pub fn read_zero(meter: &mut Meter) -> Outcome {
    let file = io::open(c"/dev/zero", open::O_RDONLY, 0)?;
    let mut byte = [0_u8];
    meter.each(|| holds(io::read(file, &mut byte)? == 1, "read gave no byte"))
}

pub fn write_null(meter: &mut Meter) -> Outcome {
    let file = io::open(c"/dev/null", open::O_WRONLY, 0)?;
    meter.each(|| holds(io::write(file, b"x")? == 1, "write took no byte"))
}

pub fn sched_yield(meter: &mut Meter) -> Outcome {
    meter.each(|| Ok(attempt!(nr::SCHED_YIELD).map(|_| ())?))
}

extern "C" fn nothing(_: i32, _: *const Siginfo, _: *mut Ucontext) {}

pub fn signal(meter: &mut Meter) -> Outcome {
    signals::handle(SIGUSR1, nothing as Handler, 0)?;
    let id = rt::process::id();
    meter.each(|| Ok(attempt!(nr::KILL, id, SIGUSR1).map(|_| ())?))
}
