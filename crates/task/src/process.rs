//! A process: a thread group, and what its threads share whatever clone(2) was asked for.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use fs::Credentials;
use hal::sync::{SpinGuard, SpinLock, WaitQueue};
use mm::AddressSpace;
use uapi::resource::*;
use uapi::{Errno, Rlimit64};

use crate::cputimer::CpuTimers;
use crate::itimer::Itimer;
use crate::signal::Group;
use crate::thread::{COMM_LEN, Thread};
use crate::tree::Tree;
use crate::usage::Accounts;

/// What a wait(2) of the parent can find.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum State {
    /// It has threads.
    Alive = 0,
    /// All threads are gone; the status waits for the parent.
    Zombie = 1,
    /// The parent has the status, or did not want it.
    Reaped = 2,
}

/// A soft and a hard limit; reading the soft one is a load.
struct Limit {
    soft: AtomicU64,
    hard: AtomicU64,
}

/// A process.
pub struct Process {
    /// Its number, and that of its first thread.
    pub tgid: u32,
    pub(crate) ppid: AtomicU32,
    /// The signal that tells the parent of the end; 0 for none.
    pub(crate) exit_signal: AtomicU32,
    pub(crate) threads: SpinLock<Vec<Arc<Thread>>>,
    /// Woken when a thread leaves.
    pub(crate) thread_left: WaitQueue,
    /// Actions, shared pending signals, stops and exits of the group.
    pub signals: Group,
    credentials: SpinLock<Arc<Credentials>>,
    /// Woken when a child changes state.
    pub child_wait: WaitQueue,
    limits: [Limit; RLIM_NLIMITS],
    pub(crate) accounts: SpinLock<Accounts>,
    state: AtomicU32,
    /// The status word of wait(2), once it is a zombie.
    pub(crate) exit_status: AtomicI32,
    /// setitimer(2) ITIMER_REAL and alarm(2).
    pub itimer: Itimer,
    /// The name that its last thread had.
    last_comm: SpinLock<[u8; COMM_LEN]>,
    pub(crate) cpu_timers: CpuTimers,
    /// What /proc/PID/exe names.
    pub exe: SpinLock<Option<Arc<fs::File>>>,
    /// When it was made, in clock ticks.
    pub started: u64,
    /// Bits of [`flag`].
    pub(crate) flags: AtomicU32,
    /// oom_score_adj of proc(5), -1000 … 1000.
    pub oom_adjust: AtomicI32,
    /// The signal that tells of the parent's death (prctl(2), PR_SET_PDEATHSIG); 0 for none.
    pub death_signal: AtomicU32,
    /// personality(2): kept across fork and execve.
    pub personality: AtomicU32,
}

/// Bits of a process's flag word.
pub mod flag {
    /// It has called execve(2) since it was forked: setpgid(2) of the parent is too late.
    pub const EXECED: u32 = 1;
    /// PR_SET_NO_NEW_PRIVS.
    pub const NO_NEW_PRIVS: u32 = 2;
    /// PR_SET_CHILD_SUBREAPER.
    pub const SUBREAPER: u32 = 4;
    /// PR_SET_DUMPABLE 0.
    pub const NOT_DUMPABLE: u32 = 8;
}

/// The limits that the first process starts with.
pub fn default_limits() -> [Rlimit64; RLIM_NLIMITS] {
    const INF: u64 = RLIM_INFINITY;
    let pair = |rlim_cur, rlim_max| Rlimit64 { rlim_cur, rlim_max };
    let mut limits = [pair(INF, INF); RLIM_NLIMITS];
    limits[RLIMIT_STACK] = pair(8 << 20, INF);
    limits[RLIMIT_CORE] = pair(0, INF);
    let threads = max_threads() as u64 / 2;
    limits[RLIMIT_NPROC] = pair(threads, threads);
    limits[RLIMIT_NOFILE] = pair(1024, 4096);
    limits[RLIMIT_MEMLOCK] = pair(8 << 20, 8 << 20);
    limits[RLIMIT_SIGPENDING] = pair(1024, 1024);
    limits[RLIMIT_MSGQUEUE] = pair(819_200, 819_200);
    limits[RLIMIT_NICE] = pair(0, 0);
    limits[RLIMIT_RTPRIO] = pair(0, 0);
    limits
}

/// Most threads of any system.
const MAX_THREADS: usize = 16_384;

/// Most threads of this system; clone(2) gives EAGAIN beyond. A thread for every 128 KiB of memory, as Linux has it
/// (an eighth for stacks of 16 KiB): a program that forks without end is refused before memory is gone.
pub fn max_threads() -> usize {
    (hal::mem::frame::total() / 32).clamp(20, MAX_THREADS)
}

static THREADS: AtomicUsize = AtomicUsize::new(0);
static MADE: AtomicU64 = AtomicU64::new(0);

/// What a new process starts with.
pub(crate) struct Parts {
    pub tgid: u32,
    pub ppid: u32,
    pub exit_signal: u32,
    pub signals: Group,
    pub credentials: Arc<Credentials>,
    pub limits: [Rlimit64; RLIM_NLIMITS],
    pub exe: Option<Arc<fs::File>>,
    pub flags: u32,
    pub oom_adjust: i32,
    pub personality: u32,
}

impl Process {
    pub(crate) fn new(parts: Parts) -> Arc<Self> {
        Arc::new(Self {
            tgid: parts.tgid,
            ppid: AtomicU32::new(parts.ppid),
            exit_signal: AtomicU32::new(parts.exit_signal),
            threads: SpinLock::new(Vec::new()),
            thread_left: WaitQueue::new(),
            signals: parts.signals,
            credentials: SpinLock::new(parts.credentials),
            child_wait: WaitQueue::new(),
            limits: parts.limits.map(|l| Limit { soft: l.rlim_cur.into(), hard: l.rlim_max.into() }),
            accounts: SpinLock::new(Accounts::default()),
            state: AtomicU32::new(State::Alive as u32),
            exit_status: AtomicI32::new(0),
            itimer: Itimer::new(),
            last_comm: SpinLock::new([0; COMM_LEN]),
            cpu_timers: CpuTimers::new(),
            exe: SpinLock::new(parts.exe),
            started: hal::time::now(),
            flags: AtomicU32::new(parts.flags),
            oom_adjust: AtomicI32::new(parts.oom_adjust),
            death_signal: AtomicU32::new(0),
            personality: AtomicU32::new(parts.personality),
        })
    }

    /// The parent's number; 0 for the first process.
    #[inline]
    pub fn ppid(&self) -> u32 {
        self.ppid.load(Ordering::Relaxed)
    }

    /// Who it is.
    #[inline]
    pub fn credentials(&self) -> Arc<Credentials> {
        self.credentials.lock().clone()
    }

    /// Becomes someone else.
    pub fn set_credentials(&self, credentials: Arc<Credentials>) {
        let old = core::mem::replace(&mut *self.credentials.lock(), credentials);
        drop(old);
    }

    /// The soft limit of a resource (`RLIMIT_*`); no limit for a number that is none.
    #[inline]
    pub fn limit(&self, resource: usize) -> u64 {
        self.limits.get(resource).map_or(RLIM_INFINITY, |l| l.soft.load(Ordering::Relaxed))
    }

    /// Both limits of a resource.
    pub fn limits(&self, resource: usize) -> Option<Rlimit64> {
        let limit = self.limits.get(resource)?;
        let (soft, hard) = (limit.soft.load(Ordering::Relaxed), limit.hard.load(Ordering::Relaxed));
        Some(Rlimit64 { rlim_cur: soft, rlim_max: hard })
    }

    pub(crate) fn all_limits(&self) -> [Rlimit64; RLIM_NLIMITS] {
        core::array::from_fn(|resource| self.limits(resource).unwrap_or_default())
    }

    /// Sets both limits (prlimit(2)): `EINVAL` when the soft one is above the hard one or there is no such resource,
    /// `EPERM` when the hard one would rise and `privileged` is false.
    pub fn set_limits(&self, resource: usize, new: Rlimit64, privileged: bool) -> Result<(), Errno> {
        let limit = self.limits.get(resource).ok_or(Errno::EINVAL)?;
        if new.rlim_cur > new.rlim_max {
            return Err(Errno::EINVAL);
        }
        if !privileged && new.rlim_max > limit.hard.load(Ordering::Relaxed) {
            return Err(Errno::EPERM);
        }
        limit.hard.store(new.rlim_max, Ordering::Relaxed);
        limit.soft.store(new.rlim_cur, Ordering::Relaxed);
        if resource == RLIMIT_CPU {
            self.follow_cpu_limit();
        }
        Ok(())
    }

    /// Where it stands between birth and reaping.
    pub fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            0 => State::Alive,
            1 => State::Zombie,
            _ => State::Reaped,
        }
    }

    pub(crate) fn set_state(&self, state: State) {
        self.state.store(state as u32, Ordering::Release);
    }

    /// The name of a zombie.
    pub(crate) fn last_comm(&self) -> [u8; COMM_LEN] {
        *self.last_comm.lock()
    }

    /// True for a set flag of [`flag`].
    pub fn has_flag(&self, flag: u32) -> bool {
        self.flags.load(Ordering::Relaxed) & flag != 0
    }

    /// Sets or clears a flag of [`flag`].
    pub fn set_flag(&self, flag: u32, on: bool) {
        if on {
            self.flags.fetch_or(flag, Ordering::Relaxed);
        } else {
            self.flags.fetch_and(!flag, Ordering::Relaxed);
        }
    }

    /// Looks at each thread. The list is locked meanwhile: `look` must not sleep nor take an earlier lock.
    pub fn for_each_thread(&self, mut look: impl FnMut(&Arc<Thread>)) {
        self.threads.lock().iter().for_each(&mut look);
    }

    /// How many threads it has.
    pub fn thread_count(&self) -> usize {
        self.threads.lock().len()
    }

    /// The first thread, or the oldest that is left. None for a zombie.
    pub fn leader(&self) -> Option<Arc<Thread>> {
        self.threads.lock().first().cloned()
    }

    /// The address space of a living process.
    pub fn mm(&self) -> Option<Arc<AddressSpace>> {
        // A slot is waited for with the list unlocked: see `Slot::try_with`.
        let thread = |at: usize| self.threads.lock().get(at).cloned();
        (0..).map_while(thread).find_map(|thread| thread.mm_slot().get())
    }

    /// Adds a thread to the list. `EAGAIN` beyond the system's bound, `ENOMEM` without memory.
    pub(crate) fn admit(&self, thread: &Arc<Thread>) -> Result<(), Errno> {
        let mut threads = self.threads.lock();
        threads.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        let total = THREADS.fetch_add(1, Ordering::Relaxed) + 1;
        let crowded = total > max_threads();
        if crowded || !crate::sched::reserve(total) {
            THREADS.fetch_sub(1, Ordering::Relaxed);
            return Err(if crowded { Errno::EAGAIN } else { Errno::ENOMEM });
        }
        threads.push(thread.clone());
        MADE.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Takes a thread off the list; true when it was the last.
    pub(crate) fn dismiss(&self, thread: &Thread) -> bool {
        let mut threads = self.threads.lock();
        let gone = threads.iter().position(|t| core::ptr::eq(&raw const **t, thread)).map(|at| threads.remove(at));
        THREADS.fetch_sub(usize::from(gone.is_some()), Ordering::Relaxed);
        let last = threads.is_empty();
        drop(threads);
        if last {
            *self.last_comm.lock() = thread.comm();
        }
        last && gone.is_some()
    }
}

/// Threads in the system (sysinfo(2), /proc/loadavg).
pub fn thread_total() -> usize {
    THREADS.load(Ordering::Relaxed)
}

/// Threads ever made, first threads of processes among them (/proc/stat).
pub fn threads_made() -> u64 {
    MADE.load(Ordering::Relaxed)
}

/// The table of numbers with what this kernel puts in it.
pub type Table = Tree<Arc<Thread>, Arc<Process>>;

static TREE: SpinLock<Table> = SpinLock::new(Tree::new());

/// The table of numbers, locked. First in the lock order.
pub fn tree_lock() -> SpinGuard<'static, Table> {
    TREE.lock()
}

/// The process of a number, a zombie included.
pub fn find_process(pid: u32) -> Option<Arc<Process>> {
    TREE.lock().process(pid).cloned()
}

/// The living thread of a number.
pub fn find_thread(tid: u32) -> Option<Arc<Thread>> {
    TREE.lock().thread(tid).cloned()
}

/// Looks at each process, in the order of their numbers, with the table locked.
pub fn for_each_process(mut look: impl FnMut(&Arc<Process>)) {
    TREE.lock().processes().for_each(|(_, node)| look(&node.value));
}

pub use crate::clone::boot;
