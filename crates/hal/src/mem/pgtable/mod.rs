//! Page tables of user programs, in Sv39, Sv48 and Sv57.
//!
//! A [`PageTable`] owns the tables of the user half and a reference to each page that an entry maps (but for entries
//! marked *borrowed*: the shared page of zeroes and pages of the kernel image). The kernel's half of the root is copied
//! from the kernel's own table, whose top-level entries are all made at boot and never change.
//!
//! Rules that every function here keeps:
//! - an entry changes by one full-width store (invalid to valid, or to nothing by who has the table to itself) or by an
//!   AMO, never in pieces;
//! - a fence orders the filling of a page or table before the store that links it;
//! - leaf entries have A set, and D if they are writable, so that a hart without hardware A/D updating (Svade) does not
//!   fault a second time; writable implies readable (the encoding W without R is reserved);
//! - a page or table taken out is handed to a [`Gather`] and freed only after the fence that the change owes.
//!
//! Who has the table to itself (`&mut`) may do anything. Several harts that share it (`&`), each to resolve a fault, keep
//! to two rules: an absent entry is filled by a compare-and-swap, and a present one changes only under the lock of its leaf
//! table (see [`shared`]). Tables are unlinked by the one owner only, so that nobody's walk meets one that is being freed.
//!
//! The table of the last page asked for is remembered in a [`Cursor`]: neighbours need no walk from the root, which in Sv57
//! is five dependent loads.

mod fork;
mod pte;
mod shared;
mod slot;
mod walk;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

pub(super) use pte::V;
pub use pte::{PteRef, PteVal};
use pte::{frame_number, is_table, link_fence, table_entry};
pub use shared::{LockedPte, SharedPte};
use slot::Slot;

use super::frame::{Frame, meta};
use super::layout::{Mode, mode, phys_to_virt, user_top};
use super::tlb::{self, Gather, Reason, Space};
use crate::addr::{PAGE_SHIFT, PAGE_SIZE, PhysAddr};

/// What a program may do with a page. Writable implies readable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Prot(u8);

impl Prot {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Read.
    pub const R: Self = Self(1 << 1);
    /// Read and write.
    pub const RW: Self = Self(1 << 1 | 1 << 2);
    /// Execute alone.
    pub const X: Self = Self(1 << 3);
    /// Read and execute.
    pub const RX: Self = Self(1 << 1 | 1 << 3);

    /// The permission with these rights.
    #[inline]
    pub const fn new(r: bool, w: bool, x: bool) -> Self {
        Self(((r || w) as u8) << 1 | (w as u8) << 2 | (x as u8) << 3)
    }

    /// Loads are allowed.
    #[inline]
    pub const fn readable(self) -> bool {
        self.0 & 1 << 1 != 0
    }

    /// Stores are allowed.
    #[inline]
    pub const fn writable(self) -> bool {
        self.0 & 1 << 2 != 0
    }

    /// Fetches are allowed.
    #[inline]
    pub const fn executable(self) -> bool {
        self.0 & 1 << 3 != 0
    }

    /// The same without the right to write.
    #[inline]
    #[must_use]
    pub const fn without_write(self) -> Self {
        Self(self.0 & !(1 << 2))
    }

    /// Whether everything that `other` allows is allowed here too.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    #[inline]
    const fn bits(self) -> u64 {
        self.0 as u64
    }
}

/// Entries of a table.
const ENTRIES: usize = 512;
/// Levels of the deepest mode.
const MAX_LEVELS: usize = 5;

/// Top-level entries of the kernel: address of its root table, and which of the upper 256 entries are present.
static KERNEL_ROOT: AtomicUsize = AtomicUsize::new(0);
static KERNEL_ENTRIES: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

/// Says where the kernel's own root table is. Called once its top-level entries are complete and before the first
/// [`PageTable`]; they are copied into every root.
///
/// # Safety
/// `root` is the page-aligned address of the root table in satp, which stays for ever.
pub unsafe fn set_kernel_root(root: PhysAddr) {
    let table = phys_to_virt(root) as *const u64;
    for i in 0..256 {
        // SAFETY: the caller vouches for the table, which has 512 entries.
        if unsafe { table.add(256 + i).read_volatile() } & V != 0 {
            KERNEL_ENTRIES[i / 64].fetch_or(1 << (i % 64), Ordering::Relaxed);
        }
    }
    KERNEL_ROOT.store(table as usize, Ordering::Relaxed);
    tlb::set_kernel_root(root);
}

/// A table's entries.
type Table = [Slot; ENTRIES];

/// The table in frame `number`.
///
/// # Safety
/// The frame is a page table that lives as long as `'a`.
#[inline]
unsafe fn table<'a>(number: u32) -> &'a Table {
    // SAFETY: the caller's promise; entries are only ever accessed as atomics.
    unsafe { &*(phys_to_virt(PhysAddr((number as usize) << PAGE_SHIFT)) as *const Table) }
}

/// Index of `va` in a table of `level` (0: the table of leaf entries).
#[inline]
const fn index(va: usize, level: usize) -> usize {
    va >> (PAGE_SHIFT + 9 * level) & (ENTRIES - 1)
}

/// Bytes that one entry of a table of `level` covers.
#[inline]
const fn span(level: usize) -> usize {
    1 << (PAGE_SHIFT + 9 * level)
}

/// The entry for the page of `va` below the root table in frame `root`, if there is a table for it. The caller has a
/// reference to the root and keeps the tables from being freed, or knows that the frame of a freed table is not reused.
pub(super) fn leaf_slot(root: u32, va: usize) -> Option<&'static Slot> {
    if va >= user_top() {
        return None;
    }
    let mut number = root;
    for level in (1..mode().levels()).rev() {
        // SAFETY: the root or a table linked in it, by the caller's promise.
        let entry = unsafe { table(number)[index(va, level)].load(Ordering::Acquire) };
        if !is_table(entry) {
            return None;
        }
        number = frame_number(entry);
    }
    // SAFETY: as above.
    Some(unsafe { &table(number)[index(va, 0)] })
}

/// Memory ran out for a page table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoMemory;

/// Which leaf table was looked up last, and when: for one page table and until that frees tables.
#[derive(Clone, Copy, Default, Debug)]
pub struct Cursor {
    /// `va >> 21` of what the leaf table serves.
    tag: usize,
    /// [`PageTable::epoch`] at that time; 0 for never.
    epoch: usize,
    /// The leaf table's frame number.
    number: u32,
}

/// The last number given to a page table's [epoch](PageTable::epoch).
static EPOCHS: AtomicUsize = AtomicUsize::new(0);

fn new_epoch() -> usize {
    EPOCHS.fetch_add(1, Ordering::Relaxed) + 1
}

/// The user half of one address space.
pub struct PageTable {
    space: Arc<Space>,
    levels: usize,
    /// A number that no other table has or had, nor this one before it last freed tables: a [`Cursor`] that has it
    /// points to a table that is still linked here.
    epoch: usize,
    /// The owner's.
    cursor: Cursor,
    /// Table pages, the root included.
    tables: AtomicUsize,
}

impl PageTable {
    /// An empty user half. `None` when there is no memory.
    pub fn new() -> Option<Self> {
        let root = Frame::alloc_table()?;
        // SAFETY: the frame was just made for this table.
        let entries = unsafe { table(root.number()) };
        let kernel = KERNEL_ROOT.load(Ordering::Relaxed) as *const u64;
        for (word, present) in KERNEL_ENTRIES.iter().enumerate() {
            let mut present = present.load(Ordering::Relaxed);
            while present != 0 {
                let i = 256 + word * 64 + present.trailing_zeros() as usize;
                present &= present - 1;
                // SAFETY: `set_kernel_root` found the entry in the table, which stays for ever and does not change.
                entries[i].store(unsafe { kernel.add(i).read_volatile() }, Ordering::Relaxed);
            }
        }
        link_fence();
        let mode: Mode = mode();
        Some(Self {
            space: Space::new(root)?,
            levels: mode.levels(),
            epoch: new_epoch(),
            cursor: Cursor::default(),
            tables: AtomicUsize::new(1),
        })
    }

    /// What the translation hardware sees of it.
    #[inline]
    pub fn space(&self) -> &Arc<Space> {
        &self.space
    }

    /// Pages that the tables take, the root included.
    #[inline]
    pub fn table_pages(&self) -> usize {
        self.tables.load(Ordering::Relaxed)
    }

    /// The entry for the page of `va`, present or not. Makes the tables on the way; fails when there is no memory for
    /// them or `va` is not in the user half.
    #[inline]
    pub fn entry(&mut self, va: usize) -> Result<PteRef<'_>, NoMemory> {
        let number = self.own_table_for(va)?;
        // SAFETY: the table is linked.
        Ok(self.entry_in(unsafe { table(number) }, va))
    }

    #[inline]
    fn own_table_for(&mut self, va: usize) -> Result<u32, NoMemory> {
        let mut cursor = self.cursor;
        let number = self.table_for(&mut cursor, va)?;
        self.cursor = cursor;
        Ok(number)
    }

    /// The entry for the page of `va` in its table.
    #[inline]
    fn entry_in<'a>(&'a self, table: &'a Table, va: usize) -> PteRef<'a> {
        PteRef::new(&table[index(va, 0)], &self.space, va)
    }

    /// The leaf table for `va`, which is made if there is none.
    #[inline(always)]
    fn table_for(&self, cursor: &mut Cursor, va: usize) -> Result<u32, NoMemory> {
        if cursor.tag == va >> 21 && cursor.epoch == self.epoch {
            return Ok(cursor.number);
        }
        let number = self.make_tables(va)?;
        *cursor = Cursor { tag: va >> 21, epoch: self.epoch, number };
        Ok(number)
    }

    #[inline(never)]
    fn make_tables(&self, va: usize) -> Result<u32, NoMemory> {
        if va >= user_top() {
            return Err(NoMemory);
        }
        let mut number = self.space.root();
        let mut linked = false;
        for level in (1..self.levels).rev() {
            // SAFETY: the root or a table linked in it, which stays so while `self` is borrowed.
            let slot = unsafe { &table(number)[index(va, level)] };
            let mut entry = slot.load(Ordering::Acquire);
            if entry & V == 0 {
                let new = Frame::alloc_table().ok_or(NoMemory)?;
                meta(new.number()).prev.store(0, Ordering::Relaxed);
                link_fence();
                entry = table_entry(new.number());
                if slot.claim(entry) {
                    self.tables.fetch_add(1, Ordering::Relaxed);
                    linked = true;
                    let _ = new.into_raw();
                } else {
                    // Another hart was faster.
                    entry = slot.load(Ordering::Acquire);
                }
            }
            number = frame_number(entry);
        }
        if linked && !tlb::is_lazy() {
            self.space.linked(va, true);
        }
        Ok(number)
    }

    /// The entry for the page of `va` if its table exists.
    #[inline]
    pub fn find(&mut self, va: usize) -> Option<PteRef<'_>> {
        let mut cursor = self.cursor;
        let number = self.leaf_table(&mut cursor, va).ok()?;
        self.cursor = cursor;
        // SAFETY: a linked table, alive while `self` is borrowed.
        Some(self.entry_in(unsafe { table(number) }, va))
    }

    /// The entry's value for the page of `va`; an absent one where there is no table.
    #[inline]
    pub fn lookup(&mut self, va: usize) -> PteVal {
        self.find(va).map_or(PteVal::ABSENT, |entry| entry.load())
    }

    /// A collector for what this table's changes take out.
    #[inline]
    pub fn gather<'a>(space: &'a Space, reason: Reason) -> Gather<'a> {
        Gather::new(space, reason, false)
    }

    /// Prepares the end of the table: this hart leaves it. The gather given to `f` frees at once if no hart can walk
    /// the table any more; what `f` must do is clear all ranges in use.
    pub fn tear_down(&mut self, f: impl FnOnce(&mut Self, &mut Gather<'_>)) {
        self.space.leave();
        let space = self.space.clone();
        let immediate = space.running() == 0 || planted!(FreesRunning);
        let mut gather = Gather::new(&space, Reason::Unmap, immediate);
        f(self, &mut gather);
    }
}

impl Drop for PageTable {
    fn drop(&mut self) {
        if *self.tables.get_mut() > 1 {
            self.tear_down(|table, gather| {
                let top = user_top();
                table.clear(0, top, gather);
                table.free_tables(0, top, 0, top, gather);
            });
        }
        debug_assert_eq!(*self.tables.get_mut(), 1);
    }
}

#[cfg(test)]
mod tests;
