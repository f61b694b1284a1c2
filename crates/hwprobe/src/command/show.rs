//! The table and the JSON.

use super::{Answers, Failure, System, kinds};
use crate::keys::{Key, Kind};
use crate::pair::Harts;
use core::fmt::{self, Write};

/// Columns of a terminal.
const WIDTH: usize = 80;
/// Where the value and its meaning begin.
const VALUE: usize = 24;
const MEANING: usize = 44;

/// Words with a blank between them, broken so that lines fit.
struct Words<'a, W> {
    out: &'a mut W,
    column: usize,
}

impl<W: Write> Words<'_, W> {
    fn add(&mut self, word: fmt::Arguments<'_>, length: usize) -> fmt::Result {
        if self.column < MEANING {
            write!(self.out, "{:1$}", "", MEANING - self.column)?;
            self.column = MEANING;
        } else if self.column + 1 + length > WIDTH {
            write!(self.out, "\n{:MEANING$}", "")?;
            self.column = MEANING;
        } else {
            self.out.write_char(' ')?;
            self.column += 1;
        }
        self.column += length;
        self.out.write_fmt(word)
    }

    fn add_all(&mut self, text: &str) -> fmt::Result {
        text.split(' ').try_for_each(|word| self.add(format_args!("{word}"), word.len()))
    }
}

/// A key a row: name, raw value, meaning.
pub fn table(answers: &Answers, explain: bool, out: &mut impl Write) -> fmt::Result {
    for (key, value) in answers.rows() {
        write!(out, "{:<VALUE$}{value:#x}", key.name)?;
        let digits = (64 - value.leading_zeros()).div_ceil(4).max(1) as usize;
        let mut words = Words { out, column: VALUE + 2 + digits };
        meaning(key, value, &mut words)?;
        writeln!(out)?;
        if explain {
            explanation(key, value, out)?;
        }
    }
    Ok(())
}

/// A value in short.
fn meaning<W: Write>(key: &Key, value: u64, words: &mut Words<'_, W>) -> fmt::Result {
    match key.kind {
        Kind::Id if value == u64::MAX => words.add_all("harts differ"),
        Kind::Id if value == 0 => words.add_all("not told"),
        Kind::Id => Ok(()),
        Kind::Bits(_) if value == 0 => words.add_all("none"),
        Kind::Bits(bits) => {
            for bit in bits.iter().filter(|bit| value >> bit.bit & 1 != 0) {
                words.add(format_args!("{}", bit.name), bit.name.len())?;
            }
            match value & !bits.iter().fold(0, |known, bit| known | 1 << bit.bit) {
                0 => Ok(()),
                unknown => words.add(format_args!("and {unknown:#x}"), 22),
            }
        }
        Kind::Choice(choices) => match choices.iter().find(|choice| choice.value == value) {
            Some(choice) => words.add_all(choice.name),
            None => words.add_all("not known to this program"),
        },
        Kind::Bytes if value == 0 => words.add_all("not on all harts"),
        Kind::Bytes => words.add(format_args!("{value} bytes"), 10),
        Kind::Address => words.add(format_args!("{} bits", 64 - value.saturating_sub(1).leading_zeros()), 8),
        Kind::Hertz => words.add(format_args!("{value} Hz"), 16),
    }
}

/// The key, and what of it is there, a line each.
fn explanation(key: &Key, value: u64, out: &mut impl Write) -> fmt::Result {
    writeln!(out, "  {}", key.text)?;
    match key.kind {
        Kind::Bits(bits) => bits
            .iter()
            .filter(|bit| value >> bit.bit & 1 != 0)
            .try_for_each(|bit| writeln!(out, "    {:<11} {}", bit.name, bit.text)),
        Kind::Choice(choices) => choices
            .iter()
            .filter(|choice| choice.value == value)
            .try_for_each(|choice| writeln!(out, "    {:<11} {}", choice.name, choice.text)),
        _ => Ok(()),
    }
}

/// All of it for programs. Values are strings, since numbers of JSON do not hold 64 bits.
pub fn json<S: System>(system: &mut S, harts: &Harts, answers: &Answers, out: &mut impl Write) -> Result<(), Failure> {
    write!(out, "{{\n  \"cpus\": \"{harts}\",\n  \"keys\": {{")?;
    members(answers, "    ", out)?;
    write!(out, "\n  }},\n  \"harts\": [")?;
    let mut comma = "";
    kinds(system, harts, |harts, answers| {
        write!(out, "{comma}\n    {{\n      \"cpus\": \"{harts}\",\n      \"keys\": {{")?;
        comma = ",";
        members(answers, "        ", out)?;
        write!(out, "\n      }}\n    }}")
    })?;
    writeln!(out, "\n  ]\n}}")?;
    Ok(())
}

fn members(answers: &Answers, indent: &str, out: &mut impl Write) -> fmt::Result {
    let mut comma = "";
    for (key, value) in answers.rows() {
        write!(out, "{comma}\n{indent}\"{}\": \"{value:#x}\"", key.name)?;
        comma = ",";
    }
    Ok(())
}
