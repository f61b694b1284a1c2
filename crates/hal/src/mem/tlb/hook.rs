//! What tests on the host see of the machine: each store to a page table, each fence, each frame that is freed.
//!
//! On the target none of this exists. On the host the fence instructions do nothing but tell, and a test can play the
//! hart that they were meant for. A test can also leave a fence out ([`Plant`]), to see that its absence is found.

use core::cell::Cell;

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// An entry of a page table was written.
    Store,
    /// Leaf entries of these pages of an ASID were dropped on a hart: index, ASID, first and last address.
    Pages(usize, usize, usize, usize),
    /// All entries of an ASID were dropped on a hart: index, ASID.
    Asid(usize, usize),
    /// All entries were dropped on a hart.
    All(usize),
    /// A hart fetches afresh.
    Fetch(usize),
    /// satp of a hart was written: index, ASID, frame number of the root.
    Satp(usize, usize, u32),
    /// The kernel wrote to the page of this frame.
    Filled(u32),
    /// The frame is about to be free.
    Freed(u32),
}

macro_rules! plants {
    ($($name:ident)*) => {
        /// A fence that is owed and left out, or an order that is not kept: what [`plant`] breaks.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[allow(missing_docs)]
        pub enum Plant {
            $($name,)*
        }

        impl Plant {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

plants! {
    UnmapLocal
    UnmapRemote
    UnmapReturning
    UnmapFreesFirst
    UnmapLastPage
    TableLocal
    TableRemote
    TableReturning
    TableByPage
    TableFreesFirst
    ProtectLocal
    ProtectRemote
    ProtectReturning
    ReplaceLocal
    ReplaceRemote
    ReplaceReturning
    ReplaceFreesFirst
    ForkLocal
    ForkRemote
    ForkReturning
    MoveSource
    SpuriousFence
    SpuriousEscalation
    RolloverFlush
    RolloverKeeps
    NoAsidFlush
    CodeLocal
    CodeRemote
    CodeReturning
    ProtectExec
    LeavesRunning
    FreesRunning
    FillsBlindly
}

std::thread_local! {
    static HOOK: Cell<Option<fn(Event)>> = const { Cell::new(None) };
    static PLANTED: Cell<Option<Plant>> = const { Cell::new(None) };
}

/// Has this thread's events told to `hook` from now on, or to nobody.
pub fn set(hook: Option<fn(Event)>) {
    HOOK.set(hook);
}

/// Breaks one thing on this thread from now on, or nothing.
pub fn plant(what: Option<Plant>) {
    PLANTED.set(what);
}

#[inline]
pub(in crate::mem) fn tell(event: Event) {
    if let Some(hook) = HOOK.get() {
        hook(event);
    }
}

#[inline]
pub(in crate::mem) fn is_planted(what: Plant) -> bool {
    PLANTED.get() == Some(what)
}
