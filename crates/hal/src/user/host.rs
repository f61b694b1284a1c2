//! User memory on the host: one arena per thread at [`BASE`], everything outside it faults.

use std::cell::RefCell;
use std::vec::Vec;

use crate::addr::UserAddr;

/// Where the arena of a test appears in the fake address space.
pub const BASE: usize = 0x1_0000;

std::thread_local! {
    static ARENA: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Gives this thread `len` bytes of zeroed user memory at [`BASE`].
pub fn install(len: usize) -> UserAddr {
    ARENA.with(|a| *a.borrow_mut() = std::vec![0; len]);
    UserAddr(BASE)
}

/// A copy of `len` bytes of user memory at `at`, for a test to look at. Panics outside the arena.
pub fn peek(at: UserAddr, len: usize) -> Vec<u8> {
    ARENA.with(|a| a.borrow()[at.0 - BASE..at.0 - BASE + len].to_vec())
}

/// Writes `bytes` into user memory at `at`. Panics outside the arena.
pub fn poke(at: UserAddr, bytes: &[u8]) {
    ARENA.with(|a| a.borrow_mut()[at.0 - BASE..at.0 - BASE + bytes.len()].copy_from_slice(bytes));
}

/// How many of `len` bytes at `at` are inside the arena, and where they start.
fn window(arena: &[u8], at: UserAddr, len: usize) -> (usize, usize) {
    match at.0.checked_sub(BASE) {
        Some(offset) if offset < arena.len() => (offset, len.min(arena.len() - offset)),
        _ => (0, 0),
    }
}

pub(super) fn copy_in(dst: &mut [u8], src: UserAddr) -> usize {
    ARENA.with(|a| {
        let arena = a.borrow();
        let (at, n) = window(&arena, src, dst.len());
        dst[..n].copy_from_slice(&arena[at..at + n]);
        dst.len() - n
    })
}

pub(super) fn copy_out(dst: UserAddr, src: &[u8]) -> usize {
    ARENA.with(|a| {
        let mut arena = a.borrow_mut();
        let (at, n) = window(&arena, dst, src.len());
        arena[at..at + n].copy_from_slice(&src[..n]);
        src.len() - n
    })
}

pub(super) fn zero(dst: UserAddr, len: usize) -> usize {
    ARENA.with(|a| {
        let mut arena = a.borrow_mut();
        let (at, n) = window(&arena, dst, len);
        arena[at..at + n].fill(0);
        len - n
    })
}

pub(super) fn load_u32(src: UserAddr) -> Option<u32> {
    let mut word = [0; 4];
    (copy_in(&mut word, src) == 0).then(|| u32::from_le_bytes(word))
}

pub(super) fn cmpxchg_u32(dst: UserAddr, old: u32, new: u32) -> Option<u32> {
    let was = load_u32(dst)?;
    if was == old && copy_out(dst, &new.to_le_bytes()) != 0 {
        return None;
    }
    Some(was)
}
