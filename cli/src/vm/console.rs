//! Taking the console apart: what the firmware and the kernel said, what the program said, how it ended.
//!
//! init frames the program's output: `ESC-like control character 0x1e, "[limen start]"` before it and
//! `0x1e "[limen exit N]"` after it, each with a newline of its own. Between them the terminal's carriage returns
//! (`\r\n` for each `\n`) are undone. A line of a kernel that begins with `KERNEL PANIC` ends the program's output
//! for good: from there on whole lines are reported, so that addresses in them can be given names.

const FRAME: &[u8] = b"\x1e[limen ";
const FRAME_MAX: usize = 40;
const PANIC: &[u8] = b"KERNEL PANIC";

/// A piece of the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Outside the frames: firmware, kernel.
    Around(Vec<u8>),
    /// The program is about to start.
    Start,
    /// From the program.
    Program(Vec<u8>),
    /// The program's status.
    Exit(u8),
    /// A line of a kernel panic, without its end.
    Panic(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Before,
    Inside,
    After,
    Panicking,
}

/// The console as far as it has been read.
pub struct Console {
    state: State,
    /// Bytes that may begin a frame or be the carriage return of a line end.
    held: Vec<u8>,
    /// The newline that belongs to a frame is still to come.
    skip_newline: bool,
    /// How much of the panic's first word the line holds, `None` once it differs.
    panic_match: Option<usize>,
    line: Vec<u8>,
    watch_panic: bool,
    pieces: Vec<Piece>,
}

impl Console {
    /// `watch_panic`: whether a line `KERNEL PANIC…` is the kernel's.
    pub fn new(watch_panic: bool) -> Self {
        Self {
            state: State::Before,
            held: Vec::new(),
            skip_newline: false,
            panic_match: Some(0),
            line: Vec::new(),
            watch_panic,
            pieces: Vec::new(),
        }
    }

    /// Takes what the console said and gives what it means.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Piece> {
        for &byte in bytes {
            self.byte(byte);
        }
        std::mem::take(&mut self.pieces)
    }

    /// The console is closed: gives what was held back.
    pub fn finish(&mut self) -> Vec<Piece> {
        let held = std::mem::take(&mut self.held);
        held.into_iter().for_each(|byte| self.plain(byte));
        if self.state == State::Panicking && !self.line.is_empty() {
            self.plain(b'\n');
        }
        if let Some(matched) = self.panic_match.take() {
            self.emit(&PANIC[..matched.min(PANIC.len())]);
        }
        std::mem::take(&mut self.pieces)
    }

    fn byte(&mut self, byte: u8) {
        match self.held.first() {
            Some(b'\r') => {
                self.held.clear();
                if byte != b'\n' {
                    self.plain(b'\r');
                }
                self.byte(byte);
            }
            Some(_) => {
                self.held.push(byte);
                let matches = if self.held.len() <= FRAME.len() {
                    FRAME.starts_with(&self.held)
                } else {
                    self.held.len() < FRAME_MAX && byte != b'\n'
                };
                if matches && byte == b']' && self.held.len() > FRAME.len() {
                    let held = std::mem::take(&mut self.held);
                    if !self.frame(&held[FRAME.len()..held.len() - 1]) {
                        held.into_iter().for_each(|byte| self.plain(byte));
                    }
                } else if !matches {
                    let held = std::mem::take(&mut self.held);
                    held.into_iter().for_each(|byte| self.plain(byte));
                }
            }
            None if byte == FRAME[0] || byte == b'\r' => self.held.push(byte),
            None => self.plain(byte),
        }
    }

    fn frame(&mut self, text: &[u8]) -> bool {
        let text = String::from_utf8_lossy(text);
        match (text.strip_prefix("exit ").map(str::parse::<u8>), self.state) {
            (None, State::Before) if text == "start" => {
                self.state = State::Inside;
                self.pieces.push(Piece::Start);
            }
            (Some(Ok(status)), State::Inside) => {
                self.state = State::After;
                self.pieces.push(Piece::Exit(status));
            }
            _ => return false,
        }
        self.skip_newline = true;
        self.panic_match = Some(0);
        true
    }

    fn plain(&mut self, byte: u8) {
        if std::mem::take(&mut self.skip_newline) && byte == b'\n' {
            return;
        }
        if self.state == State::Panicking {
            if byte == b'\n' {
                let line = std::mem::take(&mut self.line);
                self.pieces.push(Piece::Panic(String::from_utf8_lossy(&line).into_owned()));
            } else {
                self.line.push(byte);
            }
            return;
        }
        if let Some(matched) = self.panic_match
            && self.watch_panic
        {
            if PANIC[matched] == byte {
                self.panic_match = Some(matched + 1);
                if matched + 1 == PANIC.len() {
                    self.state = State::Panicking;
                    self.panic_match = None;
                    self.line = PANIC.to_vec();
                }
                return;
            }
            self.panic_match = None;
            self.emit(&PANIC[..matched]);
        }
        self.emit(&[byte]);
        if byte == b'\n' {
            self.panic_match = Some(0);
        }
    }

    fn emit(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let inside = self.state == State::Inside;
        match (self.pieces.last_mut(), inside) {
            (Some(Piece::Program(last)), true) | (Some(Piece::Around(last)), false) => last.extend_from_slice(bytes),
            _ => self.pieces.push(if inside { Piece::Program(bytes.to_vec()) } else { Piece::Around(bytes.to_vec()) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(bytes: &[u8], chunk: usize) -> Vec<Piece> {
        let mut console = Console::new(true);
        let mut all: Vec<Piece> = Vec::new();
        let mut add = |piece| match (all.last_mut(), piece) {
            (Some(Piece::Program(last)), Piece::Program(more)) | (Some(Piece::Around(last)), Piece::Around(more)) => {
                last.extend(more)
            }
            (_, piece) => all.push(piece),
        };
        for part in bytes.chunks(chunk) {
            console.feed(part).into_iter().for_each(&mut add);
        }
        console.finish().into_iter().for_each(&mut add);
        all
    }

    #[test]
    fn frames_and_line_ends_at_any_chunking() {
        let text = b"banner\r\n\x1e[limen start]\r\nK\r\nKERNEL\x1e[other] \r x\r\r\n\x1e[limen exit 7]\r\nbye\r\n";
        for chunk in [1, 2, 3, 7, 100] {
            let expected = vec![
                Piece::Around(b"banner\n".to_vec()),
                Piece::Start,
                Piece::Program(b"K\nKERNEL\x1e[other] \r x\r\n".to_vec()),
                Piece::Exit(7),
                Piece::Around(b"bye\n".to_vec()),
            ];
            assert_eq!(pieces(text, chunk), expected, "chunks of {chunk}");
        }
    }

    #[test]
    fn a_panic_takes_whole_lines() {
        let text = b"\x1e[limen start]\nout\nKERNEL PANIC: bad\n  #0 0xffffffff80001234\nrest";
        let expected = vec![
            Piece::Start,
            Piece::Program(b"out\n".to_vec()),
            Piece::Panic("KERNEL PANIC: bad".into()),
            Piece::Panic("  #0 0xffffffff80001234".into()),
            Piece::Panic("rest".into()),
        ];
        assert_eq!(pieces(text, 5), expected);
    }

    #[test]
    fn a_program_cannot_start_twice() {
        let text = b"\x1e[limen start]\n\x1e[limen start]\n\x1e[limen exit 300]\n";
        assert_eq!(
            pieces(text, 4),
            vec![Piece::Start, Piece::Program(b"\x1e[limen start]\n\x1e[limen exit 300]\n".to_vec())]
        );
    }
}
