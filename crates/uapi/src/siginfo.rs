//! siginfo_t of sigaction(2), and sigevent(3type).

use crate::signal::{CLD_CONTINUED, CLD_EXITED, SI_QUEUE, SI_TIMER, SI_TKILL, SI_USER, SIGCHLD};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A signal's information. The union after the first three words is kept as eight-byte words; the builders and
/// accessors know which of its members lies where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Siginfo {
    pub si_signo: i32,
    pub si_errno: i32,
    pub si_code: i32,
    pub pad: i32,
    /// The union, from offset 16.
    pub fields: [u64; 14],
}
layout!(Siginfo: 128, si_code @ 8, fields @ 16);

/// Two 32-bit members in the order they lie in memory.
const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

impl Siginfo {
    fn new(signo: u32, code: i32, fields: [u64; 4]) -> Self {
        let mut info = Siginfo { si_signo: signo as i32, si_code: code, ..Default::default() };
        info.fields[..4].copy_from_slice(&fields);
        info
    }

    /// Sent by the kernel itself without more to say (`SI_KERNEL`), or by anything that has only a code.
    pub fn plain(signo: u32, code: i32) -> Self {
        Self::new(signo, code, [0; 4])
    }

    /// Sent by kill(2).
    pub fn kill(signo: u32, pid: i32, uid: u32) -> Self {
        Self::new(signo, SI_USER, [pair(pid as u32, uid), 0, 0, 0])
    }

    /// Sent by tkill(2) or tgkill(2).
    pub fn tkill(signo: u32, pid: i32, uid: u32) -> Self {
        Self::new(signo, SI_TKILL, [pair(pid as u32, uid), 0, 0, 0])
    }

    /// Sent by sigqueue(3) with a value.
    pub fn queue(signo: u32, pid: i32, uid: u32, value: u64) -> Self {
        Self::new(signo, SI_QUEUE, [pair(pid as u32, uid), value, 0, 0])
    }

    /// A child changed state: SIGCHLD with CLD_*; `status` is the exit code or the signal, times in ticks of
    /// [`crate::time::USER_HZ`].
    pub fn child(code: i32, pid: i32, uid: u32, status: i32, utime: i64, stime: i64) -> Self {
        Self::new(SIGCHLD, code, [pair(pid as u32, uid), pair(status as u32, 0), utime as u64, stime as u64])
    }

    /// A fault at `addr`.
    pub fn fault(signo: u32, code: i32, addr: usize) -> Self {
        Self::new(signo, code, [addr as u64, 0, 0, 0])
    }

    /// A POSIX timer expired: its id, how often it ran over, its value.
    pub fn timer(signo: u32, id: i32, overrun: i32, value: u64) -> Self {
        Self::new(signo, SI_TIMER, [pair(id as u32, overrun as u32), value, 0, 0])
    }

    /// The sender's process id (kill, queue, child).
    pub const fn pid(&self) -> i32 {
        self.fields[0] as i32
    }

    /// The sender's user id (kill, queue, child).
    pub const fn uid(&self) -> u32 {
        (self.fields[0] >> 32) as u32
    }

    /// The exit code or signal of a child.
    pub const fn status(&self) -> i32 {
        self.fields[1] as i32
    }

    /// The address of a fault.
    pub const fn addr(&self) -> usize {
        self.fields[0] as usize
    }

    /// Whether the information says that a child changed state.
    pub const fn is_child(&self) -> bool {
        self.si_signo == SIGCHLD as i32 && self.si_code >= CLD_EXITED && self.si_code <= CLD_CONTINUED
    }
}

/// timer_create(2), mq_notify(2).
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Sigevent {
    pub sigev_value: u64,
    pub sigev_signo: i32,
    pub sigev_notify: i32,
    /// The thread of SIGEV_THREAD_ID.
    pub sigev_notify_thread_id: i32,
    pub pad: [i32; 11],
}
layout!(Sigevent: 64, sigev_notify @ 12, sigev_notify_thread_id @ 16);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::*;

    fn word(info: &Siginfo, offset: usize) -> i32 {
        let b = info.as_bytes();
        i32::from_le_bytes(b[offset..offset + 4].try_into().unwrap())
    }

    #[test]
    fn members_lie_where_the_c_union_has_them() {
        let child = Siginfo::child(CLD_KILLED, 42, 1000, 9, 7, 8);
        assert_eq!((word(&child, 0), word(&child, 8)), (17, 2));
        assert_eq!((word(&child, 16), word(&child, 20), word(&child, 24)), (42, 1000, 9));
        assert_eq!((word(&child, 32), word(&child, 40)), (7, 8));
        assert_eq!((child.pid(), child.uid(), child.status(), child.is_child()), (42, 1000, 9, true));
        let timer = Siginfo::timer(SIGALRM, 3, 5, 0x1234);
        assert_eq!((word(&timer, 16), word(&timer, 20), word(&timer, 24)), (3, 5, 0x1234));
        assert_eq!(Siginfo::fault(SIGSEGV, SEGV_MAPERR, 0xdead_beef).addr(), 0xdead_beef);
    }
}
