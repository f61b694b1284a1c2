//! Single accesses that may fault, and what the signal said of the fault.

use crate::signal::{self, Handler};
use core::sync::atomic::{AtomicI32, AtomicUsize, Ordering::Relaxed};
use rt::uapi::signal::{SIGBUS, SIGILL, SIGSEGV, SIGTRAP};
use rt::uapi::{Siginfo, Ucontext};

/// What the handler saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The signal.
    pub signal: u32,
    /// `si_code`.
    pub code: i32,
    /// `si_addr`.
    pub address: usize,
    /// The interrupted pc.
    pub pc: usize,
}

static SIGNAL: AtomicI32 = AtomicI32::new(0);
static CODE: AtomicI32 = AtomicI32::new(0);
static ADDRESS: AtomicUsize = AtomicUsize::new(0);
static PC: AtomicUsize = AtomicUsize::new(0);

/// Remembers the fault and goes on at ra: the probes are leaves.
extern "C" fn record(number: i32, info: *const Siginfo, context: *mut Ucontext) {
    // SAFETY: the kernel passes both, in the frame that is ours until we return.
    let (info, registers) = unsafe { (&*info, &mut (*context).uc_mcontext.gregs) };
    SIGNAL.store(number, Relaxed);
    CODE.store(info.si_code, Relaxed);
    ADDRESS.store(info.addr(), Relaxed);
    PC.store(registers[0] as usize, Relaxed);
    registers[0] = registers[1];
}

unsafe extern "C" {
    fn kit_probe_load(address: usize) -> usize;
    fn kit_probe_store(address: usize) -> usize;
    fn kit_probe_jump(address: usize) -> usize;
    fn kit_probe_illegal(unused: usize) -> usize;
    fn kit_probe_break(unused: usize) -> usize;
}

/// Runs with the handler on the alternate stack as well, where there is one.
fn probe(routine: unsafe extern "C" fn(usize) -> usize, address: usize) -> Option<Fault> {
    for number in [SIGSEGV, SIGBUS, SIGILL, SIGTRAP] {
        let _ = signal::handle(number, record as Handler, rt::uapi::signal::SA_ONSTACK);
    }
    SIGNAL.store(0, Relaxed);
    // SAFETY: one access, which the handler takes if it faults.
    unsafe { routine(address) };
    (SIGNAL.load(Relaxed) != 0).then(|| Fault {
        signal: SIGNAL.load(Relaxed).cast_unsigned(),
        code: CODE.load(Relaxed),
        address: ADDRESS.load(Relaxed),
        pc: PC.load(Relaxed),
    })
}

/// Loads a byte.
pub fn load(address: usize) -> Option<Fault> {
    probe(kit_probe_load, address)
}

/// Stores a zero byte.
pub fn store(address: usize) -> Option<Fault> {
    probe(kit_probe_store, address)
}

/// Jumps; code there has to return.
pub fn jump(address: usize) -> Option<Fault> {
    probe(kit_probe_jump, address)
}

/// Executes an illegal instruction: the fault and the instruction's address.
pub fn illegal() -> (Option<Fault>, usize) {
    (probe(kit_probe_illegal, 0), kit_probe_illegal as *const () as usize)
}

/// Executes `ebreak`: the fault and the instruction's address.
pub fn breakpoint() -> (Option<Fault>, usize) {
    (probe(kit_probe_break, 0), kit_probe_break as *const () as usize)
}

core::arch::global_asm!(
    ".globl kit_try_load",
    "kit_try_load:", // a0 = address; leaves 0, or the signal that the handler puts there
    "lbu zero, 0(a0)",
    "li a0, 0",
    "ret",
    ".globl kit_try_store",
    "kit_try_store:", // a0 = address of a doubleword, a1 = what is added
    ".option push",
    ".option arch, +a",
    "amoadd.d zero, a1, (a0)",
    ".option pop",
    "li a0, 0",
    "ret",
);

unsafe extern "C" {
    fn kit_try_load(address: usize) -> u32;
    fn kit_try_store(address: usize, add: usize) -> u32;
}

extern "C" fn tell(number: i32, _: *const Siginfo, context: *mut Ucontext) {
    // SAFETY: the kernel passes the frame, which is ours until we return.
    let registers = unsafe { &mut (*context).uc_mcontext.gregs };
    registers[0] = registers[1];
    registers[10] = number as u64;
}

/// Makes [`try_load`] and [`try_store`] possible, for all threads at once; [`load`] and [`store`] are not any more.
///
/// # Errors
/// sigaction(2) fails.
pub fn catch() -> rt::uapi::Result<()> {
    signal::handle(SIGSEGV, tell, rt::uapi::signal::SA_ONSTACK)?;
    signal::handle(SIGBUS, tell, rt::uapi::signal::SA_ONSTACK)
}

/// Loads a byte, on any thread: the signal that came of it, or 0.
pub fn try_load(address: usize) -> u32 {
    // SAFETY: one access, which the handler takes if it faults.
    unsafe { kit_try_load(address) }
}

/// Adds to a doubleword, atomically, on any thread: the signal that came of it, or 0.
pub fn try_store(address: usize, add: usize) -> u32 {
    // SAFETY: as above.
    unsafe { kit_try_store(address, add) }
}
