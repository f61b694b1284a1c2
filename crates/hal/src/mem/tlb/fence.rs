//! The fence instructions, counted by reason and form.

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::hart::{self, Counter, MAX_HARTS};

/// Why a fence was issued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Reason {
    /// Pages were unmapped.
    Unmap,
    /// A permission was taken away.
    Protect,
    /// A permission was given for a page that stayed.
    Widen,
    /// A page was replaced by another (copy-on-write).
    Replace,
    /// Pages were write-protected for a fork.
    Fork,
    /// A fault that the tables do not explain.
    Spurious,
    /// A switch to a space that changed while it did not run here, or without ASIDs.
    Switch,
    /// ASIDs are being used again.
    Rollover,
    /// A kernel mapping changed.
    Kernel,
    /// Pages were filled that programs may execute.
    Code,
}

/// How much a fence covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Form {
    /// One page of one ASID.
    Page,
    /// One ASID.
    Asid,
    /// Everything.
    All,
    /// A request to other harts.
    Remote,
    /// `fence.i`.
    Fetch,
}

impl Reason {
    /// All reasons with the names that `/proc/limen/boundary` shows.
    pub const ALL: [(Self, &'static str); 10] = [
        (Self::Unmap, "unmap"),
        (Self::Protect, "protect"),
        (Self::Widen, "widen"),
        (Self::Replace, "replace"),
        (Self::Fork, "fork"),
        (Self::Spurious, "spurious"),
        (Self::Switch, "switch"),
        (Self::Rollover, "rollover"),
        (Self::Kernel, "kernel"),
        (Self::Code, "code"),
    ];
}

impl Form {
    /// All forms with the names that `/proc/limen/boundary` shows.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Page, "page"),
        (Self::Asid, "asid"),
        (Self::All, "all"),
        (Self::Remote, "remote"),
        (Self::Fetch, "fetch"),
    ];
}

static COUNTS: [[[Counter; Form::ALL.len()]; Reason::ALL.len()]; MAX_HARTS] =
    [const { [const { [const { Counter::new() }; Form::ALL.len()] }; Reason::ALL.len()] }; MAX_HARTS];

/// Fences of `hart` since boot, of one reason and form. 0 for a hart that there is not.
pub fn fences(hart: usize, reason: Reason, form: Form) -> u64 {
    COUNTS.get(hart).map_or(0, |c| c[reason as usize][form as usize].get())
}

#[inline]
pub(super) fn count(reason: Reason, form: Form) {
    COUNTS[hart::id()][reason as usize][form as usize].add(1);
}

/// Drops this hart's entry for the page of `va` in `asid`.
#[inline]
pub fn flush_page(asid: usize, va: usize, reason: Reason) {
    count(reason, Form::Page);
    #[cfg(target_os = "none")]
    // SAFETY: a fence makes translations be read again and changes nothing else.
    unsafe {
        core::arch::asm!("sfence.vma {va}, {asid}", va = in(reg) va, asid = in(reg) asid, options(nostack));
    }
    #[cfg(not(target_os = "none"))]
    let _ = (asid, va);
}

/// Drops this hart's entries of `asid`, of all levels.
#[inline]
pub fn flush_asid(asid: usize, reason: Reason) {
    count(reason, Form::Asid);
    #[cfg(target_os = "none")]
    // SAFETY: as in `flush_page`.
    unsafe {
        core::arch::asm!("sfence.vma x0, {asid}", asid = in(reg) asid, options(nostack));
    }
    #[cfg(not(target_os = "none"))]
    let _ = asid;
}

/// Drops all entries of this hart.
#[inline]
pub fn flush_all(reason: Reason) {
    count(reason, Form::All);
    #[cfg(target_os = "none")]
    // SAFETY: as in `flush_page`.
    unsafe {
        core::arch::asm!("sfence.vma", options(nostack));
    }
}

#[inline]
pub(super) fn write_satp(value: usize) {
    #[cfg(target_os = "none")]
    // SAFETY: the value names a root table that holds all of the kernel's mappings and that the caller keeps alive
    // for as long as it is in satp, so that the kernel goes on running at the same addresses.
    unsafe {
        core::arch::asm!("csrw satp, {v}", v = in(reg) value, options(nostack));
    }
    #[cfg(not(target_os = "none"))]
    let _ = value;
}

/// Fences other harts: bit per hart id, ASID, first address, length in bytes (0 and `usize::MAX`: the whole ASID).
/// Returns when they have all done it.
type Remote = fn(harts: u64, asid: usize, start: usize, len: usize);

static REMOTE: AtomicUsize = AtomicUsize::new(0);

/// Installs the way to fence other harts (SBI RFENCE or an own interrupt). Before the second hart runs programs.
pub fn set_remote(remote: Remote) {
    REMOTE.store(remote as usize, Ordering::Release);
}

pub(super) fn remote(harts: u64, asid: usize, start: usize, len: usize, reason: Reason) {
    count(reason, Form::Remote);
    let hook = REMOTE.load(Ordering::Acquire);
    if hook != 0 {
        // SAFETY: the only values ever stored, but 0, are functions of this type.
        let hook = unsafe { core::mem::transmute::<usize, Remote>(hook) };
        hook(harts, asid, start, len);
    }
}
