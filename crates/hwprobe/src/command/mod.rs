//! The command `hwprobe`: what the harts of this machine can do, as a table, as JSON, in words.
//!
//! It needs neither `std` nor an allocator, so that it can be a static program of a few kilobytes for any riscv64 Linux:
//! whoever runs it brings the call, files and an output.

mod diff;
mod show;

use crate::keys::Key;
use crate::pair::{Harts, Pair};
use crate::rules::{KEYS, WHICH_CPUS};
use core::fmt::{self, Write};

/// What the command needs of its surroundings.
pub trait System {
    /// riscv_hwprobe(2), the set empty for all harts and no flags.
    ///
    /// # Errors
    /// The error number.
    fn hwprobe(&mut self, pairs: &mut [Pair], harts: &mut [u64], flags: u32) -> Result<(), i32>;
    /// Reads a file; gives how many bytes there are, no more than fit. `None` if it cannot be read.
    fn read(&mut self, path: &str, buffer: &mut [u8]) -> Option<usize>;
}

const USAGE: &str = "\
hwprobe: what the harts of this machine can do (riscv_hwprobe)

usage: hwprobe [OPTIONS]

  --cpus LIST        only these harts, as 0-3,5 (all harts)
  --per-hart         a table for each kind of hart
  --explain          say what each bit and value means
  --json             the same for programs; --diff reads it
  --which KEY=VALUE  the harts that match; may be given several times
                     KEY is a name or number, VALUE a number, a name such as
                     FAST, or bits by name such as ZBA+ZBB
  --diff A B         what differs between two files of --json
  -h, --help         this text

The status is 0; 1 if --which finds no hart or --diff a difference; 2 if the
arguments are wrong or the kernel does not have the call (Linux 6.4).
";

/// Most `--which` that are looked at.
const MOST_PAIRS: usize = 16;

/// The words of a command line, understood.
#[derive(Debug, Default)]
struct Options<'a> {
    harts: Option<Harts>,
    per_hart: bool,
    explain: bool,
    json: bool,
    wanted: [Pair; MOST_PAIRS],
    wanted_count: usize,
    diff: Option<(&'a str, &'a str)>,
}

/// Why the command ends early.
enum Stop<'a> {
    /// The text was asked for.
    Help,
    /// What is wrong, and with which word.
    Wrong(&'static str, &'a str),
}

impl<'a> Options<'a> {
    fn read(mut words: impl Iterator<Item = &'a str>) -> Result<Self, Stop<'a>> {
        let mut options = Self::default();
        while let Some(word) = words.next() {
            let (name, attached) = word.split_once('=').filter(|_| word.starts_with("--")).unzip();
            let name = name.unwrap_or(word);
            if attached.is_some() && matches!(name, "--help" | "--per-hart" | "--explain" | "--json") {
                return Err(Stop::Wrong("no value belongs to", word));
            }
            let mut value = || attached.or_else(|| words.next()).ok_or(Stop::Wrong("a value is missing behind", word));
            match name {
                "-h" | "--help" => return Err(Stop::Help),
                "--per-hart" => options.per_hart = true,
                "--explain" => options.explain = true,
                "--json" => options.json = true,
                "--cpus" => {
                    let text = value()?;
                    let harts = Harts::parse(text).ok_or(Stop::Wrong("no list of harts:", text))?;
                    options.harts = Some(harts);
                }
                "--which" => {
                    let pair = wanted(value()?)?;
                    let place = options.wanted.get_mut(options.wanted_count);
                    *place.ok_or(Stop::Wrong("too many:", word))? = pair;
                    options.wanted_count += 1;
                }
                "--diff" => {
                    let first = value()?;
                    options.diff = Some((first, words.next().ok_or(Stop::Wrong("two files are needed behind", word))?));
                }
                _ => return Err(Stop::Wrong("no such option:", word)),
            }
        }
        Ok(options)
    }
}

/// `KEY=VALUE`.
fn wanted(text: &str) -> Result<Pair, Stop<'_>> {
    let (key, value) = text.split_once('=').ok_or(Stop::Wrong("not of the form KEY=VALUE:", text))?;
    let key = Key::parse(key).ok_or(Stop::Wrong("no such key:", key))?;
    let value = key.parse_value(value).ok_or(Stop::Wrong("the key has no such value:", value))?;
    Ok(Pair { key: key.number.cast_signed(), value })
}

/// What is known of some harts: the answers to all keys.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Answers([Option<u64>; KEYS]);

impl Answers {
    fn ask(system: &mut impl System, harts: Option<&Harts>) -> Result<Self, i32> {
        let mut pairs: [Pair; KEYS] = core::array::from_fn(|key| Pair::ask(key as u64));
        let mut set = harts.map(|harts| harts.0);
        system.hwprobe(&mut pairs, set.as_mut().map_or(&mut [][..], |set| &mut set[..]), 0)?;
        Ok(Self(pairs.map(Pair::answer)))
    }

    fn rows(&self) -> impl Iterator<Item = (&'static Key, u64)> {
        crate::keys::KEYS.iter().zip(self.0).filter_map(|(key, value)| value.map(|value| (key, value)))
    }
}

/// The harts that are online: by the call, or where it does not tell that yet, by sysfs.
fn online(system: &mut impl System) -> Harts {
    let mut set = Harts::default();
    if system.hwprobe(&mut [], &mut set.0, WHICH_CPUS).is_err() {
        let mut buffer = [0; 256];
        let length = system.read("/sys/devices/system/cpu/online", &mut buffer).unwrap_or(0);
        let text = buffer.get(..length).and_then(|bytes| core::str::from_utf8(bytes).ok());
        set = text.and_then(Harts::parse).unwrap_or(Harts::one(0));
    }
    set
}

/// Calls `each` for every kind of hart in `harts`: those that give the same answers.
fn kinds<S: System>(
    system: &mut S,
    harts: &Harts,
    mut each: impl FnMut(&Harts, &Answers) -> fmt::Result,
) -> Result<(), Failure> {
    let mut seen = Harts::default();
    for hart in harts.iter() {
        if seen.has(hart) {
            continue;
        }
        let answers = Answers::ask(system, Some(&Harts::one(hart)))?;
        let mut alike = Harts::default();
        for other in harts.iter().filter(|other| *other >= hart && !seen.has(*other)) {
            if other == hart || Answers::ask(system, Some(&Harts::one(other)))? == answers {
                alike.add(other);
            }
        }
        alike.iter().for_each(|hart| seen.add(hart));
        each(&alike, &answers)?;
    }
    Ok(())
}

/// What can go wrong on the way.
enum Failure {
    /// No hart of those that were named.
    NoHart,
    /// The output.
    Write,
    /// The call.
    Errno(i32),
}

impl From<fmt::Error> for Failure {
    fn from(_: fmt::Error) -> Self {
        Self::Write
    }
}

impl From<i32> for Failure {
    fn from(errno: i32) -> Self {
        Self::Errno(errno)
    }
}

/// Runs the command with the words behind its name; gives its status.
pub fn run<'a>(
    system: &mut impl System,
    words: impl Iterator<Item = &'a str>,
    out: &mut impl Write,
    complaints: &mut impl Write,
) -> u8 {
    let options = match Options::read(words) {
        Ok(options) => options,
        Err(Stop::Help) => return if out.write_str(USAGE).is_ok() { 0 } else { 2 },
        Err(Stop::Wrong(what, word)) => {
            let _ = writeln!(complaints, "hwprobe: {what} {word} (-h for help)");
            return 2;
        }
    };
    let done = match options.diff {
        Some((a, b)) => diff::run(system, a, b, out, complaints),
        None => perform(system, &options, out),
    };
    match done {
        Ok(status) => status,
        Err(Failure::Write) => 2,
        Err(Failure::NoHart) => {
            let _ = writeln!(complaints, "hwprobe: none of these harts is online");
            2
        }
        Err(Failure::Errno(errno)) => {
            let reason = match errno {
                22 if options.wanted_count != 0 => "this kernel does not tell which harts match (Linux 6.9 does)",
                38 => "this kernel does not have riscv_hwprobe (Linux 6.4 has)",
                _ => "riscv_hwprobe failed",
            };
            let _ = writeln!(complaints, "hwprobe: {reason}, errno {errno}");
            2
        }
    }
}

fn perform(system: &mut impl System, options: &Options<'_>, out: &mut impl Write) -> Result<u8, Failure> {
    let online = online(system);
    let harts = options.harts.map_or(online, |harts| harts.and(&online));
    if harts.is_empty() {
        return Err(Failure::NoHart);
    }
    if options.wanted_count != 0 {
        let mut set = harts;
        let mut pairs = options.wanted;
        system.hwprobe(pairs.get_mut(..options.wanted_count).unwrap_or_default(), &mut set.0, WHICH_CPUS)?;
        writeln!(out, "{set}")?;
        return Ok(u8::from(set.is_empty()));
    }
    let answers = Answers::ask(system, options.harts.is_some().then_some(&harts))?;
    if options.json {
        show::json(system, &harts, &answers, out)?;
    } else if options.per_hart {
        let mut first = true;
        kinds(system, &harts, |harts, answers| {
            if !core::mem::take(&mut first) {
                writeln!(out)?;
            }
            writeln!(out, "harts {harts}")?;
            show::table(answers, options.explain, out)
        })?;
    } else {
        show::table(&answers, options.explain, out)?;
    }
    Ok(0)
}

#[cfg(test)]
mod tests;
