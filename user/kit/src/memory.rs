//! Mappings.

use crate::attempt;
use rt::uapi::mman::{MAP_ANONYMOUS, MAP_PRIVATE, MAP_SHARED, PROT_READ, PROT_WRITE};
use rt::uapi::{Result, nr};

/// Bytes of a page.
pub const PAGE: usize = 4096;

/// mmap(2).
///
/// # Errors
/// As the call.
pub fn map(address: usize, length: usize, protection: u32, flags: u32, file: i32, offset: usize) -> Result<usize> {
    attempt!(nr::MMAP, address, length, protection, flags, file as isize, offset)
}

/// A private anonymous mapping that can be read and written.
///
/// # Errors
/// As mmap(2).
pub fn private(length: usize) -> Result<usize> {
    map(0, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
}

/// A shared anonymous mapping that can be read and written.
///
/// # Errors
/// As mmap(2).
pub fn shared(length: usize) -> Result<usize> {
    map(0, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)
}

/// A `T` of zeroes in a page of its own that children share. It is never unmapped.
///
/// # Errors
/// As mmap(2).
pub fn shared_value<T: Zeroes>() -> Result<&'static T> {
    // SAFETY: the mapping is new, aligned to pages, full of zeroes, and stays.
    shared(size_of::<T>().next_multiple_of(PAGE)).map(|address| unsafe { &*(address as *const T) })
}

/// munmap(2).
///
/// # Errors
/// As the call.
pub fn unmap(address: usize, length: usize) -> Result<()> {
    attempt!(nr::MUNMAP, address, length).map(|_| ())
}

/// mprotect(2).
///
/// # Errors
/// As the call.
pub fn protect(address: usize, length: usize, protection: u32) -> Result<()> {
    attempt!(nr::MPROTECT, address, length, protection).map(|_| ())
}

/// madvise(2).
///
/// # Errors
/// As the call.
pub fn advise(address: usize, length: usize, advice: u32) -> Result<()> {
    attempt!(nr::MADVISE, address, length, advice).map(|_| ())
}

/// Stores a byte at an address, whatever lies there.
pub fn poke(address: usize, value: u8) {
    // SAFETY: a test answers for the address, see the crate's head.
    unsafe { (address as *mut u8).write_volatile(value) };
}

/// Loads a byte from an address, whatever lies there.
pub fn peek(address: usize) -> u8 {
    // SAFETY: a test answers for the address, see the crate's head.
    unsafe { (address as *const u8).read_volatile() }
}

/// Types of which zeroes are a value and whose contents may change under a shared reference.
///
/// # Safety
/// Both hold.
pub unsafe trait Zeroes {}

// SAFETY: atomics.
unsafe impl Zeroes for core::sync::atomic::AtomicU32 {}
// SAFETY: atomics.
unsafe impl Zeroes for core::sync::atomic::AtomicU64 {}
// SAFETY: atomics.
unsafe impl Zeroes for core::sync::atomic::AtomicUsize {}
// SAFETY: as the element.
unsafe impl<T: Zeroes, const N: usize> Zeroes for [T; N] {}
