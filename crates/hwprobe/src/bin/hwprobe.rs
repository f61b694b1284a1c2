//! The command `hwprobe`, on the standard library. See [`riscv_hwprobe::command`].
#![forbid(unsafe_code)]

use riscv_hwprobe::command::{self, System};
use riscv_hwprobe::pair::{Harts, Pair};
use riscv_hwprobe::rules::WHICH_CPUS;
use std::fmt;
use std::io::{self, Read, Write};
use std::process::ExitCode;

struct Linux;

impl System for Linux {
    fn hwprobe(&mut self, pairs: &mut [Pair], harts: &mut [u64], flags: u32) -> Result<(), i32> {
        let mut set = Harts::default();
        set.0.iter_mut().zip(&*harts).for_each(|(to, from)| *to = *from);
        let result = if flags == WHICH_CPUS {
            riscv_hwprobe::which(pairs, &set).map(|found| {
                harts.iter_mut().zip(found.0).for_each(|(to, from)| *to = from);
            })
        } else {
            riscv_hwprobe::probe(pairs, (!harts.is_empty()).then_some(&set))
        };
        result.map_err(|errno| errno.0)
    }

    fn read(&mut self, path: &str, buffer: &mut [u8]) -> Option<usize> {
        let mut file = std::fs::File::open(path).ok()?.take(buffer.len() as u64);
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        buffer.get_mut(..bytes.len())?.copy_from_slice(&bytes);
        Some(bytes.len())
    }
}

/// A stream as text is written to it.
struct Text<W>(W);

impl<W: Write> fmt::Write for Text<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write_all(text.as_bytes()).map_err(|_| fmt::Error)
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let mut out = Text(io::BufWriter::new(io::stdout()));
    let words = words.iter().map(String::as_str);
    let status = command::run(&mut Linux, words, &mut out, &mut Text(io::stderr()));
    match out.0.flush() {
        Ok(()) => ExitCode::from(status),
        Err(_) => ExitCode::from(2),
    }
}
