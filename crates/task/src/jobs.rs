//! Process groups and sessions: setpgid(2), getpgid(2), setsid(2), getsid(2).

use alloc::sync::Arc;

use uapi::Errno;

use crate::process::{Process, State, flag, tree_lock};
use crate::seam::current;

/// The group of a process (0: the caller's). `ESRCH`.
pub fn getpgid(pid: u32) -> Result<u32, Errno> {
    let pid = if pid == 0 { current().process.tgid } else { pid };
    tree_lock().node(pid).map(|n| n.pgid()).ok_or(Errno::ESRCH)
}

/// The session of a process (0: the caller's). `ESRCH`.
pub fn getsid(pid: u32) -> Result<u32, Errno> {
    let pid = if pid == 0 { current().process.tgid } else { pid };
    tree_lock().node(pid).map(|n| n.sid()).ok_or(Errno::ESRCH)
}

/// Moves the caller or a child of it into a group of its session, or makes it the leader of a new one.
///
/// `ESRCH`: no such process, or neither the caller nor a child. `EACCES`: the child has called execve(2). `EPERM`: a
/// session leader, another session, or a group that is not of this session.
pub fn setpgid(pid: u32, pgid: u32) -> Result<(), Errno> {
    let me = current().process.tgid;
    let pid = if pid == 0 { me } else { pid };
    let pgid = if pgid == 0 { pid } else { pgid };
    let mut tree = tree_lock();
    let own = tree.node(me).map(|n| n.sid()).ok_or(Errno::ESRCH)?;
    let node = tree.node(pid).filter(|n| pid == me || n.parent() == me).ok_or(Errno::ESRCH)?;
    if node.sid() != own {
        return Err(Errno::EPERM);
    }
    if pid != me && node.value.has_flag(flag::EXECED) {
        return Err(Errno::EACCES);
    }
    if node.sid() == pid || pgid != pid && !tree.group_in_session(pgid, own) {
        return Err(Errno::EPERM);
    }
    tree.set_group(pid, pgid);
    Ok(())
}

/// Makes the caller the leader of a new session without a terminal; gives its number. `EPERM` when it leads a group.
pub fn setsid() -> Result<u32, Errno> {
    let pid = current().process.tgid;
    let mut tree = tree_lock();
    if tree.group(pid).next().is_some() {
        return Err(Errno::EPERM);
    }
    tree.new_session(pid);
    Ok(pid)
}

/// Group and session of a process, for a terminal's checks. None for one that is gone.
pub fn place(process: &Process) -> Option<(u32, u32)> {
    tree_lock().node(process.tgid).map(|n| (n.pgid(), n.sid()))
}

/// True when nobody in the session is left who would continue this group (a background read then fails with EIO).
pub fn is_orphaned(pgid: u32) -> bool {
    tree_lock().is_orphaned(pgid, 0)
}

/// True when a living process of session `sid` is in group `pgid` (tcsetpgrp(3)).
pub fn group_in_session(pgid: u32, sid: u32) -> bool {
    tree_lock().group_in_session(pgid, sid)
}

/// The processes of a user or a group or one of them, for getpriority(2) and its kind.
pub fn select(wanted: impl Fn(&Arc<Process>, u32) -> bool) -> alloc::vec::Vec<Arc<Process>> {
    let tree = tree_lock();
    let living = tree.processes().filter(|(_, n)| n.value.state() == State::Alive);
    living.filter(|(_, n)| wanted(&n.value, n.pgid())).map(|(_, n)| n.value.clone()).collect()
}
