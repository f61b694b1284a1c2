//! The kernel image: the call table, the upcalls and the boot order; nothing else.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

#[cfg(target_os = "none")]
mod kernel {
    use hal::boot::BootInfo;
    use hal::calls::{Access, CallTable, Exception, Upcalls};
    use hal::task::UserFrame;

    extern "C" fn unknown(_: usize, _: usize, _: usize, _: usize, _: usize, _: usize) -> isize {
        uapi::Errno::ENOSYS.to_ret()
    }

    hal::kernel! {
        calls: CallTable::new(unknown),
        upcalls: Upcalls { main, secondary, exception, copy_fault, work, timer, external },
    }

    fn main(info: &'static BootInfo) -> ! {
        hal::log!("limen: {} harts", info.hart_count);
        for range in info.memory.as_slice() {
            hal::log!("memory {:#x}+{:#x}", range.start, range.len);
        }
        hal::hart::start_others();
        hal::log!("online {:#x}", hal::hart::online_mask());
        let v: hal::boot::Ranges = info.memory.without(&info.reserved);
        hal::log!("{:?}", v.as_slice());
        panic!("enough");
    }

    fn secondary() -> ! {
        loop {
            hal::hart::idle();
        }
    }

    fn exception(_: &mut UserFrame, _: Exception) {}
    fn copy_fault(_: usize, _: Access) -> bool {
        false
    }
    fn work(_: &mut UserFrame) {}
    fn timer() {}
    fn external() {}
}

#[cfg(not(target_os = "none"))]
fn main() {}
