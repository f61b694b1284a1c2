//! Which fence a change owes: the one table that everything else here follows.
//!
//! A hart may go on using any translation that was valid at any time since its last fence that covered it, and may keep
//! entries that are not valid as well (privileged specification, *Supervisor Memory-Management Fence Instruction*; "SFENCE"
//! below). So a change is over only when every hart that may have read the old entry has fenced. What must be fenced
//! *before* something, what may be left to the page fault that a stale entry causes, and what need not be fenced at all,
//! is said here and nowhere else: [`owed`] is a pure function of what changed and of what the harts promise.
//!
//! The rest of the kernel changes page tables through [`pgtable`](crate::mem::pgtable) and never fences.

/// What changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// A leaf entry that was not valid became valid.
    LeafLinked,
    /// A table was linked where there was none.
    TableLinked,
    /// The same page, with more rights.
    Widened,
    /// The same page, with fewer rights.
    Narrowed,
    /// A page that the kernel filled, or whose contents are code from now on, may be executed.
    ExecGained,
    /// Another page in the place of a valid one.
    Replaced,
    /// A leaf in the place of a table, or the reverse.
    Resized,
    /// A leaf entry is gone.
    Unmapped,
    /// A table is gone.
    TableFreed,
    /// A was cleared.
    AccessedCleared,
    /// D was cleared.
    DirtyCleared,
    /// An ASID belongs to another space from now on.
    AsidReused,
    /// A hart enters another space.
    Entered,
    /// A hart enters a space that changed, in a way that owed a fence, while the hart did not run it.
    Returned,
    /// No hart runs the space any more, and none will.
    SpaceGone,
}

/// By when.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum When {
    /// Not at all.
    Never,
    /// When a stale entry causes a page fault that the tables do not explain.
    AtFault,
    /// Before the hart executes an instruction of the space that it enters.
    BeforeEntry,
    /// Before the call that made the change returns.
    BeforeReturn,
    /// Before the call returns, and before what was taken out is used for anything else.
    BeforeFree,
}

/// On which harts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Harts {
    /// None.
    None,
    /// The one that faults.
    Faulting,
    /// The one that enters a space.
    Entering,
    /// Those that run the space; the others when they come back ([`Change::Returned`]).
    Running,
}

/// How much of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// Nothing.
    Nothing,
    /// Leaf entries of the pages, of one ASID: `sfence.vma va, asid`. Covers no entry of an inner level.
    Page,
    /// All entries of one ASID, of all levels: `sfence.vma x0, asid`.
    Asid,
    /// Everything: `sfence.vma x0, x0`.
    All,
    /// Instruction fetches: `fence.i`.
    Fetch,
}

/// What the harts promise. What only some of them have, none has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Features {
    /// Svvptc: entries that become valid are seen within a bounded time, without a fence.
    pub svvptc: bool,
    /// Svinval: fences of single pages can be issued together.
    pub svinval: bool,
    /// Svadu, enabled: hardware sets A and D; otherwise (Svade) an access that finds them clear faults.
    pub svadu: bool,
    /// Address-space identifiers are in use.
    pub asids: bool,
}

/// A row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owed {
    /// By when.
    pub when: When,
    /// Where.
    pub harts: Harts,
    /// What.
    pub scope: Scope,
    /// Where the specification says so.
    pub section: &'static str,
}

const fn row(when: When, harts: Harts, scope: Scope, section: &'static str) -> Owed {
    Owed { when, harts, scope, section }
}

/// The table.
pub const fn owed(change: Change, features: Features) -> Owed {
    use Change::*;
    const NOTHING: (When, Harts, Scope) = (When::Never, Harts::None, Scope::Nothing);
    let (when, harts, scope) = NOTHING;
    match change {
        LeafLinked if features.svvptc => row(when, harts, scope, "Svvptc: stores that set V, in leaf entries"),
        LeafLinked => {
            row(When::AtFault, Harts::Faulting, Scope::Page, "SFENCE: invalid to valid leaf, lazily; caching of V=0")
        }
        TableLinked if features.svvptc => row(when, harts, scope, "Svvptc: stores that set V, in non-leaf entries"),
        TableLinked => row(When::AtFault, Harts::Faulting, Scope::Asid, "SFENCE: non-leaf modified, rs1=x0"),
        // Svvptc is silent on permissions.
        Widened => row(When::AtFault, Harts::Faulting, Scope::Page, "SFENCE: more permissions on a leaf, lazily"),
        Narrowed => row(When::BeforeReturn, Harts::Running, Scope::Page, "SFENCE: leaf modified, rs1=va"),
        ExecGained => {
            row(When::BeforeReturn, Harts::Running, Scope::Fetch, "Zifencei: stores before fetches, per hart")
        }
        Replaced => row(When::BeforeFree, Harts::Running, Scope::Page, "SFENCE: leaf modified, rs1=va"),
        Resized => row(When::BeforeFree, Harts::Running, Scope::Asid, "SFENCE: old non-leaf or new leaf, rs1=x0"),
        Unmapped => row(When::BeforeFree, Harts::Running, Scope::Page, "SFENCE: leaf modified, rs1=va"),
        TableFreed => row(When::BeforeFree, Harts::Running, Scope::Asid, "SFENCE: non-leaf modified, rs1=x0"),
        // The worst that follows is a page that looks older than it is.
        AccessedCleared => row(when, harts, scope, "Sv32, A and D: A is a hint, updated speculatively"),
        // A hart that has D=1 cached writes without setting it again.
        DirtyCleared => row(When::BeforeReturn, Harts::Running, Scope::Page, "Sv32, A and D: D must be exact"),
        AsidReused => row(When::BeforeEntry, Harts::Entering, Scope::All, "SFENCE: software recycles an ASID"),
        Entered if features.asids => row(when, harts, scope, "SFENCE: changes to satp.ASID take effect immediately"),
        Entered => row(When::BeforeEntry, Harts::Entering, Scope::Asid, "SFENCE: no ASIDs, after every satp write"),
        Returned => {
            row(When::BeforeEntry, Harts::Entering, Scope::Asid, "SFENCE: any translation since the last fence")
        }
        // Only what satp leads to is read, and the ASID is not used before all harts have fenced it.
        SpaceGone => row(when, harts, scope, "SFENCE: implicit reads only from the current satp"),
    }
}

/// The most pages that are fenced one by one: beyond, dropping the ASID is cheaper. With Svinval the fences of a
/// range wait once, not once each.
pub const fn pages_max(features: Features) -> usize {
    if features.svinval { 64 } else { 2 }
}

/// All changes, for those who print or test the table.
pub const CHANGES: [Change; 15] = {
    use Change::*;
    [
        LeafLinked,
        TableLinked,
        Widened,
        Narrowed,
        ExecGained,
        Replaced,
        Resized,
        Unmapped,
        TableFreed,
        AccessedCleared,
        DirtyCleared,
        AsidReused,
        Entered,
        Returned,
        SpaceGone,
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    fn all_features() -> impl Iterator<Item = Features> {
        (0..16).map(|n| Features { svvptc: n & 1 != 0, svinval: n & 2 != 0, svadu: n & 4 != 0, asids: n & 8 != 0 })
    }

    #[test]
    fn what_takes_something_away_is_never_left_to_a_fault() {
        for features in all_features() {
            for change in [Change::Narrowed, Change::Replaced, Change::Unmapped, Change::TableFreed, Change::Resized] {
                let owed = owed(change, features);
                assert!(owed.when >= When::BeforeReturn && owed.harts == Harts::Running, "{change:?} {owed:?}");
            }
        }
    }

    #[test]
    fn what_gives_something_owes_nothing_before_a_fault() {
        for features in all_features() {
            for change in [Change::LeafLinked, Change::TableLinked, Change::Widened] {
                assert!(owed(change, features).when <= When::AtFault);
            }
        }
    }

    #[test]
    fn svvptc_speaks_of_valid_bits_alone() {
        for features in all_features() {
            let other = Features { svvptc: !features.svvptc, ..features };
            for change in CHANGES {
                let same = owed(change, features) == owed(change, other);
                assert_eq!(same, !matches!(change, Change::LeafLinked | Change::TableLinked), "{change:?}");
            }
        }
    }

    #[test]
    fn what_changes_a_table_covers_all_levels() {
        for features in all_features() {
            for change in [Change::TableFreed, Change::Resized, Change::Returned, Change::AsidReused] {
                assert!(matches!(owed(change, features).scope, Scope::Asid | Scope::All));
            }
        }
    }

    #[test]
    fn neither_svinval_nor_svadu_change_what_is_owed() {
        for features in all_features() {
            for change in CHANGES {
                let plain = Features { svinval: false, svadu: false, ..features };
                assert_eq!(owed(change, features), owed(change, plain));
            }
        }
    }
}
