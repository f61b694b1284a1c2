//! What [`crate::probe`] asks of the hart itself.

use core::cell::UnsafeCell;

use super::csr;
use crate::hart::{MAX_HARTS, id};
use crate::probe::speed::Subject;

unsafe extern "C" {
    fn limen_misaligned_access(at: *mut u8) -> usize;
    fn limen_misaligned_words(to: *mut u8, from: *const u8, bytes: usize);
    fn limen_misaligned_bytes(to: *mut u8, from: *const u8, bytes: usize);
    static limen_misaligned_out: u8;
}

/// senvcfg.CBCFE: `cbo.clean` and `cbo.flush` in user mode.
const CBCFE: usize = 1 << 6;
/// senvcfg.CBZE: `cbo.zero` in user mode.
const CBZE: usize = 1 << 7;

/// Lets user mode execute the instructions of Zicbom and Zicboz. `cbo.inval` stays forbidden, as it does under Linux: it
/// could bring back what others wrote (senvcfg.CBIE 0). The register exists only where one of the two extensions needs it.
pub(crate) fn allow_cache_blocks(zicbom: bool, zicboz: bool) {
    let bits = if zicbom { CBCFE } else { 0 } | if zicboz { CBZE } else { 0 };
    if bits != 0 {
        // SAFETY: the bits concern user mode only; a hart with either extension has the register.
        unsafe { csr::set_senvcfg(bits) };
    }
}

/// Room for a copy and its misalignment.
const ROOM: usize = crate::probe::speed::BYTES + 64;

#[repr(align(64))]
struct Buffer(UnsafeCell<[u8; ROOM]>);
// SAFETY: a hart uses its own pair only.
unsafe impl Sync for Buffer {}

static BUFFERS: [[Buffer; 2]; MAX_HARTS] = [const { [const { Buffer(UnsafeCell::new([0; ROOM])) }; 2] }; MAX_HARTS];

/// Copies within this hart's buffers, from 3 bytes behind an aligned place to 1 byte behind another.
pub(crate) struct Copies;

impl Copies {
    fn places(bytes: usize) -> (*mut u8, *const u8) {
        assert!(bytes + 8 <= ROOM && bytes != 0, "within the buffers");
        let [to, from] = &BUFFERS[id()];
        (to.0.get().cast::<u8>().wrapping_add(1), from.0.get().cast::<u8>().wrapping_add(3))
    }
}

impl Subject for Copies {
    fn access(&self) -> bool {
        let (at, _) = Self::places(64);
        // SAFETY: eight bytes of a buffer of this hart's own; a trap ends the function (see `fixup`).
        unsafe { limen_misaligned_access(at) != 0 }
    }

    fn words(&self, bytes: usize) {
        let (to, from) = Self::places(bytes);
        // SAFETY: both ranges lie in buffers of this hart's own; `access` has shown that nothing traps to us. All callers
        // pass multiples of 64.
        unsafe { limen_misaligned_words(to, from, bytes) };
    }

    fn bytes(&self, bytes: usize) {
        let (to, from) = Self::places(bytes);
        // SAFETY: both ranges lie in buffers of this hart's own.
        unsafe { limen_misaligned_bytes(to, from, bytes) };
    }

    fn now(&self) -> u64 {
        crate::time::now()
    }
}

/// Where a trap at `pc` continues: inside the one access that may trap.
pub(crate) fn fixup(pc: usize) -> Option<usize> {
    let out = (&raw const limen_misaligned_out).addr();
    (limen_misaligned_access as *const () as usize..out).contains(&pc).then_some(out)
}
