//! Terminals: termios(3), tty(4), ioctl_tty(2), and job control (credentials(7), "Sessions").
//!
//! A terminal joins a device that takes characters, a line discipline ([`mod@line`]: editing, echo, signal characters) and
//! the programs. Input arrives by [`input`] from the interrupt of the UART. Which session a terminal controls is kept
//! here alone: a process's controlling terminal is the one whose session is the process's.
//!
//! Signals are sent after the terminal's lock is released, through [`TtySignals`].

mod ioctl;
mod job;
mod line;
mod output;

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use hal::sync::{Once, SpinLock, WaitQueue};
use hal::user::{InBuf, OutBuf};
use uapi::fs::{S_IFCHR, makedev};
use uapi::open::O_NOCTTY;
use uapi::termios::{B9600, CLOCAL, CREAD, CS8, HUPCL, TOSTOP};
use uapi::{Errno, Result, Termios, Winsize};

use crate::dev::{Device, register};
use crate::file::{File, FileOps, Ops, PollEvents};

pub use job::{JobIds, TtySignals, of_session, session_exit, set_signals};
use line::Line;
use output::Output;

/// Where a terminal's characters go. It takes them all; it may have to poll the hardware.
///
/// [`ConsoleDevice::write`] runs under the terminal's lock. So a driver must hold no lock that its `write` takes when it
/// calls [`input`]: the echo of what it hands in comes back through `write`.
pub trait ConsoleDevice: Send + Sync {
    /// Puts out `bytes` as they are.
    fn write(&self, bytes: &[u8]);
}

pub(crate) struct State {
    pub termios: Termios,
    pub winsize: Winsize,
    pub line: Line,
    pub output: Output,
    /// Output was stopped by `VSTOP` or `TCOOFF`.
    pub stopped: bool,
    /// The session that it controls.
    pub session: Option<u32>,
    /// The foreground process group.
    pub foreground: Option<u32>,
}

/// A terminal.
pub struct Tty {
    name: String,
    dev: u64,
    device: &'static dyn ConsoleDevice,
    state: SpinLock<State>,
    queue: WaitQueue,
}

static TTYS: SpinLock<Vec<Arc<Tty>>> = SpinLock::new(Vec::new());
static CONSOLE: Once<Arc<Tty>> = Once::new();

/// Opens a terminal by its own name, or by one that never makes it the controlling terminal.
struct TtyDevice {
    tty: Arc<Tty>,
    controls: bool,
}

impl Device for TtyDevice {
    fn open(&self, flags: u32) -> Result<Ops> {
        if self.controls && flags & O_NOCTTY == 0 {
            self.tty.acquire();
        }
        Ok(Ops::Shared(self.tty.clone()))
    }
}

/// `/dev/tty`: the caller's controlling terminal.
struct Controlling;

impl Device for Controlling {
    fn open(&self, _: u32) -> Result<Ops> {
        let ids = job::current().ok_or(Errno::ENXIO)?;
        of_session(ids.sid).map(|tty| Ops::Shared(tty as Arc<dyn FileOps>)).ok_or(Errno::ENXIO)
    }
}

/// Registers a terminal on `device` as `/dev/NAME` with its number (64 and up of major 4 are serial lines).
pub fn register_tty(name: &str, major: u32, minor: u32, device: &'static dyn ConsoleDevice) -> Result<Arc<Tty>> {
    let tty = Arc::new(Tty {
        name: name.into(),
        dev: makedev(major, minor),
        device,
        state: SpinLock::new(State {
            termios: Termios::INITIAL,
            winsize: Winsize::default(),
            line: Line::default(),
            output: Output::default(),
            stopped: false,
            session: None,
            foreground: None,
        }),
        queue: WaitQueue::new(),
    });
    TTYS.lock().push(tty.clone());
    let node = TtyDevice { tty: tty.clone(), controls: true };
    register(S_IFCHR | 0o600, major, minor, name, Arc::new(node))?;
    Ok(tty)
}

/// Registers the serial console: `/dev/ttyS0`, and `/dev/console` and `/dev/tty` with it.
pub fn init_console(device: &'static dyn ConsoleDevice) -> Result<Arc<Tty>> {
    let tty = register_tty("ttyS0", 4, 64, device)?;
    // A serial line: without modem signals, and with Linux's speed.
    tty.state.lock().termios.c_cflag = B9600 | CS8 | CREAD | HUPCL | CLOCAL;
    let console = TtyDevice { tty: tty.clone(), controls: false };
    register(S_IFCHR | 0o600, 5, 1, "console", Arc::new(console))?;
    register(S_IFCHR | 0o666, 5, 0, "tty", Arc::new(Controlling))?;
    let _ = CONSOLE.set(tty.clone());
    Ok(tty)
}

/// Characters that the console's device received. From interrupt context; nothing happens before [`init_console`].
pub fn input(bytes: &[u8]) {
    if let Some(tty) = CONSOLE.get() {
        tty.input(bytes);
    }
}

impl Tty {
    /// The device number, as `tty_nr` in `/proc/PID/stat`.
    pub fn dev(&self) -> u64 {
        self.dev
    }

    /// The name below `/dev`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Received characters: through the line discipline, with echo; then waiters are woken and signals sent.
    pub fn input(&self, bytes: &[u8]) {
        for byte in bytes {
            let mut state = self.state.lock();
            let signal = state.receive(*byte, self.device);
            let foreground = state.foreground;
            drop(state);
            if let (Some(signal), Some(group)) = (signal, foreground) {
                job::signal_group(group, signal);
            }
        }
        self.queue.wake_all();
    }

    /// Waits of a read with `VTIME`, in tenths of a second; `None`: as long as it takes. A read that got `EAGAIN` and
    /// waited that long takes what is there with [`Tty::read_now`], perhaps nothing.
    pub fn read_timeout(&self) -> Option<u8> {
        let state = self.state.lock();
        state.line.timeout(&state.termios)
    }

    /// The end of a read that has waited: whatever there is, 0 if nothing.
    pub fn read_now(&self, out: &mut OutBuf<'_>) -> Result<usize> {
        self.take(out, true)
    }

    fn take(&self, out: &mut OutBuf<'_>, now: bool) -> Result<usize> {
        let mut done = 0;
        let mut chunk = [0; 128];
        while !out.is_empty() {
            let want = out.len().min(chunk.len());
            let place = chunk.get_mut(..want).ok_or(Errno::EIO)?;
            let mut state = self.state.lock();
            let State { line, termios, .. } = &mut *state;
            // The first chunk may have to wait; after it, only what belongs to the same read follows.
            let taken =
                if done == 0 { line.take(termios, place, out.len(), now) } else { line.take_more(termios, place) };
            drop(state);
            let Some((n, more)) = taken else { return if done == 0 { Err(Errno::EAGAIN) } else { Ok(done) } };
            match out.write(chunk.get(..n).unwrap_or_default()) {
                Ok(copied) => done += copied,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
            if !more {
                break;
            }
        }
        Ok(done)
    }

    fn put(&self, input: &mut InBuf<'_>) -> Result<usize> {
        let mut done = 0;
        let mut chunk = [0; 256];
        while !input.is_empty() {
            if self.state.lock().stopped {
                return if done == 0 { Err(Errno::EAGAIN) } else { Ok(done) };
            }
            let n = match input.read(&mut chunk) {
                Ok(n) => n,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            };
            let mut state = self.state.lock();
            let State { termios, output, .. } = &mut *state;
            output.write(termios, chunk.get(..n).unwrap_or_default(), self.device);
            done += n;
        }
        Ok(done)
    }
}

impl FileOps for Tty {
    fn read(&self, _: &File, out: &mut OutBuf<'_>) -> Result<usize> {
        self.check_foreground(uapi::signal::SIGTTIN)?;
        self.take(out, false)
    }

    fn write(&self, _: &File, input: &mut InBuf<'_>) -> Result<usize> {
        if self.state.lock().termios.c_lflag & TOSTOP != 0 {
            self.check_foreground(uapi::signal::SIGTTOU)?;
        }
        self.put(input)
    }

    fn poll(&self, _: &File) -> PollEvents {
        let state = self.state.lock();
        let mut events = PollEvents::empty();
        events.set(PollEvents::READABLE, state.line.readable(&state.termios));
        events.set(PollEvents::WRITABLE, !state.stopped);
        events
    }

    fn ioctl(&self, _: &File, cmd: u32, arg: usize) -> Result<usize> {
        self.control(cmd, arg)
    }

    fn wait_queue(&self, _: &File) -> Option<&WaitQueue> {
        Some(&self.queue)
    }

    fn as_tty(&self) -> Option<&Tty> {
        Some(self)
    }
}

#[cfg(test)]
mod tests;
