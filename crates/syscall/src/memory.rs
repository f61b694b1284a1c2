//! Memory: mmap(2) and its family, mlock(2), membarrier(2), riscv_flush_icache(2).

use alloc::sync::Arc;
use core::fmt;

use fs::{File, cap};
use hal::addr::{PAGE_SIZE, UserAddr, page_up};
use hal::hart;
use hal::mem::layout::user_top;
use mm::space::MIN_ADDR;
use mm::{AddressSpace, Limits, MapRequest, MappedFile, Source};
use task::{Process, current};
use uapi::mman::*;
use uapi::resource::{RLIM_INFINITY, RLIMIT_AS, RLIMIT_DATA, RLIMIT_MEMLOCK, RLIMIT_STACK};
use uapi::{Errno, Result};

use crate::caller::{credentials, file, need};
use crate::table::calls;

calls! {
    fast {
        BRK = brk;
        MMAP = mmap, lacks "MAP_HUGETLB";
        MUNMAP = munmap;
        MPROTECT = mprotect, lacks "PROT_GROWSDOWN";
        MREMAP = mremap;
        MADVISE = madvise, lacks "advice on huge pages";
        MSYNC = msync;
        MINCORE = mincore;
        MLOCK = mlock, lacks "nothing is ever swapped out, so only the arguments and the limit count";
        MLOCK2 = mlock2, lacks "as mlock";
        MUNLOCK = munlock;
        MLOCKALL = mlockall, lacks "as mlock";
        MUNLOCKALL = munlockall;
        MEMBARRIER = membarrier, lacks "restartable sequences";
        RISCV_FLUSH_ICACHE = riscv_flush_icache;
    }
    absent {
        RSEQ = ENOSYS, "as a kernel without it";
        USERFAULTFD = ENOSYS, "as a kernel without it";
    }
}

/// Runs `f` on the running thread's address space, without counting a reference.
fn with_mm<R>(f: impl FnOnce(&AddressSpace) -> Result<R>) -> Result<R> {
    f(&current().mm())
}

/// A resource limit in bytes.
fn bytes(process: &Process, resource: usize) -> usize {
    match process.limit(resource) {
        RLIM_INFINITY => usize::MAX,
        limit => usize::try_from(limit).unwrap_or(usize::MAX),
    }
}

/// The limits of a process that bound its address space.
pub(crate) fn limits(process: &Process) -> Limits {
    Limits {
        stack: bytes(process, RLIMIT_STACK),
        data: bytes(process, RLIMIT_DATA),
        address_space: bytes(process, RLIMIT_AS),
    }
}

/// An open file as its mappings know it.
pub(crate) struct Mapped(pub Arc<File>);

impl MappedFile for Mapped {
    fn write_path(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        let Some(path) = self.0.path() else { return Ok(()) };
        let root = current().fs_slot().with(|fs| fs.map(|fs| fs.root()));
        let Some(text) = root.and_then(|root| path.display(&root).ok()) else { return Ok(()) };
        text.utf8_chunks().try_for_each(|chunk| out.write_str(chunk.valid()))
    }

    fn dev_ino(&self) -> (u64, u64) {
        (self.0.inode().dev, self.0.inode().ino)
    }
}

fn brk(end: usize) -> usize {
    current().mm().brk(end)
}

/// `EPERM` for an address below what a program without privilege may map, if the caller is one.
pub(crate) fn may_map_at(addr: usize) -> Result<()> {
    if addr < MIN_ADDR { need(cap::SYS_RAWIO) } else { Ok(()) }
}

/// mmap(2) of a file: `EACCES` when it is not open the right way, `ENODEV` when it cannot be mapped.
fn file_source(file: Arc<File>, prot: u32, flags: u32, offset: usize) -> Result<(Source, bool)> {
    let shared = matches!(flags & MAP_TYPE, MAP_SHARED | MAP_SHARED_VALIDATE);
    if file.is_path_only() {
        return Err(Errno::EBADF);
    }
    if shared && prot & PROT_WRITE != 0 && !file.writable() || !file.readable() {
        return Err(Errno::EACCES);
    }
    if let Some(path) = file.path()
        && prot & PROT_EXEC != 0
        && path.mount.flags() & uapi::fs::MS_NOEXEC != 0
    {
        return Err(Errno::EPERM);
    }
    if file.mmap_is_anonymous() {
        return Ok((Source::Anonymous, true));
    }
    let object = file.mmap_object()?;
    let may_write = file.writable();
    Ok((Source::Object { object, offset, file: Some(Arc::new(Mapped(file))) }, may_write))
}

fn mmap(addr: usize, len: usize, prot: u32, flags: u32, fd: i32, offset: usize) -> Result<usize> {
    if !offset.is_multiple_of(PAGE_SIZE) {
        return Err(Errno::EINVAL);
    }
    if flags & MAP_HUGETLB != 0 {
        // As a system with no huge pages set aside.
        return Err(if flags & MAP_ANONYMOUS != 0 { Errno::ENOMEM } else { Errno::EINVAL });
    }
    let file = if flags & MAP_ANONYMOUS != 0 { None } else { Some(file(fd)?) };
    let pages = page_up(len).ok_or(Errno::ENOMEM)?;
    if pages == 0 {
        return Err(Errno::EINVAL);
    }
    if flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) != 0 && addr.is_multiple_of(PAGE_SIZE) && pages <= user_top() {
        may_map_at(addr)?;
    }
    let (source, may_write) = match file {
        None => (Source::Anonymous, true),
        Some(file) => {
            // What is wrong with the call comes before what is wrong with the file.
            offset.checked_add(pages).filter(|&end| end <= isize::MAX as usize).ok_or(Errno::EOVERFLOW)?;
            if flags & MAP_SYNC != 0 && flags & MAP_TYPE == MAP_SHARED_VALIDATE {
                return Err(Errno::EOPNOTSUPP);
            }
            file_source(file, prot, flags, offset)?
        }
    };
    with_mm(|mm| mm.mmap(MapRequest { addr, len, prot, flags, source, may_write }))
}

fn munmap(addr: usize, len: usize) -> Result<()> {
    with_mm(|mm| mm.munmap(addr, len))
}

fn mprotect(addr: usize, len: usize, prot: u32) -> Result<()> {
    with_mm(|mm| mm.mprotect(addr, len, prot))
}

fn mremap(old: usize, old_len: usize, new_len: usize, flags: u32, new: usize) -> Result<usize> {
    if flags & MREMAP_FIXED != 0 && new.is_multiple_of(PAGE_SIZE) {
        may_map_at(new)?;
    }
    with_mm(|mm| mm.mremap(old, old_len, new_len, flags, new))
}

fn madvise(addr: usize, len: usize, advice: u32) -> Result<()> {
    with_mm(|mm| mm.madvise(addr, len, advice))
}

fn msync(addr: usize, len: usize, flags: u32) -> Result<()> {
    with_mm(|mm| mm.msync(addr, len, flags))
}

fn mincore(addr: usize, len: usize, vec: UserAddr) -> Result<()> {
    with_mm(|mm| mm.mincore(addr, len, vec))
}

/// `EPERM` or `ENOMEM` when `len` bytes may not be locked.
fn may_lock(len: usize) -> Result<()> {
    /// CAP_IPC_LOCK of capabilities(7).
    const IPC_LOCK: u32 = 14;
    let limit = bytes(&current().process, RLIMIT_MEMLOCK);
    if len <= limit || credentials().has(IPC_LOCK) {
        return Ok(());
    }
    Err(if limit == 0 { Errno::EPERM } else { Errno::ENOMEM })
}

/// The pages that `len` bytes at `addr` touch: the first one's address, and their length. As in Linux, what reaches the end
/// of all addresses is no page.
fn whole_pages(addr: usize, len: usize) -> (usize, usize) {
    let within = addr % PAGE_SIZE;
    (addr - within, page_up(len.wrapping_add(within)).unwrap_or(0))
}

fn mlock(addr: usize, len: usize) -> Result<()> {
    mlock2(addr, len, 0)
}

fn mlock2(addr: usize, len: usize, flags: u32) -> Result<()> {
    if flags & !MLOCK_ONFAULT != 0 {
        return Err(Errno::EINVAL);
    }
    let (start, len) = whole_pages(addr, len);
    may_lock(len)?;
    with_mm(|mm| mm.lock(start, len, flags & MLOCK_ONFAULT == 0))
}

fn munlock(addr: usize, len: usize) -> Result<()> {
    let (start, len) = whole_pages(addr, len);
    with_mm(|mm| mm.lock(start, len, false))
}

fn mlockall(flags: u32) -> Result<()> {
    if flags == 0 || flags & !(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0 || flags == MCL_ONFAULT {
        return Err(Errno::EINVAL);
    }
    let used = current().mm().usage().total * PAGE_SIZE;
    may_lock(if flags & MCL_CURRENT != 0 { used } else { 0 })
}

fn munlockall() {}

/// membarrier(2). A hart that enters or leaves the kernel, or runs another program, orders its accesses anyway; those
/// that run programs are made to by an interrupt that fetches afresh, which orders more than was asked for.
fn membarrier(command: i32, flags: u32, _cpu: i32) -> Result<u32> {
    const SUPPORTED: u32 = MEMBARRIER_CMD_GLOBAL
        | MEMBARRIER_CMD_GLOBAL_EXPEDITED
        | MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED
        | MEMBARRIER_CMD_PRIVATE_EXPEDITED
        | MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED
        | MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE
        | MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE;
    const REGISTER: u32 = MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED
        | MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED
        | MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE;
    let command = u32::try_from(command).map_err(|_| Errno::EINVAL)?;
    if flags != 0 {
        return Err(Errno::EINVAL);
    }
    match command {
        MEMBARRIER_CMD_QUERY => Ok(SUPPORTED),
        one if one.is_power_of_two() && one & REGISTER != 0 => Ok(0),
        MEMBARRIER_CMD_PRIVATE_EXPEDITED | MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE => {
            current().mm().synchronize();
            Ok(0)
        }
        one if one.is_power_of_two() && one & SUPPORTED != 0 => {
            hal::mem::tlb::synchronize(hart::online_mask() as u64);
            Ok(0)
        }
        _ => Err(Errno::EINVAL),
    }
}

/// riscv_flush_icache(2): the range does not matter. Harts that do not run the program now fetch afresh when they do.
fn riscv_flush_icache(_start: usize, _end: usize, flags: usize) -> Result<()> {
    if flags & !SYS_RISCV_FLUSH_ICACHE_LOCAL != 0 {
        return Err(Errno::EINVAL);
    }
    current().mm().flush_icache();
    Ok(())
}
