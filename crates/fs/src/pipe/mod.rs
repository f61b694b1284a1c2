//! Pipes: pipe(7), fifo(7).
//!
//! A ring of pages that are allocated as the data comes and given back as it goes. Positions count bytes; when the
//! ring runs empty they start again at zero with the page that is at hand, so that a conversation of small messages
//! stays in one warm page. Sizes are powers of two, so a position finds its page by shift and mask.
//!
//! Both ends wait on one queue: a reader waits only while the ring is empty and a writer only while it is (nearly)
//! full, so they never wait at the same time.

mod account;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use hal::addr::{PAGE_SIZE, UserAddr};
use hal::mem::frame::is_low;
use hal::sync::{SpinLock, WaitQueue};
use hal::user::{InBuf, OutBuf, copy_out};
use uapi::fs::{PIPE_BUF, S_IFIFO};
use uapi::ioctl::FIONREAD;
use uapi::open::{O_CLOEXEC, O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY};
use uapi::{Errno, Result};

use crate::cred::{Credentials, cap};
use crate::file::{File, FileOps, Ops, PollEvents};
use crate::vfs::{Node, anon_inode, anonymous_file};
use account::Share;

/// Pages of a new pipe: 64 KiB.
const DEFAULT_PAGES: usize = 16;
/// Largest size that a program without `CAP_SYS_RESOURCE` may ask for, in bytes (fs.pipe-max-size).
pub const MAX_SIZE: usize = 1 << 20;
/// Largest size at all.
const HARD_MAX: usize = 1 << 30;
/// Emptied pages kept for the next write.
const SPARES: usize = 2;

type Page = Box<[u8; PAGE_SIZE]>;

struct State {
    /// A power of two of slots; a slot between `head` and `tail` has a page.
    pages: Box<[Option<Page>]>,
    spare: [Option<Page>; SPARES],
    /// Next byte to read, and behind the last one written.
    head: u64,
    tail: u64,
    readers: u32,
    writers: u32,
    /// How often each end was opened: what an open that waits for its other end compares.
    reader_opens: u32,
    writer_opens: u32,
}

/// A pipe or FIFO.
pub struct Pipe {
    state: SpinLock<State>,
    queue: WaitQueue,
    share: Share,
}

fn slots(pages: usize) -> Result<Box<[Option<Page>]>> {
    let mut slots = Vec::new();
    slots.try_reserve_exact(pages).map_err(|_| Errno::ENOMEM)?;
    slots.resize_with(pages, || None);
    Ok(slots.into_boxed_slice())
}

fn new_page() -> Result<Page> {
    if is_low() {
        return Err(Errno::ENOMEM);
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(PAGE_SIZE).map_err(|_| Errno::ENOMEM)?;
    bytes.resize(PAGE_SIZE, 0);
    bytes.into_boxed_slice().try_into().map_err(|_| Errno::ENOMEM)
}

#[inline(never)]
fn take_page(spare: &mut [Option<Page>]) -> Result<Page> {
    spare.iter_mut().find_map(Option::take).map_or_else(new_page, Ok)
}

impl State {
    fn len(&self) -> usize {
        (self.tail - self.head) as usize
    }

    fn capacity(&self) -> usize {
        self.pages.len() * PAGE_SIZE
    }

    fn free(&self) -> usize {
        self.capacity() - self.len()
    }

    #[inline]
    fn slot_of(&self, position: u64) -> usize {
        (position / PAGE_SIZE as u64) as usize & (self.pages.len() - 1)
    }

    /// The page that the next byte goes to.
    #[inline]
    fn tail_page(&mut self) -> Result<&mut [u8]> {
        let slot = self.slot_of(self.tail);
        let Some(place) = self.pages.get_mut(slot) else { return Err(Errno::EIO) };
        if place.is_none() {
            *place = Some(take_page(&mut self.spare)?);
        }
        let at = self.tail as usize % PAGE_SIZE;
        place.as_mut().and_then(|page| page.get_mut(at..)).ok_or(Errno::EIO)
    }

    /// Whether the last bytes, gone round the ring, lie in the page of `slot` in front of the first ones.
    fn tail_shares(&self, slot: usize) -> bool {
        !self.tail.is_multiple_of(PAGE_SIZE as u64) && self.slot_of(self.tail) == slot
    }

    /// Drops `n` bytes that were read from the page at `head`.
    #[inline]
    fn consumed(&mut self, n: usize) {
        let slot = self.slot_of(self.head);
        self.head += n as u64;
        if self.head == self.tail {
            self.head = 0;
            self.tail = 0;
            self.pages.swap(slot, 0);
        } else if self.head.is_multiple_of(PAGE_SIZE as u64) {
            self.page_emptied(slot);
        }
    }

    #[inline(never)]
    fn page_emptied(&mut self, slot: usize) {
        if self.tail_shares(slot) {
            return;
        }
        let page = self.pages.get_mut(slot).and_then(Option::take);
        if let Some(spare) = self.spare.iter_mut().find(|spare| spare.is_none()) {
            *spare = page;
        }
    }

    /// Copies out up to `left` bytes, no further than the end of a page.
    #[inline]
    fn read_chunk(&mut self, left: usize, out: &mut OutBuf<'_>) -> Result<usize> {
        let at = self.head as usize % PAGE_SIZE;
        let n = left.min(PAGE_SIZE - at);
        let page = self.pages.get(self.slot_of(self.head)).and_then(Option::as_ref);
        let chunk = page.and_then(|page| page.get(at..at + n)).ok_or(Errno::EIO)?;
        let copied = out.write(chunk)?;
        self.consumed(copied);
        Ok(copied)
    }

    /// Reads as much as there is and fits.
    #[inline(never)]
    fn read(&mut self, out: &mut OutBuf<'_>) -> Result<usize> {
        let left = self.len().min(out.len());
        let done = self.read_chunk(left, out)?;
        Ok(if done < left { self.read_rest(left, done, out) } else { done })
    }

    /// Goes on until `left` bytes are copied or the copy faults; gives how many are.
    #[inline(never)]
    fn read_rest(&mut self, left: usize, mut done: usize, out: &mut OutBuf<'_>) -> usize {
        while done < left {
            match self.read_chunk(left - done, out) {
                Ok(n) if n != 0 => done += n,
                _ => break,
            }
        }
        done
    }

    /// Copies in up to `left` bytes, no further than the end of a page.
    #[inline]
    fn write_chunk(&mut self, left: usize, input: &mut InBuf<'_>) -> Result<usize> {
        let page = self.tail_page()?;
        let n = left.min(page.len());
        let copied = input.read(page.get_mut(..n).ok_or(Errno::EIO)?)?;
        self.tail += copied as u64;
        Ok(copied)
    }

    /// Writes as much as there is room for, all or nothing up to `PIPE_BUF`.
    #[inline(never)]
    fn write(&mut self, input: &mut InBuf<'_>) -> Result<usize> {
        if input.is_empty() {
            return Ok(0);
        }
        if self.readers == 0 {
            return Err(Errno::EPIPE);
        }
        let free = self.free();
        if free < input.len().min(PIPE_BUF) && (free == 0 || input.len() <= PIPE_BUF) {
            return Err(Errno::EAGAIN);
        }
        let left = free.min(input.len());
        let done = self.write_chunk(left, input)?;
        Ok(if done < left { self.write_rest(left, done, input) } else { done })
    }

    /// Goes on until `left` bytes are copied or the copy faults; gives how many are.
    #[inline(never)]
    fn write_rest(&mut self, left: usize, mut done: usize, input: &mut InBuf<'_>) -> usize {
        while done < left {
            match self.write_chunk(left - done, input) {
                Ok(n) if n != 0 => done += n,
                _ => break,
            }
        }
        done
    }
}

impl Pipe {
    /// A pipe of this user that nobody has open. `ENOMEM`.
    pub fn new(cred: &Credentials) -> Result<Arc<Self>> {
        if is_low() {
            return Err(Errno::ENOMEM);
        }
        let (share, pages) = Share::take(cred, DEFAULT_PAGES)?;
        let state = State {
            pages: slots(pages)?,
            spare: [const { None }; SPARES],
            head: 0,
            tail: 0,
            readers: 0,
            writers: 0,
            reader_opens: 0,
            writer_opens: 0,
        };
        Ok(Arc::new(Self { state: SpinLock::new(state), queue: WaitQueue::new(), share }))
    }

    /// Counts an opening with access mode `access`. Gives what the file's position remembers: how often the other end
    /// had been opened. `ENXIO`: to write, without waiting, and nobody reads.
    pub(crate) fn open(pipe: &Arc<Self>, access: u32, nonblock: bool) -> Result<u64> {
        let mut state = pipe.state.lock();
        let seen = match access {
            O_RDONLY => state.writer_opens,
            O_WRONLY if nonblock && state.readers == 0 => return Err(Errno::ENXIO),
            O_WRONLY => state.reader_opens,
            _ => 0,
        };
        if access != O_WRONLY {
            state.readers += 1;
            state.reader_opens = state.reader_opens.wrapping_add(1);
        }
        if access != O_RDONLY {
            state.writers += 1;
            state.writer_opens = state.writer_opens.wrapping_add(1);
        }
        drop(state);
        pipe.queue.wake_all();
        Ok(u64::from(seen))
    }

    /// Bytes that can be read.
    pub fn len(&self) -> usize {
        self.state.lock().len()
    }

    /// True when nothing can be read.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `F_GETPIPE_SZ`: the capacity in bytes.
    pub fn size(&self) -> usize {
        self.state.lock().capacity()
    }

    /// `F_SETPIPE_SZ`: at least `bytes`, rounded up to a power of two of pages; gives the size set. `EBUSY` if more is
    /// in the pipe, `EPERM` above [`MAX_SIZE`] without `CAP_SYS_RESOURCE` or for a user who has too many pages in pipes,
    /// `EINVAL`, `ENOMEM`.
    pub fn set_size(&self, cred: &Credentials, bytes: usize) -> Result<usize> {
        if bytes > HARD_MAX {
            return Err(Errno::EINVAL);
        }
        let pages = bytes.div_ceil(PAGE_SIZE).max(1).next_power_of_two();
        if pages * PAGE_SIZE > MAX_SIZE && !cred.has(cap::SYS_RESOURCE) {
            return Err(Errno::EPERM);
        }
        let mut fresh = slots(pages)?;
        let mut state = self.state.lock();
        let offset = state.head as usize % PAGE_SIZE;
        if offset + state.len() > pages * PAGE_SIZE {
            return Err(Errno::EBUSY);
        }
        let first = state.slot_of(state.head);
        let old = state.pages.len();
        let used = (offset + state.len()).div_ceil(PAGE_SIZE);
        if used > old
            && let Some(place) = fresh.get_mut(old)
        {
            // The last bytes share a page with the first: they get one of their own.
            let mut own = new_page()?;
            if let Some(Some(shared)) = state.pages.get(first) {
                own.copy_from_slice(&**shared);
            }
            *place = Some(own);
        }
        self.share.resize(cred, pages)?;
        for (n, place) in fresh.iter_mut().enumerate().take(used.min(old)) {
            *place = state.pages.get_mut((first + n) & (old - 1)).and_then(Option::take);
        }
        state.tail = (offset + state.len()) as u64;
        state.head = offset as u64;
        let old = core::mem::replace(&mut state.pages, fresh);
        drop(state);
        drop(old);
        self.queue.wake_all();
        Ok(pages * PAGE_SIZE)
    }
}

impl FileOps for Pipe {
    fn read(&self, _: &File, out: &mut OutBuf<'_>) -> Result<usize> {
        let mut state = self.state.lock();
        if state.head == state.tail {
            // The usual look before a reader sleeps: kept short.
            return if state.writers == 0 || out.is_empty() { Ok(0) } else { Err(Errno::EAGAIN) };
        }
        // Writers wait, and a pipe turns writable, only where less than PIPE_BUF was free. The queue is seldom empty here:
        // a reader that has just been woken still stands in it itself.
        let was_tight = state.free() < PIPE_BUF;
        let done = state.read(out);
        drop(state);
        if was_tight {
            self.queue.wake_all();
        }
        done
    }

    /// Writes of up to `PIPE_BUF` bytes are all or nothing. `EPIPE`: nobody reads; the layer above sends SIGPIPE.
    fn write(&self, _: &File, input: &mut InBuf<'_>) -> Result<usize> {
        let mut state = self.state.lock();
        let done = state.write(input);
        drop(state);
        // Not after a refusal: the writer itself is on the queue when it tries again, and would never sleep.
        if done.is_ok() {
            self.queue.wake_all();
        }
        done
    }

    fn poll(&self, file: &File) -> PollEvents {
        let seen = *file.pos.lock() as u32;
        let state = self.state.lock();
        let mut events = PollEvents::empty();
        if file.readable() {
            events.set(PollEvents::READABLE, state.len() != 0);
            events.set(PollEvents::HUP, state.writers == 0 && state.writer_opens != seen);
        }
        if file.writable() {
            events.set(PollEvents::WRITABLE, state.free() >= PIPE_BUF);
            events.set(PollEvents::ERR, state.readers == 0);
        }
        events
    }

    fn ioctl(&self, _: &File, cmd: u32, arg: usize) -> Result<usize> {
        if cmd != FIONREAD {
            return Err(Errno::ENOTTY);
        }
        let len = self.len().min(i32::MAX as usize) as i32;
        copy_out(UserAddr(arg), &len.to_le_bytes())?;
        Ok(0)
    }

    fn wait_queue(&self, _: &File) -> Option<&WaitQueue> {
        Some(&self.queue)
    }

    fn open_waits(&self, file: &File) -> bool {
        let seen = *file.pos.lock() as u32;
        let state = self.state.lock();
        match (file.readable(), file.writable()) {
            (true, false) => state.writers == 0 && state.writer_opens == seen,
            (false, true) => state.readers == 0 && state.reader_opens == seen,
            _ => false,
        }
    }

    fn close(&self, file: &File) {
        let mut state = self.state.lock();
        state.readers = state.readers.saturating_sub(u32::from(file.readable()));
        state.writers = state.writers.saturating_sub(u32::from(file.writable()));
        if state.readers == 0 && state.writers == 0 {
            // A FIFO outlives its users, its content does not.
            state.head = 0;
            state.tail = 0;
            state.pages.fill_with(|| None);
            state.spare.fill_with(|| None);
        }
        drop(state);
        self.queue.wake_all();
    }

    fn as_pipe(&self) -> Option<&Pipe> {
        Some(self)
    }
}

/// pipe2(2): the reading and the writing end, for [`crate::FdTable::install_pair`]. `flags` may have `O_CLOEXEC` (not
/// looked at here) and `O_NONBLOCK`; `EINVAL` for others: packet mode (`O_DIRECT`) is not supported.
pub fn pipe2(cred: &Credentials, flags: u32) -> Result<(Arc<File>, Arc<File>)> {
    if flags & !(O_CLOEXEC | O_NONBLOCK) != 0 {
        return Err(Errno::EINVAL);
    }
    let pipe = Pipe::new(cred)?;
    // Both ends counted in one go.
    Pipe::open(&pipe, O_RDWR, false)?;
    let inode = anon_inode(S_IFIFO | 0o600, cred.fsuid, cred.fsgid, Node::Fifo(pipe.clone()));
    let end = |access| anonymous_file(Ops::Shared(pipe.clone()), inode.clone(), access | flags & O_NONBLOCK);
    Ok((end(O_RDONLY), end(O_WRONLY)))
}

#[cfg(test)]
mod tests;
