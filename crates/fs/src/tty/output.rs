//! Output processing: termios(3), `c_oflag`. It also follows the column, which erasing a tab needs.

use uapi::Termios;
use uapi::termios::{OCRNL, OLCUC, ONLCR, ONLRET, ONOCR, OPOST};

use super::ConsoleDevice;

/// `TABDLY` with the value that expands tabs, asm-generic.
const XTABS: u32 = 0o14000;
/// Columns between tab stops.
const TAB: usize = 8;

/// Where the cursor is.
#[derive(Default)]
pub(crate) struct Output {
    pub column: usize,
}

/// Collects bytes and hands them to the device in pieces.
pub(crate) struct Sink<'a> {
    device: &'a dyn ConsoleDevice,
    bytes: [u8; 128],
    used: usize,
}

impl<'a> Sink<'a> {
    pub fn new(device: &'a dyn ConsoleDevice) -> Self {
        Self { device, bytes: [0; 128], used: 0 }
    }

    pub fn put(&mut self, byte: u8) {
        if self.used == self.bytes.len() {
            self.flush();
        }
        if let Some(place) = self.bytes.get_mut(self.used) {
            *place = byte;
            self.used += 1;
        }
    }

    fn flush(&mut self) {
        if self.used != 0 {
            self.device.write(self.bytes.get(..self.used).unwrap_or_default());
            self.used = 0;
        }
    }
}

impl Drop for Sink<'_> {
    fn drop(&mut self) {
        self.flush();
    }
}

impl Output {
    /// Puts out what a program wrote.
    pub fn write(&mut self, termios: &Termios, bytes: &[u8], device: &dyn ConsoleDevice) {
        if termios.c_oflag & OPOST == 0 {
            device.write(bytes);
            return;
        }
        let mut sink = Sink::new(device);
        bytes.iter().for_each(|byte| self.put(termios, *byte, &mut sink));
    }

    /// Puts out one character, processed.
    pub fn put(&mut self, termios: &Termios, byte: u8, sink: &mut Sink<'_>) {
        let flags = termios.c_oflag;
        if flags & OPOST == 0 {
            sink.put(byte);
            return;
        }
        match byte {
            b'\n' => {
                if flags & ONLCR != 0 {
                    sink.put(b'\r');
                }
                if flags & (ONLCR | ONLRET) != 0 {
                    self.column = 0;
                }
                sink.put(b'\n');
            }
            b'\r' if flags & OCRNL != 0 => {
                if flags & ONLRET != 0 {
                    self.column = 0;
                }
                sink.put(b'\n');
            }
            b'\r' if flags & ONOCR != 0 && self.column == 0 => {}
            b'\r' => {
                self.column = 0;
                sink.put(b'\r');
            }
            b'\t' => {
                let width = TAB - self.column % TAB;
                self.column += width;
                if flags & XTABS == XTABS {
                    (0..width).for_each(|_| sink.put(b' '));
                } else {
                    sink.put(b'\t');
                }
            }
            8 => {
                self.column = self.column.saturating_sub(1);
                sink.put(byte);
            }
            _ => {
                // Neither a control character nor the tail of a UTF-8 sequence moves the cursor.
                if byte >= 0x20 && byte != 0x7f && byte & 0xc0 != 0x80 {
                    self.column += 1;
                }
                sink.put(if flags & OLCUC != 0 { byte.to_ascii_uppercase() } else { byte });
            }
        }
    }
}
