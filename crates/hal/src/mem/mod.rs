//! Physical memory, the kernel heap, page tables and the TLB.
//!
//! From below: [`layout`] says where physical memory appears to the kernel, [`frame`] hands out pages as counted
//! handles, [`heap`] cuts pages into small objects, [`pgtable`] maps pages for user programs and [`tlb`] is the one
//! place that fences. What the modules export is safe: a page is freed only when its last handle is gone, a handle
//! taken out of a page table is dropped only after the fence that the change owes, and a root table lives as long as
//! a hart may walk it.
//!
//! On the host an arena stands for physical memory (see `mem::host`), so that allocators, page tables and everything
//! above them run under the host's test runner.

/// Tells a test on the host what happens; nothing on the target.
#[cfg(not(target_os = "none"))]
macro_rules! tell {
    ($event:ident $(($($part:expr),*))?) => {
        $crate::mem::tlb::hook::tell($crate::mem::tlb::hook::Event::$event $(($($part),*))?)
    };
}
#[cfg(target_os = "none")]
macro_rules! tell {
    ($($any:tt)*) => {};
}

/// Whether a test on the host wants this left out.
#[cfg(not(target_os = "none"))]
macro_rules! planted {
    ($what:ident) => {
        $crate::mem::tlb::hook::is_planted($crate::mem::tlb::hook::Plant::$what)
    };
}
#[cfg(target_os = "none")]
macro_rules! planted {
    ($what:ident) => {
        false
    };
}

pub mod frame;
pub mod heap;
#[cfg(not(target_os = "none"))]
pub mod host;
pub mod layout;
pub(crate) mod page;
pub mod pgtable;
pub mod tlb;
