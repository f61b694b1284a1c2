//! ioctl_tty(2).

use hal::addr::UserAddr;
use hal::user::{copy_in, copy_out};
use uapi::ioctl::{
    FIONREAD, TCFLSH, TCGETA, TCGETS, TCIFLUSH, TCIOFF, TCIOFLUSH, TCION, TCOFLUSH, TCOOFF, TCOON, TCSBRK, TCSBRKP,
    TCSETA, TCSETAF, TCSETAW, TCSETS, TCSETSF, TCSETSW, TCXONC, TIOCEXCL, TIOCGETD, TIOCGPGRP, TIOCGSID, TIOCGWINSZ,
    TIOCM_CAR, TIOCM_CTS, TIOCM_DSR, TIOCM_DTR, TIOCM_OUT2, TIOCM_RTS, TIOCMGET, TIOCNOTTY, TIOCNXCL, TIOCOUTQ,
    TIOCSCTTY, TIOCSETD, TIOCSPGRP, TIOCSTI, TIOCSWINSZ,
};
use uapi::signal::{SIGTTOU, SIGWINCH};
use uapi::{Errno, Result, Termio, Termios, Winsize};
use zerocopy::{FromBytes, IntoBytes};

use super::{Tty, job};

/// Reads a structure from user memory.
fn get<T: FromBytes + IntoBytes>(at: usize) -> Result<T> {
    let mut value = T::new_zeroed();
    copy_in(value.as_mut_bytes(), UserAddr(at))?;
    Ok(value)
}

/// Writes a structure to user memory.
fn put<T: IntoBytes + zerocopy::Immutable>(at: usize, value: &T) -> Result<usize> {
    copy_out(UserAddr(at), value.as_bytes())?;
    Ok(0)
}

/// The older form of the settings.
fn older(termios: &Termios) -> Termio {
    let mut old = Termio {
        c_iflag: termios.c_iflag as u16,
        c_oflag: termios.c_oflag as u16,
        c_cflag: termios.c_cflag as u16,
        c_lflag: termios.c_lflag as u16,
        c_line: termios.c_line,
        ..Termio::default()
    };
    old.c_cc.iter_mut().zip(termios.c_cc).for_each(|(old, new)| *old = new);
    old
}

/// Settings of which the older form gives its part, and `rest` what it does not have.
fn newer(old: Termio, rest: &Termios) -> Termios {
    let flags = |low: u16, rest: u32| rest & !0xffff | u32::from(low);
    let mut new = Termios {
        c_iflag: flags(old.c_iflag, rest.c_iflag),
        c_oflag: flags(old.c_oflag, rest.c_oflag),
        c_cflag: flags(old.c_cflag, rest.c_cflag),
        c_lflag: flags(old.c_lflag, rest.c_lflag),
        c_line: old.c_line,
        ..*rest
    };
    new.c_cc.iter_mut().zip(old.c_cc).for_each(|(new, old)| *new = old);
    new
}

impl Tty {
    pub(super) fn control(&self, cmd: u32, arg: usize) -> Result<usize> {
        match cmd {
            TCGETS => {
                let termios = self.state.lock().termios;
                put(arg, &termios)
            }
            TCSETS | TCSETSW | TCSETSF => self.set_termios(get(arg)?, cmd == TCSETSF),
            TCGETA => {
                let termios = self.state.lock().termios;
                put(arg, &older(&termios))
            }
            TCSETA | TCSETAW | TCSETAF => {
                let new = newer(get(arg)?, &self.state.lock().termios);
                self.set_termios(new, cmd == TCSETAF)
            }
            // The port's own lines are on, and so are those of the other side, which is always there.
            TIOCMGET => put(arg, &(TIOCM_DTR | TIOCM_RTS | TIOCM_OUT2 | TIOCM_CTS | TIOCM_CAR | TIOCM_DSR)),
            TIOCGWINSZ => {
                let winsize = self.state.lock().winsize;
                put(arg, &winsize)
            }
            TIOCSWINSZ => self.set_winsize(get(arg)?),
            TIOCGPGRP => {
                self.controls_caller()?;
                put(arg, &self.foreground().unwrap_or(0))
            }
            TIOCSPGRP => self.set_foreground(get(arg)?).map(|()| 0),
            TIOCGSID => {
                self.controls_caller()?;
                put(arg, &self.session().unwrap_or(0))
            }
            TIOCSCTTY => self.take_control(arg == 1).map(|()| 0),
            TIOCNOTTY => self.give_up_control().map(|()| 0),
            FIONREAD => {
                let state = self.state.lock();
                let available = state.line.available(&state.termios) as i32;
                drop(state);
                put(arg, &available)
            }
            // The device takes everything at once: nothing waits, nothing to wait for.
            TIOCOUTQ => put(arg, &0i32),
            TCSBRK | TCSBRKP => self.check_foreground(SIGTTOU).map(|()| 0),
            TCFLSH => self.flush(arg),
            TCXONC => self.flow(arg),
            TIOCSTI => self.fake_input(arg),
            TIOCEXCL | TIOCNXCL => Ok(0),
            TIOCGETD => put(arg, &0i32),
            TIOCSETD => {
                if get::<i32>(arg)? == 0 {
                    Ok(0)
                } else {
                    Err(Errno::EINVAL)
                }
            }
            _ => Err(Errno::ENOTTY),
        }
    }

    fn set_termios(&self, new: Termios, flush: bool) -> Result<usize> {
        self.check_foreground(SIGTTOU)?;
        let mut state = self.state.lock();
        if flush {
            state.line.flush();
        }
        let old = state.termios;
        state.line.mode_changed(&old, &new);
        state.termios = new;
        if new.c_iflag & uapi::termios::IXON == 0 {
            state.stopped = false;
        }
        drop(state);
        self.queue.wake_all();
        Ok(0)
    }

    fn set_winsize(&self, new: Winsize) -> Result<usize> {
        let mut state = self.state.lock();
        let changed = core::mem::replace(&mut state.winsize, new) != new;
        let foreground = state.foreground.filter(|_| changed);
        drop(state);
        if let Some(group) = foreground {
            job::signal_group(group, SIGWINCH);
        }
        Ok(0)
    }

    fn flush(&self, which: usize) -> Result<usize> {
        self.check_foreground(SIGTTOU)?;
        match u32::try_from(which) {
            Ok(TCIFLUSH | TCIOFLUSH) => self.state.lock().line.flush(),
            Ok(TCOFLUSH) => {}
            _ => return Err(Errno::EINVAL),
        }
        Ok(0)
    }

    fn flow(&self, action: usize) -> Result<usize> {
        self.check_foreground(SIGTTOU)?;
        let stop = match u32::try_from(action) {
            Ok(TCOOFF) => true,
            Ok(TCOON) => false,
            Ok(TCIOFF | TCION) => {
                // Tells the other side to stop or to go on.
                let which = if action as u32 == TCIOFF { uapi::termios::VSTOP } else { uapi::termios::VSTART };
                let byte = self.state.lock().termios.c_cc.get(which).copied().unwrap_or(0);
                if byte != 0 {
                    self.device.write(&[byte]);
                }
                return Ok(0);
            }
            _ => return Err(Errno::EINVAL),
        };
        self.state.lock().stopped = stop;
        self.queue.wake_all();
        Ok(0)
    }

    fn fake_input(&self, arg: usize) -> Result<usize> {
        let privileged = job::signals().is_some_and(|signals| signals.is_privileged());
        if !privileged && self.controls_caller().is_err() {
            return Err(Errno::EPERM);
        }
        let byte: u8 = get(arg)?;
        self.input(&[byte]);
        Ok(0)
    }
}
