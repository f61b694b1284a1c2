//! Memory of programs: what is mapped where ([`AddressSpace`]), and what stands behind it ([`Object`]).
//!
//! A program's address space is a sorted list of areas. Each area is backed by nothing (private anonymous memory), by an
//! [`Object`] (a file's page cache or shared anonymous memory) or by pages of the kernel (the vDSO). Pages appear by
//! faults: the area says where the page comes from, and the page table holds one counted reference to its frame.
//! Private pages are shared after a fork and copied by the first write; an object knows which areas map it, so that
//! truncation can take pages out of them.
//!
//! Locks: an address space has one, an object has one, and an address space's comes first. Nothing here copies to or
//! from user memory with a lock held, since such a copy may fault.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod object;
pub mod space;

pub use hal::calls::Access;
pub use object::Object;
pub use space::{
    AddressSpace, Area, AreaName, FaultError, FutexKey, Layout, Limits, MapFlags, MapRequest, MappedFile, Program,
    Residency, Source, Special, Usage,
};

/// Makes this hart translate by the kernel's own table: no program's memory is mapped.
#[inline]
pub fn activate_kernel() {
    hal::mem::tlb::deactivate();
}
