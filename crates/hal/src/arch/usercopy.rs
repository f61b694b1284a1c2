//! The Rust half of user copies: ranges are cut to the user half, faults are told apart by their address.

use crate::addr::UserAddr;
use crate::mem::layout::user_top;

unsafe extern "C" {
    fn limen_copy(dst: *mut u8, src: *const u8, len: usize) -> usize;
    fn limen_zero(dst: *mut u8, unused: usize, len: usize) -> usize;
    fn limen_load_word(out: *mut u32, src: *const u8) -> usize;
    fn limen_cmpxchg_word(dst: *mut u8, out: *mut u32, unused: usize, old: u32, new: u32) -> usize;
    static limen_usercopy_start: u8;
    static limen_copy_bytes: u8;
    static limen_copy_bytes_out: u8;
    static limen_usercopy_out: u8;
}

/// How much of `len` bytes at `at` lies in the user half.
#[inline]
fn inside(at: UserAddr, len: usize) -> usize {
    user_top().saturating_sub(at.0).min(len)
}

/// Copies in; gives the number of bytes not copied.
#[inline]
pub(crate) fn copy_in(dst: &mut [u8], src: UserAddr) -> usize {
    let n = inside(src, dst.len());
    // SAFETY: `n <= dst.len()`; the source is in the user half, where a fault ends the copy.
    dst.len() - n + unsafe { limen_copy(dst.as_mut_ptr(), src.0 as *const u8, n) }
}

/// Copies out; gives the number of bytes not copied.
#[inline]
pub(crate) fn copy_out(dst: UserAddr, src: &[u8]) -> usize {
    let n = inside(dst, src.len());
    // SAFETY: as in `copy_in`, with the directions exchanged; user memory is no Rust object.
    src.len() - n + unsafe { limen_copy(dst.0 as *mut u8, src.as_ptr(), n) }
}

/// Zeroes; gives the number of bytes not written.
#[inline]
pub(crate) fn zero(dst: UserAddr, len: usize) -> usize {
    let n = inside(dst, len);
    // SAFETY: as in `copy_out`.
    len - n + unsafe { limen_zero(dst.0 as *mut u8, 0, n) }
}

/// One aligned word.
#[inline]
pub(crate) fn load_u32(src: UserAddr) -> Option<u32> {
    let mut word = 0;
    // SAFETY: `word` is ours, the source is in the user half.
    (inside(src, 4) == 4 && unsafe { limen_load_word(&mut word, src.0 as *const u8) } == 0).then_some(word)
}

/// Compare and exchange on an aligned word; gives the old value.
#[inline]
pub(crate) fn cmpxchg_u32(dst: UserAddr, old: u32, new: u32) -> Option<u32> {
    let mut word = 0;
    let done = inside(dst, 4) == 4
        // SAFETY: as in `load_u32`.
        && unsafe { limen_cmpxchg_word(dst.0 as *mut u8, &mut word, 0, old, new) } == 0;
    done.then_some(word)
}

/// Where a kernel fault at `pc` continues when the access cannot be made: inside the copies only.
pub(crate) fn fixup(pc: usize) -> Option<usize> {
    let start = (&raw const limen_usercopy_start).addr();
    let out = (&raw const limen_usercopy_out).addr();
    let bytes = (&raw const limen_copy_bytes).addr();
    if !(start..out).contains(&pc) {
        return None;
    }
    let bytes_out = (&raw const limen_copy_bytes_out).addr();
    // The word loops of limen_copy lie before its byte loop, which finds the exact byte.
    Some(match pc {
        pc if pc < bytes => bytes,
        pc if pc < bytes_out => bytes_out,
        _ => out,
    })
}
