//! `status` and `limits`: for people.

use core::fmt::Write;

use hal::addr::PAGE_SIZE;
use uapi::resource::{RLIM_INFINITY, RLIMIT_SIGPENDING};

use super::numbers::dispositions;
use super::text::Text;
use super::{Subject, name};
use crate::process::flag;

/// proc_pid_status(5).
pub(super) fn status(subject: &Subject, tid: u32, out: &mut Text<'_>) {
    let process = &subject.process;
    let thread = subject.thread.as_deref();
    let cred = process.credentials();
    let state = match subject.letter() {
        b'R' => "R (running)",
        b'S' => "S (sleeping)",
        b'D' => "D (disk sleep)",
        b'T' => "T (stopped)",
        _ => "Z (zombie)",
    };
    out.bytes(b"Name:\t");
    out.bytes(&name(subject));
    out.bytes(b"\n");
    if let Some(fs) = thread.and_then(|t| t.fs_slot().get()) {
        out.line(format_args!("Umask:\t{:04o}", fs.umask()));
    }
    out.line(format_args!("State:\t{state}\nTgid:\t{}\nNgid:\t0\nPid:\t{tid}", process.tgid));
    out.line(format_args!("PPid:\t{}\nTracerPid:\t0", process.ppid()));
    out.line(format_args!("Uid:\t{}\t{}\t{}\t{}", cred.uid, cred.euid, cred.suid, cred.fsuid));
    out.line(format_args!("Gid:\t{}\t{}\t{}\t{}", cred.gid, cred.egid, cred.sgid, cred.fsgid));
    out.line(format_args!("FDSize:\t{}", thread.and_then(|t| t.files_slot().get()).map_or(0, |f| f.slots())));
    out.bytes(b"Groups:\t");
    for group in cred.groups.iter() {
        let _ = write!(out, "{group} ");
    }
    out.bytes(b"\n");
    if let Some(mm) = process.mm() {
        memory(&mm.usage(), out);
    }
    out.line(format_args!("Threads:\t{}", process.thread_count().max(1)));
    signals(subject, out);
    // The bounding set is everything, the ambient one nothing.
    let cap = [("Inh", cred.inheritable), ("Prm", cred.permitted), ("Eff", cred.effective), ("Bnd", fs::cap::ALL)];
    for (name, set) in cap.into_iter().chain([("Amb", 0)]) {
        out.line(format_args!("Cap{name}:\t{set:016x}"));
    }
    out.line(format_args!("NoNewPrivs:\t{}\nSeccomp:\t0", u8::from(process.has_flag(flag::NO_NEW_PRIVS))));
    let harts = hal::hart::online_mask() & thread.map_or(usize::MAX, |t| t.sched.affinity());
    out.line(format_args!("Cpus_allowed:\t{harts:x}"));
    out.bytes(b"Cpus_allowed_list:\t");
    list(harts, out);
    out.bytes(b"\n");
    let usage = thread.map(|t| t.usage()).unwrap_or_default();
    out.line(format_args!("voluntary_ctxt_switches:\t{}", usage.voluntary));
    out.line(format_args!("nonvoluntary_ctxt_switches:\t{}", usage.involuntary));
}

fn memory(usage: &mm::Usage, out: &mut Text<'_>) {
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
        ("VmExe", usage.text),
        ("VmLib", 0),
        ("VmPTE", usage.tables),
        ("VmSwap", 0),
    ];
    for (name, pages) in pages {
        out.line(format_args!("{name}:\t{:8} kB", pages * (PAGE_SIZE / 1024)));
    }
}

fn signals(subject: &Subject, out: &mut Text<'_>) {
    let process = &subject.process;
    let thread = subject.thread.as_deref();
    let (ignored, caught) = dispositions(subject);
    out.line(format_args!("SigQ:\t0/{}", process.limit(RLIMIT_SIGPENDING)));
    let sets = [
        ("SigPnd", thread.map_or(0, |t| t.signals.pending())),
        ("ShdPnd", process.signals.pending()),
        ("SigBlk", thread.map_or(0, |t| t.signals.blocked())),
        ("SigIgn", ignored),
        ("SigCgt", caught),
    ];
    for (name, set) in sets {
        out.line(format_args!("{name}:\t{set:016x}"));
    }
}

/// A set of harts as ranges: `0-3,5`.
fn list(set: usize, out: &mut Text<'_>) {
    let mut rest = set;
    let mut comma = "";
    while rest != 0 {
        let first = rest.trailing_zeros();
        let len = (!(rest >> first)).trailing_zeros();
        let last = first + len - 1;
        let _ = if len == 1 { write!(out, "{comma}{first}") } else { write!(out, "{comma}{first}-{last}") };
        rest &= usize::MAX.checked_shl(last + 1).unwrap_or(0);
        comma = ",";
    }
}

/// proc_pid_limits(5).
pub(super) fn limits(subject: &Subject, out: &mut Text<'_>) {
    const ROWS: [(&str, &str); 16] = [
        ("Max cpu time", "seconds"),
        ("Max file size", "bytes"),
        ("Max data size", "bytes"),
        ("Max stack size", "bytes"),
        ("Max core file size", "bytes"),
        ("Max resident set", "bytes"),
        ("Max processes", "processes"),
        ("Max open files", "files"),
        ("Max locked memory", "bytes"),
        ("Max address space", "bytes"),
        ("Max file locks", "locks"),
        ("Max pending signals", "signals"),
        ("Max msgqueue size", "bytes"),
        ("Max nice priority", ""),
        ("Max realtime priority", ""),
        ("Max realtime timeout", "us"),
    ];
    out.line(format_args!("{:<25} {:<20} {:<20} {:<10}", "Limit", "Soft Limit", "Hard Limit", "Units"));
    for (resource, (name, unit)) in ROWS.into_iter().enumerate() {
        let limit = subject.process.limits(resource).unwrap_or_default();
        let _ = write!(out, "{name:<25} ");
        for value in [limit.rlim_cur, limit.rlim_max] {
            let _ = match value {
                RLIM_INFINITY => write!(out, "{:<20} ", "unlimited"),
                value => write!(out, "{value:<20} "),
            };
        }
        out.line(format_args!("{unit:<10}"));
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::String;

    #[test]
    fn harts_are_listed_in_ranges() {
        let text = |set| {
            let mut out = std::vec::Vec::new();
            list(set, &mut Text(&mut out));
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(0b1011_0111), "0-2,4-5,7");
        assert_eq!(text(1), "0");
        assert_eq!(text(0), "");
        assert_eq!(text(usize::MAX), "0-63");
    }
}
