//! Running workloads one after the other, each in a process of its own, and telling what came of them.
//!
//! A workload that dies, hangs or meets a call that the kernel lacks costs its own line: it runs in a child, in a process
//! group that is killed when time is up. Between two workloads the console is drained and the kernel gets a little time,
//! so that what one left behind is not counted with the next.

use crate::meter::{Lack, Meter};
use crate::{Workload, marker, region};
use core::ffi::CStr;
use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use kit::memory::{self, Zeroes};
use kit::uapi::signal::{SIGALRM, SIGKILL};
use kit::uapi::{Errno, Siginfo, Ucontext, ioctl, nr, open};
use kit::{attempt, call, clock, file, signal};
use rt::io;
use rt::process::{self, Ended, Fork};

/// Nanoseconds after boot from which on a kernel counts as settled.
const SETTLED: u64 = 20_000_000_000;
/// Nanoseconds between workloads.
const PAUSE: u64 = 50_000_000;
/// Microseconds that one may take.
const LIMIT: i64 = 5_000_000;

/// What a child left.
#[repr(C)]
struct Left {
    ticks: AtomicU64,
    /// 0 nothing, below 0 an error number, above 0 the length of a text at `text`.
    lack: AtomicI64,
    text: AtomicU64,
}

// SAFETY: atomics, of which zeroes are a value.
unsafe impl Zeroes for Left {}

/// Waits until start-up work is over.
pub fn settle() {
    clock::sleep_until(SETTLED);
}

/// Measures one and prints its line: `name figure`, the figure in nanoseconds with two decimals, or
/// `# name: n/a, reason`. Gives whether there is a figure.
pub fn measure(workload: &Workload, args: rt::Args) -> bool {
    let before = kernel_counts();
    let figure = match attempt_one(workload, args) {
        Ok(ticks) => {
            let hundredths = ticks * clock::TICK * 100 / u64::from(workload.operations);
            rt::println!("{} {}.{:02}", workload.name, hundredths / 100, hundredths % 100);
            if let (Some(before), Some(after)) = (before, kernel_counts()) {
                rt::println!("# {}: spurious faults {}", workload.name, after[0] - before[0]);
                rt::println!("# {}: lock waits {}", workload.name, after[1] - before[1]);
            }
            true
        }
        Err(Unmeasured::Lack(Lack::Call(error))) => {
            rt::println!("# {}: n/a, errno {}", workload.name, error.code());
            false
        }
        Err(Unmeasured::Lack(Lack::Because(reason))) => {
            rt::println!("# {}: n/a, {reason}", workload.name);
            false
        }
        Err(Unmeasured::Killed(number)) => {
            rt::println!("# {}: n/a, signal {number}", workload.name);
            false
        }
        Err(Unmeasured::Late) => {
            rt::println!("# {}: n/a, no end within {} s", workload.name, LIMIT / 1_000_000);
            false
        }
    };
    let _ = io::ioctl_number(io::STDOUT, ioctl::TCSBRK, 1);
    clock::sleep(PAUSE);
    figure
}

/// Spurious page faults, and spin locks found taken, since boot on all harts by the kernel's own count; `None` if it does
/// not tell.
fn kernel_counts() -> Option<[u64; 2]> {
    let mut buffer = [0; 16_384];
    let text = file::text(c"/proc/limen/boundary", &mut buffer).ok()?;
    Some(["faults_spurious ", "lock_waits "].map(|name| {
        let count = |line: &str| line.trim_start().strip_prefix(name)?.trim().parse::<u64>().ok();
        text.lines().filter_map(count).sum()
    }))
}

enum Unmeasured {
    Lack(Lack),
    Killed(u8),
    Late,
}

impl From<Errno> for Unmeasured {
    fn from(error: Errno) -> Self {
        Unmeasured::Lack(Lack::Call(error))
    }
}

fn attempt_one(workload: &Workload, args: rt::Args) -> Result<u64, Unmeasured> {
    let left = memory::shared_value::<Left>()?;
    left.lack.store(0, Ordering::Relaxed);
    let child = match process::fork()? {
        Fork::Parent(child) => child,
        Fork::Child => {
            let _ = process::set_group(0, 0);
            let mut meter = Meter::new(args, workload.operations, region(workload));
            match (workload.run)(&mut meter) {
                Ok(ticks) => left.ticks.store(ticks, Ordering::Relaxed),
                Err(Lack::Call(error)) => left.lack.store(-i64::from(error.code()), Ordering::Relaxed),
                Err(Lack::Because(reason)) => {
                    left.text.store(reason.as_ptr() as u64, Ordering::Relaxed);
                    left.lack.store(reason.len() as i64, Ordering::Relaxed);
                }
            }
            process::exit(0)
        }
    };
    let ended = await_end(child);
    // The report's page is mapped anew for each.
    let (ticks, lack, text) =
        (left.ticks.load(Ordering::Relaxed), left.lack.load(Ordering::Relaxed), left.text.load(Ordering::Relaxed));
    memory::unmap(core::ptr::from_ref(left) as usize, memory::PAGE)?;
    match (ended?, lack) {
        (Ended::Killed(number), _) if u32::from(number) == SIGKILL => Err(Unmeasured::Late),
        (Ended::Killed(number), _) => Err(Unmeasured::Killed(number)),
        (Ended::Exited(0), 0) => Ok(ticks),
        (Ended::Exited(0), length @ 1..) => {
            // SAFETY: the child is a copy of this process, so that its constant text lies at the same place here.
            let bytes = unsafe { core::slice::from_raw_parts(text as *const u8, length as usize) };
            Err(Unmeasured::Lack(Lack::Because(core::str::from_utf8(bytes).unwrap_or("it does not say why"))))
        }
        (Ended::Exited(0), error) => {
            let error = Errno::from_ret(error as isize).unwrap_or(Errno::EIO);
            Err(Unmeasured::Lack(Lack::Call(error)))
        }
        (Ended::Exited(_), _) => Err(Unmeasured::Lack(Lack::Because("the program panicked"))),
    }
}

extern "C" fn alarm(_: i32, _: *const Siginfo, _: *mut Ucontext) {}

/// Waits for the child; when time is up its whole group is killed.
fn await_end(child: i32) -> Result<Ended, Errno> {
    let _ = process::set_group(child, child);
    // Without SA_RESTART the wait is interrupted.
    signal::handle(SIGALRM, alarm, 0)?;
    signal::timer(LIMIT, 0);
    let mut status = 0_u32;
    let ended = loop {
        match attempt!(nr::WAIT4, child, &raw mut status, 0, 0) {
            Ok(_) => break Ended::from_status(status),
            Err(Errno::EINTR) => {
                call!(nr::KILL, -child, SIGKILL);
            }
            Err(error) => return Err(error),
        }
    };
    signal::timer(0, 0);
    // Whoever is left of the group has lost its partner.
    call!(nr::KILL, -child, SIGKILL);
    while process::try_wait(-1).is_ok_and(|ended| ended.is_some()) {}
    Ok(ended)
}

/// Where a program's name without a slash is looked for.
const DIRECTORIES: [&str; 4] = ["/usr/bin/", "/usr/sbin/", "/bin/", "/sbin/"];

/// Runs the program named by argument `first` with the arguments after it as region 1, from its fork to its end, and
/// gives its status as a shell would.
pub fn profile(first: usize, args: rt::Args) -> u8 {
    let Some(name) = args.get(first) else {
        rt::eprintln!("--profile takes a program");
        return 125;
    };
    let mut path = [0_u8; 512];
    let Some(path) = find_program(name, &mut path) else {
        rt::eprintln!("{}: not found", name.to_str().unwrap_or("?"));
        return 127;
    };
    marker::begin(1);
    let status = match process::fork() {
        Ok(Fork::Child) => {
            // Nobody types at the lab's console.
            if let Ok(nothing) = io::open(c"/dev/null", open::O_RDONLY, 0) {
                let _ = io::duplicate(nothing, io::STDIN);
                let _ = io::close(nothing);
            }
            // SAFETY: both arrays are this program's own, as the kernel made them.
            let error = unsafe { process::execute(path, args.pointer(first), args.environment_pointer()) };
            rt::eprintln!("{}: cannot be run: errno {}", path.to_str().unwrap_or("?"), error.code());
            process::exit(126)
        }
        Ok(Fork::Parent(child)) => process::wait(child).map_or(125, |(_, ended)| ended.shell_status()),
        Err(_) => 125,
    };
    marker::end(1);
    status
}

/// The path of a program, written to `buffer` if it had to be searched for.
fn find_program<'a>(name: &'a CStr, buffer: &'a mut [u8]) -> Option<&'a CStr> {
    const EXECUTABLE: u32 = 1;
    let exists = |path: &CStr| call!(nr::FACCESSAT, open::AT_FDCWD, path.as_ptr(), EXECUTABLE) == 0;
    if name.to_bytes().contains(&b'/') {
        return exists(name).then_some(name);
    }
    for directory in DIRECTORIES {
        let bytes = name.to_bytes_with_nul();
        buffer.get_mut(directory.len()..directory.len() + bytes.len())?.copy_from_slice(bytes);
        buffer[..directory.len()].copy_from_slice(directory.as_bytes());
        if CStr::from_bytes_until_nul(buffer).is_ok_and(exists) {
            return CStr::from_bytes_until_nul(buffer).ok();
        }
    }
    None
}
