//! mremap(2).

use hal::addr::{PAGE_SIZE, page_up};
use hal::mem::layout::user_top;
use uapi::{Errno, mman};

use super::area::{AreaFlags, Backing, MAX_AREAS, Vma};
use super::{AddressSpace, Inner};

impl AddressSpace {
    /// mremap(2): gives the new address. Whether the caller may have an address below [`MIN_ADDR`](super::MIN_ADDR) has
    /// been checked. `EINVAL`, `EFAULT`, `ENOMEM`.
    pub fn mremap(&self, old: usize, old_len: usize, new_len: usize, flags: u32, new: usize) -> Result<usize, Errno> {
        let moves = flags & (mman::MREMAP_FIXED | mman::MREMAP_DONTUNMAP) != 0;
        let may_move = flags & mman::MREMAP_MAYMOVE != 0;
        if flags & !(mman::MREMAP_FIXED | mman::MREMAP_MAYMOVE | mman::MREMAP_DONTUNMAP) != 0
            || moves && !may_move
            || flags & mman::MREMAP_DONTUNMAP != 0 && old_len != new_len
            || !old.is_multiple_of(PAGE_SIZE)
        {
            return Err(Errno::EINVAL);
        }
        // As in Linux, a length that rounds up to the end of all addresses rounds up to none.
        let old_len = page_up(old_len).unwrap_or(0);
        let new_len = page_up(new_len).filter(|&len| len != 0).ok_or(Errno::EINVAL)?;
        self.with(|inner| {
            inner.areas.find(old).ok_or(Errno::EFAULT)?;
            if moves {
                return inner.remap_to(old, old_len, new_len, flags, new);
            }
            inner.remap(old, old_len, new_len, may_move)
        })
    }
}

impl Inner {
    /// Moves to the address `new`, or, without MREMAP_FIXED, to one near it.
    fn remap_to(&mut self, old: usize, old_len: usize, new_len: usize, flags: u32, new: usize) -> Result<usize, Errno> {
        if !new.is_multiple_of(PAGE_SIZE) || new_len > user_top() || new > user_top() - new_len {
            return Err(Errno::EINVAL);
        }
        if new < old.saturating_add(old_len) && old < new + new_len {
            return Err(Errno::EINVAL);
        }
        if self.areas.len() + 2 >= MAX_AREAS - 3 {
            return Err(Errno::ENOMEM);
        }
        let len = old_len.min(new_len);
        let end = old.checked_add(old_len).filter(|&end| old_len == len || end <= user_top()).ok_or(Errno::EINVAL)?;
        self.check_source(old, len)?;
        let fixed = flags & mman::MREMAP_FIXED != 0;
        if fixed {
            self.unmap(new, new + new_len)?;
        }
        if old_len > new_len {
            self.unmap(old + new_len, end)?;
        }
        let new = if fixed { new } else { self.place(new, new_len).ok_or(Errno::ENOMEM)?.0 };
        self.move_area(old, len, new_len, new, flags & mman::MREMAP_DONTUNMAP != 0)
    }

    fn remap(&mut self, old: usize, old_len: usize, new_len: usize, may_move: bool) -> Result<usize, Errno> {
        if old_len >= new_len {
            if old_len > new_len {
                let end = old.checked_add(old_len).filter(|&end| end <= user_top()).ok_or(Errno::EINVAL)?;
                self.unmap(old + new_len, end)?;
            }
            return Ok(old);
        }
        self.check_source(old, old_len)?;
        let end = old + old_len;
        let i = self.areas.find(old).ok_or(Errno::EFAULT)?;
        let Some(area) = self.areas.get(i) else { return Err(Errno::EFAULT) };
        if area.end == end && old_len != 0 {
            let more = new_len - old_len;
            if end <= user_top() && more <= user_top() - end && self.areas.free(end, end + more).is_some() {
                self.check_size(more, area.prot.writable() && !area.is_shared())?;
                self.areas.set_end(i, end + more);
                self.total += more / PAGE_SIZE;
                self.merge(old, end + more);
                return Ok(old);
            }
        }
        if !may_move {
            return Err(Errno::ENOMEM);
        }
        let (new, _) = self.place(0, new_len).ok_or(Errno::ENOMEM)?;
        self.move_area(old, old_len, new_len, new, false)
    }

    /// One area must hold all of `old..old + len` (of a shared one, `len` may be 0: it is mapped a second time).
    fn check_source(&mut self, old: usize, len: usize) -> Result<(), Errno> {
        let i = self.areas.find(old).ok_or(Errno::EFAULT)?;
        let Some(area) = self.areas.get(i) else { return Err(Errno::EFAULT) };
        if len == 0 && !area.is_shared() {
            return Err(Errno::EINVAL);
        }
        if len > area.end - old {
            return Err(Errno::EFAULT);
        }
        Ok(())
    }

    /// Moves `old..old + len` to `new`, where `new_len` bytes are free, and lets the area go on to `new_len`. `keep`: what
    /// is left behind is not unmapped, only empty.
    fn move_area(&mut self, old: usize, len: usize, new_len: usize, new: usize, keep: bool) -> Result<usize, Errno> {
        if self.areas.len() >= MAX_AREAS - 3 {
            return Err(Errno::ENOMEM);
        }
        let i = self.areas.find(old).ok_or(Errno::EFAULT)?;
        let Some(area) = self.areas.get(i) else { return Err(Errno::EFAULT) };
        self.check_size(if keep { new_len } else { new_len - len }, area.prot.writable() && !area.is_shared())?;
        if let Backing::Special(special) = &area.backing
            && area.index_of(old) + new_len / PAGE_SIZE > special.frames.len()
        {
            return Err(Errno::EINVAL);
        }
        let (backing, file, offset) = (area.backing.clone(), area.file.clone(), area.index_of(old));
        let (prot, flags, past) = (area.prot, area.flags, area.past.clone());
        if len != 0 && self.table.move_range(old, new, len).is_err() {
            self.undo_move(old, new, len);
            return Err(Errno::ENOMEM);
        }
        let flags = flags.0 & !AreaFlags::GROWS_DOWN;
        let area = Vma::new(new, new + new_len, prot, flags, backing, offset, file);
        if let Err(error) = self.add(self.areas.first_above(new), area) {
            self.undo_move(old, new, len);
            return Err(error);
        }
        if len != 0 && !keep {
            self.unmap(old, old + len)?;
        }
        // The area it was joined with may not have known pages before.
        if let Some(area) = self.areas.find(new).and_then(|i| self.areas.get_mut(i)) {
            area.past.join(&past);
        }
        Ok(new)
    }

    /// Moves pages back; their tables are still there, so that this cannot fail.
    fn undo_move(&mut self, old: usize, new: usize, len: usize) {
        let _ = self.table.move_range(new, old, len);
        self.free_unused_tables(new, new + len);
    }

    fn free_unused_tables(&mut self, start: usize, end: usize) {
        let (floor, ceiling) = self.gap_around(start, end);
        let space = self.table.space().clone();
        let mut gather = hal::mem::pgtable::PageTable::gather(&space, hal::mem::tlb::Reason::Unmap);
        self.table.free_tables(start, end, floor, ceiling, &mut gather);
    }
}
