//! `stat`, `statm`, `schedstat`, `oom_score`: numbers for programs.

use alloc::vec::Vec;
use core::fmt::Write;
use core::sync::atomic::Ordering;

use hal::addr::{PAGE_SIZE, page_down};
use uapi::resource::RLIMIT_RSS;
use uapi::time::USER_HZ;

use super::Subject;
use super::text::Text;
use crate::process::{State, flag, tree_lock};

/// Ticks of `USER_HZ` in clock ticks.
fn user_ticks(ticks: u64) -> u64 {
    hal::time::ns(ticks) / (1_000_000_000 / USER_HZ)
}

/// Flags of a task that proc(5) shows: `PF_EXITING`, `PF_FORKNOEXEC`, `PF_RANDOMIZE` of Linux.
const EXITING: u32 = 0x4;
const FORKNOEXEC: u32 = 0x40;
const RANDOMIZE: u32 = 0x40_0000;

/// A line of proc_pid_stat(5), in its order. What Linux always shows as 0 is left out.
#[derive(Default)]
struct Stat {
    tid: u32,
    name: Vec<u8>,
    state: u8,
    ppid: u32,
    pgid: u32,
    sid: u32,
    tty: u64,
    /// -1 without a terminal.
    foreground: i64,
    flags: u32,
    /// Minor and major faults, own and children's: minor, children's minor, major, children's major.
    faults: [u64; 4],
    /// User and system time, own and children's, in units of `USER_HZ`.
    times: [u64; 4],
    priority: i64,
    nice: i64,
    threads: usize,
    started: u64,
    vsize: usize,
    rss: usize,
    rss_limit: u64,
    /// Start and end of the code; start of the stack.
    code: (usize, usize),
    stack: usize,
    /// Pending, blocked, ignored, caught.
    signals: [u64; 4],
    waits: bool,
    exit_signal: i64,
    hart: usize,
    rt_priority: u32,
    policy: u32,
    /// Data, heap's start, arguments, environment.
    data: (usize, usize),
    brk: usize,
    arguments: (usize, usize),
    environment: (usize, usize),
    exit_status: i32,
}

impl Stat {
    fn write(&self, out: &mut Text<'_>) {
        let s = self;
        let _ = write!(out, "{} (", s.tid);
        out.bytes(&s.name);
        let _ = write!(out, ") {} {} {} {} ", char::from(s.state), s.ppid, s.pgid, s.sid);
        let _ = write!(out, "{} {} {} ", s.tty, s.foreground, s.flags);
        for n in s.faults.iter().chain(&s.times) {
            let _ = write!(out, "{n} ");
        }
        let _ = write!(out, "{} {} {} 0 {} ", s.priority, s.nice, s.threads, s.started);
        let _ = write!(out, "{} {} {} ", s.vsize, s.rss, s.rss_limit);
        let _ = write!(out, "{} {} {} 0 0 ", s.code.0, s.code.1, s.stack);
        for set in s.signals {
            let _ = write!(out, "{} ", set & 0x7fff_ffff);
        }
        let _ = write!(out, "{} 0 0 {} {} ", u8::from(s.waits), s.exit_signal, s.hart);
        let _ = write!(out, "{} {} 0 0 0 ", s.rt_priority, s.policy);
        let _ = write!(out, "{} {} {} {} {} ", s.data.0, s.data.1, s.brk, s.arguments.0, s.arguments.1);
        out.line(format_args!("{} {} {}", s.environment.0, s.environment.1, s.exit_status));
    }
}

/// proc_pid_stat(5). Who may not look into the process sees no addresses.
pub(super) fn stat(subject: &Subject, tid: u32, out: &mut Text<'_>) {
    let process = &subject.process;
    let thread = subject.thread.as_deref();
    let whole = tid == process.tgid;
    let (pgid, sid) = tree_lock().node(process.tgid).map_or((0, 0), |n| (n.pgid(), n.sid()));
    let tty = fs::tty::of_session(sid);
    let usage = if whole { process.usage() } else { thread.map(|t| t.usage()).unwrap_or_default() };
    let children = process.children_usage();
    let nice = thread.map_or(0, |t| i64::from(t.sched.nice()));
    let (policy, rt_priority) = thread.map_or((0, 0), |t| t.sched.policy());
    let (ignored, caught) = subject.dispositions();
    let state = subject.letter();
    let zombie = process.state() != State::Alive;
    let flag = |set, bit| if set { bit } else { 0 };
    let permitted = subject.may_inspect();
    let mut stat = Stat {
        tid,
        name: subject.name(),
        state,
        ppid: process.ppid(),
        pgid,
        sid,
        tty: tty.as_ref().map_or(0, |t| t.dev()),
        foreground: tty.as_ref().and_then(|t| t.foreground()).map_or(-1, i64::from),
        flags: RANDOMIZE | flag(zombie, EXITING) | flag(!process.has_flag(flag::EXECED), FORKNOEXEC),
        faults: [usage.minor, children.minor, usage.major, children.major],
        times: [user_ticks(usage.time), 0, user_ticks(children.time), 0],
        priority: if rt_priority == 0 { 20 + nice } else { -1 - i64::from(rt_priority) },
        nice,
        threads: process.thread_count().max(1),
        started: user_ticks(process.started),
        rss_limit: process.limit(RLIMIT_RSS),
        signals: [
            thread.map_or(0, |t| t.signals.pending()),
            thread.map_or(0, |t| t.signals.blocked()),
            ignored,
            caught,
        ],
        waits: permitted && state != b'R',
        exit_signal: if whole { process.exit_signal.load(Ordering::Relaxed).into() } else { -1 },
        hart: thread.map_or(0, |t| t.sched.hart()),
        rt_priority,
        policy,
        ..Stat::default()
    };
    if let Some(mm) = process.mm() {
        let (memory, program) = (mm.usage(), mm.program());
        (stat.vsize, stat.rss) = (memory.total * PAGE_SIZE, memory.resident);
        stat.code = (1, 1);
        if permitted {
            (stat.code, stat.data, stat.stack, stat.brk) = (program.code, program.data, program.stack, memory.brk);
            (stat.arguments, stat.environment) = (program.arguments, program.environment);
        }
    }
    if permitted {
        stat.exit_status = process.exit_status.load(Ordering::Relaxed);
    }
    stat.write(out);
}

/// Pages that the program's own code takes.
pub(super) fn code_pages(program: &mm::Program) -> usize {
    let (start, end) = program.code;
    end.saturating_sub(page_down(start)).div_ceil(PAGE_SIZE)
}

/// proc_pid_statm(5): pages.
pub(super) fn statm(subject: &Subject, out: &mut Text<'_>) {
    let (usage, text) = subject.process.mm().map(|mm| (mm.usage(), code_pages(&mm.program()))).unwrap_or_default();
    let data = usage.data + usage.stack;
    out.line(format_args!("{} {} {} {text} 0 {data} 0", usage.total, usage.resident, usage.shared));
}

/// Time on a hart in nanoseconds, time in a queue, times run. Waiting for a hart is not measured.
pub(super) fn schedstat(subject: &Subject, out: &mut Text<'_>) {
    let usage = subject.thread.as_ref().map(|t| t.usage()).unwrap_or_default();
    out.line(format_args!("{} 0 {}", usage.ns(), usage.voluntary + usage.involuntary));
}

/// proc_pid_oom_score(5): two thirds of 1000 for who takes nothing, of 2000 for who takes everything or asked for it.
fn oom_points(used: usize, total: usize, adjust: i32) -> i64 {
    if adjust == -1000 {
        return 0;
    }
    let total = total.max(1) as i64;
    let bad = used as i64 + i64::from(adjust) * total / 1000;
    ((1000 + bad * 1000 / total) * 2 / 3).max(0)
}

/// How likely it is to be chosen when memory is gone.
pub(super) fn oom_score(subject: &Subject) -> i64 {
    let used = subject.process.mm().map(|mm| mm.usage()).map_or(0, |usage| usage.resident + usage.tables);
    oom_points(used, hal::mem::frame::total(), subject.process.oom_adjust.load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::super::text::written;
    use super::*;

    /// `sleep 100` in a shell without job control, as Linux 6.12 shows it.
    const LINUX: &str = "140 (sleep) S 139 139 139 1088 139 4194304 55 0 0 0 0 1 0 0 20 0 1 0 126 1933312 295 \
        18446744073709551615 65536 1639488 140737149791856 0 0 0 0 6 0 1 0 0 17 0 0 0 0 0 0 1645600 1682472 837328896 \
        140737149796180 140737149796190 140737149796190 140737149796329 0\n";

    #[test]
    fn the_line_is_that_of_linux() {
        let stat = Stat {
            tid: 140,
            name: b"sleep".to_vec(),
            state: b'S',
            ppid: 139,
            pgid: 139,
            sid: 139,
            tty: 1088,
            foreground: 139,
            flags: RANDOMIZE,
            faults: [55, 0, 0, 0],
            times: [0, 1, 0, 0],
            priority: 20,
            threads: 1,
            started: 126,
            vsize: 1_933_312,
            rss: 295,
            rss_limit: u64::MAX,
            code: (65536, 1_639_488),
            stack: 140_737_149_791_856,
            signals: [0, 0, 6, 0],
            waits: true,
            exit_signal: 17,
            data: (1_645_600, 1_682_472),
            brk: 837_328_896,
            arguments: (140_737_149_796_180, 140_737_149_796_190),
            environment: (140_737_149_796_190, 140_737_149_796_329),
            ..Stat::default()
        };
        assert_eq!(written(|out| stat.write(out)), LINUX);
    }

    #[test]
    fn there_are_52_fields_whatever_the_name() {
        let stat = Stat { name: b"a) b (c".to_vec(), state: b'Z', ..Stat::default() };
        let text = written(|out| stat.write(out));
        let (_, rest) = text.rsplit_once(") ").unwrap();
        assert_eq!(rest.split_whitespace().count(), 50);
    }

    #[test]
    fn code_is_counted_in_whole_pages() {
        let program = mm::Program { code: (0x1_0040, 0x19_0440), ..mm::Program::default() };
        assert_eq!(code_pages(&program), 385);
        assert_eq!(code_pages(&mm::Program::default()), 0);
    }

    #[test]
    fn oom_scores_are_those_of_linux() {
        assert_eq!(oom_points(300, 240_995, 0), 667);
        assert_eq!(oom_points(0, 1000, 0), 666);
        assert_eq!(oom_points(1000, 1000, 1000), 2000);
        assert_eq!((oom_points(1000, 1000, -1000), oom_points(0, 1000, -999)), (0, 0));
    }
}
