use std::cell::Cell;
use std::string::String;
use std::sync::Mutex;
use std::vec::Vec;

use uapi::Errno;
use uapi::ioctl::*;
use uapi::signal::{SIGCONT, SIGHUP, SIGINT, SIGTTIN, SIGTTOU, SIGWINCH};
use uapi::termios::*;
use zerocopy::{FromBytes, IntoBytes};

use super::*;
use crate::vfs::{Node, anon_inode, anonymous_file};

/// A device that remembers what it put out.
#[derive(Default)]
struct Screen(Mutex<Vec<u8>>);

impl ConsoleDevice for Screen {
    fn write(&self, bytes: &[u8]) {
        self.0.lock().unwrap().extend(bytes);
    }
}

/// A process model: the caller is set by the test, signals are remembered, both for this thread.
struct Model;

std::thread_local! {
    static CURRENT: Cell<JobIds> = const { Cell::new(JobIds { pid: 1, pgid: 1, sid: 1 }) };
    static IGNORED: Cell<bool> = const { Cell::new(false) };
    static SENT: Mutex<Vec<(u32, u32)>> = const { Mutex::new(Vec::new()) };
}

impl TtySignals for Model {
    fn current(&self) -> JobIds {
        CURRENT.get()
    }
    fn signal_group(&self, pgid: u32, signal: u32) {
        SENT.with(|sent| sent.lock().unwrap().push((pgid, signal)));
    }
    fn is_ignored(&self, _: u32) -> bool {
        IGNORED.get()
    }
    fn is_orphaned(&self) -> bool {
        false
    }
    fn session_of_group(&self, pgid: u32) -> Option<u32> {
        (pgid % 10 != 9).then_some(pgid / 10 * 10)
    }
    fn is_privileged(&self) -> bool {
        false
    }
}

struct Terminal {
    tty: Arc<Tty>,
    file: Arc<File>,
    screen: &'static Screen,
}

impl Terminal {
    /// A terminal of its own for each test; sessions are told apart by their number.
    fn new(minor: u32) -> Self {
        set_signals(&Model);
        let screen: &'static Screen = std::boxed::Box::leak(std::boxed::Box::default());
        let tty = register_tty(&std::format!("test{minor}"), 200, minor, screen).unwrap();
        let inode = anon_inode(S_IFCHR | 0o600, 0, 0, Node::Device);
        let file = anonymous_file(Ops::Shared(tty.clone()), inode, uapi::open::O_RDWR);
        Self { tty, file, screen }
    }

    fn read(&self, len: usize) -> Result<String> {
        crate::testing::read(&self.file, len).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&core::mem::take(&mut *self.screen.0.lock().unwrap())).into_owned()
    }

    fn set(&self, change: impl FnOnce(&mut Termios)) {
        let mut termios = self.tty.state.lock().termios;
        change(&mut termios);
        self.ioctl_with(TCSETS, termios).unwrap();
    }

    fn ioctl_with<T: IntoBytes + zerocopy::Immutable>(&self, cmd: u32, value: T) -> Result<usize> {
        let at = hal::user::host::install(64);
        hal::user::host::poke(at, value.as_bytes());
        self.file.ioctl(cmd, at.0)
    }

    fn ioctl_get<T: FromBytes>(&self, cmd: u32) -> Result<T> {
        let at = hal::user::host::install(64);
        self.file.ioctl(cmd, at.0)?;
        Ok(T::read_from_bytes(&hal::user::host::peek(at, size_of::<T>())).unwrap())
    }
}

fn sent() -> Vec<(u32, u32)> {
    SENT.with(|sent| core::mem::take(&mut *sent.lock().unwrap()))
}

fn be(pid: u32, pgid: u32, sid: u32) {
    CURRENT.set(JobIds { pid, pgid, sid });
}

#[test]
fn a_line_is_edited_echoed_and_read_whole() {
    let t = Terminal::new(1);
    assert_eq!(t.read(10), Err(Errno::EAGAIN));
    t.tty.input(b"hallo\x7f\x7f\x7fllo w\xc3\xb6");
    assert_eq!(t.read(10), Err(Errno::EAGAIN));
    t.tty.input(b"rld\rnext\n");
    assert_eq!(t.shown(), "hallo\x08 \x08\x08 \x08\x08 \x08llo w\u{f6}rld\r\nnext\r\n");
    assert_eq!(t.ioctl_get::<i32>(FIONREAD), Ok(18));
    assert_eq!(t.read(4).unwrap(), "hall");
    assert_eq!(t.read(100).unwrap(), "o w\u{f6}rld\n");
    assert_eq!(t.read(100).unwrap(), "next\n");
    t.tty.input(b"one two  \x17X\x15killed\n");
    assert_eq!(t.read(100).unwrap(), "killed\n");
    t.tty.input(b"a\x16\x03b\n");
    assert_eq!(t.read(100).unwrap(), "a\x03b\n");
    assert!(t.shown().ends_with("a^\x08^Cb\r\n"));
}

#[test]
fn utf8_and_tabs_are_erased_as_shown() {
    let t = Terminal::new(2);
    t.set(|termios| termios.c_iflag |= IUTF8);
    t.tty.input("\u{e9}\x7fa\t\x7f\x7f".as_bytes());
    assert_eq!(t.shown(), std::format!("\u{e9}\x08 \x08a\t{}\x08 \x08", "\x08 \x08".repeat(7)));
    t.tty.input(b"\n");
    assert_eq!(t.read(9).unwrap(), "\n");
}

#[test]
fn end_of_file_and_other_ends() {
    let t = Terminal::new(3);
    t.tty.input(b"\x04");
    assert_eq!(t.read(9).unwrap(), "");
    assert_eq!(t.read(9), Err(Errno::EAGAIN));
    t.tty.input(b"half\x04rest\n");
    assert_eq!(t.read(9).unwrap(), "half");
    assert_eq!(t.read(9).unwrap(), "rest\n");
    t.set(|termios| termios.c_cc[VEOL] = b';');
    t.tty.input(b"a;b;");
    assert_eq!(t.read(9).unwrap(), "a;");
    assert_eq!(t.read(9).unwrap(), "b;");
    let long = [b'x'; 5000];
    t.tty.input(&long);
    t.tty.input(b"\n");
    assert_eq!(t.read(9999).unwrap().len(), 4096, "what is too long is cut, the end gets in");
}

#[test]
fn raw_input_by_count_and_time() {
    let t = Terminal::new(4);
    let mode = |min, time| {
        t.set(|termios| {
            termios.c_lflag &= !(ICANON | ECHO | ISIG);
            termios.c_cc[VMIN] = min;
            termios.c_cc[VTIME] = time;
        });
    };
    t.tty.input(b"typed ahead");
    mode(1, 0);
    assert_eq!(t.read(5).unwrap(), "typed", "an unfinished line can be read now");
    assert_eq!(t.read(99).unwrap(), " ahead");
    mode(3, 0);
    t.tty.input(b"\x03x");
    assert_eq!(t.read(9), Err(Errno::EAGAIN));
    assert!(!t.file.poll().contains(PollEvents::IN));
    assert_eq!(t.read(2).unwrap(), "\x03x", "a smaller read wants less");
    mode(0, 0);
    assert_eq!(t.read(9).unwrap(), "");
    mode(0, 5);
    assert_eq!((t.read(9), t.tty.read_timeout()), (Err(Errno::EAGAIN), Some(5)));
    assert_eq!(t.tty.read_now(&mut OutBuf::Kernel(&mut [0; 4])), Ok(0));
    mode(2, 5);
    assert_eq!(t.tty.read_timeout(), None, "the clock starts with the first character");
    t.tty.input(b"a");
    assert_eq!((t.read(9), t.tty.read_timeout()), (Err(Errno::EAGAIN), Some(5)));
    assert_eq!(t.tty.read_now(&mut OutBuf::Kernel(&mut [0; 4])), Ok(1));
    assert_eq!(t.shown(), "typed ahead");
}

#[test]
fn output_is_processed_and_stopped() {
    let t = Terminal::new(5);
    crate::testing::write(&t.file, b"a\nb\tc").unwrap();
    assert_eq!(t.shown(), "a\r\nb\tc");
    t.set(|termios| termios.c_oflag |= 0o14000);
    crate::testing::write(&t.file, b"\ra\tb").unwrap();
    assert_eq!(t.shown(), "\ra       b");
    t.set(|termios| termios.c_oflag = 0);
    crate::testing::write(&t.file, b"\n").unwrap();
    assert_eq!(t.shown(), "\n");
    t.tty.input(b"\x13");
    assert_eq!(crate::testing::write(&t.file, b"x"), Err(Errno::EAGAIN));
    assert_eq!(t.file.poll(), PollEvents::empty());
    t.tty.input(b"\x11");
    assert_eq!(crate::testing::write(&t.file, b"x"), Ok(1));
}

#[test]
fn job_control() {
    let t = Terminal::new(6);
    be(60, 60, 60);
    assert_eq!(t.ioctl_get::<i32>(TIOCGPGRP), Err(Errno::ENOTTY));
    assert_eq!(t.file.ioctl(TIOCSCTTY, 0), Ok(0));
    assert_eq!(t.ioctl_get::<i32>(TIOCGPGRP), Ok(60));
    assert_eq!(t.ioctl_get::<i32>(TIOCGSID), Ok(60));
    assert!(of_session(60).is_some_and(|tty| Arc::ptr_eq(&tty, &t.tty)));
    assert_eq!(t.ioctl_with(TIOCSPGRP, 61i32), Ok(0));
    t.tty.input(b"gone\x03");
    assert_eq!(sent(), [(61, SIGINT)]);
    assert_eq!(t.shown(), "gone^C");
    // The leader's group is in the background now.
    t.tty.input(b"line\n");
    assert_eq!(t.read(9), Err(Errno::ERESTARTSYS));
    assert_eq!(sent(), [(60, SIGTTIN)]);
    assert_eq!(t.ioctl_with(TIOCSPGRP, 60i32), Err(Errno::ERESTARTSYS));
    assert_eq!(sent(), [(60, SIGTTOU)]);
    assert_eq!(crate::testing::write(&t.file, b"x"), Ok(1), "without TOSTOP everybody writes");
    IGNORED.set(true);
    assert_eq!(t.read(9), Err(Errno::EIO));
    assert_eq!(t.ioctl_with(TIOCSPGRP, 69i32), Err(Errno::ESRCH));
    assert_eq!(t.ioctl_with(TIOCSPGRP, 70i32), Err(Errno::EPERM));
    assert_eq!(t.ioctl_with(TIOCSPGRP, 60i32), Ok(0));
    IGNORED.set(false);
    assert_eq!(t.read(9).unwrap(), "line\n");
    assert_eq!(t.ioctl_with(TIOCSWINSZ, Winsize { ws_row: 24, ws_col: 80, ..Winsize::default() }), Ok(0));
    assert_eq!(sent(), [(60, SIGWINCH)]);
    assert_eq!(t.ioctl_get::<Winsize>(TIOCGWINSZ).unwrap().ws_col, 80);
    be(65, 65, 65);
    assert_eq!(t.file.ioctl(TIOCSCTTY, 0), Err(Errno::EPERM), "another session has it");
    assert_eq!(t.file.ioctl(TIOCNOTTY, 0), Err(Errno::ENOTTY));
    be(60, 60, 60);
    assert_eq!(t.file.ioctl(TIOCNOTTY, 0), Ok(0));
    assert_eq!(sent(), [(60, SIGHUP), (60, SIGCONT)]);
    assert_eq!(t.tty.session(), None);
    assert_eq!(t.file.ioctl(0x1234, 0), Err(Errno::ENOTTY));
    assert_eq!(t.file.ioctl(TCGETS, 1), Err(Errno::EFAULT));
}

#[test]
fn opening_takes_control() {
    let t = Terminal::new(7);
    be(70, 70, 70);
    let opener = TtyDevice { tty: t.tty.clone(), controls: true };
    assert!(matches!(Controlling.open(0), Err(Errno::ENXIO)));
    opener.open(uapi::open::O_NOCTTY).map(drop).unwrap();
    assert_eq!(t.tty.session(), None);
    be(71, 71, 70);
    opener.open(0).map(drop).unwrap();
    assert_eq!(t.tty.session(), None, "only a leader takes control");
    be(70, 70, 70);
    opener.open(0).map(drop).unwrap();
    assert_eq!((t.tty.session(), t.tty.foreground()), (Some(70), Some(70)));
    assert!(Controlling.open(0).is_ok());
}
