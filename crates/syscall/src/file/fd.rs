//! Descriptors and what hangs on them: dup(2), fcntl(2), ioctl(2), pipe2(2), locks, getdents64(2), memfd_create(2).

use fs::lock::{self, Owner};
use fs::{File, vfs};
use hal::addr::UserAddr;
use hal::user::{self, OutBuf};
use task::{Sleep, current, table_id, wait_on};
use uapi::fs::*;
use uapi::ioctl::*;
use uapi::open::*;
use uapi::{Errno, Flock, Result};

use crate::caller::{Me, credentials, descriptor_limit, file, files, get, put, unshare_files};
use crate::table::calls;

calls! {
    fast {
        CLOSE = close;
        CLOSE_RANGE = close_range;
        DUP = dup;
        DUP3 = dup3;
        FCNTL = fcntl, lacks "leases, seals, notification, owners and signals for asynchronous input";
        IOCTL = ioctl;
        PIPE2 = pipe2, lacks "O_DIRECT";
        FLOCK = flock;
        GETDENTS64 = getdents64;
        FALLOCATE = fallocate, lacks "modes beyond KEEP_SIZE and PUNCH_HOLE";
        MEMFD_CREATE = memfd_create, lacks "sealing, huge pages";
    }
    absent {
        VHANGUP = EPERM, "as without the capability";
        INOTIFY_INIT1 = ENOSYS, "later";
        EPOLL_CREATE1 = ENOSYS, "later";
        EVENTFD2 = ENOSYS, "later";
        SIGNALFD4 = ENOSYS, "later";
        TIMERFD_CREATE = ENOSYS, "later";
        IO_SETUP = ENOSYS, "as a kernel without it";
        IO_URING_SETUP = ENOSYS, "as a kernel without it";
    }
}

fn close(fd: i32) -> Result<()> {
    let files = files();
    let file = files.close(fd)?;
    lock::close_file(file, table_id(&files));
    Ok(())
}

fn close_range(first: u32, last: u32, flags: u32) -> Result<()> {
    if flags & !(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC) != 0 || first > last {
        return Err(Errno::EINVAL);
    }
    let table = if flags & CLOSE_RANGE_UNSHARE != 0 { unshare_files()? } else { files() };
    let id = table_id(&table);
    table.close_range(first, last, flags, |file| lock::close_file(file, id))
}

fn dup(fd: i32) -> Result<i32> {
    files().dup(fd, descriptor_limit())
}

fn dup3(old: i32, new: i32, flags: u32) -> Result<i32> {
    if flags & !O_CLOEXEC != 0 {
        return Err(Errno::EINVAL);
    }
    let files = files();
    if let Some(before) = files.dup3(old, new, flags != 0, descriptor_limit())? {
        lock::close_file(before, table_id(&files));
    }
    Ok(new)
}

fn fcntl(fd: i32, command: u32, arg: usize) -> Result<usize> {
    let files = files();
    let file = files.get(fd)?;
    let allowed_on_path = matches!(command, F_DUPFD | F_DUPFD_CLOEXEC | F_GETFD | F_SETFD | F_GETFL);
    if file.is_path_only() && !allowed_on_path {
        return Err(Errno::EBADF);
    }
    match command {
        F_DUPFD | F_DUPFD_CLOEXEC => {
            let cloexec = command == F_DUPFD_CLOEXEC;
            files.dup_from(fd, arg as i32, cloexec, descriptor_limit()).map(|fd| fd as usize)
        }
        F_GETFD => files.cloexec(fd).map(usize::from),
        F_SETFD => files.set_cloexec(fd, arg as u32 & FD_CLOEXEC != 0).map(|()| 0),
        F_GETFL => Ok(file.flags() as usize),
        F_SETFL => set_flags(&file, arg as u32).map(|()| 0),
        F_GETLK | F_SETLK | F_SETLKW | F_OFD_GETLK | F_OFD_SETLK | F_OFD_SETLKW => {
            record_lock(&file, table_id(&files), command, UserAddr(arg)).map(|()| 0)
        }
        F_SETPIPE_SZ => file.as_pipe().ok_or(Errno::EBADF)?.set_size(&credentials(), arg),
        F_GETPIPE_SZ => Ok(file.as_pipe().ok_or(Errno::EBADF)?.size()),
        F_GETOWN | F_GETSIG => Ok(0),
        F_GETLEASE => Ok(F_UNLCK as usize),
        // Files of tmpfs can be sealed in principle; all are sealed against that.
        F_GET_SEALS if file.inode().file_type() == S_IFREG && file.mmap_object().is_ok() => Ok(F_SEAL_SEAL),
        F_ADD_SEALS if file.inode().file_type() == S_IFREG => Err(Errno::EPERM),
        _ => Err(Errno::EINVAL),
    }
}

/// fcntl(2): no seal can be added.
const F_SEAL_SEAL: usize = 1;

fn set_flags(file: &File, flags: u32) -> Result<()> {
    let new_noatime = flags & O_NOATIME != 0 && file.flags() & O_NOATIME == 0;
    if new_noatime && !credentials().owns(file.inode().uid()) {
        return Err(Errno::EPERM);
    }
    file.set_flags(flags);
    Ok(())
}

fn record_lock(file: &File, table: u64, command: u32, at: UserAddr) -> Result<()> {
    let wanted: Flock = get(at)?;
    let of_file = matches!(command, F_OFD_GETLK | F_OFD_SETLK | F_OFD_SETLKW);
    if of_file && wanted.l_pid != 0 {
        return Err(Errno::EINVAL);
    }
    let owner = if of_file {
        Owner::Description(file.lock_owner())
    } else {
        Owner::Process { table, pid: current().process.tgid }
    };
    match command {
        F_GETLK | F_OFD_GETLK => put(at, &lock::get_lock(file, owner, &wanted)?),
        F_SETLK | F_OFD_SETLK => lock::set_lock(file, owner, &wanted),
        _ => lock_waiting(true, || lock::set_lock(file, owner, &wanted)),
    }
}

/// Tries to lock, and with `wait` again whenever some lock is released.
fn lock_waiting(wait: bool, mut attempt: impl FnMut() -> Result<()>) -> Result<()> {
    match attempt() {
        Err(Errno::EAGAIN) if wait => {}
        result => return result,
    }
    wait_on(lock::wait_queue(), Sleep::Interruptible, None, || match attempt() {
        Err(Errno::EAGAIN) => None,
        result => Some(result),
    })?
}

fn flock(fd: i32, operation: u32) -> Result<()> {
    let file = file(fd)?;
    if file.is_path_only() {
        return Err(Errno::EBADF);
    }
    lock_waiting(operation & LOCK_NB == 0, || lock::flock(&file, operation))
}

/// ioctl(2): what works on every descriptor is done here, the rest by the file.
fn ioctl(fd: i32, request: u32, arg: usize) -> Result<usize> {
    let file = file(fd)?;
    if file.is_path_only() {
        return Err(Errno::EBADF);
    }
    match request {
        FIOCLEX => files().set_cloexec(fd, true).map(|()| 0),
        FIONCLEX => files().set_cloexec(fd, false).map(|()| 0),
        FIONBIO => {
            file.set_flag(O_NONBLOCK, get::<i32>(UserAddr(arg))? != 0);
            Ok(0)
        }
        FIOASYNC if get::<i32>(UserAddr(arg))? == 0 => Ok(0),
        FIOASYNC => Err(Errno::ENOTTY),
        _ => file.ioctl(request, arg),
    }
}

fn pipe2(fds: UserAddr, flags: u32) -> Result<()> {
    let (reader, writer) = fs::pipe::pipe2(&credentials(), flags)?;
    let files = files();
    let pair = files.install_pair(reader, writer, flags & O_CLOEXEC != 0, descriptor_limit())?;
    let copied = put(fds, &[pair.0, pair.1]);
    if copied.is_err() {
        for fd in [pair.0, pair.1] {
            drop(files.close(fd));
        }
    }
    copied
}

fn getdents64(fd: i32, buf: UserAddr, size: u32) -> Result<usize> {
    let file = file(fd)?;
    if file.is_path_only() {
        return Err(Errno::EBADF);
    }
    vfs::getdents64(&file, &mut OutBuf::User(buf, (size as usize).min(i32::MAX as usize)))
}

fn fallocate(fd: i32, mode: u32, offset: i64, len: i64) -> Result<()> {
    file(fd)?.allocate(mode, offset, len)
}

fn memfd_create(name: UserAddr, flags: u32) -> Result<i32> {
    let mut buf = [0; NAME_MAX + 1];
    let len = match user::copy_in_str(&mut buf, name) {
        Err(Errno::ENAMETOOLONG) => return Err(Errno::EINVAL),
        len => len?,
    };
    let file = fs::tmpfs::memfd_create(&credentials(), buf.get(..len).unwrap_or_default(), flags)?;
    Me::new().install(file, flags & MFD_CLOEXEC != 0)
}
