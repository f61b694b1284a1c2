//! What `/proc` shows of processes and threads: proc(5).
//!
//! The files of a process's directory are rendered here; the directories themselves are the file system's.

mod memory;
mod numbers;
mod status;
mod text;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use fs::proc::{PidFile, ProcSource};
use fs::{FdTable, File, FsContext, cap};
use uapi::Errno;
use uapi::signal::{NSIG, SIG_DFL, SIG_IGN, sigmask};

use crate::process::{Process, State, flag, tree_lock};
use crate::seam::current;
use crate::thread::Thread;
use text::Text;

/// The processes, for `/proc` (`fs::proc::set_source`).
pub struct Processes;

/// What a number names. A zombie has no thread left.
struct Subject {
    process: Arc<Process>,
    thread: Option<Arc<Thread>>,
}

impl Subject {
    fn find(tid: u32) -> Option<Self> {
        let tree = tree_lock();
        if let Some(thread) = tree.thread(tid) {
            return Some(Self { process: thread.process.clone(), thread: Some(thread.clone()) });
        }
        let process = tree.process(tid)?.clone();
        drop(tree);
        let thread = process.leader();
        Some(Self { process, thread })
    }

    /// The thread's name, without padding; a zombie's is kept by its process.
    fn name(&self) -> Vec<u8> {
        let comm = match &self.thread {
            Some(thread) => thread.comm(),
            None => self.process.last_comm(),
        };
        comm.iter().copied().take_while(|&b| b != 0).collect()
    }

    /// Ignored and caught signals, a bit each.
    fn dispositions(&self) -> (u64, u64) {
        let hand = self.process.signals.hand();
        let mut sets = (0, 0);
        for signal in 1..=NSIG {
            match hand.action(signal).handler {
                SIG_DFL => {}
                SIG_IGN => sets.0 |= sigmask(signal),
                _ => sets.1 |= sigmask(signal),
            }
        }
        sets
    }

    /// The letter of its state.
    fn letter(&self) -> u8 {
        let group = &self.process.signals;
        match &self.thread {
            None => b'Z',
            Some(_) if self.process.state() != State::Alive => b'Z',
            Some(thread) if group.is_stopped() && thread.sched.letter() != b'R' => b'T',
            Some(thread) => thread.sched.letter(),
        }
    }

    /// ptrace(2), "Ptrace access mode checking", PTRACE_MODE_READ_FSCREDS: the same user with no
    /// fewer capabilities, or privileged.
    fn may_inspect(&self) -> bool {
        let me = current();
        if Arc::ptr_eq(&me.process, &self.process) {
            return true;
        }
        let (mine, theirs) = (me.process.credentials(), self.process.credentials());
        let same = |id, ids: [u32; 3]| ids.iter().all(|&other| other == id);
        let own = same(mine.fsuid, [theirs.uid, theirs.euid, theirs.suid])
            && same(mine.fsgid, [theirs.gid, theirs.egid, theirs.sgid])
            && theirs.permitted & !mine.effective == 0
            && !self.process.has_flag(flag::NOT_DUMPABLE);
        own || mine.has(cap::SYS_PTRACE)
    }
}

impl ProcSource for Processes {
    fn current(&self) -> (u32, u32) {
        let me = current();
        (me.process.tgid, me.tid())
    }

    fn next_pid(&self, from: u32) -> Option<u32> {
        tree_lock().processes().map(|(pid, _)| pid).find(|&pid| pid >= from)
    }

    fn next_thread(&self, pid: u32, from: u32) -> Option<u32> {
        let process = tree_lock().process(pid)?.clone();
        // The number of a process stays when its first thread has gone.
        let mut next = Some(pid).filter(|&pid| pid >= from);
        process.for_each_thread(|thread| {
            let tid = thread.tid();
            if tid >= from && next.is_none_or(|best| tid < best) {
                next = Some(tid);
            }
        });
        next
    }

    fn exists(&self, tid: u32, pid: Option<u32>) -> bool {
        let subject = Subject::find(tid);
        subject.is_some_and(|s| pid.is_none_or(|pid| s.process.tgid == pid))
    }

    fn owner(&self, tid: u32) -> Option<(u32, u32)> {
        let process = Subject::find(tid)?.process;
        let cred = process.credentials();
        Some(if process.has_flag(flag::NOT_DUMPABLE) { (0, 0) } else { (cred.euid, cred.egid) })
    }

    fn render(&self, tid: u32, file: PidFile, out: &mut Vec<u8>) -> Result<(), Errno> {
        let subject = Subject::find(tid).ok_or(Errno::ESRCH)?;
        let private =
            matches!(file, PidFile::Auxv | PidFile::Environ | PidFile::Maps | PidFile::Smaps | PidFile::SmapsRollup);
        if private && !subject.may_inspect() {
            return Err(Errno::EACCES);
        }
        let out = &mut Text::new(out);
        match file {
            PidFile::Stat => numbers::stat(&subject, tid, out),
            PidFile::Statm => numbers::statm(&subject, out),
            PidFile::Status => status::status(&subject, tid, out),
            PidFile::Limits => status::limits(&subject, out),
            PidFile::Comm => {
                out.bytes(&subject.name());
                out.bytes(b"\n");
            }
            PidFile::Cmdline => memory::command_line(&subject, out),
            PidFile::Environ => memory::range(&subject, |p| p.environment, out),
            PidFile::Auxv => memory::range(&subject, |p| p.auxv, out),
            PidFile::Limen => memory::translation(&subject, out),
            PidFile::Maps => memory::maps(&subject, out),
            PidFile::Smaps => memory::smaps(&subject, out),
            PidFile::SmapsRollup => memory::rollup(&subject, out),
            PidFile::Wchan => out.bytes(b"0"),
            // There is no hierarchy to be in.
            PidFile::Cgroup => {}
            PidFile::Loginuid => out.bytes(b"4294967295"),
            PidFile::OomScore => out.line(format_args!("{}", numbers::oom_score(&subject))),
            PidFile::OomScoreAdj => {
                out.line(format_args!("{}", subject.process.oom_adjust.load(Ordering::Relaxed)));
            }
            PidFile::Schedstat => numbers::schedstat(&subject, out),
        }
        if out.full { Err(Errno::ENOMEM) } else { Ok(()) }
    }

    fn write(&self, tid: u32, file: PidFile, text: &[u8]) -> Result<(), Errno> {
        let subject = Subject::find(tid).ok_or(Errno::ESRCH)?;
        match file {
            PidFile::Comm => {
                if !Arc::ptr_eq(&current().process, &subject.process) {
                    return Err(Errno::EINVAL);
                }
                subject.thread.ok_or(Errno::ESRCH)?.set_comm(text);
                Ok(())
            }
            PidFile::OomScoreAdj => {
                let text = core::str::from_utf8(text).map_err(|_| Errno::EINVAL)?;
                let value: i32 = text.trim().parse().map_err(|_| Errno::EINVAL)?;
                if !(-1000..=1000).contains(&value) {
                    return Err(Errno::EINVAL);
                }
                let adjust = &subject.process.oom_adjust;
                // What the process took upon itself it may take back.
                let lowers = value < adjust.load(Ordering::Relaxed).min(0);
                if lowers && !current().process.credentials().has(cap::SYS_RESOURCE) {
                    return Err(Errno::EACCES);
                }
                adjust.store(value, Ordering::Relaxed);
                Ok(())
            }
            PidFile::Loginuid => Err(Errno::EPERM),
            _ => Err(Errno::EINVAL),
        }
    }

    fn fds(&self, tid: u32) -> Option<Arc<FdTable>> {
        Subject::find(tid)?.thread?.files_slot().get()
    }

    fn fs(&self, tid: u32) -> Option<Arc<FsContext>> {
        Subject::find(tid)?.thread?.fs_slot().get()
    }

    fn exe(&self, tid: u32) -> Option<Arc<File>> {
        let subject = Subject::find(tid)?;
        subject.thread.as_ref()?;
        subject.process.exe.lock().clone()
    }

    fn may_inspect(&self, tid: u32) -> bool {
        Subject::find(tid).is_some_and(|s| s.may_inspect())
    }
}
