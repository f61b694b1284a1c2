//! A thread: what the scheduler runs and a signal can be aimed at.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use fs::{FdTable, FsContext};
use hal::sync::SpinLock;
use hal::task::Context;
use mm::AddressSpace;

use crate::futex::Waiting;
use crate::process::Process;
use crate::sched::Sched;
use crate::signal::ThreadSignals;
use crate::slot::Slot;
use crate::usage::Counts;
use crate::wait::Completion;

/// Length of a thread's name with its NUL (prctl(2), PR_SET_NAME).
pub const COMM_LEN: usize = 16;

/// How restart_syscall(2) goes on with a call that a stop or an ignored signal interrupted. Times are absolute, in clock
/// ticks, so that nothing is waited for twice.
#[derive(Clone, Copy, Debug, Default)]
pub enum Restart {
    /// Nothing to go on with: EINTR.
    #[default]
    None,
    /// nanosleep(2), clock_nanosleep(2) with a relative time.
    Sleep {
        /// When it ends.
        deadline: u64,
        /// Where the rest goes if it is interrupted again; 0 for nowhere.
        remaining: usize,
    },
    /// futex(2) FUTEX_WAIT with a relative timeout.
    Futex {
        /// The futex word.
        address: usize,
        /// Its operation word, with the flags.
        op: u32,
        /// Expected value.
        value: u32,
        /// The bit set.
        bitset: u32,
        /// When it ends.
        deadline: u64,
    },
    /// poll(2) with a timeout.
    Poll {
        /// The array.
        fds: usize,
        /// Its length.
        count: usize,
        /// When it ends; `u64::MAX` never.
        deadline: u64,
    },
}

/// A thread. Shared by reference count: by its process, by the table of numbers, and by whoever will wake it.
pub struct Thread {
    /// Kernel stack, saved registers and work bits.
    pub context: Context,
    /// The thread group.
    pub process: Arc<Process>,
    pub(crate) tid: AtomicU32,
    /// What the scheduler knows.
    pub sched: Sched,
    /// Mask, pending signals, alternate stack.
    pub signals: ThreadSignals,
    mm: Slot<AddressSpace>,
    files: Slot<FdTable>,
    fs: Slot<FsContext>,
    comm: SpinLock<[u8; COMM_LEN]>,
    /// set_tid_address(2); 0 for none.
    pub clear_child_tid: AtomicUsize,
    /// CLONE_CHILD_SETTID; 0 for none.
    pub(crate) set_child_tid: AtomicUsize,
    /// set_robust_list(2): the head's address; 0 for none.
    pub robust_list: AtomicUsize,
    pub(crate) futex: Waiting,
    restart: SpinLock<Restart>,
    /// Who waits for this thread to leave the address space that it borrowed (vfork(2)).
    pub(crate) vfork: Slot<Completion>,
    /// Pages that its copies have taken from the reserve since it was in user mode.
    pub(crate) borrowed: AtomicU32,
    /// Faults and switches.
    pub counts: Counts,
}

/// What a new thread starts with.
pub(crate) struct Parts {
    pub context: Context,
    pub process: Arc<Process>,
    pub tid: u32,
    pub sched: Sched,
    pub signals: ThreadSignals,
    pub mm: Option<Arc<AddressSpace>>,
    pub files: Option<Arc<FdTable>>,
    pub fs: Option<Arc<FsContext>>,
    pub comm: [u8; COMM_LEN],
    pub clear_child_tid: usize,
    pub set_child_tid: usize,
    pub vfork: Option<Arc<Completion>>,
}

impl Thread {
    pub(crate) fn new(parts: Parts) -> Arc<Self> {
        let thread = Arc::new(Self {
            context: parts.context,
            process: parts.process,
            tid: AtomicU32::new(parts.tid),
            sched: parts.sched,
            signals: parts.signals,
            mm: Slot::new(parts.mm),
            files: Slot::new(parts.files),
            fs: Slot::new(parts.fs),
            comm: SpinLock::new(parts.comm),
            clear_child_tid: AtomicUsize::new(parts.clear_child_tid),
            set_child_tid: AtomicUsize::new(parts.set_child_tid),
            robust_list: AtomicUsize::new(0),
            futex: Waiting::new(),
            restart: SpinLock::new(Restart::None),
            vfork: Slot::new(parts.vfork),
            borrowed: AtomicU32::new(0),
            counts: Counts::default(),
        });
        crate::seam::tie(&thread, &thread.context);
        thread
    }

    /// Its number. The leader's is the process's.
    #[inline]
    pub fn tid(&self) -> u32 {
        self.tid.load(Ordering::Relaxed)
    }

    /// The address space; empty for kernel threads and once the thread has exited.
    #[inline]
    pub fn mm_slot(&self) -> &Slot<AddressSpace> {
        &self.mm
    }

    /// Descriptors; empty once the thread has exited.
    #[inline]
    pub fn files_slot(&self) -> &Slot<FdTable> {
        &self.files
    }

    /// Root, working directory, umask; empty once the thread has exited.
    #[inline]
    pub fn fs_slot(&self) -> &Slot<FsContext> {
        &self.fs
    }

    /// The address space of a running user thread. Panics for a kernel thread.
    #[inline]
    pub fn mm(&self) -> Arc<AddressSpace> {
        self.mm.get().expect("a user thread has an address space")
    }

    /// The descriptors of a running user thread. Panics for a kernel thread.
    #[inline]
    pub fn files(&self) -> Arc<FdTable> {
        self.files.get().expect("a user thread has descriptors")
    }

    /// Root, working directory and umask of a running user thread. Panics for a kernel thread.
    #[inline]
    pub fn fs(&self) -> Arc<FsContext> {
        self.fs.get().expect("a user thread has a working directory")
    }

    /// The name, padded with NUL.
    pub fn comm(&self) -> [u8; COMM_LEN] {
        *self.comm.lock()
    }

    /// Sets the name: cut to 15 bytes.
    pub fn set_comm(&self, name: &[u8]) {
        *self.comm.lock() = comm(name);
    }

    /// Leaves word for restart_syscall(2); the call then gives ERESTART_RESTARTBLOCK.
    pub fn set_restart(&self, restart: Restart) {
        *self.restart.lock() = restart;
    }

    /// Takes the word left for restart_syscall(2).
    pub fn take_restart(&self) -> Restart {
        core::mem::take(&mut *self.restart.lock())
    }
}

/// Names a descriptor table as the owner of record locks: they go with it.
pub fn table_id(files: &Arc<FdTable>) -> u64 {
    Arc::as_ptr(files).addr() as u64
}

/// A name as it is stored: cut to 15 bytes, padded with NUL.
pub fn comm(name: &[u8]) -> [u8; COMM_LEN] {
    let mut comm = [0; COMM_LEN];
    let n = name.len().min(COMM_LEN - 1);
    comm[..n].copy_from_slice(&name[..n]);
    comm
}
