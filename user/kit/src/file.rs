//! Whole files, read into memory that the caller has, and the numbers in them.

use core::ffi::CStr;
use rt::io;
use rt::uapi::{Result, open};

/// Reads a file from its beginning; what does not fit is left out.
///
/// # Errors
/// It cannot be opened or read.
pub fn read<'a>(path: &CStr, buffer: &'a mut [u8]) -> Result<&'a [u8]> {
    let file = io::open(path, open::O_RDONLY | open::O_CLOEXEC, 0)?;
    let length = io::read_full(file, buffer);
    let _ = io::close(file);
    Ok(&buffer[..length?])
}

/// As [`read`]; text that is not UTF-8 counts as empty.
///
/// # Errors
/// As [`read`].
pub fn text<'a>(path: &CStr, buffer: &'a mut [u8]) -> Result<&'a str> {
    read(path, buffer).map(|bytes| core::str::from_utf8(bytes).unwrap_or(""))
}

/// Makes or empties a file with these contents.
///
/// # Errors
/// It cannot be made or written.
pub fn write(path: &CStr, mode: u32, contents: &[u8]) -> Result<()> {
    let file = io::open(path, open::O_WRONLY | open::O_CREAT | open::O_TRUNC | open::O_CLOEXEC, mode)?;
    let result = io::write_all(file, contents);
    let _ = io::close(file);
    result
}

/// The number in the line that begins with `key`, after blanks and colons.
pub fn number(text: &str, key: &str) -> Option<u64> {
    let line =
        text.lines().find(|line| line.strip_prefix(key).is_some_and(|rest| rest.starts_with([' ', ':', '\t'])))?;
    line[key.len()..].split([' ', ':', '\t']).find(|word| !word.is_empty())?.parse().ok()
}

/// Pages of this process: mapped, and resident. Zeroes where the kernel does not tell.
pub fn pages() -> (u64, u64) {
    let mut buffer = [0; 256];
    let text = text(c"/proc/self/statm", &mut buffer).unwrap_or("");
    let mut words = text.split_ascii_whitespace().map(|word| word.parse().unwrap_or(0));
    (words.next().unwrap_or(0), words.next().unwrap_or(0))
}
