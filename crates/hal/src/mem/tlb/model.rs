//! The adversarial hart: harts that keep everything the specification lets them keep, for as long as it lets them.
//!
//! After each store to a page table every hart walks the tables for every page of interest and remembers each entry
//! that it reads, valid or not, of each level, beside the ones it remembers already; inner entries that it remembers
//! lead it on into tables that have been unlinked since. What a fence covers is forgotten (and read again at once): the
//! address form covers leaf entries only. So at any moment a hart knows *all* translations that it might use, and three
//! questions have exact answers: may it use one that the tables do not have any more; can it reach a frame that is about
//! to be freed; and can it fault although the tables allow the access. Instruction caches are simpler: a hart may have
//! fetched a page before the kernel filled it, unless it has fenced since.
//!
//! (Privileged specification, *Supervisor Memory-Management Fence Instruction*: any translation valid at any time since
//! the last fence that subsumes the address; caching of entries whose V is clear; reads only through the current satp.)
//!
//! For tests on the host; [`start`] makes this thread's fences and stores drive the model.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::sync::atomic::Ordering;
use std::boxed::Box;
use std::collections::HashMap;
use std::format;

use super::hook::{self, Event};
use super::layout;
use crate::addr::{PAGE_SHIFT, PhysAddr};
use crate::calls::Access;
use crate::mem::host::{ARENA_LEN, ARENA_PHYS};

const V: u64 = 1;
const RIGHTS: u64 = 0b1110;
const X: u64 = 1 << 3;

fn is_leaf(entry: u64) -> bool {
    entry & V != 0 && entry & RIGHTS != 0
}

fn is_table(entry: u64) -> bool {
    entry & V != 0 && entry & RIGHTS == 0
}

fn frame(entry: u64) -> u32 {
    (entry >> 10) as u32
}

/// What is in memory at `index` of the table in frame `table`; 0 outside memory.
fn read(table: u32, index: usize) -> u64 {
    let phys = (table as usize) << PAGE_SHIFT;
    if !(ARENA_PHYS..ARENA_PHYS + ARENA_LEN).contains(&phys) {
        return 0;
    }
    let at = layout::phys_to_virt(PhysAddr(phys)) + index % 512 * 8;
    // SAFETY: inside the arena, aligned; whatever lies there is read as a number, like the hardware would.
    unsafe { (*(at as *const core::sync::atomic::AtomicU64)).load(Ordering::Relaxed) }
}

fn prefix(va: usize, level: usize) -> usize {
    va >> (PAGE_SHIFT + 9 * level)
}

/// Where an entry belongs: ASID, level, the address bits above it.
type Key = (usize, usize, usize);

#[derive(Default)]
struct Hart {
    /// Frame of the root in satp; 0 for the kernel's own.
    root: u32,
    asid: usize,
    /// Every entry read since the last fence that covered it.
    entries: HashMap<Key, Vec<u64>>,
    /// When it last fenced its fetches.
    fetched: u64,
}

impl Hart {
    /// Reads all that it may read.
    fn walk(&mut self, pages: &[usize]) {
        if self.root != 0 {
            let levels = layout::mode().levels();
            self.walk_level(&[self.root], levels - 1, pages);
        }
    }

    fn walk_level(&mut self, tables: &[u32], level: usize, pages: &[usize]) {
        for group in pages.chunk_by(|a, b| prefix(*a, level) == prefix(*b, level)) {
            let at = prefix(group[0], level);
            let known = self.entries.entry((self.asid, level, at)).or_default();
            for &table in tables {
                let entry = read(table, at);
                if !known.contains(&entry) {
                    known.push(entry);
                }
            }
            if level > 0 {
                let below: Vec<u32> = known.iter().filter(|e| is_table(**e)).map(|e| frame(*e)).collect();
                if !below.is_empty() {
                    self.walk_level(&below, level - 1, group);
                }
            }
        }
    }

    fn known(&self, va: usize, level: usize) -> &[u64] {
        self.entries.get(&(self.asid, level, prefix(va, level))).map_or(&[], Vec::as_slice)
    }

    /// Calls `f` with each entry that may be used for `va`, and its level.
    fn each(&self, va: usize, mut f: impl FnMut(usize, u64)) {
        if self.root == 0 {
            return;
        }
        for level in (0..layout::mode().levels()).rev() {
            let known = self.known(va, level);
            known.iter().for_each(|entry| f(level, *entry));
            if !known.iter().any(|entry| is_table(*entry)) {
                return;
            }
        }
    }
}

/// The entries for `va` that are in memory, from the root down to the first that leads nowhere.
fn tables_say(root: u32, va: usize) -> Vec<(usize, u64)> {
    let mut path = Vec::new();
    let mut table = root;
    for level in (0..layout::mode().levels()).rev() {
        let entry = read(table, prefix(va, level));
        path.push((level, entry));
        if !is_table(entry) {
            break;
        }
        table = frame(entry);
    }
    path
}

/// The leaf entry for `va` in memory, 0 if there is none.
fn leaf(root: u32, va: usize) -> u64 {
    tables_say(root, va).last().map_or(0, |&(_, entry)| if is_leaf(entry) { entry } else { 0 })
}

fn allows(entry: u64, access: Access) -> bool {
    let right = match access {
        Access::Read => 1 << 1,
        Access::Write => 1 << 2,
        Access::Execute => X,
    };
    is_leaf(entry) && entry & right != 0
}

struct Model {
    harts: Vec<Hart>,
    /// Sorted.
    pages: Vec<usize>,
    svvptc: bool,
    now: u64,
    /// When the kernel last wrote to a frame.
    filled: HashMap<u32, u64>,
    /// For each executable page of a root: its frame, and when that had been filled when it was linked.
    code: HashMap<(u32, usize), (u32, u64)>,
    roots: Vec<u32>,
    found: Option<String>,
}

impl Model {
    fn walk(&mut self) {
        for hart in &mut self.harts {
            hart.walk(&self.pages);
        }
    }

    fn event(&mut self, event: Event) {
        self.now += 1;
        match event {
            Event::Store => {
                self.walk();
                self.see_code();
            }
            Event::Pages(hart, asid, start, end) => {
                let pages = self.pages.iter().filter(|va| (start..end).contains(*va));
                for va in pages {
                    self.harts[hart].entries.remove(&(asid, 0, prefix(*va, 0)));
                }
                self.harts[hart].walk(&self.pages);
            }
            Event::Asid(hart, asid) => {
                self.harts[hart].entries.retain(|key, _| key.0 != asid);
                self.harts[hart].walk(&self.pages);
            }
            Event::All(hart) => {
                self.harts[hart].entries.clear();
                self.harts[hart].walk(&self.pages);
            }
            Event::Fetch(hart) => self.harts[hart].fetched = self.now,
            Event::Satp(hart, asid, root) => {
                (self.harts[hart].asid, self.harts[hart].root) = (asid, root);
                if root != 0 && !self.roots.contains(&root) {
                    self.roots.push(root);
                    self.see_code();
                }
                self.harts[hart].walk(&self.pages);
            }
            Event::Filled(frame) => drop(self.filled.insert(frame, self.now)),
            Event::Freed(frame) => self.freed(frame),
        }
    }

    /// Notes pages that became executable.
    fn see_code(&mut self) {
        for &root in &self.roots {
            for &va in &self.pages {
                let entry = leaf(root, va);
                if entry & X == 0 {
                    self.code.remove(&(root, va));
                    continue;
                }
                let filled = self.filled.get(&frame(entry)).copied().unwrap_or(0);
                let known = self.code.entry((root, va)).or_insert((frame(entry), filled));
                if known.0 != frame(entry) {
                    *known = (frame(entry), filled);
                }
            }
        }
    }

    fn report(&mut self, text: String) {
        self.found.get_or_insert(text);
    }

    fn freed(&mut self, number: u32) {
        if let Some(at) = self.roots.iter().position(|root| *root == number) {
            self.roots.swap_remove(at);
            self.code.retain(|key, _| key.0 != number);
        }
        let mut reached = None;
        for (index, hart) in self.harts.iter().enumerate() {
            if hart.root == number {
                reached = Some(format!("frame {number:#x} is freed and hart {index} has it in satp"));
            }
            for &va in &self.pages {
                hart.each(va, |level, entry| {
                    if entry & V != 0 && frame(entry) == number {
                        reached = Some(format!(
                            "frame {number:#x} is freed and hart {index} can reach it at {va:#x}, level {level}"
                        ));
                    }
                });
            }
        }
        reached.into_iter().for_each(|text| self.report(text));
    }

    /// Looks whether some hart may use what the tables do not say.
    fn check(&mut self) {
        let mut stale = None;
        for (index, hart) in self.harts.iter().enumerate().filter(|(_, hart)| hart.root != 0) {
            for &va in &self.pages {
                let truth = tables_say(hart.root, va);
                let at = |level| truth.iter().find(|(l, _)| *l == level).map_or(0, |(_, entry)| *entry);
                hart.each(va, |level, entry| {
                    let now = at(level);
                    let fine = entry & V == 0
                        || is_table(entry) && is_table(now) && frame(entry) == frame(now)
                        || is_leaf(entry) && is_leaf(now) && frame(entry) == frame(now) && entry & !now & RIGHTS == 0;
                    if !fine {
                        stale = Some(format!("hart {index} may use {entry:#x} for {now:#x} at {va:#x}, level {level}"));
                    }
                });
                if let Some((frame, filled)) = self.code.get(&(hart.root, va))
                    && hart.fetched < *filled
                {
                    stale = Some(format!("hart {index} may execute what frame {frame:#x} held before, at {va:#x}"));
                }
            }
        }
        stale.into_iter().for_each(|text| self.report(text));
    }
}

std::thread_local! {
    static MODEL: RefCell<Option<Model>> = const { RefCell::new(None) };
    static BETWEEN: RefCell<Option<Box<dyn FnMut()>>> = const { RefCell::new(None) };
    static NESTED: Cell<bool> = const { Cell::new(false) };
}

fn with<R>(f: impl FnOnce(&mut Model) -> R) -> R {
    MODEL.with_borrow_mut(|model| f(model.as_mut().expect("a model was started")))
}

fn told(event: Event) {
    with(|model| model.event(event));
    // In the middle of a change other harts go on; but not where this thread holds a lock that they would take.
    if matches!(event, Event::Store | Event::Filled(_) | Event::Pages(..) | Event::Asid(..)) && !NESTED.replace(true) {
        let between = BETWEEN.take();
        if let Some(mut between) = between {
            between();
            BETWEEN.set(Some(between));
        }
        NESTED.set(false);
    }
}

/// Starts with harts that know nothing and run the kernel's own table. `pages`: the addresses that tests use. `svvptc`:
/// what becomes valid is seen after a moment ([`pass`]).
pub fn start(harts: usize, mut pages: Vec<usize>, svvptc: bool) {
    pages.sort_unstable();
    let mut all = Vec::new();
    all.resize_with(harts, Hart::default);
    let (filled, code) = (HashMap::new(), HashMap::new());
    let model = Model { harts: all, pages, svvptc, now: 1, filled, code, roots: vec![], found: None };
    MODEL.set(Some(model));
    crate::hart::host::serve_all(true);
    hook::set(Some(told));
}

/// Sets what happens between two steps of a change: what other harts do then.
pub fn between(f: Option<Box<dyn FnMut()>>) {
    BETWEEN.set(f);
}

/// Ends what [`start`] began.
pub fn stop() {
    hook::set(None);
    crate::hart::host::serve_all(false);
    BETWEEN.set(None);
    MODEL.set(None);
}

/// The first thing that went wrong, if anything did. Called after each operation, when all that it owed is done.
pub fn check() -> Option<String> {
    with(|model| {
        model.check();
        model.found.clone()
    })
}

/// Whether an access at `va` by `hart` faults, if it can: the hart chooses.
pub fn faults(hart: usize, va: usize, access: Access) -> bool {
    with(|model| {
        let (mut faults, mut leaves) = (false, false);
        model.harts[hart].each(va, |_, entry| {
            faults |= entry & V == 0 || is_leaf(entry) && !allows(entry, access);
            leaves |= is_leaf(entry);
        });
        faults || !leaves
    })
}

/// Whether the tables in memory allow the access to whoever has the root of `hart` in satp.
pub fn tables_allow(hart: usize, va: usize, access: Access) -> bool {
    with(|model| {
        let root = model.harts[hart].root;
        root != 0 && allows(leaf(root, va), access)
    })
}

/// Time passes on `hart`: with Svvptc it sees what has become valid.
pub fn pass(hart: usize) {
    with(|model| {
        if model.svvptc {
            for known in model.harts[hart].entries.values_mut() {
                known.retain(|entry| entry & V != 0);
            }
            model.harts[hart].walk(&model.pages);
        }
    });
}
