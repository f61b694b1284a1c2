//! The program: found, started as the foreground of the console's session, awaited.
//!
//! init itself leads the session, and stays: when a leader ends, Linux hangs its terminal up and drops what that has not
//! sent yet, so that a program that led it could lose its last lines. Nobody can continue the program if the terminal
//! stops it; but a child of init counts as orphaned, whose group no terminal stops.

use crate::config::Config;
use core::ffi::{CStr, c_char};
use rt::io;
use rt::process::{self, Fork};
use rt::sys;
use rt::uapi::signal::{SIG_BLOCK, SIG_UNBLOCK, SIGTTOU, sigmask};
use rt::uapi::{Errno, ioctl, nr};

/// Where a name without a slash is looked for.
const DIRECTORIES: [&str; 6] = ["/usr/local/sbin/", "/usr/local/bin/", "/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"];
const PATH_MAX: usize = 4096;

/// Statuses of a shell for a program that is not there, and for one that cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

/// Runs the program to its end, and gives its status; whatever else ends meanwhile is reaped.
pub fn run(config: &Config) -> u8 {
    // SAFETY: no addresses.
    unsafe { sys::call3(nr::SETSID, 0, 0, 0) };
    let _ = io::ioctl_number(io::STDIN, ioctl::TIOCSCTTY, 0);
    // A process in the background may still drain the terminal, and the program come to its foreground.
    change_mask(SIG_BLOCK);
    let child = match process::fork() {
        Ok(Fork::Child) => become_program(config),
        Ok(Fork::Parent(child)) => child,
        Err(error) => {
            rt::eprintln!("init: cannot fork: errno {}", error.code());
            return NOT_EXECUTABLE;
        }
    };
    loop {
        match process::wait(-1) {
            Ok((ended, how)) if ended == child => return how.shell_status(),
            Ok(_) => {}
            Err(error) => {
                rt::eprintln!("init: cannot wait: errno {}", error.code());
                return NOT_EXECUTABLE;
            }
        }
    }
}

/// Blocks or lets through what a terminal sends to those in the background who change it.
fn change_mask(how: u32) {
    let set = sigmask(SIGTTOU);
    // SAFETY: the call reads the set, of 8 bytes.
    unsafe { sys::call6(nr::RT_SIGPROCMASK, [how as usize, (&raw const set).addr(), 0, 8, 0, 0]) };
}

fn become_program(config: &Config) -> ! {
    let mut group = process::id();
    let _ = process::set_group(0, 0);
    // SAFETY: this request takes the number of a group.
    let _ = unsafe { io::ioctl(io::STDIN, ioctl::TIOCSPGRP, &mut group) };
    change_mask(SIG_UNBLOCK);
    let directory = config.get(b"cwd").unwrap_or(c"/");
    // SAFETY: the call reads a string ended by a zero byte.
    if let Err(error) = unsafe { sys::try3(nr::CHDIR, directory.as_ptr() as usize, 0, 0) } {
        fail(directory, error);
    }
    if let Some(user) = config.number(b"uid") {
        // SAFETY: no addresses but an empty list.
        let dropped = unsafe {
            sys::try3(nr::SETGROUPS, 0, 0, 0).and(sys::try3(nr::SETGID, user, 0, 0)).and(sys::try3(
                nr::SETUID,
                user,
                0,
                0,
            ))
        };
        if let Err(error) = dropped {
            fail(c"setuid", error);
        }
    }
    let program = config.program();
    let error = if config.is_shell {
        execute(c"/bin/sh", config)
    } else if program.to_bytes().contains(&b'/') {
        execute(program, config)
    } else {
        search(program, config)
    };
    fail(program, error)
}

/// Tries the directories in turn; a file that may not be run is only the answer if no other is found.
fn search(program: &CStr, config: &Config) -> Errno {
    let mut answer = Errno::ENOENT;
    for directory in DIRECTORIES {
        let mut path = [0_u8; PATH_MAX];
        let name = program.to_bytes_with_nul();
        let Some(room) = path.get_mut(directory.len()..directory.len() + name.len()) else {
            return Errno::ENAMETOOLONG;
        };
        room.copy_from_slice(name);
        path[..directory.len()].copy_from_slice(directory.as_bytes());
        let Ok(path) = CStr::from_bytes_until_nul(&path) else { continue };
        match execute(path, config) {
            Errno::ENOENT | Errno::ENOTDIR => {}
            error => answer = error,
        }
    }
    answer
}

/// execve(2), and for a script without `#!` the shell, as execvp(3) does.
fn execute(path: &CStr, config: &Config) -> Errno {
    // SAFETY: both arrays end with null pointers and hold strings.
    let error = unsafe { process::execute(path, config.argv(), config.envp()) };
    let arguments = config.arguments();
    let mut argv: [*const c_char; 64] = [core::ptr::null(); 64];
    if error != Errno::ENOEXEC || arguments.len() + 3 > argv.len() {
        return error;
    }
    argv[0] = c"sh".as_ptr();
    argv[1] = path.as_ptr();
    argv[2..2 + arguments.len()].copy_from_slice(arguments);
    // SAFETY: as above; at least one null pointer is left at the end.
    unsafe { process::execute(c"/bin/sh", argv.as_ptr(), config.envp()) };
    error
}

fn fail(what: &CStr, error: Errno) -> ! {
    let name = what.to_str().unwrap_or("?");
    if error == Errno::ENOENT {
        rt::eprintln!("{name}: not found");
        process::exit(NOT_FOUND)
    }
    rt::eprintln!("{name}: cannot be run: errno {}", error.code());
    process::exit(NOT_EXECUTABLE)
}
