//! wait4(2), waitid(2): what a parent learns of its children.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use uapi::signal::{CLD_CONTINUED, CLD_DUMPED, CLD_EXITED, CLD_KILLED, CLD_STOPPED, SIGCHLD, SIGCONT};
use uapi::wait::*;
use uapi::{Errno, Siginfo};

use crate::process::{Process, State, Table, tree_lock};
use crate::seam::current;
use crate::usage::Usage;
use crate::wait::{Sleep, wait_on};

/// Which children are waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    /// Any.
    All,
    /// The one with this number.
    Process(u32),
    /// Those of a process group.
    Group(u32),
}

/// What was learned.
#[derive(Clone, Copy, Debug)]
pub struct Waited {
    /// The child.
    pub pid: u32,
    /// Its real user.
    pub uid: u32,
    /// The status word of wait4(2).
    pub status: i32,
    /// What it and its own waited-for children used.
    pub usage: Usage,
}

impl Waited {
    /// In the form of waitid(2).
    pub fn siginfo(&self) -> Siginfo {
        let (code, value) = code(self.status);
        Siginfo::child(code, self.pid as i32, self.uid, value, 0, 0)
    }
}

/// `si_code` and `si_status` for a status word.
pub(crate) fn code(status: i32) -> (i32, i32) {
    match status {
        CONTINUED => (CLD_CONTINUED, SIGCONT as i32),
        s if s & 0xff == 0x7f => (CLD_STOPPED, s >> 8 & 0xff),
        s if s & 0x7f == 0 => (CLD_EXITED, s >> 8 & 0xff),
        s if s & 0x80 != 0 => (CLD_DUMPED, s & 0x7f),
        s => (CLD_KILLED, s & 0x7f),
    }
}

/// Whether a child whose end is told by `exit_signal` is one that these options ask for: children of clone(2) with
/// another signal than SIGCHLD need `__WCLONE` or `__WALL`.
fn right_kind(exit_signal: u32, options: u32) -> bool {
    options & WALL != 0 || (exit_signal != SIGCHLD) == (options & WCLONE != 0)
}

/// Waits for a child. `options` are those of waitid(2) (wait4(2) adds `WEXITED`), checked by the caller.
///
/// None with `WNOHANG` when nothing has happened. `ECHILD` when there is no such child, `ERESTARTSYS` on a signal.
pub fn wait(which: Which, options: u32) -> Result<Option<Waited>, Errno> {
    let me = current();
    let look = || match look(&me.process, which, options) {
        Found::Event(waited) => Some(Ok(Some(waited))),
        Found::Nobody => Some(Err(Errno::ECHILD)),
        Found::Nothing if options & WNOHANG != 0 => Some(Ok(None)),
        Found::Nothing => None,
    };
    wait_on(&me.process.child_wait, Sleep::Interruptible, None, look)?
}

enum Found {
    Event(Waited),
    /// Children, but no news.
    Nothing,
    /// No such child.
    Nobody,
}

fn look(parent: &Process, which: Which, options: u32) -> Found {
    let mut tree = tree_lock();
    let mut found = Found::Nobody;
    let mut dead = None;
    for (pid, node) in tree.children(parent.tgid) {
        let wanted = match which {
            Which::All => true,
            Which::Process(wanted) => wanted == pid,
            Which::Group(group) => group == node.pgid(),
        };
        let child = &node.value;
        if !wanted || !right_kind(child.exit_signal.load(Ordering::Relaxed), options) {
            continue;
        }
        found = Found::Nothing;
        if let Some(status) = news(child, options) {
            let zombie = child.state() == State::Zombie;
            if zombie && options & WNOWAIT == 0 {
                dead = Some(child.clone());
            }
            found = Found::Event(report(child, status));
            break;
        }
    }
    if let Some(child) = dead {
        bury(&mut tree, parent, &child);
    }
    found
}

/// The status word that a child has to report, if it has; takes a stop or a continuation unless WNOWAIT.
fn news(child: &Process, options: u32) -> Option<i32> {
    let keep = options & WNOWAIT != 0;
    let signals = &child.signals;
    if child.state() == State::Zombie {
        return (options & WEXITED != 0).then(|| child.exit_status.load(Ordering::Relaxed));
    }
    if options & WSTOPPED != 0 {
        let signal = if keep {
            signals.stop_report.load(Ordering::Acquire)
        } else {
            signals.stop_report.swap(0, Ordering::AcqRel)
        };
        if signal != 0 {
            return Some(stopped(signal));
        }
    }
    if options & WCONTINUED != 0 {
        let continued = if keep {
            signals.continued.load(Ordering::Acquire)
        } else {
            signals.continued.swap(false, Ordering::AcqRel)
        };
        if continued {
            return Some(CONTINUED);
        }
    }
    None
}

fn report(child: &Process, status: i32) -> Waited {
    let mut usage = child.usage();
    usage.add(&child.children_usage());
    Waited { pid: child.tgid, uid: child.credentials().uid, status, usage }
}

/// Takes a zombie out of the world; what it used is the parent's now.
fn bury(tree: &mut Table, parent: &Process, child: &Arc<Process>) {
    child.set_state(State::Reaped);
    let gone = tree.remove_process(child.tgid);
    let mut usage = child.usage();
    usage.add(&child.children_usage());
    parent.accounts.lock().children.add(&usage);
    drop(gone);
}

#[cfg(test)]
mod tests {
    use super::*;
    use uapi::signal::{SIGKILL, SIGTSTP};

    #[test]
    fn status_words_and_siginfo_agree() {
        assert_eq!(code(exited(7)), (CLD_EXITED, 7));
        assert_eq!(code(exited(0)), (CLD_EXITED, 0));
        assert_eq!(code(killed(SIGKILL, false)), (CLD_KILLED, 9));
        assert_eq!(code(killed(11, true)), (CLD_DUMPED, 11));
        assert_eq!(code(stopped(SIGTSTP)), (CLD_STOPPED, 20));
        assert_eq!(code(CONTINUED), (CLD_CONTINUED, 18));
    }

    #[test]
    fn clone_children_need_their_option() {
        assert!(right_kind(SIGCHLD, WEXITED) && !right_kind(SIGCHLD, WCLONE));
        assert!(!right_kind(0, WEXITED) && right_kind(0, WCLONE) && right_kind(0, WALL));
        assert!(right_kind(SIGCHLD, WALL));
    }
}
