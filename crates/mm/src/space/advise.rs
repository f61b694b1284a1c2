//! madvise(2), msync(2), mincore(2), and the checks of mlock(2).

use hal::addr::{PAGE_SHIFT, PAGE_SIZE, UserAddr, page_up};
use hal::mem::layout::user_top;
use hal::user;
use uapi::{Errno, mman};

use super::area::{AreaFlags, Backing};
use super::{AddressSpace, Inner};

/// Pages whose answers mincore copies out at a time.
const CHUNK: usize = 128;

impl AddressSpace {
    /// madvise(2). Advice that only speeds things up is accepted and ignored. `EINVAL`, `ENOMEM` (a hole in the range:
    /// the advice was followed for the rest), `EFAULT` (MADV_POPULATE beyond a file's end).
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
            // Punching a hole into a file behind a mapping is not supported.
            mman::MADV_REMOVE => Err(Errno::EINVAL),
            _ => inner.covered(addr, end),
        })
    }

    /// msync(2): there is no disk, so only the arguments count. `EINVAL`, `ENOMEM`.
    pub fn msync(&self, addr: usize, len: usize, flags: u32) -> Result<(), Errno> {
        let both = mman::MS_ASYNC | mman::MS_SYNC;
        if flags & !(both | mman::MS_INVALIDATE) != 0 || flags & both == both || !addr.is_multiple_of(PAGE_SIZE) {
            return Err(Errno::EINVAL);
        }
        self.check_mapped(addr, len)
    }

    /// Whether every page of the range is mapped: what mlock(2) and munlock(2) answer where nothing is ever swapped
    /// out. `ENOMEM`, `EINVAL`.
    pub fn check_mapped(&self, addr: usize, len: usize) -> Result<(), Errno> {
        let end = page_up(len).and_then(|len| addr.checked_add(len)).ok_or(Errno::ENOMEM)?;
        self.with(|inner| inner.covered(addr, end))
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
        let (mut at, mut out) = (addr, vec);
        while at < end {
            let mut bytes = [0; CHUNK];
            let count = ((end - at) / PAGE_SIZE).min(CHUNK);
            self.with(|inner| {
                for (i, byte) in bytes[..count].iter_mut().enumerate() {
                    *byte = inner.in_memory(at + i * PAGE_SIZE)? as u8;
                }
                Ok::<(), Errno>(())
            })?;
            user::copy_out(out, &bytes[..count])?;
            (at, out) = (at + count * PAGE_SIZE, out.add(count));
        }
        Ok(())
    }
}

impl Inner {
    /// `ENOMEM` if a page of `start..end` is in no area.
    fn covered(&mut self, start: usize, end: usize) -> Result<(), Errno> {
        let mut at = start;
        while at < end {
            let i = self.areas.find(at).ok_or(Errno::ENOMEM)?;
            at = self.areas.get(i).map_or(end, |area| area.end);
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
        let mut at = start;
        while at < end {
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
            if area.flags.has(AreaFlags::TOUCHED) {
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
                inner.split(from)?;
                inner.split(to)?;
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
        use super::fault::FaultError;
        let access = if write { hal::calls::Access::Write } else { hal::calls::Access::Read };
        for va in (start..end).step_by(PAGE_SIZE) {
            let value = self.table.lookup(va);
            if value.is_present() && if write { value.is_writable() } else { value.prot().readable() } {
                continue;
            }
            self.fault(va, access).map_err(|error| match error {
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
