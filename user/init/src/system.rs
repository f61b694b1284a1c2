//! Mounts, console, power.

use crate::config::Config;
use core::ffi::CStr;
use core::fmt;
use rt::io;
use rt::sys;
use rt::uapi::{Termios, Winsize, ioctl, nr, open, termios};

/// File systems, where they go, their options. What a kernel does not have, or has mounted already, is passed over.
const MOUNTS: [(&CStr, &CStr, &CStr); 5] = [
    (c"devtmpfs", c"/dev", c"mode=0755"),
    (c"proc", c"/proc", c""),
    (c"sysfs", c"/sys", c""),
    (c"devpts", c"/dev/pts", c"mode=0620,ptmxmode=0666"),
    (c"tmpfs", c"/dev/shm", c"mode=1777"),
];

/// Mounts what there is.
pub fn mount_all() {
    for (kind, place, options) in MOUNTS {
        // SAFETY: all addresses are strings ended by zero bytes, which the calls only read.
        unsafe {
            sys::call6(nr::MKDIRAT, [open::AT_FDCWD as isize as usize, place.as_ptr() as usize, 0o755, 0, 0, 0]);
            sys::call6(
                nr::MOUNT,
                [
                    kind.as_ptr() as usize,
                    place.as_ptr() as usize,
                    kind.as_ptr() as usize,
                    0,
                    options.as_ptr() as usize,
                    0,
                ],
            );
        }
    }
}

/// Makes the console standard input, output and error.
pub fn open_console() {
    let Ok(console) = io::open(c"/dev/console", open::O_RDWR, 0) else { return };
    for fd in [io::STDIN, io::STDOUT, io::STDERR] {
        let _ = io::duplicate(console, fd);
    }
    if console > io::STDERR {
        let _ = io::close(console);
    }
}

/// The name in /etc/hostname.
pub fn set_host_name() {
    let Ok(file) = io::open(c"/etc/hostname", open::O_RDONLY, 0) else { return };
    let mut name = [0; 64];
    let length = io::read_full(file, &mut name).unwrap_or(0);
    let _ = io::close(file);
    let length = name[..length].iter().position(|byte| *byte == b'\n').unwrap_or(length);
    // SAFETY: the call reads `length` bytes of `name`.
    unsafe { sys::call3(nr::SETHOSTNAME, name.as_ptr() as usize, length, 0) };
}

/// Size and modes of the terminal. Input that does not come from a terminal is neither echoed nor interpreted, but for
/// its lines and its end.
pub fn prepare_terminal(config: &Config) {
    if let Some((rows, columns)) = config.get(b"winsize").and_then(|text| text.to_str().ok()?.split_once(',')) {
        let size = |text: &str| text.parse().unwrap_or(0);
        let mut winsize = Winsize { ws_row: size(rows), ws_col: size(columns), ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: this request takes a `Winsize`.
        let _ = unsafe { io::ioctl(io::STDIN, ioctl::TIOCSWINSZ, &mut winsize) };
    }
    if config.get(b"echo").is_some_and(|text| text == c"off") {
        let mut modes = Termios::INITIAL;
        // SAFETY: both requests take a `Termios`.
        unsafe {
            if io::ioctl(io::STDIN, ioctl::TCGETS, &mut modes).is_ok() {
                modes.c_iflag &= !(termios::ICRNL | termios::IXON | termios::IXOFF | termios::ISTRIP);
                modes.c_lflag &= !(termios::ECHO | termios::ISIG);
                let _ = io::ioctl(io::STDIN, ioctl::TCSETS, &mut modes);
            }
        }
    }
}

/// A line for the host, in one write.
pub fn frame(text: fmt::Arguments<'_>) {
    io::print(io::STDOUT, format_args!("\x1e[limen {text}]\n"));
}

/// Waits until all output has left.
pub fn drain_console() {
    let _ = io::ioctl_number(io::STDOUT, ioctl::TCSBRK, 1);
}

/// reboot(2).
pub fn power_off() -> ! {
    const MAGIC: [usize; 2] = [0xfee1_dead, 672_274_793];
    const POWER_OFF: usize = 0x4321_fedc;
    // SAFETY: no addresses.
    unsafe {
        sys::call3(nr::SYNC, 0, 0, 0);
        sys::call3(nr::REBOOT, MAGIC[0], MAGIC[1], POWER_OFF);
    }
    // The kernel could not: the host ends the machine. Init must not end, which would be a panic.
    loop {
        rt::process::sleep(core::time::Duration::from_secs(3600));
    }
}
