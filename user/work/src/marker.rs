//! The markers: `slti x0, x0, 2 * id` begins region `id`, `slti x0, x0, 2 * id + 1` ends it. They do nothing on any
//! machine, and no compiler writes them. The number stands in the instruction, so that there is one of each for each
//! region, in a table to be called into.

use core::arch::{asm, global_asm};

/// Regions that the table has; number 0 is the boot, which has no marker.
pub const REGIONS: u16 = 127;

/// Bytes of an entry: a marker and a return.
const ENTRY: usize = 8;

global_asm!(
    ".option push",
    ".option norvc",
    ".balign 8",
    ".globl work_markers",
    "work_markers:",
    ".set limen_marker, 0",
    ".rept 2 * ({regions} + 1)",
    "slti zero, zero, limen_marker",
    "ret",
    ".set limen_marker, limen_marker + 1",
    ".endr",
    ".option pop",
    regions = const REGIONS,
);

/// Executes the marker with this number.
#[inline(always)]
fn mark(number: usize) {
    // SAFETY: the number is at most 2 * REGIONS + 1, so this calls an entry of the table, which changes ra alone.
    unsafe {
        asm!("lla {entry}, work_markers", "add {entry}, {entry}, {offset}", "jalr ra, {entry}", entry = out(reg) _, offset = in(reg) number * ENTRY, out("ra") _);
    }
}

/// Begins region `id`.
#[inline(always)]
pub fn begin(id: u16) {
    mark(2 * usize::from(id.min(REGIONS)));
}

/// Ends region `id`.
#[inline(always)]
pub fn end(id: u16) {
    mark(2 * usize::from(id.min(REGIONS)) + 1);
}
