//! Sharing pages between a parent and its child.

use core::sync::atomic::Ordering;

use super::pte::{clone_of, is_shareable, read_only, writable, write_protect};
use super::walk::each_of_many;
use super::{NoMemory, PageTable, Reason, Slot, index, table};
use crate::addr::PAGE_SIZE;
use crate::hart;
use crate::mem::tlb::inject;

/// Puts the private pages of `entries`, the first of which is that of `va`, into `targets` too, the same places of the
/// child's table. A loop of its own: it is what a fork of a big program does.
#[inline(never)]
fn share(entries: &[Slot], targets: &[Slot], va: usize, shared: &mut Shared) {
    let injects = inject::is_on();
    let Shared { mut pages, mut protected } = *shared;
    each_of_many(entries, |i, slot, entry| {
        let Some(target) = targets.get(i).filter(|_| is_shareable(entry)) else { return };
        if writable(entry) {
            write_protect(slot);
            protected += 1;
        }
        core::mem::forget(clone_of(entry));
        debug_assert_eq!(target.load(Ordering::Relaxed), 0);
        let entry = read_only(entry);
        let entry = if injects { inject::hidden(entry, va + i * PAGE_SIZE) } else { entry };
        target.store(entry, Ordering::Relaxed);
        pages += 1;
    });
    *shared = Shared { pages, protected };
}

/// What a fork did to one range.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Shared {
    /// Private pages that the child has now too.
    pub pages: usize,
    /// Pages that the parent could write to before: it owes a fence before the child runs.
    pub protected: usize,
}

impl PageTable {
    /// Lets `child` have the private pages of `start..end` too, read-only on both sides so that the first write
    /// copies. Pages of files and the page of zeroes are left to faults: they are found again where they came from.
    ///
    /// The parent's entries owe a fence on all harts that run it: [`PageTable::fork_done`] after the last range, and
    /// before the child runs. Interrupts may come in between two tables ([`hart::window`]). On failure some pages are
    /// shared already; the child is dropped then.
    pub fn share_range(&mut self, child: &mut PageTable, start: usize, end: usize) -> Result<Shared, NoMemory> {
        let mut shared = Shared::default();
        let mut result = Ok(());
        let mut cursor = self.cursor;
        self.leaf_tables(&mut cursor, start, end, |first, entries| {
            if result.is_err() {
                return;
            }
            if first != start {
                hart::window();
            }
            let sharable = |slot: &Slot| is_shareable(slot.load(Ordering::Relaxed));
            let Some(from) = entries.iter().position(sharable) else { return };
            match child.own_table_for(first) {
                Ok(number) => {
                    // SAFETY: a table linked in `child`, which is borrowed.
                    let targets = unsafe { &table(number)[index(first, 0)..] };
                    let va = first + from * PAGE_SIZE;
                    share(&entries[from..], targets.get(from..).unwrap_or_default(), va, &mut shared);
                }
                Err(error) => result = Err(error),
            }
        });
        self.cursor = cursor;
        result.map(|()| shared)
    }

    /// The fence that [`PageTable::share_range`] owes if it protected anything.
    pub fn fork_done(&self) {
        self.space.shoot(0, 0, true, Reason::Fork);
    }
}
