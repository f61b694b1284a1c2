//! The end: other harts stopped, a backtrace, power off with failure.
//!
//! The backtrace unwinds by `.eh_frame` through the kernel's own frames and, by the directives in the assembly, through
//! a trap into the code it interrupted. It prints addresses; `cargo limen` turns them into names.

use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::console::print_unlocked;

static PANICKING: AtomicBool = AtomicBool::new(false);

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    // A second hart, or a panic inside the panic: only the first one reports.
    if PANICKING.swap(true, Ordering::AcqRel) {
        crate::hart::stop();
    }
    crate::hart::stop_others();
    print_unlocked(format_args!("\r\nKERNEL PANIC on hart {}: {}", crate::hart::id(), info.message()));
    if let Some(at) = info.location() {
        print_unlocked(format_args!("  at {at}"));
    }
    crate::unwind::backtrace(|depth, pc| print_unlocked(format_args!("  #{depth} {pc:#018x}")));
    crate::sbi::power_off(true)
}
