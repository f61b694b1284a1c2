//! Writing text into a buffer that grows.

use alloc::vec::Vec;
use core::fmt::{self, Write};

/// Text under way. What finds no memory is left out.
pub(super) struct Text<'a>(pub &'a mut Vec<u8>);

impl Text<'_> {
    pub fn bytes(&mut self, bytes: &[u8]) {
        if self.0.try_reserve(bytes.len()).is_ok() {
            self.0.extend_from_slice(bytes);
        }
    }

    pub fn line(&mut self, line: fmt::Arguments<'_>) {
        // Writing into the buffer has no errors of its own.
        let _ = self.write_fmt(line);
        self.bytes(b"\n");
    }
}

impl Write for Text<'_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.bytes(s.as_bytes());
        Ok(())
    }
}
