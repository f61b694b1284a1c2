//! Sharing pages between a parent and its child.

use core::sync::atomic::Ordering;

use super::pte::{clone_of, is_shareable, read_only, writable, write_protect};
use super::walk::next_present;
use super::{NoMemory, PageTable, Reason, index, table};
use crate::addr::PAGE_SIZE;
use crate::hart;
use crate::mem::tlb::inject;

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
    /// before the child runs. Interrupts may come in between two tables ([`hart::window`]). On failure some pages are shared already; the child is dropped then.
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
            let mut target = None;
            let mut i = next_present(entries, 0);
            while let Some(slot) = entries.get(i) {
                let entry = slot.load(Ordering::Relaxed);
                if is_shareable(entry) {
                    let number = match target {
                        Some(number) => number,
                        None => match child.own_table_for(first) {
                            Ok(number) => *target.insert(number),
                            Err(error) => {
                                result = Err(error);
                                return;
                            }
                        },
                    };
                    if writable(entry) {
                        write_protect(slot);
                        shared.protected += 1;
                    }
                    core::mem::forget(clone_of(entry));
                    // SAFETY: a table linked in `child`, which is borrowed; all entries of one call are in one leaf
                    // table.
                    let target = unsafe { &table(number)[index(first, 0) + i] };
                    debug_assert_eq!(target.load(Ordering::Relaxed), 0);
                    let entry = read_only(entry);
                    let entry = if inject::is_on() { inject::hidden(entry, first + i * PAGE_SIZE) } else { entry };
                    target.store(entry, Ordering::Relaxed);
                    shared.pages += 1;
                }
                i = next_present(entries, i + 1);
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
