//! poll(2), select(2), epoll(7), eventfd(2).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// poll(2).
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Pollfd {
    pub fd: i32,
    pub events: u16,
    pub revents: u16,
}
layout!(Pollfd: 8, revents @ 6);

pub const POLLIN: u16 = 0x1;
pub const POLLPRI: u16 = 0x2;
pub const POLLOUT: u16 = 0x4;
pub const POLLERR: u16 = 0x8;
pub const POLLHUP: u16 = 0x10;
pub const POLLNVAL: u16 = 0x20;
pub const POLLRDNORM: u16 = 0x40;
pub const POLLRDBAND: u16 = 0x80;
pub const POLLWRNORM: u16 = 0x100;
pub const POLLWRBAND: u16 = 0x200;
pub const POLLMSG: u16 = 0x400;
pub const POLLRDHUP: u16 = 0x2000;

/// The set of select(2) as C libraries declare it: 1024 bits. The call itself takes any number of words.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FdSet {
    pub fds_bits: [u64; 16],
}
layout!(FdSet: 128);

/// The last argument of pselect6(2).
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SigsetArg {
    pub set: usize,
    pub size: usize,
}
layout!(SigsetArg: 16);

/// epoll_ctl(2): not packed on riscv64.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct EpollEvent {
    pub events: u32,
    pub pad: u32,
    pub data: u64,
}
layout!(EpollEvent: 16, data @ 8);

pub const EPOLL_CLOEXEC: u32 = 0o2000000;
pub const EPOLL_CTL_ADD: u32 = 1;
pub const EPOLL_CTL_DEL: u32 = 2;
pub const EPOLL_CTL_MOD: u32 = 3;
pub const EPOLLIN: u32 = 0x1;
pub const EPOLLPRI: u32 = 0x2;
pub const EPOLLOUT: u32 = 0x4;
pub const EPOLLERR: u32 = 0x8;
pub const EPOLLHUP: u32 = 0x10;
pub const EPOLLRDHUP: u32 = 0x2000;
pub const EPOLLEXCLUSIVE: u32 = 1 << 28;
pub const EPOLLWAKEUP: u32 = 1 << 29;
pub const EPOLLONESHOT: u32 = 1 << 30;
pub const EPOLLET: u32 = 1 << 31;

pub const EFD_SEMAPHORE: u32 = 1;
pub const EFD_CLOEXEC: u32 = 0o2000000;
pub const EFD_NONBLOCK: u32 = 0o4000;
