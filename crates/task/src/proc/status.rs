//! `status` and `limits`: for people.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;

use fs::Credentials;
use hal::addr::PAGE_SIZE;
use hal::hart;
use uapi::Rlimit64;
use uapi::resource::{RLIM_INFINITY, RLIMIT_SIGPENDING};

use super::Subject;
use super::numbers::code_pages;
use super::text::Text;
use crate::process::{flag, tree_lock};

/// What proc_pid_status(5) shows.
struct Status {
    name: Vec<u8>,
    /// None once the process has no working directory any more.
    umask: Option<u32>,
    state: u8,
    pid: u32,
    tgid: u32,
    ppid: u32,
    pgid: u32,
    sid: u32,
    credentials: Arc<Credentials>,
    descriptors: usize,
    /// None for a zombie: memory use, and pages of the program's own code.
    memory: Option<(mm::Usage, usize)>,
    threads: usize,
    queued: (u32, u64),
    /// Pending for the thread and for the process, blocked, ignored, caught.
    signals: [u64; 5],
    no_new_privs: bool,
    /// The harts it may use, and how many there are.
    harts: usize,
    hart_count: usize,
    switches: (u64, u64),
}

/// proc_pid_status(5).
pub(super) fn status(subject: &Subject, tid: u32, out: &mut Text<'_>) {
    let process = &subject.process;
    let thread = subject.thread.as_deref();
    let (pgid, sid) = tree_lock().node(process.tgid).map_or((0, 0), |n| (n.pgid(), n.sid()));
    let (ignored, caught) = subject.dispositions();
    let own = thread.map_or(0, |t| t.signals.pending());
    let shared = process.signals.pending();
    let usage = thread.map(|t| t.usage()).unwrap_or_default();
    let hart_count = hart::count();
    let all = usize::MAX >> (usize::BITS as usize - hart_count.clamp(1, usize::BITS as usize));
    Status {
        name: subject.name(),
        umask: thread.and_then(|t| t.fs_slot().get()).map(|fs| fs.umask()),
        state: subject.letter(),
        pid: tid,
        tgid: process.tgid,
        ppid: process.ppid(),
        pgid,
        sid,
        credentials: process.credentials(),
        descriptors: thread.and_then(|t| t.files_slot().get()).map_or(0, |files| files.slots()),
        memory: process.mm().map(|mm| (mm.usage(), code_pages(&mm.program()))),
        threads: process.thread_count().max(1),
        queued: (own.count_ones() + shared.count_ones(), process.limit(RLIMIT_SIGPENDING)),
        signals: [own, shared, thread.map_or(0, |t| t.signals.blocked()), ignored, caught],
        no_new_privs: process.has_flag(flag::NO_NEW_PRIVS),
        harts: all & thread.map_or(usize::MAX, |t| t.sched.affinity()),
        hart_count,
        switches: (usage.voluntary, usage.involuntary),
    }
    .write(out);
}

impl Status {
    fn write(&self, out: &mut Text<'_>) {
        let cred = &*self.credentials;
        let state = match self.state {
            b'R' => "R (running)",
            b'S' => "S (sleeping)",
            b'D' => "D (disk sleep)",
            b'T' => "T (stopped)",
            _ => "Z (zombie)",
        };
        out.bytes(b"Name:\t");
        out.escaped(&self.name);
        out.bytes(b"\n");
        if let Some(umask) = self.umask {
            out.line(format_args!("Umask:\t{umask:04o}"));
        }
        out.line(format_args!("State:\t{state}\nTgid:\t{}\nNgid:\t0\nPid:\t{}", self.tgid, self.pid));
        out.line(format_args!("PPid:\t{}\nTracerPid:\t0", self.ppid));
        out.line(format_args!("Uid:\t{}\t{}\t{}\t{}", cred.uid, cred.euid, cred.suid, cred.fsuid));
        out.line(format_args!("Gid:\t{}\t{}\t{}\t{}", cred.gid, cred.egid, cred.sgid, cred.fsgid));
        let _ = write!(out, "FDSize:\t{}\nGroups:\t", self.descriptors);
        for (n, group) in cred.groups.iter().enumerate() {
            let _ = write!(out, "{}{group}", if n == 0 { "" } else { " " });
        }
        out.line(format_args!(" \nNStgid:\t{}\nNSpid:\t{}", self.tgid, self.pid));
        out.line(format_args!("NSpgid:\t{}\nNSsid:\t{}\nKthread:\t0", self.pgid, self.sid));
        if let Some((usage, code)) = &self.memory {
            memory(usage, *code, out);
        }
        out.line(format_args!("Threads:\t{}\nSigQ:\t{}/{}", self.threads, self.queued.0, self.queued.1));
        for (name, set) in ["SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt"].iter().zip(self.signals) {
            out.line(format_args!("{name}:\t{set:016x}"));
        }
        // The bounding set is everything, the ambient one nothing.
        let sets = [cred.inheritable, cred.permitted, cred.effective, fs::cap::ALL, 0];
        for (name, set) in ["Inh", "Prm", "Eff", "Bnd", "Amb"].iter().zip(sets) {
            out.line(format_args!("Cap{name}:\t{set:016x}"));
        }
        out.line(format_args!("NoNewPrivs:\t{}\nSeccomp:\t0\nSeccomp_filters:\t0", u8::from(self.no_new_privs)));
        out.line(format_args!("Speculation_Store_Bypass:\tunknown\nSpeculationIndirectBranch:\tunsupported"));
        let digits = self.hart_count.div_ceil(4);
        out.line(format_args!("Cpus_allowed:\t{:0digits$x}", self.harts));
        out.line(format_args!("Cpus_allowed_list:\t{}", hart::List(self.harts)));
        out.line(format_args!("Mems_allowed:\t1\nMems_allowed_list:\t0"));
        out.line(format_args!("voluntary_ctxt_switches:\t{}", self.switches.0));
        out.line(format_args!("nonvoluntary_ctxt_switches:\t{}", self.switches.1));
    }
}

/// The lines on memory, of which `code` pages are the program's own instructions.
fn memory(usage: &mm::Usage, code: usize, out: &mut Text<'_>) {
    let code = code.min(usage.text);
    let pages = [
        ("VmPeak", usage.total),
        ("VmSize", usage.total),
        ("VmLck", 0),
        ("VmPin", 0),
        ("VmHWM", usage.peak),
        ("VmRSS", usage.resident),
        ("RssAnon", usage.resident.saturating_sub(usage.shared)),
        ("RssFile", usage.shared),
        ("RssShmem", 0),
        ("VmData", usage.data),
        ("VmStk", usage.stack),
        ("VmExe", code),
        ("VmLib", usage.text - code),
        ("VmPTE", usage.tables),
        ("VmSwap", 0),
        ("HugetlbPages", 0),
    ];
    for (name, pages) in pages {
        out.line(format_args!("{name}:\t{:8} kB", pages * (PAGE_SIZE / 1024)));
    }
    out.line(format_args!("CoreDumping:\t0\nTHP_enabled:\t0\nuntag_mask:\t{:#x}", u64::MAX));
}

/// proc_pid_limits(5).
pub(super) fn limits(subject: &Subject, out: &mut Text<'_>) {
    out.line(format_args!("{:<25} {:<20} {:<20} {:<10}", "Limit", "Soft Limit", "Hard Limit", "Units"));
    for (resource, (name, unit)) in LIMITS.into_iter().enumerate() {
        limit(name, unit, subject.process.limits(resource).unwrap_or_default(), out);
    }
}

/// Names and units, in the order of the numbers of resources.
const LIMITS: [(&str, &str); 16] = [
    ("cpu time", "seconds"),
    ("file size", "bytes"),
    ("data size", "bytes"),
    ("stack size", "bytes"),
    ("core file size", "bytes"),
    ("resident set", "bytes"),
    ("processes", "processes"),
    ("open files", "files"),
    ("locked memory", "bytes"),
    ("address space", "bytes"),
    ("file locks", "locks"),
    ("pending signals", "signals"),
    ("msgqueue size", "bytes"),
    ("nice priority", ""),
    ("realtime priority", ""),
    ("realtime timeout", "us"),
];

fn limit(name: &str, unit: &str, limit: Rlimit64, out: &mut Text<'_>) {
    let _ = write!(out, "Max {name:<21} ");
    for value in [limit.rlim_cur, limit.rlim_max] {
        let _ = match value {
            RLIM_INFINITY => write!(out, "{:<20} ", "unlimited"),
            value => write!(out, "{value:<20} "),
        };
    }
    match unit {
        "" => out.bytes(b"\n"),
        unit => out.line(format_args!("{unit:<10}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::written;
    use super::*;

    /// As Linux 6.12 shows it, but for what says other things of the kernel: `THP_enabled`, where files' pages count.
    const LINUX: &str = "Name:\tcat\nUmask:\t0022\nState:\tR (running)\nTgid:\t137\nNgid:\t0\nPid:\t137\nPPid:\t136\n\
        TracerPid:\t0\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nFDSize:\t64\nGroups:\t \nNStgid:\t137\nNSpid:\t137\n\
        NSpgid:\t136\nNSsid:\t136\nKthread:\t0\nVmPeak:\t    1952 kB\nVmSize:\t    1952 kB\nVmLck:\t       0 kB\n\
        VmPin:\t       0 kB\nVmHWM:\t    1228 kB\nVmRSS:\t    1228 kB\nRssAnon:\t      44 kB\nRssFile:\t    1184 kB\n\
        RssShmem:\t       0 kB\nVmData:\t     236 kB\nVmStk:\t     132 kB\nVmExe:\t    1540 kB\nVmLib:\t       4 kB\n\
        VmPTE:\t      36 kB\nVmSwap:\t       0 kB\nHugetlbPages:\t       0 kB\nCoreDumping:\t0\nTHP_enabled:\t0\n\
        untag_mask:\t0xffffffffffffffff\nThreads:\t1\nSigQ:\t0/3749\nSigPnd:\t0000000000000000\n\
        ShdPnd:\t0000000000000000\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nSigCgt:\t0000000000000000\n\
        CapInh:\t0000000000000000\nCapPrm:\t000001ffffffffff\nCapEff:\t000001ffffffffff\nCapBnd:\t000001ffffffffff\n\
        CapAmb:\t0000000000000000\nNoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\n\
        Speculation_Store_Bypass:\tunknown\nSpeculationIndirectBranch:\tunsupported\nCpus_allowed:\t3\n\
        Cpus_allowed_list:\t0-1\nMems_allowed:\t1\nMems_allowed_list:\t0\nvoluntary_ctxt_switches:\t0\n\
        nonvoluntary_ctxt_switches:\t2\n";

    fn cat() -> Status {
        let usage = mm::Usage {
            total: 488,
            resident: 307,
            shared: 296,
            peak: 307,
            text: 386,
            data: 59,
            stack: 33,
            tables: 9,
            ..mm::Usage::default()
        };
        Status {
            name: b"cat".to_vec(),
            umask: Some(0o22),
            state: b'R',
            pid: 137,
            tgid: 137,
            ppid: 136,
            pgid: 136,
            sid: 136,
            credentials: Arc::new(Credentials::root()),
            descriptors: 64,
            memory: Some((usage, 385)),
            threads: 1,
            queued: (0, 3749),
            signals: [0; 5],
            no_new_privs: false,
            harts: 3,
            hart_count: 2,
            switches: (0, 2),
        }
    }

    #[test]
    fn the_lines_of_status_are_those_of_linux() {
        assert_eq!(written(|out| cat().write(out)), LINUX);
    }

    #[test]
    fn a_zombie_has_no_memory_and_names_break_no_line() {
        let groups = Arc::new(std::vec![10, 20]);
        let credentials = Arc::new(Credentials { groups, ..Credentials::user(7, 8) });
        let name = b"a\nb".to_vec();
        let zombie = Status { name, state: b'Z', umask: None, memory: None, credentials, hart_count: 8, ..cat() };
        let text = written(|out| zombie.write(out));
        assert!(text.starts_with("Name:\ta\\nb\nState:\tZ (zombie)\n"), "{text}");
        assert!(!text.contains("Vm") && text.contains("\nGroups:\t10 20 \n"), "{text}");
        assert!(text.contains("\nCpus_allowed:\t03\n"), "{text}");
    }

    #[test]
    fn the_lines_of_limits_are_those_of_linux() {
        let pair = |rlim_cur, rlim_max| Rlimit64 { rlim_cur, rlim_max };
        let line = |n: usize, limits| written(|out| limit(LIMITS[n].0, LIMITS[n].1, limits, out));
        assert_eq!(
            line(0, pair(RLIM_INFINITY, RLIM_INFINITY)),
            "Max cpu time              unlimited            unlimited            seconds   \n"
        );
        assert_eq!(
            line(3, pair(8_388_608, RLIM_INFINITY)),
            "Max stack size            8388608              unlimited            bytes     \n"
        );
        assert_eq!(line(14, pair(0, 0)), "Max realtime priority     0                    0                    \n");
    }
}
