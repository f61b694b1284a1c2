//! File descriptor tables: fcntl(2), dup(2), close_range(2).
//!
//! A table is shared by the threads of a process (`CLONE_FILES`), so it has a lock; it is held for the look-up alone,
//! and what comes out is a counted reference. (Running an operation under the lock would save the two counter updates,
//! but would serialise the threads of a process, and reading `/proc/self/fd` needs the lock itself.)
//! A file is never dropped under the lock: its last close runs code.

use alloc::sync::Arc;
use alloc::vec::Vec;

use hal::sync::SpinLock;
use uapi::open::CLOSE_RANGE_CLOEXEC;
use uapi::{Errno, Result};

use crate::file::File;

/// Most descriptors of a process, whatever `RLIMIT_NOFILE` says: Linux's default of fs.nr_open.
pub const NR_OPEN: usize = 1 << 20;

/// A process's descriptors.
#[derive(Default)]
pub struct FdTable {
    fds: SpinLock<Fds>,
}

/// The content of a table. Invariant: `cloexec` has a bit only where `files` has a file; below `free` all are taken.
#[derive(Default)]
struct Fds {
    files: Vec<Option<Arc<File>>>,
    cloexec: Vec<u64>,
    free: usize,
}

impl Fds {
    fn lowest_from(&mut self, from: usize, limit: usize) -> Result<usize> {
        let mut fd = from.max(self.free);
        while self.files.get(fd).is_some_and(Option::is_some) {
            fd += 1;
        }
        if from <= self.free {
            self.free = fd;
        }
        if fd < limit.min(NR_OPEN) { Ok(fd) } else { Err(Errno::EMFILE) }
    }

    fn grow(&mut self, fd: usize) -> Result<()> {
        if fd >= self.files.len() {
            let len = (fd + 1).next_multiple_of(64);
            self.files.try_reserve_exact(len - self.files.len()).map_err(|_| Errno::ENOMEM)?;
            self.cloexec.try_reserve_exact(len / 64 - self.cloexec.len()).map_err(|_| Errno::ENOMEM)?;
            self.files.resize(len, None);
            self.cloexec.resize(len / 64, 0);
        }
        Ok(())
    }

    /// Puts `file` at `fd`, for which the table has grown, and gives what was there.
    fn put(&mut self, fd: usize, file: Arc<File>, cloexec: bool) -> Option<Arc<File>> {
        if fd == self.free {
            self.free += 1;
        }
        self.set_cloexec(fd, cloexec);
        self.files.get_mut(fd).and_then(|slot| slot.replace(file))
    }

    fn take(&mut self, fd: usize) -> Option<Arc<File>> {
        let file = self.files.get_mut(fd)?.take()?;
        self.set_cloexec(fd, false);
        self.free = self.free.min(fd);
        Some(file)
    }

    fn set_cloexec(&mut self, fd: usize, on: bool) {
        if let Some(word) = self.cloexec.get_mut(fd / 64) {
            *word = *word & !(1 << (fd % 64)) | u64::from(on) << (fd % 64);
        }
    }

    fn is_cloexec(&self, fd: usize) -> bool {
        self.cloexec.get(fd / 64).is_some_and(|word| word >> (fd % 64) & 1 != 0)
    }
}

fn index(fd: i32) -> Result<usize> {
    usize::try_from(fd).map_err(|_| Errno::EBADF)
}

impl FdTable {
    /// An empty table.
    pub const fn new() -> Self {
        Self { fds: SpinLock::new(Fds { files: Vec::new(), cloexec: Vec::new(), free: 0 }) }
    }

    /// The file at `fd`, or `EBADF`.
    #[inline]
    pub fn get(&self, fd: i32) -> Result<Arc<File>> {
        // A negative number becomes one that no table reaches.
        match self.fds.lock().files.get(fd as u32 as usize) {
            Some(Some(file)) => Ok(file.clone()),
            _ => Err(Errno::EBADF),
        }
    }

    /// The file at `fd` and its close-on-exec bit.
    pub fn get_with_cloexec(&self, fd: i32) -> Result<(Arc<File>, bool)> {
        let at = index(fd)?;
        let fds = self.fds.lock();
        let file = fds.files.get(at).and_then(Option::as_ref).ok_or(Errno::EBADF)?;
        Ok((file.clone(), fds.is_cloexec(at)))
    }

    /// Puts `file` at the lowest free number. `limit` is `RLIMIT_NOFILE`; `EMFILE` when it is reached.
    pub fn install(&self, file: Arc<File>, cloexec: bool, limit: u64) -> Result<i32> {
        self.install_from(file, 0, cloexec, limit)
    }

    /// `F_DUPFD`: the lowest free number not below `from`. `EINVAL` when `from` is not below the limit.
    pub fn dup_from(&self, fd: i32, from: i32, cloexec: bool, limit: u64) -> Result<i32> {
        let file = self.get(fd)?;
        let from = usize::try_from(from).map_err(|_| Errno::EINVAL)?;
        if from as u64 >= limit {
            return Err(Errno::EINVAL);
        }
        self.install_from(file, from, cloexec, limit)
    }

    /// dup(2).
    pub fn dup(&self, fd: i32, limit: u64) -> Result<i32> {
        self.install(self.get(fd)?, false, limit)
    }

    fn install_from(&self, file: Arc<File>, from: usize, cloexec: bool, limit: u64) -> Result<i32> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut fds = self.fds.lock();
        let fd = fds.lowest_from(from, limit)?;
        fds.grow(fd)?;
        fds.put(fd, file, cloexec);
        Ok(fd as i32)
    }

    /// Puts two files, both or neither: pipe2(2).
    pub fn install_pair(&self, a: Arc<File>, b: Arc<File>, cloexec: bool, limit: u64) -> Result<(i32, i32)> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut fds = self.fds.lock();
        let first = fds.lowest_from(0, limit)?;
        let second = fds.lowest_from(first + 1, limit)?;
        fds.grow(second)?;
        fds.put(first, a, cloexec);
        fds.put(second, b, cloexec);
        Ok((first as i32, second as i32))
    }

    /// dup3(2), with `old == new` refused (`EINVAL`); gives the file that `new` named before, for the caller to drop
    /// (see [`crate::lock::close_file`]).
    pub fn dup3(&self, old: i32, new: i32, cloexec: bool, limit: u64) -> Result<Option<Arc<File>>> {
        if old == new {
            return Err(Errno::EINVAL);
        }
        let at = index(new)?;
        if at as u64 >= limit || at >= NR_OPEN {
            return Err(Errno::EBADF);
        }
        let mut fds = self.fds.lock();
        if fds.files.get(index(old)?).is_none_or(Option::is_none) {
            return Err(Errno::EBADF);
        }
        fds.grow(at)?;
        let file = fds.files.get(index(old)?).and_then(Option::as_ref).ok_or(Errno::EBADF)?.clone();
        Ok(fds.put(at, file, cloexec))
    }

    /// Takes `fd` out of the table; the caller drops the file (see [`crate::lock::close_file`]). `EBADF`.
    pub fn close(&self, fd: i32) -> Result<Arc<File>> {
        self.fds.lock().take(fd as u32 as usize).ok_or(Errno::EBADF)
    }

    /// `F_GETFD`: the close-on-exec bit.
    pub fn cloexec(&self, fd: i32) -> Result<bool> {
        self.get_with_cloexec(fd).map(|(_, on)| on)
    }

    /// `F_SETFD`, `FIOCLEX`, `FIONCLEX`.
    pub fn set_cloexec(&self, fd: i32, on: bool) -> Result<()> {
        let at = index(fd)?;
        let mut fds = self.fds.lock();
        if fds.files.get(at).is_none_or(Option::is_none) {
            return Err(Errno::EBADF);
        }
        fds.set_cloexec(at, on);
        Ok(())
    }

    /// close_range(2) but for `CLOSE_RANGE_UNSHARE`, which the caller does first: hands the closed files to `closed`, or
    /// sets their close-on-exec bits. `EINVAL` when `first > last`.
    pub fn close_range(&self, first: u32, last: u32, flags: u32, mut closed: impl FnMut(Arc<File>)) -> Result<()> {
        if first > last {
            return Err(Errno::EINVAL);
        }
        let mut fd = first as usize;
        loop {
            let mut fds = self.fds.lock();
            let end = (last as usize).min(fds.files.len().saturating_sub(1));
            if fd > end || fds.files.is_empty() {
                return Ok(());
            }
            if flags & CLOSE_RANGE_CLOEXEC != 0 {
                for at in fd..=end {
                    let on = fds.files.get(at).is_some_and(Option::is_some);
                    fds.set_cloexec(at, on);
                }
                return Ok(());
            }
            let taken = (fd..=end).find_map(|at| fds.take(at).map(|file| (at, file)));
            drop(fds);
            let Some((at, file)) = taken else { return Ok(()) };
            closed(file);
            fd = at + 1;
        }
    }

    /// A copy for fork or unshare: the same descriptions at the same numbers.
    pub fn try_clone(&self) -> Result<Self> {
        let fds = self.fds.lock();
        let used = fds.files.iter().rposition(Option::is_some).map_or(0, |at| at + 1).next_multiple_of(64);
        let used = used.min(fds.files.len());
        let mut files = Vec::new();
        files.try_reserve_exact(used).map_err(|_| Errno::ENOMEM)?;
        files.extend(fds.files.iter().take(used).cloned());
        let mut cloexec = Vec::new();
        cloexec.try_reserve_exact(used / 64).map_err(|_| Errno::ENOMEM)?;
        cloexec.extend(fds.cloexec.iter().take(used / 64));
        Ok(Self { fds: SpinLock::new(Fds { files, cloexec, free: fds.free }) })
    }

    /// execve(2): closes what is marked, handing each file to `closed`.
    pub fn close_on_exec(&self, mut closed: impl FnMut(Arc<File>)) {
        let mut word = 0;
        loop {
            let mut fds = self.fds.lock();
            let Some(&bits) = fds.cloexec.get(word) else { return };
            let taken = if bits == 0 { None } else { fds.take(word * 64 + bits.trailing_zeros() as usize) };
            drop(fds);
            match taken {
                Some(file) => closed(file),
                None => word += 1,
            }
        }
    }

    /// Empties the table at exit, handing each file to `closed`.
    pub fn close_all(&self, closed: impl FnMut(Arc<File>)) {
        let files = {
            let mut fds = self.fds.lock();
            fds.free = 0;
            fds.cloexec = Vec::new();
            core::mem::take(&mut fds.files)
        };
        files.into_iter().flatten().for_each(closed);
    }

    /// The lowest open descriptor not below `from`: for walking a table (`/proc/PID/fd`).
    pub fn next_open(&self, from: usize) -> Option<usize> {
        let fds = self.fds.lock();
        let open = fds.files.get(from..)?.iter().position(Option::is_some)?;
        Some(from + open)
    }

    /// How many slots the table has (FDSize in `/proc/PID/status`).
    pub fn slots(&self) -> usize {
        self.fds.lock().files.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Process;
    use uapi::open::{O_CREAT, O_RDWR};

    const LIMIT: u64 = 100;

    fn file(p: &Process) -> Arc<File> {
        p.open("/f", O_CREAT | O_RDWR).unwrap()
    }

    #[test]
    fn the_lowest_number_is_given() {
        let p = Process::new();
        let t = FdTable::new();
        for fd in 0..LIMIT as i32 {
            assert_eq!(t.install(file(&p), false, LIMIT), Ok(fd));
        }
        assert_eq!(t.install(file(&p), false, LIMIT), Err(Errno::EMFILE));
        for fd in [70, 3, 5] {
            t.close(fd).unwrap();
        }
        assert_eq!(t.close(3).err(), Some(Errno::EBADF));
        assert_eq!(t.dup(0, LIMIT), Ok(3));
        assert_eq!(t.dup_from(0, 6, true, LIMIT), Ok(70));
        assert_eq!(t.cloexec(70), Ok(true));
        assert_eq!(t.install(file(&p), false, LIMIT), Ok(5));
        assert_eq!(t.dup_from(0, 100, false, LIMIT), Err(Errno::EINVAL));
        for fd in [-1, i32::MIN, 100, i32::MAX] {
            assert_eq!(t.get(fd).err(), Some(Errno::EBADF));
            assert_eq!(t.close(fd).err(), Some(Errno::EBADF));
        }
    }

    #[test]
    fn dup3_replaces() {
        let p = Process::new();
        let t = FdTable::new();
        let a = file(&p);
        t.install(a.clone(), true, LIMIT).unwrap();
        assert!(t.dup3(0, 40, true, LIMIT).unwrap().is_none());
        assert!(Arc::ptr_eq(&t.get(40).unwrap(), &a));
        t.install(file(&p), false, LIMIT).unwrap();
        assert!(Arc::ptr_eq(&t.dup3(1, 40, false, LIMIT).unwrap().unwrap(), &a));
        assert_eq!(t.cloexec(40), Ok(false));
        assert_eq!(t.dup3(1, 1, false, LIMIT).err(), Some(Errno::EINVAL));
        assert_eq!(t.dup3(9, 2, false, LIMIT).err(), Some(Errno::EBADF));
        assert_eq!(t.dup3(1, 100, false, LIMIT).err(), Some(Errno::EBADF));
        assert_eq!(t.dup3(1, -1, false, LIMIT).err(), Some(Errno::EBADF));
    }

    #[test]
    fn exec_fork_and_ranges() {
        let p = Process::new();
        let t = FdTable::new();
        for fd in 0..80 {
            t.install(file(&p), fd % 3 == 0, LIMIT).unwrap();
        }
        let copy = t.try_clone().unwrap();
        let mut closed = 0;
        copy.close_on_exec(|_| closed += 1);
        assert_eq!(closed, 27);
        assert_eq!(copy.next_open(0), Some(1));
        assert!(t.get(0).is_ok(), "the copy is another table");
        t.close_range(70, u32::MAX, 0, drop).unwrap();
        assert_eq!(t.next_open(70), None);
        t.close_range(0, 9, CLOSE_RANGE_CLOEXEC, drop).unwrap();
        assert_eq!((t.cloexec(9), t.cloexec(10)), (Ok(true), Ok(false)));
        assert_eq!(t.close_range(2, 1, 0, drop), Err(Errno::EINVAL));
        closed = 0;
        t.close_all(|_| closed += 1);
        assert_eq!((closed, t.next_open(0)), (70, None));
        assert_eq!(t.install_pair(file(&p), file(&p), true, LIMIT), Ok((0, 1)));
        assert_eq!(t.install_pair(file(&p), file(&p), true, 3).err(), Some(Errno::EMFILE));
        assert!(t.get(2).is_err(), "both or neither");
    }
}
