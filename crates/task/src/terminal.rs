//! What terminals need of the process model.

use fs::cap;
use fs::tty::{JobIds, TtySignals};
use uapi::Siginfo;
use uapi::signal::{SI_KERNEL, SIG_IGN, sigmask};

use crate::process::tree_lock;
use crate::seam::current;
use crate::signal::send_group;

/// Job control for terminals (`fs::tty::set_signals`).
pub struct JobControl;

impl TtySignals for JobControl {
    fn current(&self) -> JobIds {
        let pid = current().process.tgid;
        let (pgid, sid) = tree_lock().node(pid).map_or((0, 0), |n| (n.pgid(), n.sid()));
        JobIds { pid, pgid, sid }
    }

    fn signal_group(&self, pgid: u32, signal: u32) {
        send_group(pgid, &Siginfo::plain(signal, SI_KERNEL));
    }

    fn is_ignored(&self, signal: u32) -> bool {
        let me = current();
        me.signals.blocked() & sigmask(signal) != 0 || me.process.signals.action(signal).handler == SIG_IGN
    }

    fn is_orphaned(&self) -> bool {
        let tree = tree_lock();
        tree.node(current().process.tgid).is_none_or(|n| tree.is_orphaned(n.pgid(), 0))
    }

    fn session_of_group(&self, pgid: u32) -> Option<u32> {
        tree_lock().group(pgid).next().map(|(_, n)| n.sid())
    }

    fn is_privileged(&self) -> bool {
        current().process.credentials().has(cap::SYS_ADMIN)
    }
}
