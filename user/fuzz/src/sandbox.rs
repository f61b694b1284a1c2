//! Where the children live, and how they are ended.

use kit::check::{Must, Outcome};
use kit::uapi::resource::{RLIMIT_AS, RLIMIT_NOFILE, RLIMIT_NPROC};
use kit::uapi::signal::SIGKILL;
use kit::uapi::{Rlimit64, nr, open, wait};
use kit::{attempt, call, clock, ensure};
use rt::io;
use rt::process::{self, Fork};

/// The children's directory.
pub const HOME: &core::ffi::CStr = c"/tmp/fuzz";
const USER: usize = 1_000;

/// Mounts the children's directory and goes there.
pub fn enter() -> Outcome {
    call!(nr::MKDIRAT, open::AT_FDCWD, HOME.as_ptr(), 0o777);
    let kind = c"tmpfs".as_ptr();
    attempt!(nr::MOUNT, kind, HOME.as_ptr(), kind, 0, c"mode=0777,size=16m".as_ptr()).must("mount")?;
    attempt!(nr::CHDIR, HOME.as_ptr()).must("chdir")?;
    Ok(())
}

/// Takes it away with all that is in it.
pub fn leave() -> Outcome {
    kill_rest()?;
    attempt!(nr::CHDIR, c"/".as_ptr()).must("chdir")?;
    // The last of the killed may still hold a file.
    for _ in 0..100 {
        if call!(nr::UMOUNT2, HOME.as_ptr(), 0) == 0 {
            return Ok(());
        }
        clock::sleep(10_000_000);
    }
    Err("the children's file system stays busy")
}

/// Becomes a process without privilege, with nothing but /dev/null open, in a session of its own.
fn drop_all() -> Outcome {
    call!(nr::SETSID);
    let null = io::open(c"/dev/null", open::O_RDWR, 0).must("open /dev/null")?;
    for file in 0..3 {
        io::duplicate(null, file).must("dup3")?;
    }
    call!(nr::CLOSE_RANGE, 3, u32::MAX, 0);
    for (resource, value) in [(RLIMIT_AS, 256 << 20), (RLIMIT_NPROC, 40), (RLIMIT_NOFILE, 64)] {
        let limit = Rlimit64 { rlim_cur: value, rlim_max: value };
        call!(nr::PRLIMIT64, 0, resource, &raw const limit, 0);
    }
    call!(nr::SETGROUPS, 0, 0);
    attempt!(nr::SETRESGID, USER, USER, USER).must("setresgid")?;
    attempt!(nr::SETRESUID, USER, USER, USER).must("setresuid")?;
    ensure!(call!(nr::GETEUID) == USER as isize, "still privileged");
    Ok(())
}

/// How a child of [`child`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With this status.
    Exited(u8),
    /// By a signal of its own making.
    Died,
    /// It had to be killed.
    Overdue,
}

/// Runs `body` as user 1000 for at most so many nanoseconds, and kills whatever it leaves behind.
pub fn child(limit: u64, body: impl FnOnce()) -> Result<End, &'static str> {
    let child = match process::fork().must("fork")? {
        Fork::Child => {
            if drop_all().is_ok() {
                body();
            }
            process::exit(0)
        }
        Fork::Parent(child) => child,
    };
    let end = await_end(child, limit)?;
    Ok(end)
}

/// A child may stop under a tracer, which is us if it asked for that: only an end counts.
fn await_end(child: i32, limit: u64) -> Result<End, &'static str> {
    let deadline = clock::now() + limit;
    let mut overdue = false;
    let mut pause = 20_000;
    loop {
        let mut status = 0_u32;
        let found = attempt!(nr::WAIT4, child, &raw mut status, wait::WNOHANG | wait::WALL, 0).must("wait4")?;
        match status & 0x7f {
            _ if found == 0 => {
                if clock::now() > deadline {
                    overdue = true;
                    let _ = process::kill(child, SIGKILL as i32);
                }
                clock::sleep(pause);
                pause = (pause * 2).min(2_000_000);
            }
            0x7f => drop(process::kill(child, SIGKILL as i32)),
            _ if overdue => return Ok(End::Overdue),
            0 => return Ok(End::Exited((status >> 8) as u8)),
            _ => return Ok(End::Died),
        }
    }
}

/// Kills all processes of the children's user.
pub fn kill_rest() -> Outcome {
    let killer = match process::fork().must("fork")? {
        Fork::Child => {
            // Not with `drop_all`: a limit on the user's processes may be used up.
            call!(nr::SETRESUID, USER, USER, USER);
            let _ = process::kill(-1, SIGKILL as i32);
            process::exit(0)
        }
        Fork::Parent(child) => child,
    };
    process::wait(killer).must("wait")?;
    // Children that a child asked for as siblings of its own, by CLONE_PARENT, are ours.
    while call!(nr::WAIT4, -1_isize, 0, wait::WNOHANG | wait::WALL, 0) > 0 {}
    Ok(())
}
