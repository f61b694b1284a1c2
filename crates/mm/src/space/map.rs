//! mmap(2) and munmap(2).

use alloc::sync::Arc;

use hal::addr::{PAGE_SHIFT, PAGE_SIZE, page_up};
use hal::calls::Access;
use hal::hart;
use hal::mem::layout::user_top;
use hal::mem::pgtable::{PageTable, Prot};
use hal::mem::{frame, tlb};
use uapi::{Errno, mman};

use super::area::{AreaFlags, Backing, MAX_AREAS, MappedFile, Special, Vma};
use super::fault::FaultError;
use super::{AddressSpace, At, Inner};
use crate::object::Object;

/// The `MAP_*` bits of mmap(2), as a program passes them.
pub type MapFlags = u32;

/// What a mapping shows.
pub enum Source {
    /// Zeroes.
    Anonymous,
    /// An object from byte `offset` on.
    Object {
        /// The contents.
        object: Arc<Object>,
        /// Where in the object the mapping begins, in bytes; a multiple of the page size.
        offset: usize,
        /// The open file, for `/proc/PID/maps`.
        file: Option<Arc<dyn MappedFile>>,
    },
}

/// A call of mmap(2). Whether the file may be mapped that way (EACCES) has been checked.
pub struct MapRequest {
    /// Hint, or address with MAP_FIXED.
    pub addr: usize,
    /// Length in bytes.
    pub len: usize,
    /// `PROT_*` bits; bits without meaning are ignored, as Linux does.
    pub prot: u32,
    /// `MAP_*` bits.
    pub flags: MapFlags,
    /// What is mapped.
    pub source: Source,
    /// For a shared mapping of a file: the file is open for writing, so that mprotect may allow it.
    pub may_write: bool,
}

/// The rights behind `PROT_*` bits.
pub(super) fn rights(prot: u32) -> Prot {
    Prot::new(prot & mman::PROT_READ != 0, prot & mman::PROT_WRITE != 0, prot & mman::PROT_EXEC != 0)
}

impl AddressSpace {
    /// mmap(2): gives the address. Whether the caller may have an address below [`MIN_ADDR`](super::MIN_ADDR) has been
    /// checked. `EINVAL`, `ENOMEM`, `EEXIST`, `EOVERFLOW`, `EOPNOTSUPP`.
    pub fn mmap(&self, request: MapRequest) -> Result<usize, Errno> {
        self.with(|inner| inner.mmap(request))
    }

    /// munmap(2). `EINVAL`, `ENOMEM`.
    pub fn munmap(&self, addr: usize, len: usize) -> Result<(), Errno> {
        let end = range(addr, len)?;
        self.with(|inner| inner.unmap(addr, end))
    }

    /// Maps `parts` one after the other, where there is room, and gives the address of the first. `ENOMEM`.
    pub fn map_special(&self, parts: &[(Arc<Special>, Prot)]) -> Result<usize, Errno> {
        let len = parts.iter().map(|(part, _)| part.frames.len() * PAGE_SIZE).sum();
        self.with(|inner| {
            let (base, _) = inner.place(0, len).ok_or(Errno::ENOMEM)?;
            let mut start = base;
            for (part, prot) in parts {
                let end = start + part.frames.len() * PAGE_SIZE;
                let backing = Backing::Special(part.clone());
                let at = inner.areas.first_above(start);
                inner.add(at, Vma::new(start, end, *prot, AreaFlags::MAY_WRITE, backing, 0, None))?;
                start = end;
            }
            Ok(base)
        })
    }

    /// Maps a stack of `len` bytes below the layout's `stack_top`, which grows downwards; gives its top. `ENOMEM`.
    pub fn map_stack(&self, len: usize, executable: bool) -> Result<usize, Errno> {
        let len = page_up(len).ok_or(Errno::ENOMEM)?;
        self.with(|inner| {
            let top = inner.layout.stack_top;
            let start = top.checked_sub(len).ok_or(Errno::ENOMEM)?;
            let at = inner.areas.unmapped(start, top).ok_or(Errno::ENOMEM)?;
            let flags = AreaFlags::GROWS_DOWN | AreaFlags::STACK | AreaFlags::MAY_WRITE;
            let prot = Prot::new(true, true, executable);
            inner.add(at, Vma::new(start, top, prot, flags, Backing::Anonymous, 0, None))?;
            Ok(top)
        })
    }
}

/// The end of a range for munmap: `EINVAL` for one that is not aligned, empty or not in the user half.
fn range(addr: usize, len: usize) -> Result<usize, Errno> {
    let top = user_top();
    if !addr.is_multiple_of(PAGE_SIZE) || addr > top || len > top - addr || len == 0 {
        return Err(Errno::EINVAL);
    }
    Ok(addr + page_up(len).ok_or(Errno::EINVAL)?)
}

impl Inner {
    fn mmap(&mut self, request: MapRequest) -> Result<usize, Errno> {
        let MapRequest { addr, len, prot, flags, source, may_write } = request;
        if len == 0 {
            return Err(Errno::EINVAL);
        }
        let len = page_up(len).ok_or(Errno::ENOMEM)?;
        if let Source::Object { offset, .. } = &source {
            if !offset.is_multiple_of(PAGE_SIZE) {
                return Err(Errno::EINVAL);
            }
            offset.checked_add(len).filter(|&end| end <= isize::MAX as usize).ok_or(Errno::EOVERFLOW)?;
        }
        // One more than a split may make, as in Linux.
        if self.areas.len() > MAX_AREAS {
            return Err(Errno::ENOMEM);
        }
        let fixed = flags & (mman::MAP_FIXED | mman::MAP_FIXED_NOREPLACE) != 0;
        let (start, mut at) = if fixed {
            self.fixed(addr, len, flags)?;
            (addr, self.areas.first_above(addr))
        } else {
            self.place(addr, len).ok_or(Errno::ENOMEM)?
        };
        let shared = match (flags & mman::MAP_TYPE, &source) {
            (mman::MAP_PRIVATE, _) => false,
            (mman::MAP_SHARED, _) | (mman::MAP_SHARED_VALIDATE, Source::Object { .. }) => true,
            _ => return Err(Errno::EINVAL),
        };
        if flags & mman::MAP_SYNC != 0 && flags & mman::MAP_TYPE == mman::MAP_SHARED_VALIDATE {
            return Err(Errno::EOPNOTSUPP);
        }
        let prot = rights(prot);
        self.check_size(len, prot.writable() && !shared && flags & mman::MAP_NORESERVE == 0)?;
        let end = start + len;
        if fixed && self.areas.get(at).is_some_and(|area| area.start < end) {
            self.unmap(start, end)?;
            at = self.areas.first_above(start);
        }
        let (backing, offset, file) = match source {
            Source::Object { object, offset, file } => (Backing::Object(object), offset >> PAGE_SHIFT, file),
            Source::Anonymous if shared => (Backing::Object(Object::with_size(len)?), 0, None),
            Source::Anonymous => (Backing::Anonymous, 0, None),
        };
        let mut bits = 0;
        if shared {
            bits |= AreaFlags::SHARED;
        }
        if !shared || may_write || file.is_none() {
            bits |= AreaFlags::MAY_WRITE;
        }
        if flags & mman::MAP_DENYWRITE != 0 && !shared && file.is_some() {
            bits |= AreaFlags::PROGRAM;
        }
        if flags & mman::MAP_GROWSDOWN != 0 && matches!(backing, Backing::Anonymous) {
            bits |= AreaFlags::GROWS_DOWN;
        }
        self.add(at, Vma::new(start, end, prot, bits, backing, offset, file))?;
        if flags & mman::MAP_POPULATE != 0 && flags & mman::MAP_NONBLOCK == 0 {
            let _ = self.populate(start, end, prot);
        }
        Ok(start)
    }

    /// Checks what MAP_FIXED asks for.
    pub(super) fn fixed(&self, addr: usize, len: usize, flags: MapFlags) -> Result<(), Errno> {
        if len > user_top() || addr > user_top() - len {
            return Err(Errno::ENOMEM);
        }
        if !addr.is_multiple_of(PAGE_SIZE) {
            return Err(Errno::EINVAL);
        }
        if flags & mman::MAP_FIXED_NOREPLACE != 0 && self.areas.unmapped(addr, addr + len).is_none() {
            return Err(Errno::EEXIST);
        }
        Ok(())
    }

    /// Whether `len` bytes more fit under RLIMIT_AS, and, if programs may want memory for all of it (`accounted`), are
    /// not plainly more than there is.
    pub(super) fn check_size(&self, len: usize, accounted: bool) -> Result<(), Errno> {
        let within = (self.total * PAGE_SIZE).checked_add(len).is_some_and(|sum| sum <= self.limits.address_space);
        if !within || accounted && len >> PAGE_SHIFT > frame::total() {
            return Err(Errno::ENOMEM);
        }
        Ok(())
    }

    /// Adds `area` at `at`, its place, where nothing is mapped, joined with what it continues.
    pub(super) fn add(&mut self, at: At, mut area: Vma) -> Result<(), Errno> {
        let (start, end, pages) = (area.start, area.end, area.pages());
        // The most common case, more anonymous memory beside such memory, makes no new area.
        let below = self.areas.prev(at).filter(|&i| self.areas.get(i).is_some_and(|below| below.merges_with(&area)));
        let after = self.areas.get(at).is_some_and(|above| area.merges_with(above));
        if area.is_anonymous() && (below.is_some() || after) {
            if let Some(below) = below {
                self.areas.set_end(below, end);
                if after {
                    self.merge(start, end);
                }
            } else if let Some(above) = self.areas.get_mut(at) {
                above.start = start;
            }
        } else {
            self.areas.reserve()?;
            Self::register(&self.me, &mut area)?;
            self.areas.insert(at, area);
            if below.is_some() || after {
                self.merge(start, end);
            }
        }
        self.total += pages;
        Ok(())
    }

    /// Faults the pages of `start..end` in, for writing if they are writable; ends with the first that cannot be had.
    pub(super) fn populate(&mut self, start: usize, end: usize, prot: Prot) -> Result<(), FaultError> {
        let access = match prot {
            p if p.writable() => Access::Write,
            p if p.readable() => Access::Read,
            p if p.executable() => Access::Execute,
            _ => return Err(FaultError::AccErr),
        };
        for va in (start..end).step_by(PAGE_SIZE) {
            let value = self.table.lookup(va);
            if value.is_present() && (access != Access::Write || value.is_writable()) {
                continue;
            }
            if (va >> PAGE_SHIFT).is_multiple_of(64) {
                hart::window();
            }
            self.fault_alone(va, access)?;
        }
        Ok(())
    }

    /// Removes everything in `start..end`. `ENOMEM` if that would split an area into too many.
    pub(super) fn unmap(&mut self, start: usize, end: usize) -> Result<(), Errno> {
        let i = self.areas.first_above(start);
        let Some(area) = self.areas.get(i).filter(|area| area.start < end) else { return Ok(()) };
        if area.start != start || area.end != end {
            return self.unmap_parts(start, end);
        }
        self.total -= area.pages();
        let touched = area.past.is_touched();
        let next = self.areas.remove(i, |area| Self::bury(&mut self.dead, area));
        if touched {
            self.clear_gap(next, start, end);
        }
        self.freed(end);
        Ok(())
    }

    /// The same for what is not just one area.
    fn unmap_parts(&mut self, start: usize, end: usize) -> Result<(), Errno> {
        let first = self.areas.get(self.areas.first_above(start));
        if first.is_some_and(|area| area.start < start && area.end > end) && self.areas.len() >= MAX_AREAS {
            return Err(Errno::ENOMEM);
        }
        self.cut(start)?;
        self.cut(end)?;
        let (from, to) = (self.areas.first_above(start), self.areas.first_above(end));
        let (mut touched, mut pages) = (false, 0);
        let (mut low, mut high) = (end, start);
        let next = self.areas.remove_range(from, to, |area| {
            touched |= area.past.is_touched();
            (low, high) = (low.min(area.start), high.max(area.end));
            pages += area.pages();
            Self::bury(&mut self.dead, area);
        });
        self.total -= pages;
        if touched {
            self.clear_gap(next, low, high);
        }
        self.freed(end);
        Ok(())
    }

    /// Frees the pages and page tables of `start..end`, which lies below the area at `next` and above the one before.
    #[inline(never)]
    fn clear_gap(&mut self, next: At, start: usize, end: usize) {
        let space = self.table.space().clone();
        let mut gather = PageTable::gather(&space, tlb::Reason::Unmap);
        gather.allow_windows();
        let cleared = self.table.clear(start, end, &mut gather);
        self.mapped.less(cleared);
        let below = self.areas.below(next);
        let above = self.areas.get(next);
        let (floor, ceiling) = (below.map_or(0, |area| area.end), above.map_or(user_top(), |area| area.start));
        // A table that serves a neighbour too stays, and is the neighbour's from now on, even if nobody has touched it.
        for area in below.iter().chain(above.iter()) {
            area.past.touch();
        }
        // A table can be free only if all that it serves lies in the gap.
        if ceiling - floor >= 1 << 21 {
            self.table.free_tables(start, end, floor, ceiling, &mut gather);
        }
    }
}
