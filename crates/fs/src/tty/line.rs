//! The line discipline: termios(3), "Canonical and noncanonical mode", `c_iflag`, `c_lflag`, `c_cc`.
//!
//! In canonical mode the line being edited is apart from what can be read; a finished line is a length in a queue, so
//! that a read never goes past the end of a line, and an end-of-file character is a line of no bytes. In the other mode
//! all that is received can be read at once.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use uapi::Termios;
use uapi::signal::{SIGINT, SIGQUIT, SIGTSTP};
use uapi::termios::{
    ECHO, ECHOCTL, ECHOE, ECHOK, ECHOKE, ECHONL, ICANON, ICRNL, IEXTEN, IGNCR, IMAXBEL, INLCR, ISIG, ISTRIP, IUCLC,
    IUTF8, IXANY, IXON, NOFLSH, POSIX_VDISABLE, VEOF, VEOL, VEOL2, VERASE, VINTR, VKILL, VLNEXT, VMIN, VQUIT, VREPRINT,
    VSTART, VSTOP, VSUSP, VTIME, VWERASE,
};

use super::output::{Output, Sink};
use super::{ConsoleDevice, State};

/// Most bytes that wait to be read, and the longest line: Linux's N_TTY_BUF_SIZE.
const CAPACITY: usize = 4096;

/// The input side of a terminal.
#[derive(Default)]
pub(crate) struct Line {
    /// What can be read.
    ready: VecDeque<u8>,
    /// Canonical mode: lengths of the lines at the front of `ready`.
    lines: VecDeque<usize>,
    /// The line being edited.
    edit: Vec<u8>,
    /// The column where the echo of the line began.
    start_column: usize,
    /// The next character is taken as it is (`VLNEXT`).
    literal: bool,
}

fn canonical(termios: &Termios) -> bool {
    termios.c_lflag & ICANON != 0
}

/// Whether `byte` is the control character `which`, and that is not disabled.
fn is(termios: &Termios, which: usize, byte: u8) -> bool {
    termios.c_cc.get(which).is_some_and(|set| *set == byte && *set != POSIX_VDISABLE)
}

fn cc(termios: &Termios, which: usize) -> usize {
    termios.c_cc.get(which).copied().unwrap_or(0) as usize
}

impl Line {
    /// Bytes that could be read now (`FIONREAD`).
    pub fn available(&self, termios: &Termios) -> usize {
        if canonical(termios) { self.lines.iter().sum() } else { self.ready.len() }
    }

    /// Whether poll(2) reports input.
    pub fn readable(&self, termios: &Termios) -> bool {
        if canonical(termios) {
            return !self.lines.is_empty();
        }
        let min = if cc(termios, VTIME) == 0 { cc(termios, VMIN) } else { 1 };
        self.ready.len() >= min.max(1)
    }

    /// How long a read that found nothing waits, in tenths of a second; `None`: for ever.
    pub fn timeout(&self, termios: &Termios) -> Option<u8> {
        let time = cc(termios, VTIME) as u8;
        // With VMIN the clock runs only between characters.
        let running = cc(termios, VMIN) == 0 || !self.ready.is_empty();
        (!canonical(termios) && time != 0 && running).then_some(time)
    }

    /// Starts a read of `wanted` bytes: fills `place`, gives the count and whether more of the same read may follow.
    /// `None`: it has to wait. `now`: it waited long enough.
    pub fn take(&mut self, termios: &Termios, place: &mut [u8], wanted: usize, now: bool) -> Option<(usize, bool)> {
        if canonical(termios) {
            if self.lines.is_empty() {
                return now.then_some((0, false));
            }
            return Some(self.take_line(place));
        }
        let (min, time) = (cc(termios, VMIN), cc(termios, VTIME));
        let enough = match (min, time) {
            _ if now => true,
            (0, 0) => true,
            (0, _) => !self.ready.is_empty(),
            (min, _) => self.ready.len() >= min.min(wanted),
        };
        enough.then(|| self.take_bytes(place))
    }

    /// Goes on with a read that has filled its first piece.
    pub fn take_more(&mut self, termios: &Termios, place: &mut [u8]) -> Option<(usize, bool)> {
        if canonical(termios) {
            // A line of nothing here is the end of file that came right behind a full piece: left for the next read.
            return if self.lines.front().is_some_and(|len| *len > 0) { Some(self.take_line(place)) } else { None };
        }
        if self.ready.is_empty() { None } else { Some(self.take_bytes(place)) }
    }

    fn take_bytes(&mut self, place: &mut [u8]) -> (usize, bool) {
        let n = place.len().min(self.ready.len());
        place.iter_mut().zip(self.ready.drain(..n)).for_each(|(to, from)| *to = from);
        (n, !self.ready.is_empty())
    }

    fn take_line(&mut self, place: &mut [u8]) -> (usize, bool) {
        let Some(len) = self.lines.front_mut() else { return (0, false) };
        let n = place.len().min(*len);
        *len -= n;
        let more = *len != 0;
        if !more {
            self.lines.pop_front();
        }
        place.iter_mut().zip(self.ready.drain(..n)).for_each(|(to, from)| *to = from);
        (n, more)
    }

    /// Drops all input (`TCIFLUSH`, signal characters).
    pub fn flush(&mut self) {
        self.ready.clear();
        self.lines.clear();
        self.edit.clear();
        self.literal = false;
    }

    /// The mode changed: what has been received stays readable.
    pub fn mode_changed(&mut self, was: &Termios, is: &Termios) {
        if canonical(was) == canonical(is) {
            return;
        }
        if canonical(is) {
            // All that waits counts as one line.
            if !self.ready.is_empty() {
                self.lines.push_back(self.ready.len());
            }
        } else {
            self.lines.clear();
            self.ready.extend(self.edit.drain(..));
        }
        self.literal = false;
    }

    fn full(&self) -> bool {
        self.ready.len() + self.edit.len() >= CAPACITY - 1
    }

    fn finish_line(&mut self) {
        self.lines.push_back(self.edit.len());
        self.ready.extend(self.edit.drain(..));
    }
}

impl State {
    /// Takes one received character, echoes it, and gives the signal that it means for the foreground group.
    pub fn receive(&mut self, byte: u8, device: &dyn ConsoleDevice) -> Option<u32> {
        let mut sink = Sink::new(device);
        let Self { termios, line, output, stopped, .. } = self;
        let flags = (termios.c_iflag, termios.c_lflag);
        let mut byte = if flags.0 & ISTRIP != 0 { byte & 0x7f } else { byte };
        if flags.0 & IUCLC != 0 && flags.1 & IEXTEN != 0 {
            byte = byte.to_ascii_lowercase();
        }
        let mut echo = Echo { termios, output, sink: &mut sink };
        if line.literal {
            line.literal = false;
            store(line, byte, &mut echo);
            return None;
        }
        if flags.0 & IXON != 0 {
            if is(termios, VSTART, byte) {
                *stopped = false;
                return None;
            }
            if is(termios, VSTOP, byte) {
                *stopped = true;
                return None;
            }
            if *stopped && flags.0 & IXANY != 0 {
                *stopped = false;
            }
        }
        if flags.1 & ISIG != 0 {
            let signals = [(VINTR, SIGINT), (VQUIT, SIGQUIT), (VSUSP, SIGTSTP)];
            if let Some((_, signal)) = signals.iter().find(|(which, _)| is(termios, *which, byte)) {
                if flags.1 & NOFLSH == 0 {
                    line.flush();
                }
                *stopped = false;
                echo.char(byte);
                return Some(*signal);
            }
        }
        match byte {
            b'\r' if flags.0 & IGNCR != 0 => return None,
            b'\r' if flags.0 & ICRNL != 0 => byte = b'\n',
            b'\n' if flags.0 & INLCR != 0 => byte = b'\r',
            _ => {}
        }
        if canonical(termios) {
            edit(line, byte, &mut echo);
        } else {
            store(line, byte, &mut echo);
        }
        None
    }
}

/// Appends a character to the line, or without one to what can be read.
fn store(line: &mut Line, byte: u8, echo: &mut Echo<'_, '_>) {
    if line.full() {
        if echo.termios.c_iflag & IMAXBEL != 0 {
            echo.sink.put(7);
        }
        return;
    }
    if canonical(echo.termios) {
        if line.edit.is_empty() {
            line.start_column = echo.output.column;
        }
        line.edit.push(byte);
    } else {
        line.ready.push_back(byte);
    }
    echo.char(byte);
}

/// Canonical mode: an editing character, the end of a line, or text.
fn edit(line: &mut Line, byte: u8, echo: &mut Echo<'_, '_>) {
    let termios = echo.termios;
    let extended = termios.c_lflag & IEXTEN != 0;
    let this = |which| is(termios, which, byte);
    if this(VERASE) {
        echo.erase(line, 1);
    } else if this(VKILL) {
        let all = line.edit.len();
        if termios.c_lflag & (ECHOE | ECHOK | ECHOKE) == ECHOE | ECHOK | ECHOKE {
            echo.erase(line, all);
        } else {
            line.edit.clear();
            echo.char(byte);
            if termios.c_lflag & ECHOK != 0 && echo.on() {
                echo.raw(b'\n');
            }
        }
    } else if extended && this(VWERASE) {
        let word = line.edit.iter().rev();
        let blanks = word.clone().take_while(|byte| is_blank(**byte)).count();
        let letters = word.skip(blanks).take_while(|byte| !is_blank(**byte)).count();
        echo.erase(line, blanks + letters);
    } else if extended && this(VLNEXT) {
        line.literal = true;
        if echo.on() && termios.c_lflag & ECHOCTL != 0 {
            echo.raw(b'^');
            echo.raw(8);
        }
    } else if extended && this(VREPRINT) && echo.on() {
        echo.char(byte);
        echo.raw(b'\n');
        line.start_column = echo.output.column;
        line.edit.iter().for_each(|byte| echo.char(*byte));
    } else if byte == b'\n' {
        line.edit.push(byte);
        if echo.on() || termios.c_lflag & ECHONL != 0 {
            echo.raw(b'\n');
        }
        line.finish_line();
    } else if this(VEOF) {
        line.finish_line();
    } else if this(VEOL) || extended && this(VEOL2) {
        line.edit.push(byte);
        echo.char(byte);
        line.finish_line();
    } else {
        store(line, byte, echo);
    }
}

fn is_blank(byte: u8) -> bool {
    !(byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80)
}

/// Shows what is typed.
struct Echo<'a, 'b> {
    termios: &'a Termios,
    output: &'a mut Output,
    sink: &'a mut Sink<'b>,
}

impl Echo<'_, '_> {
    fn on(&self) -> bool {
        self.termios.c_lflag & ECHO != 0
    }

    fn raw(&mut self, byte: u8) {
        self.output.put(self.termios, byte, self.sink);
    }

    /// Echoes a character; control characters as `^X`.
    fn char(&mut self, byte: u8) {
        if !self.on() {
            return;
        }
        if self.termios.c_lflag & ECHOCTL != 0 && (byte < 0x20 || byte == 0x7f) && !matches!(byte, b'\t' | b'\n') {
            self.raw(b'^');
            self.raw(byte ^ 0x40);
        } else {
            self.raw(byte);
        }
    }

    /// Takes the last `count` characters off the line (with `IUTF8` whole sequences), and off the screen.
    fn erase(&mut self, line: &mut Line, count: usize) {
        let mut left = count;
        while left != 0
            && let Some(byte) = line.edit.pop()
        {
            left -= 1;
            let mut shown = byte;
            while self.termios.c_iflag & IUTF8 != 0 && shown & 0xc0 == 0x80 {
                let Some(before) = line.edit.pop() else { break };
                // A word is counted in bytes, a single erasure in characters.
                left = if count == 1 { 0 } else { left.saturating_sub(1) };
                shown = before;
            }
            if !self.on() {
                continue;
            }
            if self.termios.c_lflag & ECHOE == 0 {
                self.char(byte);
                continue;
            }
            for _ in 0..self.width(line, shown) {
                self.raw(8);
                self.raw(b' ');
                self.raw(8);
            }
        }
    }

    /// Columns that the character just taken off the line took on the screen.
    fn width(&self, line: &Line, byte: u8) -> usize {
        let control = self.termios.c_lflag & ECHOCTL != 0;
        let step = |column: usize, byte: u8| match byte {
            b'\t' => (column / 8 + 1) * 8,
            0..0x20 | 0x7f => column + if control { 2 } else { 0 },
            0x80..0xc0 if self.termios.c_iflag & IUTF8 != 0 => column,
            _ => column + 1,
        };
        let before = line.edit.iter().fold(line.start_column, |column, byte| step(column, *byte));
        step(before, byte) - before
    }
}
