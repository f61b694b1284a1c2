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

pub mod frame;
pub mod heap;
#[cfg(not(target_os = "none"))]
pub mod host;
pub mod layout;
pub(crate) mod page;
pub mod pgtable;
pub mod tlb;
