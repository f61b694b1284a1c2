//! Operations on ranges of pages.

use core::sync::atomic::Ordering;

use super::pte::owned;
use super::{
    Cursor, ENTRIES, Gather, MAX_LEVELS, PAGE_SIZE, PageTable, Prot, PteRef, PteVal, Slot, V, frame_number, index,
    span, table,
};
use super::{Reason, is_table, new_epoch, user_top};
use crate::hart;
use crate::mem::frame::{Frame, FrameBatch};

/// Bytes of pages moved between two windows for interrupts.
const WINDOW: usize = 128 * PAGE_SIZE;

/// Calls `f` with the index of each entry that is not 0, its place and what it holds, in order.
#[inline(always)]
pub(super) fn each_present(entries: &[Slot], mut f: impl FnMut(usize, &Slot, u64)) {
    let mut i = 0;
    while let Some(slot) = entries.get(i) {
        let entry = slot.load(Ordering::Relaxed);
        i += 1;
        if entry != 0 {
            f(i - 1, slot, entry);
        } else {
            i += absent(entries.get(i..).unwrap_or_default());
        }
    }
}

/// How many entries at the beginning are 0, in fours: most entries of an area are absent.
#[inline(always)]
fn absent(entries: &[Slot]) -> usize {
    let (fours, _) = entries.as_chunks::<4>();
    let none = |four: &&[Slot; 4]| four.iter().fold(0, |bits, slot| bits | slot.load(Ordering::Relaxed)) == 0;
    4 * fours.iter().take_while(none).count()
}

/// As [`each_present`] for many entries, with the least for each; longer, and slower for few.
#[inline(always)]
pub(super) fn each_of_many(entries: &[Slot], mut f: impl FnMut(usize, &Slot, u64)) {
    let (fours, rest) = entries.as_chunks::<4>();
    for (n, four) in fours.iter().enumerate() {
        let values = four.each_ref().map(|slot| slot.load(Ordering::Relaxed));
        if values.iter().fold(0, |bits, value| bits | value) != 0 {
            for (i, (slot, value)) in four.iter().zip(values).enumerate() {
                if value != 0 {
                    f(4 * n + i, slot, value);
                }
            }
        }
    }
    each_present(rest, |i, slot, value| f(4 * fours.len() + i, slot, value));
}

/// Clears entries that no hart can reach any more, and gives the number of (all, private) pages as [`PageTable::clear`]. A
/// loop of its own: it is what the end of a big program does.
#[inline(never)]
fn clear_unreachable(entries: &[Slot], batch: &mut FrameBatch) -> (usize, usize) {
    let (mut all, mut private) = (0, 0);
    each_of_many(entries, |_, slot, entry| {
        slot.store(0, Ordering::Relaxed);
        if let Some(frame) = owned(entry) {
            all += 1;
            private += PteVal(entry).is_private() as usize;
            batch.push(frame);
        }
    });
    (all, private)
}

impl PageTable {
    /// Frame number of the leaf table for `va`; or, where there is none, the level of the entry that is absent.
    #[inline]
    pub(super) fn leaf_table(&self, cursor: &mut Cursor, va: usize) -> Result<u32, usize> {
        if cursor.tag == va >> 21 && cursor.epoch == self.epoch {
            return Ok(cursor.number);
        }
        if va >= user_top() {
            return Err(self.levels - 1);
        }
        let mut number = self.space.root();
        for level in (1..self.levels).rev() {
            // SAFETY: the root or a table linked in it, alive while `self` is borrowed.
            let entry = unsafe { table(number)[index(va, level)].load(Ordering::Acquire) };
            if entry & V == 0 {
                return Err(level);
            }
            number = frame_number(entry);
        }
        *cursor = Cursor { tag: va >> 21, epoch: self.epoch, number };
        Ok(number)
    }

    /// Calls `f` with each leaf table that has pages of `start..end`: the address of the first of them and their
    /// entries. Where tables are absent the walk skips as much as the absent entry covers.
    #[inline]
    pub(super) fn leaf_tables(&self, cursor: &mut Cursor, start: usize, end: usize, mut f: impl FnMut(usize, &[Slot])) {
        let mut va = start;
        while va < end {
            match self.leaf_table(cursor, va) {
                Ok(number) => {
                    let first = index(va, 0);
                    let count = (ENTRIES - first).min((end - va) / PAGE_SIZE);
                    // SAFETY: a linked table, alive while `self` is borrowed.
                    f(va, unsafe { &table(number)[first..first + count] });
                    va += count * PAGE_SIZE;
                }
                Err(level) => match (va | (span(level) - 1)).checked_add(1) {
                    Some(next) => va = next,
                    None => return,
                },
            }
        }
    }

    /// Calls `f` for each present entry of the pages in `start..end` (page-aligned), in order.
    #[inline]
    pub fn walk_range(&mut self, start: usize, end: usize, mut f: impl FnMut(usize, PteRef<'_>)) {
        let mut cursor = self.cursor;
        self.leaf_tables(&mut cursor, start, end, |first, entries| {
            each_present(entries, |i, slot, _| {
                f(first + i * PAGE_SIZE, PteRef::new(slot, &self.space, first + i * PAGE_SIZE));
            });
        });
        self.cursor = cursor;
    }

    /// Clears all entries of `start..end` (page-aligned). Gives the number of (all, private) pages that were mapped,
    /// borrowed ones not counted. Panics if `gather` is for another table.
    pub fn clear(&mut self, start: usize, end: usize, gather: &mut Gather<'_>) -> (usize, usize) {
        assert!(gather.is_for(&self.space));
        let (mut all, mut private) = (0, 0);
        let mut cursor = self.cursor;
        self.leaf_tables(&mut cursor, start, end, |first, entries| {
            if first != start {
                gather.pause();
            }
            if let Some(batch) = gather.unreachable(first) {
                let (more, more_private) = clear_unreachable(entries, batch);
                (all, private) = (all + more, private + more_private);
                return;
            }
            let mut last = usize::MAX;
            each_present(entries, |i, slot, entry| {
                // Nobody else changes it, nor does the hardware: A and D are set from the start.
                slot.store(0, Ordering::Relaxed);
                if last == usize::MAX {
                    gather.touch(first + i * PAGE_SIZE);
                }
                last = i;
                if let Some(frame) = owned(entry) {
                    all += 1;
                    private += PteVal(entry).is_private() as usize;
                    gather.frame(frame, first + i * PAGE_SIZE);
                }
            });
            if last != usize::MAX {
                gather.touch(first + last * PAGE_SIZE);
            }
        });
        self.cursor = cursor;
        (all, private)
    }

    /// Clears the entry of one page and gives what was there to `gather`; counts as [`PageTable::clear`].
    #[inline]
    pub fn clear_page(&mut self, va: usize, gather: &mut Gather<'_>) -> (usize, usize) {
        self.clear(va, va + PAGE_SIZE, gather)
    }

    /// Gives the pages of `start..end` the rights `prot(entry)`. What becomes narrower is fenced before this returns;
    /// what becomes wider is resolved by the next fault, on harts that have the old entry. What becomes executable may
    /// have been stored by the program itself, so that all harts that run it fetch afresh. Interrupts may come in between two
    /// tables ([`hart::window`]).
    pub fn protect(&mut self, start: usize, end: usize, mut prot: impl FnMut(&PteRef<'_>) -> Prot) {
        let mut cursor = self.cursor;
        let space = &*self.space;
        let (mut low, mut high) = (usize::MAX, 0);
        let mut fetches = planted!(ProtectExec);
        self.leaf_tables(&mut cursor, start, end, |first, entries| {
            if first != start {
                hart::window();
            }
            each_present(entries, |i, slot, _| {
                let va = first + i * PAGE_SIZE;
                let entry = PteRef::new(slot, space, va);
                let (old, new) = (entry.load().prot(), prot(&entry));
                if new != old {
                    if new.executable() && !old.executable() && !fetches {
                        space.flush_icache();
                        fetches = true;
                    }
                    entry.set_prot(new);
                    if !new.contains(old) {
                        (low, high) = (low.min(va), va + PAGE_SIZE);
                    }
                }
            });
        });
        if low < high {
            space.shoot(low, high, false, Reason::Protect);
        }
        self.cursor = cursor;
    }

    /// Moves the pages of `from..from + len` to `to`, where nothing is mapped; the ranges do not overlap. On failure
    /// for want of memory some pages have moved; calling it again with the two ends exchanged moves them back without
    /// needing memory. Fenced before it returns. Interrupts may come in on the way ([`hart::window`]).
    pub fn move_range(&mut self, from: usize, to: usize, len: usize) -> Result<(), super::NoMemory> {
        let space = self.space.clone();
        let mut gather = Gather::new(&space, Reason::Unmap, false);
        for offset in (0..len).step_by(PAGE_SIZE) {
            if offset % WINDOW == WINDOW - PAGE_SIZE {
                hart::window();
            }
            let Some(source) = self.find(from + offset).filter(|e| e.load().is_present()) else { continue };
            let value = source.load();
            // The table first, so that nothing is taken out that has no place to go.
            self.entry(to + offset)?;
            let frame = self.find(from + offset).and_then(|source| source.take());
            if !planted!(MoveSource) {
                gather.touch(from + offset);
            }
            let target = self.entry(to + offset)?;
            match frame {
                Some(frame) => target.install(frame, value.prot(), value.is_private()),
                // Only pages that are never freed are borrowed; the new entry borrows it as the old one did.
                None => target.install_value(value),
            }
        }
        Ok(())
    }

    /// Frees the tables that serve `start..end` only: those whose whole span lies within `floor..ceiling`, the gap
    /// between what is still in use below and above. All entries of pages in that gap must have been cleared.
    pub fn free_tables(&mut self, start: usize, end: usize, floor: usize, ceiling: usize, gather: &mut Gather<'_>) {
        assert!(gather.is_for(&self.space));
        if start >= end || end > user_top() {
            return;
        }
        self.epoch = new_epoch();
        let gap = Gap { floor, ceiling };
        if start >> 21 == (end - 1) >> 21 {
            self.free_path(start, &gap, gather);
            return;
        }
        *self.tables.get_mut() -= free_level(self.space.root(), self.levels - 1, start, end, 0, &gap, gather);
    }
}

/// What nobody uses.
struct Gap {
    floor: usize,
    ceiling: usize,
}

impl PageTable {
    /// As [`PageTable::free_tables`] for a range that one leaf table serves: from that upwards, until a table serves
    /// others too.
    fn free_path(&mut self, va: usize, gap: &Gap, gather: &mut Gather<'_>) {
        let mut path = [0; MAX_LEVELS];
        let mut number = self.space.root();
        let mut lowest = self.levels;
        for level in (1..self.levels).rev() {
            path[level] = number;
            lowest = level;
            // SAFETY: the root or a table linked in it.
            let entry = unsafe { table(number)[index(va, level)].load(Ordering::Relaxed) };
            if !is_table(entry) {
                lowest = level + 1;
                break;
            }
            number = frame_number(entry);
        }
        let Some(used) = path.get(lowest..self.levels) else { return };
        for (i, &number) in used.iter().enumerate() {
            let level = lowest + i;
            let low = va & !(span(level) - 1);
            if low < gap.floor || gap.ceiling - low < span(level) {
                return;
            }
            // SAFETY: still linked, as on the way down.
            free_entry(unsafe { &table(number)[index(va, level)] }, gather);
            *self.tables.get_mut() -= 1;
        }
    }
}

/// Unlinks the table that `slot` points to, in which nothing is left, and hands it to `gather`.
fn free_entry(slot: &Slot, gather: &mut Gather<'_>) {
    let number = frame_number(slot.load(Ordering::Relaxed));
    if cfg!(debug_assertions) {
        // SAFETY: still linked.
        let left = unsafe { table(number) };
        debug_assert!(left.iter().all(|e| e.load(Ordering::Relaxed) == 0), "table in use");
    }
    slot.store(0, Ordering::Relaxed);
    // SAFETY: `make_tables` gave the handle up to the entry, which is gone.
    gather.table(unsafe { Frame::from_raw(number) });
}

/// Frees what [`PageTable::free_tables`] says below the table `number` of `level`, which begins at `base`; gives the
/// number of tables freed.
fn free_level(
    number: u32,
    level: usize,
    start: usize,
    end: usize,
    base: usize,
    gap: &Gap,
    gather: &mut Gather<'_>,
) -> usize {
    let size = span(level);
    let mut freed = 0;
    for i in index(start, level)..=index(end - 1, level) {
        // SAFETY: the root or a table linked in it; nobody else uses the tables.
        let slot = unsafe { &table(number)[i] };
        let entry = slot.load(Ordering::Relaxed);
        if !is_table(entry) {
            continue;
        }
        let low = base + i * size;
        let high = low + size;
        if level > 1 {
            freed += free_level(frame_number(entry), level - 1, start.max(low), end.min(high), low, gap, gather);
        }
        if gap.floor <= low && high <= gap.ceiling {
            free_entry(slot, gather);
            freed += 1;
        }
    }
    freed
}
