//! What is read from, or told of, a process's memory: `cmdline`, `environ`, `auxv`, `maps`, `smaps`.

use core::fmt::Write;

use hal::addr::PAGE_SIZE;
use mm::{Area, AreaName, Program};

use super::Subject;
use super::text::Text;

/// Most bytes of a range that are shown; a program may have written any bounds there.
const LIMIT: usize = 2 << 20;

/// The bytes of one of the ranges that exec noted.
pub(super) fn range(subject: &Subject, which: impl FnOnce(Program) -> (usize, usize), out: &mut Text<'_>) {
    let Some(mm) = subject.process.mm() else { return };
    let (mut at, end) = which(mm.program());
    let end = end.min(at.saturating_add(LIMIT));
    let mut chunk = [0; 256];
    while at < end {
        let n = (end - at).min(chunk.len());
        let got = mm.read_remote(at, &mut chunk[..n]);
        out.bytes(&chunk[..got]);
        if got < n {
            return;
        }
        at += n;
    }
}

/// One line of `maps`: the name begins in column 74.
fn line(area: &Area, out: &mut Text<'_>) {
    let start = out.0.len();
    let flag = |on, letter| if on { letter } else { '-' };
    let (dev, ino) = match &area.name {
        AreaName::File(file) => file.dev_ino(),
        _ => (0, 0),
    };
    let (major, minor) = (dev >> 8 & 0xfff, dev & 0xff | dev >> 12 & 0xfff00);
    let _ = write!(
        out,
        "{:08x}-{:08x} {}{}{}{} {:08x} {major:02x}:{minor:02x} {ino} ",
        area.start,
        area.end,
        flag(area.prot.readable(), 'r'),
        flag(area.prot.writable(), 'w'),
        flag(area.prot.executable(), 'x'),
        if area.shared { 's' } else { 'p' },
        area.offset,
    );
    if !matches!(area.name, AreaName::None) {
        while out.0.len() < start + 73 {
            out.bytes(b" ");
        }
    }
    let _ = match &area.name {
        AreaName::None => Ok(()),
        AreaName::Heap => out.write_str("[heap]"),
        AreaName::Stack => out.write_str("[stack]"),
        AreaName::Special(name) => out.write_str(name),
        AreaName::SharedAnonymous => out.write_str("/dev/zero (deleted)"),
        AreaName::File(file) => file.write_path(out),
    };
    out.bytes(b"\n");
}

/// proc_pid_maps(5).
pub(super) fn maps(subject: &Subject, out: &mut Text<'_>) {
    if let Some(mm) = subject.process.mm() {
        mm.maps().for_each(|area| line(&area, out));
    }
}

/// proc_pid_smaps(5), with the sizes alone: pages are not counted by area.
pub(super) fn smaps(subject: &Subject, out: &mut Text<'_>) {
    let Some(mm) = subject.process.mm() else { return };
    for area in mm.maps() {
        line(&area, out);
        let size = (area.end - area.start) / 1024;
        out.line(format_args!("Size:           {size:8} kB\nKernelPageSize: {:8} kB", PAGE_SIZE / 1024));
        out.line(format_args!("MMUPageSize:    {:8} kB", PAGE_SIZE / 1024));
    }
}

/// `smaps_rollup`: what is in memory, in sum.
pub(super) fn rollup(subject: &Subject, out: &mut Text<'_>) {
    let Some(mm) = subject.process.mm() else { return };
    let usage = mm.usage();
    let end = mm.maps().last().map_or(0, |area| area.end);
    out.line(format_args!("{:08x}-{end:08x} ---p 00000000 00:00 0 {:>31}", 0, "[rollup]"));
    let kib = |pages: usize| pages * (PAGE_SIZE / 1024);
    let anonymous = usage.resident.saturating_sub(usage.shared);
    for (name, pages) in [("Rss", usage.resident), ("Anonymous", anonymous), ("Shared", usage.shared)] {
        out.line(format_args!("{:<16}{:8} kB", alloc::format!("{name}:"), kib(pages)));
    }
}
