//! Address spaces.
//!
//! [`AddressSpace`] is the handle that a program's threads share; everything changeable is in [`Inner`], behind one
//! lock. Faults, the hot path ([`fault`]), only read what it covers, so threads on several harts resolve theirs side by
//! side; what they change are entries of the page table, by rules of its own, and counts that each hart has apart. The calls
//! of mmap(2) and its family, in files of their own, have everything to themselves.
//!
//! Areas that are removed may hold a program's last reference to a file or an object. They are put aside (`dead`) and
//! dropped after the lock is free, since closing a file is nobody's business under this lock.

mod advise;
mod area;
mod brk;
mod end;
mod fault;
mod fork;
mod layout;
mod list;
mod map;
mod place;
mod protect;
mod query;
mod remap;
mod tree;

use alloc::sync::{Arc, Weak};
use core::mem::take;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use hal::hart;
use hal::mem::heap::try_arc;
use hal::mem::layout::user_top;
use hal::mem::pgtable::{Cursor, PageTable};
use hal::mem::tlb;
use hal::sync::{Parts, ReadersLock, WriteGuard};
use uapi::Errno;

use area::{Backing, Vma};
pub use area::{MAX_AREAS, MappedFile, Special};
pub use fault::FaultError;
pub use layout::{Layout, MIN_ADDR};
use list::{AreaList, Dead};
pub use map::{MapFlags, MapRequest, Source};
pub use query::{Area, AreaName, FutexKey, Residency, Usage};
use tree::At;

use crate::object::Object;

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Resource limits that bound an address space, in bytes; `usize::MAX` for none (getrlimit(2)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// RLIMIT_STACK.
    pub stack: usize,
    /// RLIMIT_DATA: initialised data, heap and private writable mappings; checked by brk.
    pub data: usize,
    /// RLIMIT_AS.
    pub address_space: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { stack: 8 << 20, data: usize::MAX, address_space: usize::MAX }
    }
}

/// Where exec put what the kernel needs to find again in a program's memory. Ranges are the first address and the one
/// behind the last.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Program {
    /// The strings of argv (`/proc/PID/cmdline`).
    pub arguments: (usize, usize),
    /// The strings of envp (`/proc/PID/environ`).
    pub environment: (usize, usize),
    /// The auxiliary vector (`/proc/PID/auxv`).
    pub auxv: (usize, usize),
    /// The program's instructions, and its data, as `/proc/PID/stat` shows them.
    pub code: (usize, usize),
    /// Initialised data.
    pub data: (usize, usize),
    /// The stack pointer that the program started with.
    pub stack: usize,
    /// The vDSO's ELF header; 0 without one.
    pub vdso: usize,
}

/// The memory of one program.
pub struct AddressSpace {
    id: u64,
    space: Arc<tlb::Space>,
    /// The last walk over the spaces that map an object which came here.
    walk: AtomicU64,
    /// Mapped pages when somebody last had the space to himself; what faults have mapped since, their harts tell.
    resident: AtomicUsize,
    inner: ReadersLock<Inner, Local>,
}

/// What each hart has for its faults.
#[derive(Default)]
struct Local {
    /// Where the last area was found.
    area: At,
    /// Where the last entry was found.
    cursor: Cursor,
    /// What the hart's faults have mapped since somebody last wrote.
    mapped: Mapped,
}

/// Numbers of mapped pages. A hart's share may be below zero, hence all sums wrap.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Mapped {
    /// Files' and objects' own; the page of zeroes is not counted.
    shared: usize,
    /// Private ones.
    private: usize,
}

/// What the lock covers.
struct Inner {
    areas: AreaList,
    table: PageTable,
    me: Weak<AddressSpace>,
    layout: Layout,
    limits: Limits,
    program: Program,
    brk_start: usize,
    brk: usize,
    /// Pages of all areas.
    total: usize,
    /// Mapped pages.
    mapped: Mapped,
    /// What one who has the space to himself uses for faults.
    local: Local,
    /// The most pages that were ever mapped, as far as calls other than faults looked.
    peak: usize,
    /// No gap of `search_len` bytes or more lies between here and `mmap_base`.
    search_top: usize,
    search_len: usize,
    id: u64,
    /// Removed areas whose references are dropped after unlocking.
    dead: Dead,
}

impl AddressSpace {
    /// An empty address space. `ENOMEM`.
    pub fn new(layout: Layout, limits: Limits) -> Result<Arc<Self>, Errno> {
        let table = PageTable::new().ok_or(Errno::ENOMEM)?;
        let parts = Parts::new().ok_or(Errno::ENOMEM)?;
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let inner = Inner {
            areas: AreaList::new(),
            me: Weak::new(),
            layout,
            limits,
            program: Program::default(),
            brk_start: 0,
            brk: 0,
            total: 0,
            mapped: Mapped::default(),
            local: Local::default(),
            peak: 0,
            search_top: layout.mmap_base,
            search_len: usize::MAX,
            id,
            dead: Dead::default(),
            table,
        };
        let space = inner.table.space().clone();
        let this = try_arc(Self {
            id,
            space,
            walk: AtomicU64::new(0),
            resident: AtomicUsize::new(0),
            inner: ReadersLock::new(inner, parts),
        })
        .map_err(|_| Errno::ENOMEM)?;
        this.alone().me = Arc::downgrade(&this);
        Ok(this)
    }

    /// A number no other address space has or had.
    #[inline]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Makes this hart translate user addresses by this space. Cheap if it does already.
    #[inline]
    pub fn activate(&self) {
        self.space.activate();
    }

    /// What the translation hardware sees: the ASID, and which harts run the space.
    #[inline]
    pub fn tlb(&self) -> &tlb::Space {
        &self.space
    }

    /// riscv_flush_icache(2): what was stored to this space's memory is what its programs execute, on all harts.
    pub fn flush_icache(&self) {
        self.space.flush_icache();
    }

    /// membarrier(2): the harts that run the space order everything before this against everything after.
    pub fn synchronize(&self) {
        tlb::synchronize(self.space.running());
    }

    /// The addresses drawn at exec.
    pub fn layout(&self) -> Layout {
        self.alone().layout
    }

    /// What [`AddressSpace::set_program`] noted, in this space or the one it was forked from.
    pub fn program(&self) -> Program {
        self.alone().program
    }

    /// Notes where exec put things.
    pub fn set_program(&self, program: Program) {
        self.alone().program = program;
    }

    /// Changes the limits (setrlimit(2)).
    pub fn set_limits(&self, limits: Limits) {
        self.alone().limits = limits;
    }

    /// Everything, for the caller alone.
    fn alone(&self) -> Exclusive<'_> {
        self.take(false)
    }

    /// The same; with `windows` interrupts are let in while it waits.
    fn take(&self, windows: bool) -> Exclusive<'_> {
        let mut guard = self.inner.write(windows);
        let (inner, locals) = guard.parts();
        for (local, figure) in locals {
            inner.mapped.add(take(&mut local.mapped));
            // In this order, so that who looks meanwhile sees too many pages rather than too few.
            self.tell(inner);
            figure.store(0, Ordering::Release);
        }
        Exclusive(guard)
    }

    /// Tells how many pages are mapped.
    #[inline]
    fn tell(&self, inner: &Inner) {
        self.resident.store(inner.mapped.total(), Ordering::Relaxed);
    }

    /// Runs `f` under the lock, and drops what it removed after the lock is free. The caller holds no lock that an
    /// interrupt's handler takes.
    fn with<R>(&self, f: impl FnOnce(&mut Inner) -> R) -> R {
        let mut inner = self.take(true);
        inner.peak = inner.peak.max(inner.mapped.total());
        let result = f(&mut inner);
        self.tell(&inner);
        if !inner.dead.is_empty() {
            Self::drop_dead(inner);
        }
        result
    }

    #[inline(never)]
    fn drop_dead(mut inner: Exclusive<'_>) {
        let mut dead = take(&mut inner.dead);
        drop(inner);
        while let Some(areas) = dead.pop() {
            drop(areas);
            if !dead.is_empty() {
                hart::window();
            }
        }
    }

    /// Whether the walk with this number has not been here before, as far as one remembers.
    pub(crate) fn is_first_visit(&self, walk: u64) -> bool {
        self.walk.swap(walk, Ordering::Relaxed) != walk
    }

    /// Takes pages `first..end` of `object` out of all areas, and, if the object was truncated and not only punched, private
    /// `copies` of them.
    pub(crate) fn unmap_object(&self, object: &Object, first: usize, end: usize, copies: bool) {
        self.with(|inner| {
            let mut next = inner.areas.start();
            while let Some(area) = inner.areas.get(next) {
                next = inner.areas.next(next);
                if inner.areas.begins_chunk(next) {
                    hart::window();
                }
                let Backing::Object(mapped) = &area.backing else { continue };
                let (low, high) = (area.offset.max(first), (area.offset + area.pages()).min(end));
                if !core::ptr::eq(&**mapped, object) || low >= high {
                    continue;
                }
                let at = |index: usize| area.start + ((index - area.offset) << hal::addr::PAGE_SHIFT);
                let (from, to) = (at(low), at(high));
                if copies || area.is_shared() {
                    inner.zap(from, to);
                    continue;
                }
                for va in (from..to).step_by(hal::addr::PAGE_SIZE) {
                    let entry = inner.table.lookup(va);
                    if entry.is_present() && !entry.is_private() {
                        inner.zap(va, va + hal::addr::PAGE_SIZE);
                    }
                }
            }
        });
    }
}

/// The lock, held, with all counts in [`Inner`].
struct Exclusive<'a>(WriteGuard<'a, Inner, Local>);

impl Deref for Exclusive<'_> {
    type Target = Inner;
    #[inline]
    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl DerefMut for Exclusive<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Inner {
        &mut self.0
    }
}

impl Mapped {
    #[inline]
    fn total(self) -> usize {
        self.shared.wrapping_add(self.private)
    }

    #[inline]
    fn add(&mut self, more: Self) {
        self.shared = self.shared.wrapping_add(more.shared);
        self.private = self.private.wrapping_add(more.private);
    }

    /// A file's or object's page more, if `yes`.
    #[inline]
    fn count_shared(&mut self, yes: bool) {
        self.shared = self.shared.wrapping_add(yes as usize);
    }

    /// A private page more, if `yes`.
    #[inline]
    fn count_private(&mut self, yes: bool) {
        self.private = self.private.wrapping_add(yes as usize);
    }

    /// `all` pages fewer, of which `private` were private.
    #[inline]
    fn less(&mut self, (all, private): (usize, usize)) {
        self.private -= private;
        self.shared -= all - private;
    }
}

impl Inner {
    /// Notes `area` at its object, if it has one.
    fn register(me: &Weak<AddressSpace>, area: &mut Vma) -> Result<(), Errno> {
        if let Backing::Object(object) = &area.backing {
            area.slot = object.add_area(me)?;
        }
        Ok(())
    }

    /// An area is gone: its object forgets it, and its references are dropped after unlocking.
    fn bury(dead: &mut Dead, area: Vma) {
        if let Backing::Object(object) = &area.backing {
            object.remove_area(area.slot);
        }
        if !area.is_anonymous() {
            dead.push(area);
        }
    }

    /// Makes `addr` the border of two areas, if it is inside one. `ENOMEM` (also for too many areas).
    fn split(&mut self, addr: usize) -> Result<(), Errno> {
        let i = self.areas.first_above(addr);
        match self.areas.get(i) {
            Some(area) if area.start < addr => self.split_at(i, addr),
            _ => Ok(()),
        }
    }

    /// Makes `addr`, inside the area at `i`, the border of that and a new area. `ENOMEM` (also for too many areas).
    fn split_at(&mut self, i: At, addr: usize) -> Result<(), Errno> {
        if self.areas.len() >= MAX_AREAS {
            return Err(Errno::ENOMEM);
        }
        self.cut_at(i, addr)
    }

    /// As [`Inner::split`], by one who removes a piece afterwards, so that there is no area more. `ENOMEM`.
    fn cut(&mut self, addr: usize) -> Result<(), Errno> {
        let i = self.areas.first_above(addr);
        match self.areas.get(i) {
            Some(area) if area.start < addr => self.cut_at(i, addr),
            _ => Ok(()),
        }
    }

    fn cut_at(&mut self, i: At, addr: usize) -> Result<(), Errno> {
        self.areas.reserve()?;
        let Some(area) = self.areas.get(i) else { return Ok(()) };
        let mut upper = Vma {
            start: addr,
            end: area.end,
            backing: area.backing.clone(),
            offset: area.index_of(addr),
            file: area.file.clone(),
            slot: 0,
            prot: area.prot,
            flags: area.flags,
            past: area.past.clone(),
        };
        Self::register(&self.me, &mut upper)?;
        self.areas.set_end(i, addr);
        self.areas.insert(self.areas.next(i), upper);
        Ok(())
    }

    /// Joins areas that continue each other, among those that touch `start..end`.
    fn merge(&mut self, start: usize, end: usize) {
        self.merge_from(self.areas.first_above(start.saturating_sub(1)), end);
    }

    /// The same from the area at `i` on up to the one that begins at `end`.
    fn merge_from(&mut self, mut i: At, end: usize) {
        let Some(mut area) = self.areas.get(i) else { return };
        while area.start <= end {
            let above = self.areas.next(i);
            let Some(next) = self.areas.get(above) else { return };
            if area.merges_with(next) {
                i = self.join(i);
                let Some(joined) = self.areas.get(i) else { return };
                area = joined;
            } else {
                (i, area) = (above, next);
            }
            if self.areas.begins_chunk(i) {
                hart::window();
            }
        }
    }

    /// Makes one area of that at `i` and all those behind it that continue it; gives its place.
    #[inline(never)]
    fn join(&mut self, i: At) -> At {
        let Some(first) = self.areas.get(i) else { return i };
        let (mut last, mut to) = (first, self.areas.next(i));
        while let Some(next) = self.areas.get(to).filter(|next| last.merges_with(next)) {
            first.past.join(&next.past);
            (last, to) = (next, self.areas.next(to));
            if self.areas.begins_chunk(to) {
                hart::window();
            }
        }
        self.areas.join(i, to, |next| Self::bury(&mut self.dead, next))
    }

    /// Unmaps the pages of `start..end`, fenced and counted; the areas stay.
    fn zap(&mut self, start: usize, end: usize) {
        let space = self.table.space().clone();
        let mut gather = PageTable::gather(&space, tlb::Reason::Unmap);
        gather.allow_windows();
        let cleared = self.table.clear(start, end, &mut gather);
        self.mapped.less(cleared);
    }

    /// The unused stretch around `start..end`, in which page tables serve nobody.
    fn gap_around(&self, start: usize, end: usize) -> (usize, usize) {
        let next = self.areas.first_above(start);
        let floor = self.areas.below(next).map_or(0, |area| area.end);
        let ceiling = self.areas.get(next).map_or(user_top(), |area| area.start);
        (floor.min(start), ceiling.max(end))
    }
}

#[cfg(test)]
mod adversary;
#[cfg(test)]
mod model;
#[cfg(test)]
mod stress;
#[cfg(test)]
mod tests;
