//! What differs between two machines, or two kernels on one: `--diff` of two files of `--json`.
//!
//! Only the answers for all harts are compared. The files are the command's own, so the reader looks for members of the
//! first `keys` and needs no more of JSON.

use super::{Failure, System};
use crate::keys::{KEYS, Key, Kind};
use core::fmt::{self, Write};

/// Most bytes of a file that are looked at: the answers for all harts come first.
const MOST: usize = 4096;

/// The answers in a file.
type Values = [Option<u64>; KEYS.len()];

/// The values in the first object named `keys`. `None` if there is none.
fn values(text: &str) -> Option<Values> {
    let (_, rest) = text.split_once("\"keys\"")?;
    let (_, rest) = rest.split_once('{')?;
    let (members, _) = rest.split_once('}')?;
    let mut values = [None; KEYS.len()];
    for member in members.split(',') {
        let mut quoted = member.split('"').skip(1).step_by(2);
        let (Some(name), Some(value)) = (quoted.next(), quoted.next()) else { continue };
        if let Some((place, value)) = KEYS.iter().position(|key| key.name == name).zip(crate::number(value)) {
            values[place] = Some(value);
        }
    }
    Some(values)
}

/// Compares; the status is 1 if something differs.
pub fn run(
    system: &mut impl System,
    a: &str,
    b: &str,
    out: &mut impl Write,
    complaints: &mut impl Write,
) -> Result<u8, Failure> {
    let mut both = [[None; KEYS.len()]; 2];
    for (path, found) in [a, b].iter().zip(&mut both) {
        let mut buffer = [0; MOST];
        let read = system.read(path, &mut buffer).and_then(|length| buffer.get(..length));
        // The last character may be cut.
        let text = read.map(|bytes| match core::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => core::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or(""),
        });
        match text.and_then(values) {
            Some(values) => *found = values,
            None => {
                let what = if read.is_some() { "is not of hwprobe --json" } else { "cannot be read" };
                writeln!(complaints, "hwprobe: {path} {what}")?;
                return Ok(2);
            }
        }
    }
    let mut status = 0;
    for (key, (a, b)) in KEYS.iter().zip(both[0].iter().zip(&both[1])).filter(|(_, (a, b))| a != b) {
        status = 1;
        writeln!(out, "{}", key.name)?;
        side('-', key, *a, *b, out)?;
        side('+', key, *b, *a, out)?;
    }
    Ok(status)
}

/// What one side has, and of bits what the other lacks.
fn side(sign: char, key: &Key, value: Option<u64>, other: Option<u64>, out: &mut impl Write) -> fmt::Result {
    let Some(value) = value else { return writeln!(out, "  {sign} not known to that kernel") };
    write!(out, "  {sign} {value:#x}")?;
    let mut column = 23;
    match key.kind {
        Kind::Bits(bits) => {
            let own = value & !other.unwrap_or(0);
            for bit in bits.iter().filter(|bit| own >> bit.bit & 1 != 0) {
                column += 1 + bit.name.len();
                if column > 80 {
                    write!(out, "\n   ")?;
                    column = 4 + bit.name.len();
                }
                write!(out, " {}", bit.name)?;
            }
        }
        Kind::Choice(choices) => {
            if let Some(choice) = choices.iter().find(|choice| choice.value == value) {
                write!(out, " {}", choice.name)?;
            }
        }
        _ => {}
    }
    writeln!(out)
}
