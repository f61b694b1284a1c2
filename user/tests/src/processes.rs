//! Processes: waiting for them, their families, groups and rights.

use kit::check::{Must, Outcome};
use kit::uapi::clone::{CLONE_VFORK, CLONE_VM};
use kit::uapi::prctl::{PR_GET_NAME, PR_SET_CHILD_SUBREAPER, PR_SET_NAME, PR_SET_PDEATHSIG};
use kit::uapi::resource::{RLIMIT_NOFILE, RLIMIT_NPROC, RUSAGE_CHILDREN};
use kit::uapi::signal::{CLD_EXITED, CLD_KILLED, SIG_IGN, SIGCHLD, SIGKILL, SIGTERM, SIGUSR1, sigmask};
use kit::uapi::wait::{P_ALL, P_PGID, P_PID, WEXITED, WNOHANG, WNOWAIT, WSTOPPED};
use kit::uapi::{Errno, Rlimit64, Rusage, Sigaction, Siginfo, nr};
use kit::{
    attempt, call, child, clock, ensure, equal, fails, memory, signal,
    thread::{self, Thread},
};
use rt::process::{self, Ended};
use rt::{io, tap::Test};

pub const TESTS: &[Test] = &[
    Test::new("processes/statuses", statuses),
    Test::new("processes/wait-without-waiting", without_waiting),
    Test::new("processes/waitid", waitid),
    Test::new("processes/wait-for-a-group", wait_group),
    Test::new("processes/ignored-children-vanish", ignored),
    Test::new("processes/orphans-get-a-new-parent", orphans),
    Test::new("processes/subreaper", subreaper),
    Test::new("processes/death-of-the-parent-is-told", parent_death),
    Test::new("processes/vfork-waits", vfork_waits),
    Test::new("processes/sessions-and-groups", sessions),
    Test::new("processes/unprivileged-rights", unprivileged),
    Test::new("processes/identities", identities),
    Test::new("processes/limits", limits),
    Test::new("processes/limit-of-a-user", limit_of_a_user),
    Test::new("processes/usage", usage),
    Test::new("processes/names", names),
    Test::new("processes/deep-and-wide", deep),
];

fn statuses() -> Outcome {
    for status in [0, 1, 77, 255] {
        equal!(child::end(|| process::exit(status))?, Ended::Exited(status), "an exit");
    }
    let raw = child::end(|| {
        call!(nr::EXIT_GROUP, 0x1234);
        Ok(())
    })?;
    equal!(raw, Ended::Exited(0x34), "the low byte of the status");
    for number in [SIGKILL, SIGTERM, SIGUSR1] {
        let ended = child::end(|| {
            signal::raise(number);
            Ok(())
        })?;
        equal!(ended, Ended::Killed(number as u8), "a death");
    }
    fails!(call!(nr::WAIT4, -1_isize, 0, 0, 0), ECHILD, "no children");
    fails!(call!(nr::WAIT4, 1, 0, 0, 0), ECHILD, "another's child");
    fails!(call!(nr::WAIT4, -1_isize, 0, 0x100, 0), EINVAL, "options that are none");
    Ok(())
}

fn without_waiting() -> Outcome {
    let (read, write) = io::pipe().must("pipe")?;
    let child = child::start(|| {
        let _ = io::read(read, &mut [0]);
        Ok(())
    })?;
    equal!(call!(nr::WAIT4, child, 0, WNOHANG, 0), 0, "no news");
    io::write_all(write, b"x").must("write")?;
    let limit = clock::now() + 5_000_000_000;
    while call!(nr::WAIT4, child, 0, WNOHANG, 0) == 0 {
        ensure!(clock::now() < limit, "the child does not end");
        clock::sleep(100_000);
    }
    fails!(call!(nr::WAIT4, child, 0, WNOHANG, 0), ECHILD, "told once");
    Ok(())
}

fn waitid() -> Outcome {
    let wait = |kind: u32, id: i32, options: u32| {
        let mut info = Siginfo::default();
        let mut usage = Rusage::default();
        let result = call!(nr::WAITID, kind, id, &raw mut info, options, &raw mut usage);
        (result, info)
    };
    let child = child::start(|| process::exit(23))?;
    let (result, info) = wait(P_PID, child, WEXITED | WNOWAIT);
    equal!(result, 0, "waitid");
    equal!((info.si_signo, info.si_code), (SIGCHLD as i32, CLD_EXITED), "what happened");
    equal!((info.pid(), info.uid(), info.status()), (child, 0, 23), "to whom");
    equal!(wait(P_ALL, 0, WEXITED).1.pid(), child, "the child was left to be waited for");
    let child = child::start(|| {
        signal::raise(SIGKILL);
        Ok(())
    })?;
    let (_, info) = wait(P_PID, child, WEXITED);
    equal!((info.si_code, info.status()), (CLD_KILLED, SIGKILL as i32), "a death");
    let (read, _write) = io::pipe().must("pipe")?;
    let child = child::start(|| {
        let _ = io::read(read, &mut [0]);
        Ok(())
    })?;
    let (result, info) = wait(P_PID, child, WEXITED | WNOHANG);
    equal!((result, info.pid(), info.si_signo), (0, 0, 0), "no news");
    equal!(wait(P_PID, child, WNOHANG).0, Errno::EINVAL.to_ret(), "nothing to wait for");
    equal!(wait(9, child, WEXITED).0, Errno::EINVAL.to_ret(), "a kind that is none");
    equal!(wait(P_PGID, 3_000_000, WSTOPPED).0, Errno::ECHILD.to_ret(), "no such group");
    process::kill(child, SIGKILL as i32).must("kill")
}

fn wait_group() -> Outcome {
    let mut members = [0; 2];
    for index in 0..2 {
        members[index] = child::start(|| {
            clock::sleep(5_000_000);
            process::exit(index as u8 + 1)
        })?;
        process::set_group(members[index], members[0]).must("setpgid")?;
    }
    let stranger = child::start(|| process::exit(9))?;
    for _ in 0..2 {
        let (id, _) = process::wait(-members[0]).must("wait for the group")?;
        ensure!(members.contains(&id), "a member");
    }
    fails!(call!(nr::WAIT4, -members[0], 0, 0, 0), ECHILD, "the group is gone");
    equal!(process::wait(0).must("wait for the own group")?, (stranger, Ended::Exited(9)), "the own group");
    Ok(())
}

fn ignored() -> Outcome {
    signal::set(SIGCHLD, Sigaction { handler: SIG_IGN, ..Sigaction::default() }).must("sigaction")?;
    for _ in 0..5 {
        child::start(|| Ok(()))?;
    }
    fails!(call!(nr::WAIT4, -1_isize, 0, 0, 0), ECHILD, "wait returns when the last is gone");
    Ok(())
}

/// A grandchild reports its parent's number after its parent has gone.
fn adopted(before: impl FnOnce()) -> Result<i32, &'static str> {
    let (read, write) = io::pipe().must("pipe")?;
    before();
    let child = child::start(|| {
        let parent = process::id() as isize;
        child::start(|| {
            while call!(nr::GETPPID) == parent {
                clock::sleep(100_000);
            }
            io::write_all(write, &(call!(nr::GETPPID) as i32).to_le_bytes()).must("write")
        })?;
        Ok(())
    })?;
    child::finish(child)?;
    let mut parent = [0; 4];
    equal!(io::read_full(read, &mut parent).must("read")?, 4, "the report");
    Ok(i32::from_le_bytes(parent))
}

fn orphans() -> Outcome {
    equal!(adopted(|| ())?, 1, "the first process takes orphans");
    fails!(call!(nr::WAIT4, -1_isize, 0, 0, 0), ECHILD, "they are not ours");
    Ok(())
}

fn subreaper() -> Outcome {
    let own = process::id();
    let become_one = || {
        call!(nr::PRCTL, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    };
    equal!(adopted(become_one)?, own, "we take orphans");
    equal!(process::wait(-1).must("wait")?.1, Ended::Exited(0), "and wait for them");
    Ok(())
}

fn parent_death() -> Outcome {
    let (read, write) = io::pipe().must("pipe")?;
    let child = child::start(|| {
        child::start(|| {
            signal::block(sigmask(SIGUSR1));
            call!(nr::PRCTL, PR_SET_PDEATHSIG, SIGUSR1, 0, 0, 0);
            io::write_all(write, b"r").must("write")?;
            while signal::pending() & sigmask(SIGUSR1) == 0 {
                clock::sleep(500_000);
            }
            io::write_all(write, b"d").must("write")
        })?;
        let _ = io::read(read, &mut [0]);
        Ok(())
    })?;
    child::finish(child)?;
    let mut byte = [0];
    equal!(io::read(read, &mut byte).must("read")?, 1, "the report");
    equal!(byte[0], b'd', "the parent's death was told");
    Ok(())
}

extern "C" fn write_late(place: usize) -> usize {
    clock::sleep(30_000_000);
    memory::poke(place, 77);
    0
}

fn vfork_waits() -> Outcome {
    let stack = memory::private(4 * memory::PAGE).must("mmap")?;
    let flags = CLONE_VM | CLONE_VFORK | u64::from(SIGCHLD);
    // SAFETY: the stack's upper part is the child's alone.
    let child = unsafe { thread::clone(flags, stack + 4 * memory::PAGE, [0, 0], 0, write_late, stack) };
    equal!(memory::peek(stack), 77, "the parent went on before the child's end");
    child::finish(child.must("vfork")? as i32)
}

fn sessions() -> Outcome {
    // The test's process leads its own group.
    let own = process::id() as isize;
    equal!(call!(nr::GETPGID, 0), own, "the group");
    fails!(call!(nr::SETSID), EPERM, "a leader of a group cannot begin a session");
    let session = call!(nr::GETSID, 0);
    child::pass(|| {
        let id = process::id() as isize;
        equal!((call!(nr::GETPGID, 0), call!(nr::GETSID, 0)), (own, session), "inherited");
        equal!(call!(nr::SETSID), id, "setsid");
        equal!((call!(nr::GETPGID, 0), call!(nr::GETSID, 0)), (id, id), "its own");
        fails!(call!(nr::SETPGID, 0, own), EPERM, "a group of another session");
        Ok(())
    })?;
    fails!(call!(nr::SETPGID, 1, 0), ESRCH, "a process that is no child");
    fails!(call!(nr::SETPGID, 0, -1_isize), EINVAL, "a group that is none");
    fails!(call!(nr::GETPGID, 3_000_000), ESRCH, "a process that is none");
    let child = child::start(|| {
        clock::sleep(5_000_000_000);
        Ok(())
    })?;
    process::set_group(child, 0).must("setpgid")?;
    equal!(call!(nr::GETPGID, child), child as isize, "a child's group");
    process::kill(child, SIGKILL as i32).must("kill")
}

fn drop_rights() -> Outcome {
    call!(nr::SETGROUPS, 0, 0);
    attempt!(nr::SETRESGID, 1_000, 1_000, 1_000).must("setresgid")?;
    attempt!(nr::SETRESUID, 1_000, 1_000, 1_000).must("setresuid")?;
    Ok(())
}

fn unprivileged() -> Outcome {
    let parent = process::id();
    let victim = child::start(|| {
        clock::sleep(20_000_000_000);
        Ok(())
    })?;
    child::pass(|| {
        drop_rights()?;
        for process in [1, parent, victim] {
            fails!(call!(nr::KILL, process, SIGKILL), EPERM, "kill of another user's process");
            fails!(call!(nr::KILL, process, 0), EPERM, "asking after it");
        }
        fails!(call!(nr::SETUID, 0), EPERM, "setuid");
        fails!(call!(nr::SETRESGID, 0, 0, 0), EPERM, "setresgid");
        fails!(call!(nr::SETGROUPS, 0, 0), EPERM, "setgroups");
        fails!(call!(nr::CHROOT, c"/tmp".as_ptr()), EPERM, "chroot");
        fails!(call!(nr::SETHOSTNAME, c"x".as_ptr(), 1), EPERM, "sethostname");
        fails!(call!(nr::REBOOT, 0xfee1_dead_u32, 672_274_793, 0x0123_4567, 0), EPERM, "reboot");
        fails!(call!(nr::MOUNT, c"tmpfs".as_ptr(), c"/tmp".as_ptr(), c"tmpfs".as_ptr(), 0, 0), EPERM, "mount");
        fails!(call!(nr::SETPRIORITY, 0, 0, -5_isize), EACCES, "a better priority");
        let more = Rlimit64 { rlim_cur: 1 << 30, rlim_max: 1 << 30 };
        fails!(call!(nr::PRLIMIT64, 0, RLIMIT_NOFILE, &raw const more, 0), EPERM, "a higher limit");
        let own = child::start(|| {
            clock::sleep(20_000_000_000);
            Ok(())
        })?;
        process::kill(own, SIGKILL as i32).must("kill of an own process")
    })?;
    process::kill(victim, SIGKILL as i32).must("kill")
}

fn identities() -> Outcome {
    child::pass(|| {
        attempt!(nr::SETRESUID, 1_000, 1_001, 1_002).must("setresuid")?;
        let mut ids = [0_u32; 3];
        let places = ids.each_mut().map(|id| &raw mut *id);
        equal!(call!(nr::GETRESUID, places[0], places[1], places[2]), 0, "getresuid");
        equal!(ids, [1_000, 1_001, 1_002], "identities");
        equal!((call!(nr::GETUID), call!(nr::GETEUID)), (1_000, 1_001), "getuid, geteuid");
        attempt!(nr::SETRESUID, -1_isize, 1_002, -1_isize).must("to the saved identity")?;
        equal!(call!(nr::GETEUID), 1_002, "geteuid");
        fails!(call!(nr::SETRESUID, -1_isize, 0, -1_isize), EPERM, "to one that it has not");
        Ok(())
    })?;
    child::pass(|| {
        let groups = [5_u32, 6, 7];
        equal!(call!(nr::SETGROUPS, 3, groups.as_ptr()), 0, "setgroups");
        let mut found = [0_u32; 4];
        equal!(call!(nr::GETGROUPS, 4, found.as_mut_ptr()), 3, "getgroups");
        equal!(found, [5, 6, 7, 0], "groups");
        equal!(call!(nr::GETGROUPS, 0, 0), 3, "how many");
        fails!(call!(nr::GETGROUPS, 2, found.as_mut_ptr()), EINVAL, "too little room");
        Ok(())
    })
}

fn limits() -> Outcome {
    let limit = Rlimit64 { rlim_cur: 10, rlim_max: 20 };
    equal!(call!(nr::PRLIMIT64, 0, RLIMIT_NOFILE, &raw const limit, 0), 0, "prlimit");
    let mut last = 0;
    while let Ok(file) = attempt!(nr::DUP, 1) {
        last = file;
        ensure!(last < 100, "no limit");
    }
    equal!(last, 9, "the last descriptor below the limit");
    fails!(call!(nr::DUP, 1), EMFILE, "one more");
    fails!(call!(nr::DUP3, 1, 15, 0), EBADF, "a number beyond the limit");
    child::pass(|| {
        let mut own = Rlimit64::default();
        call!(nr::PRLIMIT64, 0, RLIMIT_NOFILE, 0, &raw mut own);
        equal!(own, limit, "inherited");
        Ok(())
    })?;
    fails!(call!(nr::PRLIMIT64, 0, 99, 0, 0), EINVAL, "a limit that is none");
    let wrong = Rlimit64 { rlim_cur: 30, rlim_max: 20 };
    fails!(call!(nr::PRLIMIT64, 0, RLIMIT_NOFILE, &raw const wrong, 0), EINVAL, "more than the most");
    Ok(())
}

/// As many threads as a user without privileges may have, whatever the limit; root has no limit.
fn limit_of_a_user() -> Outcome {
    for most in [1, 4] {
        child::pass(|| {
            drop_rights()?;
            let limit = Rlimit64 { rlim_cur: most, rlim_max: most };
            equal!(call!(nr::PRLIMIT64, 0, RLIMIT_NPROC, &raw const limit, 0), 0, "prlimit");
            for _ in 1..most {
                child::start(|| Err(if clock::sleep(20_000_000_000) == 0 { "nobody ended it" } else { "a signal" }))?;
            }
            fails!(call!(nr::CLONE, SIGCHLD, 0, 0, 0, 0), EAGAIN, "one more");
            fails!(Thread::start(nothing, 0).map_or_else(Errno::to_ret, |_| 0), EAGAIN, "a thread more");
            process::kill(-1, SIGKILL as i32).must("kill of all that it may")
        })?;
    }
    let limit = Rlimit64 { rlim_cur: 1, rlim_max: 1 };
    equal!(call!(nr::PRLIMIT64, 0, RLIMIT_NPROC, &raw const limit, 0), 0, "prlimit");
    child::pass(|| Ok(()))
}

extern "C" fn nothing(_: usize) -> usize {
    0
}

fn usage() -> Outcome {
    child::pass(|| {
        let end = clock::read(2) + 60_000_000;
        while clock::read(2) < end {}
        Ok(())
    })?;
    let mut usage = Rusage::default();
    equal!(call!(nr::GETRUSAGE, RUSAGE_CHILDREN, &raw mut usage), 0, "getrusage");
    let time = usage.ru_utime.to_ns().unwrap_or(0) + usage.ru_stime.to_ns().unwrap_or(0);
    ensure!((40_000_000..5_000_000_000).contains(&time), "the child's processor time");
    fails!(call!(nr::GETRUSAGE, 5, &raw mut usage), EINVAL, "usage of nobody");
    Ok(())
}

fn names() -> Outcome {
    equal!(call!(nr::PRCTL, PR_SET_NAME, c"a-name-that-is-cut-off".as_ptr(), 0, 0, 0), 0, "set");
    let mut name = [0_u8; 16];
    equal!(call!(nr::PRCTL, PR_GET_NAME, name.as_mut_ptr(), 0, 0, 0), 0, "get");
    ensure!(&name == b"a-name-that-is-\0", "the name");
    let mut buffer = [0; 64];
    let text = kit::file::text(c"/proc/self/comm", &mut buffer).must("read")?;
    equal!(text, "a-name-that-is-\n", "the name in /proc");
    fails!(call!(nr::PRCTL, 9_999, 0, 0, 0, 0), EINVAL, "an operation that is none");
    Ok(())
}

fn deep() -> Outcome {
    fn descend(depth: u32) -> Outcome {
        if depth == 0 { Ok(()) } else { child::pass(|| descend(depth - 1)) }
    }
    descend(60)?;
    let mut children = [0; 100];
    for child in &mut children {
        *child = child::start(|| {
            clock::sleep(1_000_000);
            Ok(())
        })?;
    }
    children.into_iter().try_for_each(child::finish)
}
