//! madvise(2), msync(2), mincore(2), mlock(2).

use hal::addr::{PAGE_SHIFT, PAGE_SIZE, UserAddr, page_up};
use hal::hart;
use hal::mem::layout::user_top;
use hal::user;
use uapi::{Errno, mman};

use super::area::{AreaFlags, Backing};
use super::fault::FaultError;
use super::{AddressSpace, Inner};

/// Pages whose answers mincore copies out at a time.
const CHUNK: usize = 128;

impl AddressSpace {
    /// madvise(2). Advice that only speeds things up is accepted and ignored. `EINVAL`, `ENOMEM` (a hole in the range:
    /// the advice was followed for the rest), `EAGAIN` (too many areas), `EFAULT` (MADV_POPULATE beyond a file's end).
    pub fn madvise(&self, addr: usize, len: usize, advice: u32) -> Result<(), Errno> {
        let known = matches!(advice, mman::MADV_NORMAL..=mman::MADV_DONTNEED)
            || matches!(advice, mman::MADV_FREE..=mman::MADV_DONTNEED_LOCKED);
        if !known || !addr.is_multiple_of(PAGE_SIZE) {
            return Err(Errno::EINVAL);
        }
        let end = page_up(len).and_then(|len| addr.checked_add(len)).ok_or(Errno::EINVAL)?;
        if addr == end {
            return Ok(());
        }
        if advice == mman::MADV_REMOVE {
            return self.remove(addr, end);
        }
        self.with(|inner| match advice {
            mman::MADV_DONTNEED | mman::MADV_DONTNEED_LOCKED => inner.discard(addr, end, false),
            mman::MADV_FREE => inner.discard(addr, end, true),
            mman::MADV_DONTFORK => inner.set_flag(addr, end, AreaFlags::DONT_FORK, true),
            mman::MADV_DOFORK => inner.set_flag(addr, end, AreaFlags::DONT_FORK, false),
            mman::MADV_WIPEONFORK => inner.set_flag(addr, end, AreaFlags::WIPE_ON_FORK, true),
            mman::MADV_KEEPONFORK => inner.set_flag(addr, end, AreaFlags::WIPE_ON_FORK, false),
            mman::MADV_POPULATE_READ | mman::MADV_POPULATE_WRITE => {
                inner.populate_checked(addr, end, advice == mman::MADV_POPULATE_WRITE)
            }
            _ => inner.covered(addr, end),
        })
    }

    /// MADV_REMOVE: makes holes in the objects behind the range, piece by piece, since an object takes its pages out of all
    /// spaces that map it, this one too. `EINVAL`, `EACCES` (not shared, or not writable), `ENOMEM`.
    fn remove(&self, start: usize, end: usize) -> Result<(), Errno> {
        let (mut at, mut hole) = (start, false);
        while at < end {
            let piece = self.with(|inner| {
                let area = inner.areas.get(inner.areas.first_above(at)).filter(|area| area.start < end)?;
                let (from, to) = (area.start.max(at), area.end.min(end));
                let bytes = (area.index_of(from) << PAGE_SHIFT, area.index_of(to) << PAGE_SHIFT);
                let object = match &area.backing {
                    Backing::Object(_) if !area.is_shared() || !area.flags.has(AreaFlags::MAY_WRITE) => {
                        Err(Errno::EACCES)
                    }
                    Backing::Object(object) => Ok(object.clone()),
                    _ => Err(Errno::EINVAL),
                };
                Some((from, to, bytes, object))
            });
            let Some((from, to, bytes, object)) = piece else {
                hole = true;
                break;
            };
            hole |= from > at;
            object?.punch(bytes.0, bytes.1)?;
            at = to;
        }
        if hole { Err(Errno::ENOMEM) } else { Ok(()) }
    }

    /// msync(2): there is no disk, so only the arguments count. `EINVAL`, `ENOMEM`.
    pub fn msync(&self, addr: usize, len: usize, flags: u32) -> Result<(), Errno> {
        let both = mman::MS_ASYNC | mman::MS_SYNC;
        if flags & !(both | mman::MS_INVALIDATE) != 0 || flags & both == both || !addr.is_multiple_of(PAGE_SIZE) {
            return Err(Errno::EINVAL);
        }
        // As in Linux, a length that rounds up to the end of all addresses rounds up to none.
        let end = addr.checked_add(page_up(len).unwrap_or(0)).ok_or(Errno::ENOMEM)?;
        self.with(|inner| inner.covered(addr, end))
    }

    /// mlock(2) and munlock(2) of whole pages, where nothing is ever swapped out: all must be mapped; if they are to be
    /// `present`, they are made so. `EINVAL`, `ENOMEM`, `EAGAIN` (no memory for them).
    pub fn lock(&self, addr: usize, len: usize, present: bool) -> Result<(), Errno> {
        let end = addr.checked_add(len).ok_or(Errno::EINVAL)?;
        self.with(|inner| {
            inner.covered(addr, end)?;
            if !present {
                return Ok(());
            }
            inner.pieces(addr, end, |inner, from, to| {
                let prot = inner.areas.find(from).and_then(|i| inner.areas.get(i)).map(|area| area.prot);
                inner.populate(from, to, prot.ok_or(Errno::ENOMEM)?).map_err(|error| match error {
                    FaultError::Oom => Errno::EAGAIN,
                    _ => Errno::ENOMEM,
                })
            })
        })
    }

    /// mincore(2): a byte per page at `vec`, 1 if it is in memory. `EINVAL`, `ENOMEM`, `EFAULT`.
    pub fn mincore(&self, addr: usize, len: usize, vec: UserAddr) -> Result<(), Errno> {
        if !addr.is_multiple_of(PAGE_SIZE) {
            return Err(Errno::EINVAL);
        }
        if addr > user_top() || len > user_top() - addr {
            return Err(Errno::ENOMEM);
        }
        let end = addr + page_up(len).ok_or(Errno::ENOMEM)?;
        let pages = (end - addr) / PAGE_SIZE;
        vec.0.checked_add(pages).filter(|&end| end <= user_top()).ok_or(Errno::EFAULT)?;
        let (mut at, mut out) = (addr, vec);
        while at < end {
            let mut bytes = [0; CHUNK];
            let wanted = ((end - at) / PAGE_SIZE).min(CHUNK);
            // What lies before a hole is told all the same.
            let known = self.with(|inner| {
                let mut known = 0;
                for byte in &mut bytes[..wanted] {
                    let Ok(found) = inner.in_memory(at + known * PAGE_SIZE) else { break };
                    *byte = u8::from(found);
                    known += 1;
                }
                known
            });
            if known == 0 {
                return Err(Errno::ENOMEM);
            }
            user::copy_out(out, &bytes[..known])?;
            (at, out) = (at + known * PAGE_SIZE, out.add(known));
        }
        Ok(())
    }
}

impl Inner {
    /// `ENOMEM` if a page of `start..end` is in no area.
    fn covered(&mut self, start: usize, end: usize) -> Result<(), Errno> {
        let (mut i, mut at) = (self.areas.first_above(start), start);
        while at < end {
            let area = self.areas.get(i).filter(|area| area.start <= at).ok_or(Errno::ENOMEM)?;
            at = area.end;
            i = self.areas.next(i);
            if self.areas.begins_chunk(i) {
                hart::window();
            }
        }
        Ok(())
    }

    /// Calls `f` with each piece of `start..end` that an area has; `ENOMEM` afterwards if there was a hole.
    fn pieces(
        &mut self,
        start: usize,
        end: usize,
        mut f: impl FnMut(&mut Self, usize, usize) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let mut hole = false;
        let (mut at, mut count) = (start, 0usize);
        while at < end {
            count += 1;
            if count.is_multiple_of(64) {
                hart::window();
            }
            let Some(area) = self.areas.get(self.areas.first_above(at)).filter(|area| area.start < end) else {
                hole = true;
                break;
            };
            hole |= area.start > at;
            let (from, to) = (area.start.max(at), area.end.min(end));
            f(self, from, to)?;
            at = to;
        }
        if hole { Err(Errno::ENOMEM) } else { Ok(()) }
    }

    /// Drops the pages of the range: private ones read as zeroes or as the file again.
    fn discard(&mut self, start: usize, end: usize, anonymous_only: bool) -> Result<(), Errno> {
        self.pieces(start, end, |inner, from, to| {
            let i = inner.areas.find(from).ok_or(Errno::ENOMEM)?;
            let Some(area) = inner.areas.get(i) else { return Ok(()) };
            if anonymous_only && !area.is_anonymous() {
                return Err(Errno::EINVAL);
            }
            if area.past.is_touched() {
                inner.zap(from, to);
            }
            Ok(())
        })
    }

    fn set_flag(&mut self, start: usize, end: usize, flag: u16, on: bool) -> Result<(), Errno> {
        let result = self.pieces(start, end, |inner, from, to| {
            let i = inner.areas.find(from).ok_or(Errno::ENOMEM)?;
            let Some(area) = inner.areas.get(i) else { return Ok(()) };
            if flag == AreaFlags::WIPE_ON_FORK && on && !area.is_anonymous() {
                return Err(Errno::EINVAL);
            }
            if area.flags.has(flag) != on {
                // madvise(2) tells that so.
                inner.split(from).and_then(|()| inner.split(to)).map_err(|_| Errno::EAGAIN)?;
                if let Some(area) = inner.areas.find(from).and_then(|i| inner.areas.get_mut(i)) {
                    area.flags.0 ^= flag;
                }
            }
            Ok(())
        });
        self.merge(start, end);
        result
    }

    fn populate_checked(&mut self, start: usize, end: usize, write: bool) -> Result<(), Errno> {
        let access = if write { hal::calls::Access::Write } else { hal::calls::Access::Read };
        for va in (start..end).step_by(PAGE_SIZE) {
            let value = self.table.lookup(va);
            if value.is_present() && if write { value.is_writable() } else { value.prot().readable() } {
                continue;
            }
            if (va >> PAGE_SHIFT).is_multiple_of(64) {
                hart::window();
            }
            self.fault_alone(va, access).map_err(|error| match error {
                FaultError::AccErr => Errno::EINVAL,
                FaultError::MapErr | FaultError::Oom => Errno::ENOMEM,
                FaultError::Bus => Errno::EFAULT,
            })?;
        }
        Ok(())
    }

    /// Whether the page at `va` would be there without work. `ENOMEM` if nothing is mapped.
    fn in_memory(&mut self, va: usize) -> Result<bool, Errno> {
        let i = self.areas.find(va).ok_or(Errno::ENOMEM)?;
        if self.table.lookup(va).is_present() {
            return Ok(true);
        }
        let Some(area) = self.areas.get(i) else { return Ok(false) };
        let mut found = false;
        match &area.backing {
            Backing::Anonymous => {}
            Backing::Object(object) => {
                let index = area.offset + ((va - area.start) >> PAGE_SHIFT);
                object.cached_pages(index, index + 1, |_, _| found = true);
            }
            Backing::Special(_) => found = true,
        }
        Ok(found)
    }
}
