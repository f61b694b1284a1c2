//! The fence instructions, counted by reason and form.

use super::owed::{Change, pages_max};
use super::policy::features;
use crate::addr::PAGE_SIZE;
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
    /// A page or table was linked, on a hart that fences preventively.
    Link,
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
    /// Several pages of one ASID, as one sequence of Svinval.
    Range,
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
    pub const ALL: [(Self, &'static str); 11] = [
        (Self::Unmap, "unmap"),
        (Self::Protect, "protect"),
        (Self::Widen, "widen"),
        (Self::Replace, "replace"),
        (Self::Fork, "fork"),
        (Self::Link, "link"),
        (Self::Spurious, "spurious"),
        (Self::Switch, "switch"),
        (Self::Rollover, "rollover"),
        (Self::Kernel, "kernel"),
        (Self::Code, "code"),
    ];

    /// The row of the table that a change of a space's entries for this reason falls under.
    pub(super) const fn change(self) -> Change {
        match self {
            Self::Protect | Self::Fork => Change::Narrowed,
            Self::Widen => Change::Widened,
            Self::Replace => Change::Replaced,
            Self::Link => Change::LeafLinked,
            Self::Switch | Self::Spurious => Change::Returned,
            Self::Rollover => Change::AsidReused,
            Self::Code => Change::ExecGained,
            Self::Unmap | Self::Kernel => Change::Unmapped,
        }
    }
}

impl Form {
    /// All forms with the names that `/proc/limen/boundary` shows.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::Page, "page"),
        (Self::Range, "range"),
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

/// Fences that a request of another hart has this one issue count there.
pub(super) trait Account: Copy {
    fn note(self, form: Form);
}

impl Account for Reason {
    #[inline]
    fn note(self, form: Form) {
        count(self, form);
    }
}

/// Drops this hart's entry for the page of `va` in `asid`.
#[inline]
pub(super) fn flush_page(asid: usize, va: usize, why: impl Account) {
    why.note(Form::Page);
    tell!(Pages(hart::id(), asid, va, va + PAGE_SIZE));
    #[cfg(target_os = "none")]
    // SAFETY: a fence makes translations be read again and changes nothing else.
    unsafe {
        core::arch::asm!("sfence.vma {va}, {asid}", va = in(reg) va, asid = in(reg) asid, options(nostack));
    }
    #[cfg(not(target_os = "none"))]
    let _ = (asid, va);
}

/// Drops this hart's entries for the pages of `start..end` in `asid`, or for all of it where that is cheaper.
#[inline]
pub(super) fn flush_range(asid: usize, start: usize, end: usize, why: impl Account) {
    let pages = (end - start) / PAGE_SIZE;
    if pages == 1 {
        flush_page(asid, start, why);
    } else if pages > pages_max(features()) {
        flush_asid(asid, why);
    } else if features().svinval {
        flush_together(asid, start, end, why);
    } else {
        for va in (start..end).step_by(PAGE_SIZE) {
            flush_page(asid, va, why);
        }
    }
}

/// As [`flush_page`] for each page, waiting once (Svinval: what the two fences enclose is ordered as one `sfence.vma`
/// each would be).
fn flush_together(asid: usize, start: usize, end: usize, why: impl Account) {
    why.note(Form::Range);
    tell!(Pages(hart::id(), asid, start, end));
    #[cfg(target_os = "none")]
    {
        // SAFETY: as in `flush_page`. sfence.w.inval, sinval.vma, sfence.inval.ir, which not every assembler knows.
        unsafe { core::arch::asm!(".insn r 0x73, 0, 0x0c, x0, x0, x0", options(nostack)) };
        for va in (start..end).step_by(PAGE_SIZE) {
            // SAFETY: as above.
            unsafe {
                core::arch::asm!(".insn r 0x73, 0, 0x0b, x0, {}, {}", in(reg) va, in(reg) asid, options(nostack));
            }
        }
        // SAFETY: as above.
        unsafe { core::arch::asm!(".insn r 0x73, 0, 0x0c, x0, x0, x1", options(nostack)) };
    }
    #[cfg(not(target_os = "none"))]
    let _ = (asid, start, end);
}

/// Drops this hart's entries of `asid`, of all levels.
#[inline]
pub(super) fn flush_asid(asid: usize, why: impl Account) {
    why.note(Form::Asid);
    tell!(Asid(hart::id(), asid));
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
    tell!(All(hart::id()));
    #[cfg(target_os = "none")]
    // SAFETY: as in `flush_page`.
    unsafe {
        core::arch::asm!("sfence.vma", options(nostack));
    }
}

/// Has this hart see all earlier stores in its instruction fetches.
#[inline]
pub(super) fn fence_i(why: impl Account) {
    why.note(Form::Fetch);
    tell!(Fetch(hart::id()));
    #[cfg(target_os = "none")]
    // SAFETY: fence.i orders fetches after stores and does nothing else.
    unsafe {
        core::arch::asm!(".insn 0x0000100f", options(nostack));
    }
}

#[inline]
pub(super) fn write_satp(mode_bits: usize, asid: usize, root: u32) {
    tell!(Satp(hart::id(), asid, root));
    #[cfg(target_os = "none")]
    // SAFETY: the value names a root table that holds all of the kernel's mappings and that the caller keeps alive
    // for as long as it is in satp, so that the kernel goes on running at the same addresses.
    unsafe {
        core::arch::asm!("csrw satp, {v}", v = in(reg) mode_bits | asid << 44 | root as usize, options(nostack));
    }
    #[cfg(not(target_os = "none"))]
    let _ = (mode_bits, asid, root);
}
