//! The kernel image: the call table, the upcalls and the boot order; nothing else.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

#[cfg(target_os = "none")]
extern crate alloc;

#[cfg(target_os = "none")]
mod boot;
#[cfg(target_os = "none")]
mod clock;
#[cfg(target_os = "none")]
mod devices;

#[cfg(target_os = "none")]
hal::kernel! {
    calls: syscall::TABLE,
    upcalls: hal::calls::Upcalls {
        main: boot::main,
        secondary: boot::secondary,
        exception: task::fault::exception,
        fault: task::fault::resolves,
        work: task::user_work,
        timer: task::timer_interrupt,
        external: devices::interrupt,
    },
}

#[cfg(not(target_os = "none"))]
fn main() {}
