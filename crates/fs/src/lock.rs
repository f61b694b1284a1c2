//! File locks: flock(2), and record locks of fcntl(2), advisory.
//!
//! A file's locks are one sorted list of ranges. An owner is a process (POSIX record locks: released when the process
//! closes *any* descriptor of the file), or an open file description (flock, and `F_OFD_` locks). flock locks live in a
//! list of their own, since the two kinds do not see each other.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use hal::sync::WaitQueue;
use uapi::fs::{F_RDLCK, F_UNLCK, F_WRLCK, LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN};
use uapi::open::{SEEK_CUR, SEEK_END, SEEK_SET};
use uapi::{Errno, Flock, Result};

use crate::file::File;

/// Who holds a record lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// A process, by its file table (threads share it), with the process number that `F_GETLK` shows.
    Process {
        /// Identifies the file table.
        table: u64,
        /// Process number.
        pid: u32,
    },
    /// An open file description: [`File::lock_owner`].
    Description(u64),
}

#[derive(Clone, Copy)]
struct Range {
    owner: Owner,
    exclusive: bool,
    /// First byte.
    start: u64,
    /// Last byte; `u64::MAX` is the end of the file, wherever that will be.
    last: u64,
}

impl Range {
    fn same_owner(&self, owner: Owner) -> bool {
        match (self.owner, owner) {
            (Owner::Process { table: a, .. }, Owner::Process { table: b, .. }) => a == b,
            (a, b) => a == b,
        }
    }
}

/// The locks of a file.
#[derive(Default)]
pub(crate) struct Locks {
    ranges: Vec<Range>,
    flocks: Vec<(u64, bool)>,
}

/// Waiters for any lock to go; one queue for all files, since waiting for locks is rare.
static QUEUE: WaitQueue = WaitQueue::new();

/// Where a blocked `F_SETLKW` or flock(2) waits before it tries again.
pub fn wait_queue() -> &'static WaitQueue {
    &QUEUE
}

impl Locks {
    fn conflict(&self, owner: Owner, exclusive: bool, start: u64, last: u64) -> Option<&Range> {
        self.ranges.iter().find(|range| {
            !range.same_owner(owner) && (exclusive || range.exclusive) && range.start <= last && start <= range.last
        })
    }

    /// Replaces what `owner` holds of `start..=last`: by a lock, or with `None` by nothing. `ENOLCK` without memory.
    fn set(&mut self, owner: Owner, kind: Option<bool>, start: u64, last: u64) -> Result<()> {
        let mut kept = Vec::new();
        kept.try_reserve_exact(self.ranges.len() + 2).map_err(|_| Errno::ENOLCK)?;
        let mut new = kind.map(|exclusive| Range { owner, exclusive, start, last });
        for range in &self.ranges {
            let overlaps = range.start <= last && start <= range.last;
            let touches = range.start <= last.saturating_add(1) && start <= range.last.saturating_add(1);
            if !range.same_owner(owner) || !touches {
                kept.push(*range);
                continue;
            }
            match &mut new {
                // Neighbours of the same kind become one.
                Some(new) if new.exclusive == range.exclusive => {
                    new.start = new.start.min(range.start);
                    new.last = new.last.max(range.last);
                }
                _ if !overlaps => kept.push(*range),
                _ => {
                    if range.start < start {
                        kept.push(Range { last: start - 1, ..*range });
                    }
                    if range.last > last {
                        kept.push(Range { start: last + 1, ..*range });
                    }
                }
            }
        }
        kept.extend(new);
        self.ranges = kept;
        Ok(())
    }

    fn release_process(&mut self, table: u64) {
        self.ranges.retain(|range| !matches!(range.owner, Owner::Process { table: t, .. } if t == table));
    }

    /// An open file description is gone.
    pub(crate) fn release_description(&mut self, owner: u64) {
        self.ranges.retain(|range| range.owner != Owner::Description(owner));
        self.flocks.retain(|(holder, _)| *holder != owner);
        QUEUE.wake_all();
    }
}

/// flock(2) without waiting: `EAGAIN` when another holds it (the caller waits on [`wait_queue`] unless `LOCK_NB`).
pub fn flock(file: &File, operation: u32) -> Result<()> {
    let owner = file.lock_owner();
    let exclusive = match operation & !LOCK_NB {
        LOCK_SH => false,
        LOCK_EX => true,
        LOCK_UN => {
            file.inode().with_locks(|locks| locks.flocks.retain(|(holder, _)| *holder != owner));
            QUEUE.wake_all();
            return Ok(());
        }
        _ => return Err(Errno::EINVAL),
    };
    let converted = file.inode().with_locks(|locks| {
        // A conversion gives the old lock up first, as Linux does.
        let before = locks.flocks.len();
        locks.flocks.retain(|(holder, _)| *holder != owner);
        let released = locks.flocks.len() != before;
        if locks.flocks.iter().any(|(_, other)| exclusive || *other) {
            return (Err(Errno::EAGAIN), released);
        }
        if locks.flocks.try_reserve(1).is_err() {
            return (Err(Errno::ENOLCK), released);
        }
        locks.flocks.push((owner, exclusive));
        (Ok(()), released)
    });
    if converted.1 {
        QUEUE.wake_all();
    }
    converted.0
}

/// The bytes that a `struct flock` means, first and last. `EINVAL`, `EOVERFLOW`.
fn range(file: &File, lock: &Flock) -> Result<(u64, u64)> {
    let base = match u32::try_from(lock.l_whence) {
        Ok(SEEK_SET) => 0,
        Ok(SEEK_CUR) => *file.pos.lock() as i64,
        Ok(SEEK_END) => file.inode().size() as i64,
        _ => return Err(Errno::EINVAL),
    };
    let start = base.checked_add(lock.l_start).ok_or(Errno::EOVERFLOW)?;
    let (start, last) = match lock.l_len {
        0 => (start, u64::MAX),
        len if len > 0 => {
            let last = start.checked_add(len - 1).ok_or(Errno::EOVERFLOW)?;
            (start, last as u64)
        }
        // A negative length reaches back from the start.
        len => (start.checked_add(len).ok_or(Errno::EINVAL)?, (start - 1) as u64),
    };
    let start = u64::try_from(start).map_err(|_| Errno::EINVAL)?;
    Ok((start, last))
}

/// `F_SETLK`, `F_OFD_SETLK`, and each try of their waiting forms. `EAGAIN` when another holds a conflicting lock (the
/// caller waits on [`wait_queue`]), `EBADF` when the file is not open for that kind, `EINVAL`, `EOVERFLOW`, `ENOLCK`.
pub fn set_lock(file: &File, owner: Owner, lock: &Flock) -> Result<()> {
    let (start, last) = range(file, lock)?;
    let kind = match lock.l_type {
        F_RDLCK if !file.readable() => return Err(Errno::EBADF),
        F_WRLCK if !file.writable() => return Err(Errno::EBADF),
        F_RDLCK => Some(false),
        F_WRLCK => Some(true),
        F_UNLCK => None,
        _ => return Err(Errno::EINVAL),
    };
    file.inode().with_locks(|locks| {
        if kind.is_some_and(|exclusive| locks.conflict(owner, exclusive, start, last).is_some()) {
            return Err(Errno::EAGAIN);
        }
        locks.set(owner, kind, start, last)
    })?;
    QUEUE.wake_all();
    Ok(())
}

/// `F_GETLK`: the first lock in the way, or `l_type` `F_UNLCK`.
pub fn get_lock(file: &File, owner: Owner, lock: &Flock) -> Result<Flock> {
    let (start, last) = range(file, lock)?;
    let exclusive = match lock.l_type {
        F_RDLCK => false,
        F_WRLCK => true,
        _ => return Err(Errno::EINVAL),
    };
    Ok(file.inode().with_locks(|locks| match locks.conflict(owner, exclusive, start, last) {
        None => Flock { l_type: F_UNLCK, ..*lock },
        Some(range) => Flock {
            l_type: if range.exclusive { F_WRLCK } else { F_RDLCK },
            l_whence: SEEK_SET as i16,
            l_start: range.start as i64,
            l_len: if range.last == u64::MAX { 0 } else { (range.last - range.start + 1) as i64 },
            l_pid: match range.owner {
                Owner::Process { pid, .. } => pid as i32,
                Owner::Description(_) => -1,
            },
            ..*lock
        },
    }))
}

/// What close(2) of any descriptor does first: the process's record locks on the file go, then the reference.
#[inline]
pub fn close_file(file: Arc<File>, table: u64) {
    if file.inode().has_locks() {
        file.inode().with_locks(|locks| locks.release_process(table));
        QUEUE.wake_all();
    }
    drop(file);
}

/// Boxed, so that a file that was never locked pays one pointer.
pub(crate) type LockSlot = Option<Box<Locks>>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Process;
    use uapi::open::{O_CREAT, O_RDWR};

    fn lock(l_type: i16, l_start: i64, l_len: i64) -> Flock {
        Flock { l_type, l_start, l_len, ..Flock::default() }
    }

    #[test]
    fn record_locks() {
        let p = Process::new();
        let file = p.open("/f", O_CREAT | O_RDWR).unwrap();
        let (a, b) = (Owner::Process { table: 1, pid: 10 }, Owner::Process { table: 2, pid: 20 });
        set_lock(&file, a, &lock(F_WRLCK, 10, 10)).unwrap();
        assert_eq!(set_lock(&file, b, &lock(F_RDLCK, 19, 1)), Err(Errno::EAGAIN));
        set_lock(&file, b, &lock(F_RDLCK, 20, 0)).unwrap();
        assert_eq!(set_lock(&file, a, &lock(F_WRLCK, 5, 100)), Err(Errno::EAGAIN));
        let found = get_lock(&file, a, &lock(F_WRLCK, 0, 0)).unwrap();
        assert_eq!((found.l_type, found.l_start, found.l_len, found.l_pid), (F_RDLCK, 20, 0, 20));
        // A hole in the middle leaves both sides.
        set_lock(&file, a, &lock(F_UNLCK, 14, 2)).unwrap();
        assert!(set_lock(&file, b, &lock(F_WRLCK, 14, 2)).is_ok());
        assert_eq!(set_lock(&file, b, &lock(F_WRLCK, 13, 1)), Err(Errno::EAGAIN));
        assert_eq!(set_lock(&file, b, &lock(F_WRLCK, 16, 1)), Err(Errno::EAGAIN));
        // Reaching back from the start.
        assert_eq!(get_lock(&file, b, &lock(F_RDLCK, 14, -1)).unwrap().l_pid, 10);
        assert_eq!(set_lock(&file, b, &lock(F_RDLCK, -1, 1)), Err(Errno::EINVAL));
        assert_eq!(set_lock(&file, b, &lock(F_RDLCK, 1, i64::MAX)), Ok(()).and(Err(Errno::EAGAIN)));
        assert_eq!(set_lock(&file, b, &lock(F_RDLCK, 2, i64::MAX)), Err(Errno::EOVERFLOW));
        assert_eq!(set_lock(&file, b, &lock(9, 0, 1)), Err(Errno::EINVAL));
        // Closing any descriptor of the file gives the process's locks up.
        close_file(p.open("/f", O_RDWR).unwrap(), 1);
        assert!(set_lock(&file, b, &lock(F_WRLCK, 0, 0)).is_ok());
        let reader = p.open("/f", 0).unwrap();
        assert_eq!(set_lock(&reader, b, &lock(F_WRLCK, 0, 0)), Err(Errno::EBADF));
    }

    #[test]
    fn neighbours_join_and_kinds_split() {
        let p = Process::new();
        let file = p.open("/f", O_CREAT | O_RDWR).unwrap();
        let a = Owner::Process { table: 1, pid: 10 };
        for start in [0, 20, 10] {
            set_lock(&file, a, &lock(F_RDLCK, start, 10)).unwrap();
        }
        assert_eq!(file.inode().with_locks(|l| l.ranges.len()), 1);
        set_lock(&file, a, &lock(F_WRLCK, 5, 1)).unwrap();
        assert_eq!(file.inode().with_locks(|l| l.ranges.len()), 3);
    }

    #[test]
    fn whole_file_locks_belong_to_the_description() {
        let p = Process::new();
        let a = p.open("/f", O_CREAT | O_RDWR).unwrap();
        let b = p.open("/f", O_RDWR).unwrap();
        flock(&a, LOCK_SH).unwrap();
        flock(&b, LOCK_SH).unwrap();
        assert_eq!(flock(&a, LOCK_EX), Err(Errno::EAGAIN));
        drop(a);
        flock(&b, LOCK_EX | LOCK_NB).unwrap();
        let c = p.open("/f", O_RDWR).unwrap();
        assert_eq!(flock(&c, LOCK_SH), Err(Errno::EAGAIN));
        flock(&b, LOCK_UN).unwrap();
        flock(&c, LOCK_SH).unwrap();
        assert_eq!(flock(&c, 99), Err(Errno::EINVAL));
        let ofd = Owner::Description(b.lock_owner());
        set_lock(&b, ofd, &lock(F_WRLCK, 0, 0)).unwrap();
        assert_eq!(get_lock(&c, Owner::Description(c.lock_owner()), &lock(F_RDLCK, 0, 0)).unwrap().l_pid, -1);
    }
}
