//! The machine as a whole: uname(2), sysinfo(2), getrandom(2), getcpu(2), syslog(2), reboot(2).

use fs::cap;
use hal::addr::{PAGE_SIZE, UserAddr};
use hal::mem::frame;
use hal::sync::SpinLock;
use hal::user::{self, OutBuf};
use hal::{hart, machine, time};
use uapi::system::*;
use uapi::{Errno, Result, Sysinfo, Utsname};

use crate::caller::{need, put, put_opt};
use crate::table::calls;

calls! {
    fast {
        UNAME = uname;
        SETHOSTNAME = sethostname;
        SETDOMAINNAME = setdomainname;
        SYSINFO = sysinfo;
        GETRANDOM = getrandom;
        GETCPU = getcpu;
        SYSLOG = syslog, lacks "SYSLOG_ACTION_READ; console levels are checked and not followed";
        REBOOT = reboot, lacks "suspend, kexec";
    }
}

/// What uname(2) tells of the build.
pub(crate) const VERSION: &str = concat!("#1 SMP Limen ", env!("CARGO_PKG_VERSION"));

/// A name of the system that can be set: bytes and length.
pub(crate) struct Name {
    bytes: [u8; HOST_NAME_MAX],
    len: usize,
}

impl Name {
    const fn new(name: &str) -> Self {
        let mut bytes = [0; HOST_NAME_MAX];
        let mut at = 0;
        while at < name.len() {
            bytes[at] = name.as_bytes()[at];
            at += 1;
        }
        Self { bytes, len: name.len() }
    }

    /// The name.
    pub fn text(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Sets the name, cut to [`HOST_NAME_MAX`] bytes.
    pub fn set(&mut self, text: &[u8]) {
        self.len = text.len().min(HOST_NAME_MAX);
        self.bytes.iter_mut().zip(text).for_each(|(place, byte)| *place = *byte);
    }
}

/// The host name.
pub(crate) static HOST: SpinLock<Name> = SpinLock::new(Name::new("limen"));
/// The NIS domain name.
pub(crate) static DOMAIN: SpinLock<Name> = SpinLock::new(Name::new("(none)"));

fn uname(out: UserAddr) -> Result<()> {
    let mut name = Utsname::default();
    let fill = |field: &mut [u8; 65], text: &[u8]| {
        if let Some(place) = field.get_mut(..text.len()) {
            place.copy_from_slice(text);
        }
    };
    fill(&mut name.sysname, b"Linux");
    fill(&mut name.nodename, HOST.lock().text());
    fill(&mut name.release, RELEASE.as_bytes());
    fill(&mut name.version, VERSION.as_bytes());
    fill(&mut name.machine, b"riscv64");
    fill(&mut name.domainname, DOMAIN.lock().text());
    put(out, &name)
}

fn set_name(name: &SpinLock<Name>, at: UserAddr, len: i32) -> Result<()> {
    need(cap::SYS_ADMIN)?;
    let len = usize::try_from(len).ok().filter(|&len| len <= HOST_NAME_MAX).ok_or(Errno::EINVAL)?;
    let mut new = Name { bytes: [0; HOST_NAME_MAX], len };
    user::copy_in(new.bytes.get_mut(..len).unwrap_or_default(), at)?;
    *name.lock() = new;
    Ok(())
}

fn sethostname(at: UserAddr, len: i32) -> Result<()> {
    set_name(&HOST, at, len)
}

fn setdomainname(at: UserAddr, len: i32) -> Result<()> {
    set_name(&DOMAIN, at, len)
}

fn sysinfo(out: UserAddr) -> Result<()> {
    let memory = frame::stats();
    put(
        out,
        &Sysinfo {
            uptime: (time::now() / time::ticks_per_second()) as i64,
            loads: crate::proc::averages(),
            sharedram: (memory.page_cache * PAGE_SIZE) as u64,
            totalram: (memory.total * PAGE_SIZE) as u64,
            freeram: (memory.free * PAGE_SIZE) as u64,
            procs: u16::try_from(task::thread_total()).unwrap_or(u16::MAX),
            mem_unit: 1,
            ..Sysinfo::default()
        },
    )
}

/// getrandom(2): the generator is seeded before the first program runs, so that it never waits.
fn getrandom(buf: UserAddr, len: usize, flags: u32) -> Result<usize> {
    let both = GRND_RANDOM | GRND_INSECURE;
    if flags & !(GRND_NONBLOCK | both) != 0 || flags & both == both {
        return Err(Errno::EINVAL);
    }
    fs::random::read(&mut OutBuf::User(buf, len.min(i32::MAX as usize)))
}

fn getcpu(cpu: UserAddr, node: UserAddr, _unused: usize) -> Result<()> {
    put_opt(cpu, &(hart::id() as u32))?;
    put_opt(node, &0u32)
}

/// syslog(2): the kernel's log.
fn syslog(action: i32, buf: UserAddr, len: i32) -> Result<usize> {
    /// CAP_SYSLOG of capabilities(7).
    const CAP_SYSLOG: u32 = 34;
    const OPEN: i32 = 1;
    const READ_ALL: i32 = 3;
    const READ_CLEAR: i32 = 4;
    const CLEAR: i32 = 5;
    const CONSOLE_ON: i32 = 7;
    const CONSOLE_LEVEL: i32 = 8;
    const SIZE_UNREAD: i32 = 9;
    const SIZE_BUFFER: i32 = 10;
    if !matches!(action, READ_ALL | SIZE_BUFFER) {
        need(CAP_SYSLOG)?;
    }
    match action {
        0..=OPEN => Ok(0),
        READ_ALL | READ_CLEAR => {
            let len = usize::try_from(len).ok().filter(|_| !buf.is_null()).ok_or(Errno::EINVAL)?;
            let text = fs::dev::kmsg_read_all();
            // What does not fit is the oldest.
            let text = text.get(text.len().saturating_sub(len)..).unwrap_or_default();
            user::copy_out(buf, text)?;
            if action == READ_CLEAR {
                fs::dev::kmsg_clear();
            }
            Ok(text.len())
        }
        CLEAR => {
            fs::dev::kmsg_clear();
            Ok(0)
        }
        6..=CONSOLE_ON => Ok(0),
        CONSOLE_LEVEL if (1..=8).contains(&len) => Ok(0),
        SIZE_UNREAD => Ok(fs::dev::kmsg_read_all().len()),
        SIZE_BUFFER => Ok(fs::dev::KMSG_CAPACITY),
        _ => Err(Errno::EINVAL),
    }
}

/// reboot(2). Power-off is how a program that runs the machine reports success.
fn reboot(magic: u32, magic2: u32, command: u32, _arg: usize) -> Result<()> {
    need(cap::SYS_BOOT)?;
    let known = [LINUX_REBOOT_MAGIC2, LINUX_REBOOT_MAGIC2A, LINUX_REBOOT_MAGIC2B, LINUX_REBOOT_MAGIC2C];
    if magic != LINUX_REBOOT_MAGIC1 || !known.contains(&magic2) {
        return Err(Errno::EINVAL);
    }
    match command {
        LINUX_REBOOT_CMD_POWER_OFF => machine::power_off(false),
        LINUX_REBOOT_CMD_RESTART | LINUX_REBOOT_CMD_RESTART2 => machine::reboot(),
        LINUX_REBOOT_CMD_HALT => machine::halt(),
        // There is no keyboard whose combination could do anything.
        LINUX_REBOOT_CMD_CAD_ON | LINUX_REBOOT_CMD_CAD_OFF => Ok(()),
        _ => Err(Errno::EINVAL),
    }
}
