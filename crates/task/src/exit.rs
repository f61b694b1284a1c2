//! The end of a thread and of a process: _exit(2), exit_group(2), and every death by signal.
//!
//! A thread ends on its own stack and always by itself: others only ask it to, and it finds that on its way to user
//! mode. So nothing is lost on its stack but plain values; functions here that do not return hold no reference then.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use hal::addr::UserAddr;
use uapi::signal::{SI_KERNEL, SIGCHLD, SIGCONT, SIGHUP};
use uapi::{Errno, Siginfo};

use crate::process::{Process, State, Table, flag, tree_lock};
use crate::seam::current;
use crate::signal::send::{end_group, send_group, send_locked};
use crate::signal::send_process;
use crate::signal::stop::{self, child_info, reaps_itself};
use crate::thread::{Thread, table_id};
use crate::{futex, sched};

/// exit_group(2): ends all threads with this status word of wait(2) (`uapi::wait::exited`, `killed`). If the end has
/// begun already, with that one's.
pub fn exit_group(status: i32) -> ! {
    let me = current();
    end_group(&me.process, &mut me.process.signals.state.lock(), status);
    exit_thread(status)
}

/// _exit(2) of one thread; the status counts if it is the last and the group was given none.
pub fn exit_thread(status: i32) -> ! {
    leave(status);
    sched::leave_for_ever()
}

/// Everything up to the last switch. Not inlined: what it has on the stack is gone when it returns.
#[inline(never)]
fn leave(status: i32) {
    let me = current();
    me.signals.exiting.store(true, Ordering::SeqCst);
    note_leaving(&me, status);
    stop::leave(&me);
    futex::robust::leave(&me);
    leave_space(&me);
    if let Some(files) = me.files_slot().replace(None) {
        let table = table_id(&files);
        if let Some(files) = Arc::into_inner(files) {
            files.close_all(|file| fs::lock::close_file(file, table));
        }
    }
    drop(me.fs_slot().replace(None));
    let process = me.process.clone();
    me.sched.settle();
    process.accounts.lock().gone.add(&me.usage());

    let mut aftermath = Aftermath::default();
    let mut tree = tree_lock();
    let own = tree.remove_thread(me.tid());
    if dismiss(&me) {
        let status = process.signals.state.lock().exit_status.unwrap_or(status);
        aftermath = leave_world(&mut tree, &process, status);
    }
    drop(tree);
    aftermath.follow();
    process.thread_left.wake_all();
    drop(own);
}

/// The last thread to begin its exit gives the process its status. A join returns before the joined thread has gone from
/// the list, so that the order of going does not say which that is.
fn note_leaving(me: &Thread, status: i32) {
    let process = &me.process;
    if process.thread_count() > 1 {
        let mut state = process.signals.state.lock();
        state.leaving += 1;
        if state.leaving == process.thread_count() && state.exit_status.is_none() {
            state.exit_status = Some(status);
        }
    }
}

/// Takes the thread off its process's list; true when it was the last. The others are told of the group's pending
/// signals first: this one may have been chosen to take them.
fn dismiss(me: &Thread) -> bool {
    let process = &me.process;
    let mut state = process.signals.state.lock();
    state.leaving = state.leaving.saturating_sub(1);
    let last = process.dismiss(me);
    if !last && process.signals.pending() != 0 {
        process.for_each_thread(|thread| {
            if thread.has_signals() {
                thread.notify();
            }
        });
    }
    last
}

/// Gives up the address space: the word that CLONE_CHILD_CLEARTID promised, the vfork parent, the space itself.
fn leave_space(me: &Thread) {
    let word = me.clear_child_tid.swap(0, Ordering::Relaxed);
    // Nobody can see the word of a space that ends with this thread.
    if word != 0 && me.mm_slot().with(|mm| mm.is_some_and(|mm| Arc::strong_count(mm) > 1)) {
        let word = UserAddr(word);
        let _ = hal::user::copy_out(word, &0u32.to_le_bytes());
        futex::wake_exiting(word);
    }
    let mm = me.mm_slot().replace(None);
    if let Some(mm) = &mm {
        me.note_peak(mm);
    }
    if let Some(parent) = me.vfork.replace(None) {
        parent.complete();
    }
    if let Some(mm) = mm.and_then(Arc::into_inner) {
        mm.release();
    }
    // The program's file can be written to as soon as a parent knows of the end: it goes with the last thread, not with
    // the process, whose last holder may even be an interrupt's handler. Of threads that leave at once each may be the
    // last, but none is made any more.
    let process = &me.process;
    if process.thread_count() == 1 || process.signals.state.lock().leaving == process.thread_count() {
        let exe = process.exe.lock().take();
        drop(exe);
    }
}

/// What is left to do for groups and sessions after a death, with the tree unlocked.
#[derive(Default)]
struct Aftermath {
    /// Groups that were orphaned and have stopped members: hung up and continued (POSIX, _exit).
    orphaned: Vec<u32>,
    /// The session whose leader died: it loses its terminal.
    session: Option<u32>,
    /// Children that asked to be told of their parent's death, and what to tell them.
    bereaved: Vec<(Arc<Process>, Siginfo)>,
}

impl Aftermath {
    fn follow(self) {
        for (child, info) in self.bereaved {
            // A standard signal is never refused.
            let _ = send_process(&child, &info);
        }
        for group in self.orphaned {
            hang_up(group);
        }
        if let Some(sid) = self.session {
            fs::tty::session_exit(sid);
        }
    }
}

/// The last thread of a process is gone: its children get a new parent, its own parent is told.
fn leave_world(tree: &mut Table, process: &Arc<Process>, status: i32) -> Aftermath {
    let pid = process.tgid;
    assert!(pid != 1, "attempted to kill init: status {status:#x}");
    process.itimer.disarm();
    process.exit_status.store(status, Ordering::Relaxed);
    let candidates = kept_groups(tree, pid);
    tree.mark_dead(pid);
    let reaper = new_parent(tree, process);
    let mut zombies = Vec::new();
    let mut bereaved = Vec::new();
    let uid = process.credentials().uid;
    tree.reparent(pid, reaper, |child, node| {
        let signal = node.death_signal.load(Ordering::Relaxed);
        if signal != 0 {
            bereaved.push((node.clone(), Siginfo::kill(signal, pid as i32, uid)));
        }
        node.ppid.store(reaper, Ordering::Relaxed);
        node.exit_signal.store(SIGCHLD, Ordering::Relaxed);
        if node.state() == State::Zombie {
            zombies.push(child);
        }
    });
    for child in zombies {
        if let Some(zombie) = tree.process(child).cloned() {
            tell_parent(tree, &zombie);
        }
    }
    let stopped = |tree: &Table, group| tree.group(group).any(|(_, n)| n.value.signals.is_stopped());
    let orphaned = candidates.into_iter().filter(|&g| stopped(tree, g) && tree.is_orphaned(g, 0)).collect();
    let session = tree.node(pid).map(|n| n.sid()).filter(|&sid| sid == pid);
    process.set_state(State::Zombie);
    tell_parent(tree, process);
    Aftermath { orphaned, session, bereaved }
}

/// The groups that this process keeps from being orphaned: its own, if its parent is in another of the session, and
/// those of its children.
fn kept_groups(tree: &Table, pid: u32) -> Vec<u32> {
    let mut groups = Vec::new();
    let Some(own) = tree.node(pid) else { return groups };
    let mut consider = |member: &crate::tree::Node<Arc<Process>>, parent: &crate::tree::Node<Arc<Process>>| {
        if member.sid() == parent.sid() && member.pgid() != parent.pgid() && !groups.contains(&member.pgid()) {
            groups.push(member.pgid());
        }
    };
    if let Some(parent) = tree.node(own.parent()) {
        consider(own, parent);
    }
    for (_, child) in tree.children(pid) {
        consider(child, own);
    }
    groups
}

/// The nearest living ancestor that asked for orphans (PR_SET_CHILD_SUBREAPER), else the first process.
fn new_parent(tree: &Table, process: &Process) -> u32 {
    let mut pid = process.ppid();
    while pid > 1 {
        let Some(node) = tree.node(pid) else { break };
        if node.value.has_flag(flag::SUBREAPER) && node.value.state() == State::Alive {
            return pid;
        }
        pid = node.parent();
    }
    1
}

/// Tells the parent of a zombie; removes the zombie at once if the parent does not want to know.
fn tell_parent(tree: &mut Table, process: &Arc<Process>) {
    let Some(parent) = tree.process(process.ppid()).cloned() else { return };
    let signal = process.exit_signal.load(Ordering::Relaxed);
    let action = parent.signals.action(SIGCHLD);
    let unwanted = signal == SIGCHLD && reaps_itself(&action);
    if signal != 0 && !(unwanted && action.handler == uapi::signal::SIG_IGN) {
        let status = process.exit_status.load(Ordering::Relaxed);
        let (code, value) = crate::reap::code(status);
        send_locked(&parent, &Siginfo { si_signo: signal as i32, ..child_info(process, code, value) });
    }
    if unwanted {
        process.set_state(State::Reaped);
        tree.remove_process(process.tgid);
    }
    parent.child_wait.wake_all();
}

fn hang_up(group: u32) {
    send_group(group, &Siginfo::plain(SIGHUP, SI_KERNEL));
    send_group(group, &Siginfo::plain(SIGCONT, SI_KERNEL));
}

/// Ends every thread of the caller's group but the caller, and waits until it is alone (execve(2)). `EAGAIN` when the
/// group ends or another thread is at it.
pub(crate) fn end_others() -> Result<(), Errno> {
    use crate::signal::group_flag;
    use crate::wait::{Sleep, wait_on};
    let me = current();
    let process = &me.process;
    {
        let mut state = process.signals.state.lock();
        if process.signals.has(group_flag::EXIT | group_flag::EXEC) {
            return Err(Errno::EAGAIN);
        }
        if process.thread_count() == 1 {
            return Ok(());
        }
        state.exec_tid = me.tid();
        process.signals.flags.fetch_or(group_flag::EXEC, Ordering::AcqRel);
        process.for_each_thread(|t| {
            if t.tid() != me.tid() {
                t.notify()
            }
        });
    }
    let alone = wait_on(&process.thread_left, Sleep::Killable, None, || (process.thread_count() == 1).then_some(()));
    process.signals.flags.fetch_and(!group_flag::EXEC, Ordering::AcqRel);
    alone.map_err(|_| Errno::EAGAIN)
}
