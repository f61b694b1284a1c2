//! From the kernel's first instruction to `main`, and the panic handler.

use crate::{Args, process};

core::arch::global_asm!(
    ".globl _start",
    ".type _start, @function",
    "_start:",
    ".option push",
    ".option norelax",
    "la gp, __global_pointer$", // psABI: gp points to the small data, set before anything uses it
    ".option pop",
    "mv a0, sp", // argc, argv, envp and auxv lie here
    "andi sp, sp, -16",
    "call {start}",
    "ebreak",
    ".size _start, . - _start",
    start = sym start,
);

unsafe extern "Rust" {
    fn limen_user_main(args: Args) -> u8;
}

extern "C" fn start(stack: *const usize) -> ! {
    // SAFETY: `_start` hands on the stack pointer as the kernel set it, which is what `Args` wants; `limen_user_main` is
    // defined by `program!` with this signature.
    let status = unsafe { limen_user_main(Args::new(stack)) };
    process::exit(status)
}

/// A panic is a failed program: the message goes to standard error, the status is 101.
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    crate::eprintln!("{info}");
    process::exit(101)
}
