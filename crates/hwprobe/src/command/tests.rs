use super::*;
use crate::keys::Kind;
use crate::reference::{Bytes, Machine};
use crate::rules::Request;
use std::string::String;
use std::vec::Vec;

/// A machine of a few harts; files that exist.
struct Fake {
    harts: Vec<[u64; KEYS]>,
    files: Vec<(&'static str, String)>,
}

impl System for Fake {
    fn hwprobe(&mut self, pairs: &mut [Pair], harts: &mut [u64], flags: u32) -> Result<(), i32> {
        // Pairs and set as bytes at an address, as the reference wants them.
        const BASE: usize = 0x1000;
        let mut bytes: Vec<u8> =
            pairs.iter().flat_map(|pair| [pair.key.to_le_bytes(), pair.value.to_le_bytes()]).flatten().collect();
        let cpus = if harts.is_empty() { 0 } else { BASE + bytes.len() };
        bytes.extend(harts.iter().flat_map(|word| word.to_le_bytes()));
        let request = Request { pairs: BASE, count: pairs.len(), size: size_of_val(harts), cpus, flags };
        let online = vec![true; self.harts.len()];
        let machine = Machine { harts: &self.harts, online: &online };
        let result = machine.call(&mut Bytes { base: BASE, bytes: &mut bytes }, request);
        let word = |at: usize| u64::from_le_bytes(bytes[at * 8..at * 8 + 8].try_into().unwrap());
        for (index, pair) in pairs.iter_mut().enumerate() {
            *pair = Pair { key: word(index * 2).cast_signed(), value: word(index * 2 + 1) };
        }
        for (index, set) in harts.iter_mut().enumerate() {
            *set = word(pairs.len() * 2 + index);
        }
        if result == 0 { Ok(()) } else { Err(-result) }
    }

    fn read(&mut self, path: &str, buffer: &mut [u8]) -> Option<usize> {
        let (_, text) = self.files.iter().find(|(name, _)| *name == path)?;
        let length = text.len().min(buffer.len());
        buffer[..length].copy_from_slice(&text.as_bytes()[..length]);
        Some(length)
    }
}

fn machine() -> Fake {
    let mut hart = [0; KEYS];
    (hart[0], hart[3], hart[4], hart[5], hart[6]) = (0x489, 1, 0x138d_2bf1_2000_00ff, 3, 64);
    (hart[7], hart[8], hart[9], hart[10], hart[13]) = (1 << 47, 10_000_000, 3, 4, 15);
    let mut other = hart;
    (other[4], other[6], other[9]) = (0x3, 0, 2);
    Fake { harts: vec![hart, hart, other], files: Vec::new() }
}

fn run_on(system: &mut Fake, words: &str) -> (u8, String, String) {
    let (mut out, mut complaints) = (String::new(), String::new());
    let status = run(system, words.split_whitespace(), &mut out, &mut complaints);
    (status, out, complaints)
}

#[test]
fn everything_fits_80_columns() {
    let mut all = machine();
    for hart in &mut all.harts {
        for key in crate::keys::KEYS {
            hart[key.number as usize] = match key.kind {
                Kind::Bits(_) | Kind::Id | Kind::Bytes | Kind::Hertz => u64::MAX,
                _ => hart[key.number as usize],
            };
        }
    }
    for words in ["", "--per-hart", "--explain", "--json", "-h", "--per-hart --explain"] {
        for system in [&mut machine(), &mut all] {
            let (status, text, complaints) = run_on(system, words);
            assert_eq!((status, complaints.as_str()), (0, ""), "{words}");
            for line in text.lines() {
                assert!(line.len() <= 80, "{words}: {line}");
                assert_eq!(line.trim_end(), line, "{words}: blanks at the end");
            }
        }
    }
}

#[test]
fn the_table_shows_names_values_and_meanings() {
    let (_, text, _) = run_on(&mut machine(), "--cpus 0-1");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "MVENDORID               0x489");
    assert_eq!(lines[1], "MARCHID                 0x0                 not told");
    assert_eq!(lines[4], "IMA_EXT_0               0x138d2bf1200000ff  FD C V ZBA ZBB ZBS ZICBOZ ZBC");
    assert!(text.contains("\nCPUPERF_0               0x3                 FAST\n"));
    assert!(text.contains("\nHIGHEST_VIRT_ADDRESS    0x800000000000      47 bits\n"), "{text}");
    let (_, text, _) = run_on(&mut machine(), "--per-hart");
    assert_eq!(text.lines().filter(|line| line.starts_with("harts ")).collect::<Vec<_>>(), ["harts 0-1", "harts 2"]);
    let (_, text, _) = run_on(&mut machine(), "");
    assert!(text.contains("MISALIGNED_SCALAR_PERF  0x0                 UNKNOWN"), "{text}");
}

#[test]
fn harts_are_found_by_what_they_can() {
    for (words, status, harts) in [
        ("--which ima_ext_0=ZBA+C", 0, "0-1\n"),
        ("--which=4=3", 0, "0-2\n"),
        ("--which MISALIGNED_SCALAR_PERF=slow", 0, "2\n"),
        ("--which 4=zba --which 9=slow", 1, "none\n"),
        ("--cpus 1-2 --which ZICBOZ_BLOCK_SIZE=64", 0, "1\n"),
        ("--cpus 2,9 --which 4=3", 0, "2\n"),
    ] {
        assert_eq!(run_on(&mut machine(), words), (status, harts.into(), String::new()), "{words}");
    }
}

#[test]
fn what_differs_is_named() {
    let mut system = machine();
    let fast = run_on(&mut system, "--json --cpus 0").1;
    let slow = run_on(&mut system, "--json --cpus 2").1;
    system.files = vec![("fast", fast.clone()), ("slow", slow), ("same", fast), ("other", "{}".into())];
    let (status, text, _) = run_on(&mut system, "--diff slow fast");
    assert_eq!(status, 1);
    assert!(text.starts_with("IMA_EXT_0\n  - 0x3\n  + 0x138d2bf1200000ff V ZBA ZBB"), "{text}");
    assert!(text.contains("MISALIGNED_SCALAR_PERF\n  - 0x2 SLOW\n  + 0x3 FAST\n"), "{text}");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    assert_eq!(run_on(&mut system, "--diff fast same"), (0, String::new(), String::new()));
    assert_eq!(run_on(&mut system, "--diff fast other").0, 2);
    assert_eq!(run_on(&mut system, "--diff fast nowhere").2, "hwprobe: nowhere cannot be read\n");
}

#[test]
fn wrong_words_are_named() {
    for (words, complaint) in [
        ("--nothing", "no such option: --nothing"),
        ("--cpus", "a value is missing behind --cpus"),
        ("--cpus 3-", "no list of harts: 3-"),
        ("--which 4", "not of the form KEY=VALUE: 4"),
        ("--which zba=1", "no such key: zba"),
        ("--which 4=zbz", "the key has no such value: zbz"),
        ("--diff a", "two files are needed behind --diff"),
        ("--cpus 7", "none of these harts is online"),
        ("--cpus 7,64 --which 4=3", "none of these harts is online"),
        ("--json=1", "no value belongs to --json=1"),
    ] {
        let (status, _, complaints) = run_on(&mut machine(), words);
        assert!(status == 2 && complaints.contains(complaint), "{words}: {complaints}");
    }
}
