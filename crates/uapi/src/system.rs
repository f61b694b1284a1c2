//! uname(2), sysinfo(2), reboot(2), getrandom(2), capget(2), syslog(2).

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// uname(2): NUL-terminated strings.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Utsname {
    pub sysname: [u8; 65],
    pub nodename: [u8; 65],
    pub release: [u8; 65],
    pub version: [u8; 65],
    pub machine: [u8; 65],
    pub domainname: [u8; 65],
}
layout!(Utsname: 390, machine @ 260);

impl Default for Utsname {
    fn default() -> Self {
        FromZeros::new_zeroed()
    }
}

/// The Linux release whose user ABI Limen offers, for uname(2); [`crate::vdso::LINUX_VERSION_CODE`] is the same.
pub const RELEASE: &str = "6.12.0-limen";

/// sysinfo(2).
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Sysinfo {
    pub uptime: i64,
    /// Load averages, scaled by 65536.
    pub loads: [u64; 3],
    pub totalram: u64,
    pub freeram: u64,
    pub sharedram: u64,
    pub bufferram: u64,
    pub totalswap: u64,
    pub freeswap: u64,
    pub procs: u16,
    pub pad1: [u16; 3],
    pub totalhigh: u64,
    pub freehigh: u64,
    pub mem_unit: u32,
    pub pad2: u32,
}
layout!(Sysinfo: 112, totalram @ 32, procs @ 80, totalhigh @ 88, mem_unit @ 104);

/// capget(2).
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CapHeader {
    pub version: u32,
    pub pid: i32,
}
layout!(CapHeader: 8);

/// 32 capabilities of capget(2).
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CapData {
    pub effective: u32,
    pub permitted: u32,
    pub inheritable: u32,
}
layout!(CapData: 12);

/// capget(2) versions: the first takes one [`CapData`], the others two.
pub const LINUX_CAPABILITY_VERSION_1: u32 = 0x1998_0330;
pub const LINUX_CAPABILITY_VERSION_2: u32 = 0x2007_1026;
pub const LINUX_CAPABILITY_VERSION_3: u32 = 0x2008_0522;
pub const CAP_LAST_CAP: u32 = 40;

pub const LINUX_REBOOT_MAGIC1: u32 = 0xfee1_dead;
pub const LINUX_REBOOT_MAGIC2: u32 = 672_274_793;
pub const LINUX_REBOOT_MAGIC2A: u32 = 85_072_278;
pub const LINUX_REBOOT_MAGIC2B: u32 = 369_367_448;
pub const LINUX_REBOOT_MAGIC2C: u32 = 537_993_216;
pub const LINUX_REBOOT_CMD_RESTART: u32 = 0x0123_4567;
pub const LINUX_REBOOT_CMD_HALT: u32 = 0xcdef_0123;
pub const LINUX_REBOOT_CMD_CAD_ON: u32 = 0x89ab_cdef;
pub const LINUX_REBOOT_CMD_CAD_OFF: u32 = 0;
pub const LINUX_REBOOT_CMD_POWER_OFF: u32 = 0x4321_fedc;
pub const LINUX_REBOOT_CMD_RESTART2: u32 = 0xa1b2_c3d4;

pub const GRND_NONBLOCK: u32 = 1;
pub const GRND_RANDOM: u32 = 2;
pub const GRND_INSECURE: u32 = 4;

/// Longest name sethostname(2) takes.
pub const HOST_NAME_MAX: usize = 64;

/// personality(2).
pub const PER_LINUX: u32 = 0;
pub const ADDR_NO_RANDOMIZE: u32 = 0x004_0000;
