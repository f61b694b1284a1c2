//! Who used what: times, faults, switches (getrusage(2), times(2)).

use core::sync::atomic::{AtomicU64, Ordering};

use mm::AddressSpace;
use uapi::{Rusage, Timeval};

use crate::process::Process;
use crate::thread::Thread;

/// Counters of a thread; only the thread itself counts, anybody may read.
#[derive(Default)]
pub struct Counts {
    minor: AtomicU64,
    major: AtomicU64,
    voluntary: AtomicU64,
    involuntary: AtomicU64,
    /// Largest resident set of address spaces that it has left, in KiB.
    peak: AtomicU64,
}

fn bump(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

impl Counts {
    /// A fault that needed no input.
    #[inline]
    pub fn minor_fault(&self) {
        bump(&self.minor);
    }

    /// A fault that read from a device.
    pub fn major_fault(&self) {
        bump(&self.major);
    }

    #[inline]
    pub(crate) fn switched(&self, voluntary: bool) {
        bump(if voluntary { &self.voluntary } else { &self.involuntary });
    }
}

/// Resources used, in sums that can be added. Times are in clock ticks.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Time run. The kernel's own share is not measured: a system call reads no clock.
    pub time: u64,
    /// Faults without input.
    pub minor: u64,
    /// Faults with input.
    pub major: u64,
    /// Switches because the thread waited.
    pub voluntary: u64,
    /// Switches because another should run.
    pub involuntary: u64,
    /// Largest resident set, in KiB.
    pub max_rss: u64,
}

impl Usage {
    /// Adds `other`: all but the resident set, of which the larger counts.
    pub fn add(&mut self, other: &Self) {
        self.time += other.time;
        self.minor += other.minor;
        self.major += other.major;
        self.voluntary += other.voluntary;
        self.involuntary += other.involuntary;
        self.max_rss = self.max_rss.max(other.max_rss);
    }

    /// Nanoseconds run.
    pub fn ns(&self) -> u64 {
        hal::time::ns(self.time)
    }

    /// In the form of getrusage(2).
    pub fn rusage(&self) -> Rusage {
        let ns = self.ns();
        Rusage {
            ru_utime: Timeval { tv_sec: (ns / 1_000_000_000) as i64, tv_usec: (ns % 1_000_000_000 / 1000) as i64 },
            ru_maxrss: self.max_rss as i64,
            ru_minflt: self.minor as i64,
            ru_majflt: self.major as i64,
            ru_nvcsw: self.voluntary as i64,
            ru_nivcsw: self.involuntary as i64,
            ..Rusage::default()
        }
    }
}

fn peak(mm: &AddressSpace) -> u64 {
    (mm.rss() * (hal::addr::PAGE_SIZE / 1024)) as u64
}

impl Thread {
    /// What this thread has used so far.
    pub fn usage(&self) -> Usage {
        Usage {
            time: self.time_run(),
            minor: self.counts.minor.load(Ordering::Relaxed),
            major: self.counts.major.load(Ordering::Relaxed),
            voluntary: self.counts.voluntary.load(Ordering::Relaxed),
            involuntary: self.counts.involuntary.load(Ordering::Relaxed),
            max_rss: self
                .counts
                .peak
                .load(Ordering::Relaxed)
                .max(self.mm_slot().try_with(|mm| mm.map_or(0, |mm| peak(mm))).unwrap_or(0)),
        }
    }

    /// Remembers how large the address space was that the thread leaves.
    pub(crate) fn note_peak(&self, mm: &AddressSpace) {
        self.counts.peak.fetch_max(peak(mm), Ordering::Relaxed);
    }
}

/// What a process remembers of threads and children that are gone.
#[derive(Default)]
pub(crate) struct Accounts {
    pub gone: Usage,
    pub children: Usage,
}

impl Process {
    /// RUSAGE_SELF: all threads, those that are gone included.
    pub fn usage(&self) -> Usage {
        let mut sum = self.accounts.lock().gone;
        self.for_each_thread(|thread| sum.add(&thread.usage()));
        sum
    }

    /// Clock ticks that all threads have run, those that are gone included: what timers ask for, in a handler.
    pub(crate) fn time_run(&self) -> u64 {
        let mut sum = self.accounts.lock().gone.time;
        self.for_each_thread(|thread| sum += thread.time_run());
        sum
    }

    /// RUSAGE_CHILDREN: children that were waited for, and theirs.
    pub fn children_usage(&self) -> Usage {
        self.accounts.lock().children
    }
}
