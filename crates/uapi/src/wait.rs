//! wait4(2), waitid(2): options, and the status word's encodings.

pub const WNOHANG: u32 = 1;
pub const WUNTRACED: u32 = 2;
pub const WSTOPPED: u32 = 2;
pub const WEXITED: u32 = 4;
pub const WCONTINUED: u32 = 8;
pub const WNOWAIT: u32 = 0x0100_0000;
pub const WNOTHREAD: u32 = 0x2000_0000;
pub const WALL: u32 = 0x4000_0000;
pub const WCLONE: u32 = 0x8000_0000;

pub const P_ALL: u32 = 0;
pub const P_PID: u32 = 1;
pub const P_PGID: u32 = 2;
pub const P_PIDFD: u32 = 3;

/// Status of a process that exited with `code` (its low 8 bits).
#[inline]
pub const fn exited(code: i32) -> i32 {
    (code & 0xff) << 8
}

/// Status of a process that `signal` killed, with or without a core dump.
#[inline]
pub const fn killed(signal: u32, core: bool) -> i32 {
    (signal & 0x7f) as i32 | if core { 0x80 } else { 0 }
}

/// Status of a process that `signal` stopped.
#[inline]
pub const fn stopped(signal: u32) -> i32 {
    ((signal & 0xff) << 8) as i32 | 0x7f
}

/// Status of a process that SIGCONT continued.
pub const CONTINUED: i32 = 0xffff;
