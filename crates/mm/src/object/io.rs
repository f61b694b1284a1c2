//! Reading and writing an object.

use hal::addr::{PAGE_SHIFT, PAGE_SIZE};
use hal::hart;
use hal::mem::frame::{self, Frame, Kind};
use hal::user::{InBuf, OutBuf};
use uapi::Errno;

use super::Object;
use core::sync::atomic::{Ordering, fence};

/// What was done before an error counts: the error is reported only if nothing was.
#[inline]
fn progress(done: usize, error: Errno) -> Result<usize, Errno> {
    if done == 0 { Err(error) } else { Ok(done) }
}

/// Lets interrupts in every 16 pages.
#[inline]
fn pause(at: usize, done: usize) {
    if done != 0 && (at >> PAGE_SHIFT).is_multiple_of(16) {
        hart::window();
    }
}

/// How often a write begins anew because the file was cut short under it.
const RESTARTS: u32 = 100;

/// What a write has achieved.
struct Written {
    bytes: usize,
    /// It ended because the file was cut short, perhaps below what was written.
    cut: bool,
}

impl Object {
    /// Reads from byte `offset` on until `out` is full or the file ends; gives the bytes read. `EFAULT`.
    pub fn read(&self, offset: usize, out: &mut OutBuf<'_>) -> Result<usize, Errno> {
        let mut done = 0;
        loop {
            let Some(at) = offset.checked_add(done) else { return Ok(done) };
            pause(at, done);
            let left = self.size().saturating_sub(at).min(out.len());
            if left == 0 {
                return Ok(done);
            }
            let within = at % PAGE_SIZE;
            let n = left.min(PAGE_SIZE - within);
            let result = match self.existing_page(at >> PAGE_SHIFT) {
                Ok(Some(frame)) => frame.with_bytes(within, n, |bytes| out.write(bytes)),
                Ok(None) => out.write_zeroes(n),
                Err(error) => Err(error.into()),
            };
            match result {
                Ok(got) => done += got,
                Err(error) => return progress(done, error),
            }
        }
    }

    /// Writes all of `input` from byte `offset` on, making the file longer as needed; gives the bytes written.
    /// `EFAULT`, `EFBIG` (an offset beyond what a file can have), `ENOMEM` as `ENOSPC`.
    pub fn write(&self, offset: usize, input: &mut InBuf<'_>) -> Result<usize, Errno> {
        let mut restarts = 0;
        loop {
            let mut source = input.same();
            let cuts = self.cuts.load(Ordering::Acquire);
            let result = self.write_between(offset, &mut source, cuts);
            if let Ok(Written { bytes, cut }) = result
                && (!cut || restarts >= RESTARTS && bytes != 0)
            {
                input.skip(bytes);
                return Ok(bytes);
            }
            restarts += 1;
            result?;
        }
    }

    /// Writes until a cut of the file is noticed that came after so many.
    fn write_between(&self, offset: usize, input: &mut InBuf<'_>, cuts: u32) -> Result<Written, Errno> {
        let mut done = 0;
        while !input.is_empty() {
            let ended = |error| progress(done, error).map(|bytes| Written { bytes, cut: false });
            let Some(at) = offset.checked_add(done).filter(|&at| at < isize::MAX as usize) else {
                return ended(Errno::EFBIG);
            };
            pause(at, done);
            let within = at % PAGE_SIZE;
            let n = input.len().min(PAGE_SIZE - within);
            let written = match self.existing_page(at >> PAGE_SHIFT) {
                Ok(Some(frame)) => frame.with_bytes_mut(within, n, |bytes| input.read(bytes)),
                Ok(None) => self.write_new_page(at, n, cuts, input),
                Err(error) => Err(error.into()),
            };
            match written {
                Ok(got) if self.keeps(at + got, cuts) => done += got,
                Ok(_) => return Ok(Written { bytes: done, cut: true }),
                Err(error) => return ended(if error == Errno::ENOMEM { Errno::ENOSPC } else { error }),
            }
        }
        Ok(Written { bytes: done, cut: false })
    }

    /// Writes `n` bytes to a page that did not exist: it is filled before anybody can see it.
    fn write_new_page(&self, at: usize, n: usize, cuts: u32, input: &mut InBuf<'_>) -> Result<usize, Errno> {
        let within = at % PAGE_SIZE;
        let frame = Frame::alloc(Kind::PageCache).ok_or(Errno::ENOMEM)?;
        let got = frame.with_bytes_mut(within, n, |bytes| input.read(bytes))?;
        frame.zero_range(0, within);
        frame.zero_range(within + got, PAGE_SIZE - within - got);
        let index = at >> PAGE_SHIFT;
        let mut inner = self.inner.lock();
        if self.cuts.load(Ordering::Relaxed) != cuts {
            return Ok(0);
        }
        match inner.known_page(index)? {
            // Somebody else made the page meanwhile: these bytes go into that one.
            Some(other) => other.with_bytes_mut(within, got, |bytes| frame.read(within, bytes)),
            None => {
                frame.set_owner(self.id as usize, index);
                inner.pages.insert(index, frame)?;
            }
        }
        Ok(got)
    }

    /// Lets the file reach to `end`, up to which bytes were just written. False if it has been cut since it had had so many
    /// `cuts`: then they may be gone.
    #[inline]
    fn keeps(&self, end: usize, cuts: u32) -> bool {
        // Between the bytes and the look at the cuts: see `truncate`.
        fence(Ordering::SeqCst);
        let grows = self.size() < end;
        let _inner = grows.then(|| self.inner.lock());
        if self.cuts.load(Ordering::Relaxed) != cuts {
            return false;
        }
        if grows && self.size() < end {
            self.size.store(end, Ordering::Relaxed);
        }
        true
    }

    /// Gives every page of `start..end` memory, so that later writes there cannot fail for want of it (fallocate).
    /// The size stays. `ENOSPC`.
    pub fn allocate(&self, start: usize, end: usize) -> Result<(), Errno> {
        let pages = start >> PAGE_SHIFT..end.div_ceil(PAGE_SIZE);
        // What cannot be there altogether is refused before any of it is taken.
        if pages.len() > frame::stats().free + self.resident_pages() {
            return Err(Errno::ENOSPC);
        }
        for index in pages {
            if index.is_multiple_of(64) {
                hart::window();
            }
            if self.existing_page(index).map_err(|_| Errno::ENOSPC)?.is_some() {
                continue;
            }
            let frame = Frame::alloc_zeroed(Kind::PageCache).ok_or(Errno::ENOSPC)?;
            let mut inner = self.inner.lock();
            if inner.known_page(index).map_err(|_| Errno::ENOSPC)?.is_none() {
                self.adopt(&mut inner, index, frame).map_err(|_| Errno::ENOSPC)?;
            }
        }
        Ok(())
    }

    /// The first byte from `offset` on that is (`data`) or is not in memory (lseek's SEEK_DATA and SEEK_HOLE); the end
    /// counts as a hole. `None` beyond the end, or if there is no more data.
    pub fn seek(&self, offset: usize, data: bool) -> Option<usize> {
        let size = self.size();
        if offset >= size {
            return None;
        }
        let inner = self.inner.lock();
        let (first, end) = (offset >> PAGE_SHIFT, size.div_ceil(PAGE_SIZE));
        let boot = inner.boot.map_or(0, |boot| boot.len.div_ceil(PAGE_SIZE));
        let found = if !data {
            // There are no more pages to look at than there is memory.
            let absent = |index: &usize| {
                if index.is_multiple_of(1024) {
                    hart::window();
                }
                inner.pages.get(*index).is_none()
            };
            (first.max(boot)..end).find(absent)
        } else if first < boot {
            Some(first)
        } else {
            inner.pages.next(first).filter(|&index| index < end)
        };
        match found {
            Some(index) => Some((index << PAGE_SHIFT).max(offset)),
            None => (!data).then_some(size),
        }
    }
}
