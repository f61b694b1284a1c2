//! Checks of the built kernel: its machine code holds what the trap path promises.

use std::path::Path;

/// A named look at the kernel's ELF file.
#[derive(Clone, Copy, Debug)]
pub struct ImageCheck {
    /// `image/…`
    pub name: &'static str,
    /// Gets the path of the ELF file; the error says what is wrong and where.
    pub check: fn(&Path) -> Result<(), String>,
}

/// All of them.
pub const CHECKS: &[ImageCheck] = &[];
