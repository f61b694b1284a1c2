//! Writing text into a buffer that grows.

use alloc::vec::Vec;
use core::fmt::{self, Write};

/// Text under way.
pub(super) struct Text<'a> {
    out: &'a mut Vec<u8>,
    /// Something found no memory and is missing.
    pub full: bool,
}

impl<'a> Text<'a> {
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, full: false }
    }

    pub fn len(&self) -> usize {
        self.out.len()
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        match self.out.try_reserve(bytes.len()) {
            Ok(()) => self.out.extend_from_slice(bytes),
            Err(_) => self.full = true,
        }
    }

    pub fn line(&mut self, line: fmt::Arguments<'_>) {
        // Writing into the buffer has no errors of its own.
        let _ = self.write_fmt(line);
        self.bytes(b"\n");
    }

    /// Fills up with blanks to column `column` of the line that began at `start`.
    pub fn pad(&mut self, start: usize, column: usize) {
        while self.len() < start + column && !self.full {
            self.bytes(b" ");
        }
    }

    /// A name with what would break the line written as in C.
    pub fn escaped(&mut self, name: &[u8]) {
        for byte in name {
            match byte {
                b'\n' => self.bytes(b"\\n"),
                b'\\' => self.bytes(b"\\\\"),
                byte => self.bytes(&[*byte]),
            }
        }
    }
}

impl Write for Text<'_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.bytes(s.as_bytes());
        Ok(())
    }
}

/// What `write` writes.
#[cfg(test)]
pub(super) fn written(write: impl FnOnce(&mut Text<'_>)) -> std::string::String {
    let mut out = Vec::new();
    write(&mut Text::new(&mut out));
    std::string::String::from_utf8(out).unwrap()
}
