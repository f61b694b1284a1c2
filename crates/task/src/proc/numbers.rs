//! `stat`, `statm`, `schedstat`: lines of numbers.

use core::fmt::Write;
use core::sync::atomic::Ordering;

use hal::addr::PAGE_SIZE;
use uapi::signal::{SIG_DFL, SIG_IGN};
use uapi::time::USER_HZ;

use super::text::Text;
use super::{Subject, name};
use crate::process::tree_lock;

/// Ticks of `USER_HZ` in clock ticks.
fn user_ticks(ticks: u64) -> u64 {
    hal::time::ns(ticks) / (1_000_000_000 / USER_HZ)
}

/// Ignored and caught signals, a bit each.
pub(super) fn dispositions(subject: &Subject) -> (u64, u64) {
    let hand = subject.process.signals.hand();
    let mut sets = (0, 0);
    for signal in 1..=uapi::signal::NSIG {
        match hand.action(signal).handler {
            SIG_DFL => {}
            SIG_IGN => sets.0 |= uapi::signal::sigmask(signal),
            _ => sets.1 |= uapi::signal::sigmask(signal),
        }
    }
    sets
}

/// proc_pid_stat(5): 52 fields.
pub(super) fn stat(subject: &Subject, tid: u32, out: &mut Text<'_>) {
    let process = &subject.process;
    let thread = subject.thread.as_deref();
    let whole = tid == process.tgid;
    let usage = if whole { process.usage() } else { thread.map(|t| t.usage()).unwrap_or_default() };
    let children = process.children_usage();
    let (pgid, sid) = tree_lock().node(process.tgid).map_or((0, 0), |n| (n.pgid(), n.sid()));
    let tty = fs::tty::of_session(sid);
    let tty_nr = tty.as_ref().map_or(0, |t| t.dev());
    let tpgid = tty.as_ref().map_or(-1, |t| t.foreground().map_or(-1, i64::from));
    let mm = process.mm();
    let memory = mm.as_ref().map(|mm| mm.usage()).unwrap_or_default();
    let program = mm.as_ref().map(|mm| mm.program()).unwrap_or_default();
    let nice = thread.map_or(0, |t| i64::from(t.sched.nice()));
    let (policy, priority) = thread.map_or((0, 0), |t| t.sched.policy());
    let shown = if priority == 0 { 20 + nice } else { -1 - i64::from(priority) };
    let pending = process.signals.pending() | thread.map_or(0, |t| t.signals.pending());
    let blocked = thread.map_or(0, |t| t.signals.blocked());
    let (ignored, caught) = dispositions(subject);
    let low = |set: u64| set & 0x7fff_ffff;
    let _ = write!(out, "{tid} (");
    out.bytes(&name(subject));
    let state = char::from(subject.letter());
    let _ = write!(out, ") {state} {} {pgid} {sid} {tty_nr} {tpgid} 4194304", process.ppid());
    let _ = write!(out, " {} {} {} {}", usage.minor, children.minor, usage.major, children.major);
    let _ = write!(out, " {} 0 {} 0", user_ticks(usage.time), user_ticks(children.time));
    let _ = write!(out, " {shown} {nice} {} 0 {}", process.thread_count().max(1), user_ticks(process.started));
    let _ = write!(out, " {} {} {}", memory.total * PAGE_SIZE, memory.resident, u64::MAX);
    // Addresses of code, stack and registers are shown to nobody.
    let _ = write!(out, " 0 0 0 0 0 {} {} {} {} 0 0 0", low(pending), low(blocked), low(ignored), low(caught));
    let _ = write!(out, " {} {}", process.exit_signal.load(Ordering::Relaxed), thread.map_or(0, |t| t.sched.hart()));
    let _ = write!(out, " {priority} {policy} 0 0 0 0 0 0");
    let (args, env) = if subject.may_inspect() { (program.arguments, program.environment) } else { ((0, 0), (0, 0)) };
    let _ = write!(out, " {} {} {} {}", args.0, args.1, env.0, env.1);
    out.line(format_args!(" {}", process.exit_status.load(Ordering::Relaxed)));
}

/// proc_pid_statm(5): pages.
pub(super) fn statm(subject: &Subject, out: &mut Text<'_>) {
    let usage = subject.process.mm().map(|mm| mm.usage()).unwrap_or_default();
    let data = usage.data + usage.stack;
    out.line(format_args!("{} {} {} {} 0 {data} 0", usage.total, usage.resident, usage.shared, usage.text));
}

/// Time on a hart and in a queue in nanoseconds, and times run.
pub(super) fn schedstat(subject: &Subject, out: &mut Text<'_>) {
    let usage = subject.thread.as_ref().map(|t| t.usage()).unwrap_or_default();
    out.line(format_args!("{} 0 {}", usage.ns(), usage.voluntary + usage.involuntary));
}

/// How likely it is to be chosen when memory is gone, 0 to 2000.
pub(super) fn oom_score(subject: &Subject) -> i64 {
    let adjust = i64::from(subject.process.oom_adjust.load(Ordering::Relaxed));
    if adjust == -1000 {
        return 0;
    }
    let total = hal::mem::frame::stats().total.max(1) as i64;
    let resident = subject.process.mm().map_or(0, |mm| mm.rss()) as i64;
    (resident * 1000 / total + adjust).clamp(0, 2000)
}
