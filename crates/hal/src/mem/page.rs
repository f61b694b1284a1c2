//! Clearing and copying whole pages.

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::addr::PAGE_SIZE;

/// Bytes that one `cbo.zero` clears, 0 when the harts have no Zicboz or their block sizes differ.
static ZERO_BLOCK: AtomicUsize = AtomicUsize::new(0);

/// Says how much one `cbo.zero` clears on every hart (device tree, `riscv,cboz-block-size`); 0 or a size that does not
/// divide a page into at least one unrolled round means that plain stores are used.
pub fn set_zero_block(bytes: usize) {
    let usable = bytes.is_power_of_two() && (8..=PAGE_SIZE / 8).contains(&bytes);
    ZERO_BLOCK.store(if usable { bytes } else { 0 }, Ordering::Relaxed);
}

/// Clears the page at `page`.
///
/// # Safety
/// `page` is the page-aligned address of a page that is writable and that no Rust reference points into.
#[inline(always)]
pub unsafe fn zero(page: *mut u8) {
    #[cfg(target_os = "none")]
    {
        let block = ZERO_BLOCK.load(Ordering::Relaxed);
        if block != 0 {
            // SAFETY: the loop writes zeroes from `page` up to `page + 4096` and nothing else: the block size divides
            // an eighth of a page and the page is aligned.
            unsafe {
                core::arch::asm!(
                    ".option push",
                    ".option arch, +zicboz",
                    "2:",
                    "cbo.zero ({p})", "add {p}, {p}, {b}",
                    "cbo.zero ({p})", "add {p}, {p}, {b}",
                    "cbo.zero ({p})", "add {p}, {p}, {b}",
                    "cbo.zero ({p})", "add {p}, {p}, {b}",
                    "cbo.zero ({p})", "add {p}, {p}, {b}",
                    "cbo.zero ({p})", "add {p}, {p}, {b}",
                    "cbo.zero ({p})", "add {p}, {p}, {b}",
                    "cbo.zero ({p})", "add {p}, {p}, {b}",
                    "bne {p}, {e}, 2b",
                    ".option pop",
                    p = inout(reg) page => _,
                    b = in(reg) block,
                    e = in(reg) page.wrapping_add(PAGE_SIZE),
                    options(nostack, preserves_flags),
                );
            }
            return;
        }
    }
    // SAFETY: the caller's promise.
    unsafe { zero_by_stores(page) };
}

/// # Safety
/// As for [`zero`].
#[inline(never)]
unsafe fn zero_by_stores(page: *mut u8) {
    // Volatile, so that the loop stays a loop of stores: as a call of `memset` it costs twice the instructions.
    let words = page.cast::<u64>();
    for i in (0..PAGE_SIZE / 8).step_by(16) {
        for k in i..i + 16 {
            // SAFETY: 512 words are the page that the caller vouches for, and it is aligned.
            unsafe { words.add(k).write_volatile(0) };
        }
    }
}

/// Copies the page at `src` to `dst`.
///
/// # Safety
/// Both are page-aligned addresses of different pages, `dst` writable and without Rust references into it. A program
/// may write to `src` meanwhile: it then gets some mixture, as it must expect.
#[inline]
pub unsafe fn copy(dst: *mut u8, src: *const u8) {
    let (dst, src) = (dst.cast::<u64>(), src.cast::<u64>());
    for i in (0..PAGE_SIZE / 8).step_by(32) {
        for group in (i..i + 32).step_by(8) {
            // SAFETY: 512 words are the pages that the caller vouches for, and they are aligned. The loads of a group
            // come before its stores so that an in-order hart does not wait for each.
            unsafe {
                let mut words = [0; 8];
                for (k, word) in words.iter_mut().enumerate() {
                    *word = src.add(group + k).read_volatile();
                }
                for (k, word) in words.iter().enumerate() {
                    dst.add(group + k).write_volatile(*word);
                }
            }
        }
    }
}
