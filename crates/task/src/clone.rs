//! clone(2), clone3(2), fork, vfork: a new thread or a new process. And the first process of all.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use fs::{Credentials, FdTable, FsContext, cap};
use hal::addr::UserAddr;
use hal::task::{Context, UserFrame};
use mm::AddressSpace;
use uapi::clone::*;
use uapi::resource::{RLIM_INFINITY, RLIMIT_CPU, RLIMIT_NPROC};
use uapi::signal::{NSIG, SIGCHLD, SS_DISABLE};
use uapi::{CloneArgs, Errno, StackT};

use crate::process::{self, Process, flag, tree_lock};
use crate::sched::{self, Sched};
use crate::seam::current;
use crate::signal::frame::NO_ALTSTACK;
use crate::signal::{Group, SigHand, ThreadSignals};
use crate::thread::{self, Thread, comm};
use crate::wait::{Completion, Sleep};

/// What is understood. Namespaces, pidfds, cgroups and chosen numbers are not there: `EINVAL`, as from a Linux built
/// without them.
const KNOWN: u64 = CLONE_VM
    | CLONE_FS
    | CLONE_FILES
    | CLONE_SIGHAND
    | CLONE_PTRACE
    | CLONE_VFORK
    | CLONE_PARENT
    | CLONE_THREAD
    | CLONE_SYSVSEM
    | CLONE_SETTLS
    | CLONE_PARENT_SETTID
    | CLONE_CHILD_CLEARTID
    | CLONE_DETACHED
    | CLONE_UNTRACED
    | CLONE_CHILD_SETTID
    | CLONE_IO
    | CLONE_CLEAR_SIGHAND;

/// Checks what clone3(2) was asked for, flags without the exit signal. `EINVAL`.
pub fn check(args: &CloneArgs) -> Result<(), Errno> {
    let has = |flag| args.flags & flag != 0;
    let bad = args.flags & !KNOWN != 0
        || has(CLONE_SIGHAND) && !has(CLONE_VM)
        || has(CLONE_THREAD) && !has(CLONE_SIGHAND)
        || has(CLONE_SIGHAND) && has(CLONE_CLEAR_SIGHAND)
        || (has(CLONE_THREAD) || has(CLONE_PARENT)) && args.exit_signal != 0
        || args.exit_signal > u64::from(NSIG)
        || args.set_tid != 0
        || args.set_tid_size != 0
        || (args.stack == 0) != (args.stack_size == 0);
    if bad { Err(Errno::EINVAL) } else { Ok(()) }
}

/// The arguments of clone(2) as clone3(2) has them. Its stack is the top, and its size is not told.
pub fn from_clone(flags: u64, stack: usize, parent_tid: usize, tls: usize, child_tid: usize) -> CloneArgs {
    // CLONE_DETACHED and the exit signal of a thread are ignored there.
    let thread = flags & (CLONE_THREAD | CLONE_PARENT) != 0;
    CloneArgs {
        flags: flags & !(CSIGNAL | CLONE_DETACHED),
        child_tid: child_tid as u64,
        parent_tid: parent_tid as u64,
        exit_signal: if thread { 0 } else { flags & CSIGNAL },
        stack: stack as u64,
        tls: tls as u64,
        ..CloneArgs::default()
    }
}

/// The first address above the child's stack; None: it has the caller's stack pointer.
fn stack_top(args: &CloneArgs) -> Option<usize> {
    (args.stack != 0).then(|| args.stack.wrapping_add(args.stack_size) as usize)
}

/// The child's registers: the caller's, with 0 for the result.
fn child_frame(args: &CloneArgs, caller: &UserFrame) -> UserFrame {
    let mut frame = *caller;
    frame.a0 = 0;
    frame.forget_call();
    if let Some(top) = stack_top(args) {
        frame.sp = top;
    }
    if args.flags & CLONE_SETTLS != 0 {
        frame.tp = args.tls as usize;
    }
    frame
}

/// clone3(2) by the running thread, whose registers are `caller`; gives the new number. `args` come from
/// [`from_clone`], or from clone3's caller after [`check`].
///
/// `EINVAL`; `EAGAIN` at a limit; `ENOMEM`; `ERESTARTNOINTR` while a signal waits, so that a fork bomb can be killed.
pub fn clone(args: &CloneArgs, caller: &UserFrame) -> Result<u32, Errno> {
    let checked = CloneArgs { stack_size: u64::from(args.stack != 0), ..*args };
    check(&checked)?;
    let me = current();
    if me.interrupted() {
        return Err(Errno::ERESTARTNOINTR);
    }
    let has = |flag| args.flags & flag != 0;
    check_process_limit(&me.process)?;
    let vfork = has(CLONE_VFORK).then(|| Arc::new(Completion::new()));
    let context = me.context.new_child(&child_frame(args, caller), started).ok_or(Errno::ENOMEM)?;

    let mm = if has(CLONE_VM) { me.mm() } else { me.mm().fork()? };
    let files = if has(CLONE_FILES) { me.files() } else { Arc::new(me.files().try_clone()?) };
    let fs = if has(CLONE_FS) { me.fs() } else { Arc::new(me.fs().copy()) };
    let altstack = if has(CLONE_VM) && !has(CLONE_VFORK) { NO_ALTSTACK } else { me.signals.altstack() };

    let tid = tree_lock().reserve()?;
    let process = if has(CLONE_THREAD) { me.process.clone() } else { child_process(args, tid, &me.process) };
    let child = Thread::new(thread::Parts {
        context,
        process,
        tid,
        sched: Sched::new(Some(&me.sched)),
        signals: ThreadSignals::new(me.signals.blocked(), altstack),
        mm: Some(mm),
        files: Some(files),
        fs: Some(fs),
        comm: me.comm(),
        clear_child_tid: if has(CLONE_CHILD_CLEARTID) { args.child_tid as usize } else { 0 },
        set_child_tid: if has(CLONE_CHILD_SETTID) { args.child_tid as usize } else { 0 },
        vfork: vfork.clone(),
    });
    if has(CLONE_PARENT_SETTID) {
        // A bad address is the caller's affair, as on Linux.
        let _ = hal::user::copy_out(UserAddr(args.parent_tid as usize), &tid.to_le_bytes());
    }
    publish(args, &child)?;
    sched::start(&child);
    drop(child);
    if let Some(vfork) = vfork {
        // Killed or done; the child lives on in either case.
        let _ = vfork.wait(Sleep::Killable);
    }
    Ok(tid)
}

/// RLIMIT_NPROC: how many threads the real user of a process without privileges may have. `EAGAIN`.
fn check_process_limit(process: &Process) -> Result<(), Errno> {
    let limit = process.limit(RLIMIT_NPROC);
    // Mostly there are not so many threads at all.
    if (process::thread_total() as u64) < limit {
        return Ok(());
    }
    let credentials = process.credentials();
    if credentials.uid == 0 || credentials.has(cap::SYS_RESOURCE) || credentials.has(cap::SYS_ADMIN) {
        return Ok(());
    }
    let tree = tree_lock();
    let own = tree.processes().map(|(_, n)| &n.value).filter(|p| p.credentials().uid == credentials.uid);
    let threads: usize = own.map(|p| p.thread_count()).sum();
    if threads as u64 >= limit { Err(Errno::EAGAIN) } else { Ok(()) }
}

fn child_process(args: &CloneArgs, tgid: u32, parent: &Arc<Process>) -> Arc<Process> {
    let hand = parent.signals.hand();
    let hand = if args.flags & CLONE_SIGHAND != 0 { hand } else { Arc::new(hand.copy()) };
    if args.flags & CLONE_CLEAR_SIGHAND != 0 {
        hand.reset_caught();
    }
    let sibling = args.flags & CLONE_PARENT != 0;
    let child = Process::new(process::Parts {
        tgid,
        ppid: if sibling { parent.ppid() } else { parent.tgid },
        exit_signal: if sibling { parent.exit_signal.load(Ordering::Relaxed) } else { args.exit_signal as u32 },
        signals: Group::new(hand),
        credentials: parent.credentials(),
        limits: parent.all_limits(),
        exe: parent.exe.lock().clone(),
        flags: parent.flags.load(Ordering::Relaxed) & (flag::NO_NEW_PRIVS | flag::NOT_DUMPABLE),
        oom_adjust: parent.oom_adjust.load(Ordering::Relaxed),
        personality: parent.personality.load(Ordering::Relaxed),
    });
    if child.limit(RLIMIT_CPU) != RLIM_INFINITY {
        child.follow_cpu_limit();
    }
    child
}

/// Makes the child known. Under the tree's lock, so that a signal to the group reaches it or keeps it from being.
fn publish(args: &CloneArgs, child: &Arc<Thread>) -> Result<(), Errno> {
    let me = current();
    let tid = child.tid();
    let mut tree = tree_lock();
    let state = me.process.signals.state.lock();
    let admitted = if me.has_signals() { Err(Errno::ERESTARTNOINTR) } else { child.process.admit(child) };
    if let Err(error) = admitted {
        tree.release(tid);
        return Err(error);
    }
    tree.insert_thread(tid, child.clone());
    drop(state);
    if args.flags & CLONE_THREAD == 0 {
        let (pgid, sid) = tree.node(me.process.tgid).map_or((tid, tid), |n| (n.pgid(), n.sid()));
        // The parent may have died since: then its children's new parent is this one's, too.
        let parent = Some(child.process.ppid()).filter(|&p| tree.process(p).is_some()).unwrap_or(1);
        child.process.ppid.store(parent, Ordering::Relaxed);
        tree.insert_process(tid, child.process.clone(), parent, pgid, sid);
    }
    Ok(())
}

/// The first thing that a new thread does.
fn started() {
    let me = current();
    let at = me.set_child_tid.swap(0, Ordering::Relaxed);
    if at != 0 {
        let _ = hal::user::copy_out(UserAddr(at), &me.tid().to_le_bytes());
    }
    me.refresh();
}

/// Makes the running boot stack the idle thread of this hart. On each hart, before anything else of this crate.
pub fn adopt_idle() {
    let process = Process::new(process::Parts {
        tgid: 0,
        ppid: 0,
        exit_signal: 0,
        signals: Group::new(Arc::new(SigHand::new())),
        credentials: Arc::new(Credentials::root()),
        limits: process::default_limits(),
        exe: None,
        flags: 0,
        oom_adjust: -1000,
        personality: 0,
    });
    let idle = Thread::new(thread::Parts {
        context: Context::boot(),
        process,
        tid: 0,
        sched: Sched::new(None),
        signals: ThreadSignals::new(!0, NO_ALTSTACK),
        mm: None,
        files: None,
        fs: None,
        comm: comm(b"idle"),
        clear_child_tid: 0,
        set_child_tid: 0,
        vfork: None,
    });
    sched::adopt_idle(idle);
}

/// What the first process starts with.
pub struct Init {
    /// Its image.
    pub mm: Arc<AddressSpace>,
    /// Program counter and stack pointer.
    pub frame: UserFrame,
    /// Descriptors, with standard input, output and error open.
    pub files: FdTable,
    /// Where it is.
    pub fs: FsContext,
    /// What /proc/1/exe names.
    pub exe: Option<Arc<fs::File>>,
    /// The name of its program.
    pub name: alloc::vec::Vec<u8>,
}

/// Makes the first process and lets it run when the caller goes idle. `ENOMEM`.
pub fn boot(init: Init) -> Result<(), Errno> {
    let context = Context::new_user(&init.frame, None, started).ok_or(Errno::ENOMEM)?;
    let signals = Group::new(Arc::new(SigHand::new()));
    signals.protected.store(true, Ordering::Relaxed);
    let mut tree = tree_lock();
    let tid = tree.reserve()?;
    let process = Process::new(process::Parts {
        tgid: tid,
        ppid: 0,
        exit_signal: SIGCHLD,
        signals,
        credentials: Arc::new(Credentials::root()),
        limits: process::default_limits(),
        exe: init.exe,
        flags: 0,
        oom_adjust: 0,
        personality: 0,
    });
    let thread = Thread::new(thread::Parts {
        context,
        process: process.clone(),
        tid,
        sched: Sched::new(None),
        signals: ThreadSignals::new(0, StackT { ss_flags: SS_DISABLE, ..NO_ALTSTACK }),
        mm: Some(init.mm),
        files: Some(Arc::new(init.files)),
        fs: Some(Arc::new(init.fs)),
        comm: comm(&init.name),
        clear_child_tid: 0,
        set_child_tid: 0,
        vfork: None,
    });
    process.admit(&thread)?;
    tree.insert_thread(tid, thread.clone());
    // Session and group 0, like Linux's: it has not asked for its own yet.
    tree.insert_process(tid, process, 0, 0, 0);
    drop(tree);
    sched::start(&thread);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(flags: u64) -> CloneArgs {
        CloneArgs { flags, ..CloneArgs::default() }
    }

    #[test]
    fn combinations_that_make_no_sense_are_refused() {
        let thread = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD;
        assert_eq!(check(&args(0)), Ok(()));
        assert_eq!(check(&args(thread | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_SETTLS)), Ok(()));
        for flags in [
            CLONE_SIGHAND,
            CLONE_THREAD | CLONE_VM,
            CLONE_VM | CLONE_SIGHAND | CLONE_CLEAR_SIGHAND,
            CLONE_NEWPID,
            CLONE_NEWNS,
            CLONE_PIDFD,
            CLONE_INTO_CGROUP,
            1 << 40,
        ] {
            assert_eq!(check(&args(flags)), Err(Errno::EINVAL), "{flags:#x}");
        }
        assert_eq!(check(&CloneArgs { exit_signal: 17, ..args(thread) }), Err(Errno::EINVAL));
        assert_eq!(check(&CloneArgs { exit_signal: 65, ..args(0) }), Err(Errno::EINVAL));
        assert_eq!(check(&CloneArgs { stack: 4096, ..args(0) }), Err(Errno::EINVAL));
        assert_eq!(check(&CloneArgs { stack_size: 4096, ..args(0) }), Err(Errno::EINVAL));
    }

    #[test]
    fn the_child_has_the_callers_registers() {
        let mut caller = UserFrame::start(1, 2);
        (caller.tp, caller.s3, caller.a0) = (3, 4, 5);
        let plain = child_frame(&from_clone(17, 0, 0, 99, 0), &caller);
        assert_eq!((plain.pc, plain.sp, plain.tp, plain.s3, plain.a0), (1, 2, 3, 4, 0));
        let args = from_clone(CLONE_VM | CLONE_SETTLS, 0x8000, 0, 99, 0);
        let thread = child_frame(&args, &caller);
        assert_eq!((thread.sp, thread.tp), (0x8000, 99));
        let args = CloneArgs { stack: 0x8000, stack_size: 0x1000, ..args };
        assert_eq!(child_frame(&args, &caller).sp, 0x9000);
        assert_eq!(from_clone(17 | CLONE_VM, 0, 0, 0, 0).exit_signal, 17);
        assert_eq!(from_clone(17 | CLONE_PARENT, 0, 0, 0, 0).exit_signal, 0);
    }
}
