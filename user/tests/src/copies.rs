//! The kernel's memcpy and its kin, the very assembly, run where a mistake is seen: every small length at every
//! alignment, between guards, and overlapping moves in both directions.

use core::arch::global_asm;
use core::ptr::{read_volatile, write_volatile};
use kit::check::Outcome;
use kit::ensure;
use rt::tap::Test;

global_asm!(include_str!("../../../crates/hal/src/arch/memory_copy.S"));
global_asm!(include_str!("../../../crates/hal/src/arch/memory_set.S"));

unsafe extern "C" {
    fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8;
    fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8;
    fn memset(to: *mut u8, byte: i32, len: usize) -> *mut u8;
    fn memcmp(a: *const u8, b: *const u8, len: usize) -> i32;
}

pub const TESTS: &[Test] = &[
    Test::new("copies/memcpy-at-every-alignment", copy),
    Test::new("copies/memmove-overlapping", overlap),
    Test::new("copies/memset-at-every-alignment", set),
    Test::new("copies/memcmp-finds-the-first-difference", compare),
];

const SIZE: usize = 320;
/// Lengths that reach every path: bytes, words, blocks, and what is left of each.
const LENGTHS: core::ops::Range<usize> = 0..220;

#[repr(align(64))]
struct Buffer([u8; SIZE]);

/// A buffer of bytes that depend on their place and `salt`. Filled without any of the functions under test.
fn filled(salt: u8) -> Buffer {
    let mut buffer = Buffer([0; SIZE]);
    for (at, byte) in buffer.0.iter_mut().enumerate() {
        // SAFETY: the byte is ours; volatile, so that no loop becomes a call.
        unsafe { write_volatile(byte, (at as u8).wrapping_mul(7).wrapping_add(salt)) };
    }
    buffer
}

fn byte(buffer: &Buffer, at: usize) -> u8 {
    // SAFETY: a reference to a byte of ours.
    unsafe { read_volatile(&buffer.0[at]) }
}

fn copy() -> Outcome {
    let from = filled(1);
    for to_at in 32..40 {
        for from_at in 32..40 {
            for len in LENGTHS {
                let mut to = filled(99);
                let start = to.0[to_at..].as_mut_ptr();
                // SAFETY: both ranges lie inside their buffers.
                let result = unsafe { memcpy(start, from.0[from_at..].as_ptr(), len) };
                ensure!(result == start, "memcpy gives its destination");
                let want = |at: usize| match at.checked_sub(to_at) {
                    Some(offset) if offset < len => byte(&from, from_at + offset),
                    _ => (at as u8).wrapping_mul(7).wrapping_add(99),
                };
                ensure!((0..SIZE).all(|at| byte(&to, at) == want(at)), "memcpy copies just what it is told to");
            }
        }
    }
    Ok(())
}

fn overlap() -> Outcome {
    let before = filled(5);
    for to_at in 40..60 {
        for from_at in 40..60 {
            for len in LENGTHS.step_by(3) {
                let mut buffer = filled(5);
                let base = buffer.0.as_mut_ptr();
                // SAFETY: both ranges lie inside the buffer.
                unsafe { memmove(base.add(to_at), base.add(from_at), len) };
                let want = |at: usize| match at.checked_sub(to_at) {
                    Some(offset) if offset < len => byte(&before, from_at + offset),
                    _ => byte(&before, at),
                };
                ensure!((0..SIZE).all(|at| byte(&buffer, at) == want(at)), "memmove of overlapping ranges");
            }
        }
    }
    Ok(())
}

fn set() -> Outcome {
    for at in 32..40 {
        for len in LENGTHS {
            let mut buffer = filled(3);
            // SAFETY: the range lies inside the buffer. Only the low byte of the value counts.
            unsafe { memset(buffer.0[at..].as_mut_ptr(), 0x5a5, len) };
            let want = |i: usize| {
                if (at..at + len).contains(&i) { 0xa5 } else { (i as u8).wrapping_mul(7).wrapping_add(3) }
            };
            ensure!((0..SIZE).all(|i| byte(&buffer, i) == want(i)), "memset sets just what it is told to");
        }
    }
    Ok(())
}

fn compare() -> Outcome {
    for (a_at, b_at) in [(32, 32), (33, 33), (32, 35), (37, 32)] {
        for len in LENGTHS.step_by(5) {
            let (mut a, mut b) = (filled(0), filled(0));
            for i in 0..len {
                let value = (i as u8) | 1;
                a.0[a_at + i] = value;
                b.0[b_at + i] = value;
            }
            // SAFETY: both ranges lie inside their buffers.
            let run = |a: &Buffer, b: &Buffer| unsafe { memcmp(a.0[a_at..].as_ptr(), b.0[b_at..].as_ptr(), len) };
            ensure!(run(&a, &b) == 0, "equal ranges");
            for i in 0..len {
                let was = b.0[b_at + i];
                b.0[b_at + i] = 0;
                ensure!(run(&a, &b) > 0, "the greater one, as unsigned bytes");
                b.0[b_at + i] = was;
            }
        }
    }
    Ok(())
}
