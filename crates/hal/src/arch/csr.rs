//! Control and status registers: names of bits, and the few accesses outside the assembly.

use core::arch::asm;

/// sstatus.SIE: interrupts in S-mode.
pub(crate) const SIE: usize = 1 << 1;
/// sstatus.SPIE: SIE after `sret`.
pub(crate) const SPIE: usize = 1 << 5;
/// sstatus.SPP: the mode `sret` returns to is S.
pub(crate) const SPP: usize = 1 << 8;
/// sstatus.VS.
pub(crate) const VS: usize = 3 << 9;
/// sstatus.FS.
pub(crate) const FS: usize = 3 << 13;
/// sstatus.FS = Dirty.
pub(crate) const FS_DIRTY: usize = 3 << 13;
/// sstatus.SUM: S-mode may access user pages.
pub(crate) const SUM: usize = 1 << 18;

/// Bits of sie and sip: software, timer, external.
pub(crate) const SOFTWARE: usize = 1 << 1;
pub(crate) const TIMER: usize = 1 << 5;
pub(crate) const EXTERNAL: usize = 1 << 9;

macro_rules! csr {
    ($($read:ident $write:ident $set:ident $clear:ident $name:literal;)*) => {$(
        #[allow(dead_code)]
        #[inline]
        pub(crate) fn $read() -> usize {
            let value;
            // SAFETY: reading these registers has no side effect.
            unsafe { asm!(concat!("csrr {}, ", $name), out(reg) value, options(nomem, nostack)) };
            value
        }
        /// # Safety
        /// The value must keep the contract of entry.S.
        #[allow(dead_code)]
        #[inline]
        pub(crate) unsafe fn $write(value: usize) {
            // SAFETY: by the caller's promise.
            unsafe { asm!(concat!("csrw ", $name, ", {}"), in(reg) value, options(nostack)) };
        }
        /// # Safety
        /// The bits must keep the contract of entry.S.
        #[allow(dead_code)]
        #[inline]
        pub(crate) unsafe fn $set(bits: usize) {
            // SAFETY: by the caller's promise.
            unsafe { asm!(concat!("csrs ", $name, ", {}"), in(reg) bits, options(nostack)) };
        }
        /// # Safety
        /// The bits must keep the contract of entry.S.
        #[allow(dead_code)]
        #[inline]
        pub(crate) unsafe fn $clear(bits: usize) {
            // SAFETY: by the caller's promise.
            unsafe { asm!(concat!("csrc ", $name, ", {}"), in(reg) bits, options(nostack)) };
        }
    )*};
}

csr! {
    sstatus write_sstatus set_sstatus clear_sstatus "sstatus";
    satp write_satp set_satp clear_satp "satp";
    sie write_sie set_sie clear_sie "sie";
    sip write_sip set_sip clear_sip "sip";
    time write_time set_time clear_time "time";
    stimecmp write_stimecmp set_stimecmp clear_stimecmp "0x14d";
    senvcfg write_senvcfg set_senvcfg clear_senvcfg "0x10a";
    scounteren write_scounteren set_scounteren clear_scounteren "scounteren";
}
