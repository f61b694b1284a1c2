//! What is read from, or told of, a process's memory: `cmdline`, `environ`, `auxv`, `maps`, `smaps`.

use core::fmt::{self, Write};

use hal::addr::PAGE_SIZE;
use mm::{AddressSpace, Area, AreaName, Program, Residency};
use uapi::fs::{major, minor};

use super::Subject;
use super::text::Text;

/// Most bytes of a range that are shown; exec takes no more.
const LIMIT: usize = 2 << 20;

/// Hands the bytes of `from..to` to `each`, piece by piece, until it says stop or they cannot be read.
fn pieces(mm: &AddressSpace, (mut at, end): (usize, usize), mut each: impl FnMut(&[u8]) -> bool) {
    let end = end.min(at.saturating_add(LIMIT));
    let mut chunk = [0; 256];
    while at < end {
        let n = (end - at).min(chunk.len());
        let got = mm.read_remote(at, &mut chunk[..n]);
        if !each(&chunk[..got]) || got < n {
            return;
        }
        at += n;
    }
}

/// The bytes of one of the ranges that exec noted.
pub(super) fn range(subject: &Subject, which: impl FnOnce(Program) -> (usize, usize), out: &mut Text<'_>) {
    let Some(mm) = subject.process.mm() else { return };
    pieces(&mm, which(mm.program()), |bytes| {
        out.bytes(bytes);
        true
    });
}

/// proc_pid_cmdline(5). A program that has written over the NUL behind its last argument has put a text of its own
/// there, which goes up to the first NUL, into the environment if need be.
pub(super) fn command_line(subject: &Subject, out: &mut Text<'_>) {
    let Some(mm) = subject.process.mm() else { return };
    let Program { arguments: (start, end), environment, .. } = mm.program();
    let mut last = [0];
    if end > start && mm.read_remote(end - 1, &mut last) == 1 && last != [0] {
        return pieces(&mm, (start, environment.1.max(end)), |bytes| {
            let len = bytes.iter().position(|&b| b == 0);
            out.bytes(&bytes[..len.map_or(bytes.len(), |len| len + 1)]);
            len.is_none()
        });
    }
    range(subject, |program| program.arguments, out);
}

/// `/proc/PID/limen`: what the translation hardware has of the space, and what it has cost. Nothing for a zombie.
pub(super) fn translation(subject: &Subject, out: &mut Text<'_>) {
    let Some(mm) = subject.process.mm() else { return };
    let report = mm.tlb().report();
    let rows = [
        ("asid", report.asid as u64),
        ("asid_generation", report.asid_generation),
        ("generation", u64::from(report.generation)),
        ("faults_spurious", u64::from(report.spurious)),
        ("fences_local", u64::from(report.local)),
        ("fences_remote", u64::from(report.remote)),
        ("fences_returned", u64::from(report.returned)),
    ];
    out.line(format_args!("running {}", hal::hart::List(report.running as usize)));
    rows.iter().for_each(|(name, value)| out.line(format_args!("{name} {value}")));
}

/// A path on its way into a line: a newline in it is written in octal.
struct OneLine<'a, 'b>(&'a mut Text<'b>);

impl Write for OneLine<'_, '_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        for (n, part) in s.split('\n').enumerate() {
            self.0.bytes(if n == 0 { b"" } else { b"\\012" });
            self.0.bytes(part.as_bytes());
        }
        Ok(())
    }
}

/// The column in which names begin.
const NAME: usize = 73;

/// A line of `maps`, without its end.
fn line(area: &Area, out: &mut Text<'_>) {
    let start = out.len();
    let flag = |on, letter| if on { letter } else { '-' };
    let (dev, ino) = match &area.name {
        AreaName::File(file) => file.dev_ino(),
        // The kernel's own file system, which nobody mounts.
        AreaName::SharedAnonymous => (1, 0),
        _ => (0, 0),
    };
    let _ = write!(
        out,
        "{:08x}-{:08x} {}{}{}{} {:08x} {:02x}:{:02x} {ino} ",
        area.start,
        area.end,
        flag(area.prot.readable(), 'r'),
        flag(area.prot.writable(), 'w'),
        flag(area.prot.executable(), 'x'),
        if area.shared { 's' } else { 'p' },
        area.offset,
        major(dev),
        minor(dev),
    );
    if !matches!(area.name, AreaName::None) {
        out.pad(start, NAME);
    }
    let _ = match &area.name {
        AreaName::None => Ok(()),
        AreaName::Heap => out.write_str("[heap]"),
        AreaName::Stack => out.write_str("[stack]"),
        AreaName::Special(name) => out.write_str(name),
        AreaName::SharedAnonymous => out.write_str("/dev/zero (deleted)"),
        AreaName::File(file) => file.write_path(&mut OneLine(out)),
    };
}

/// proc_pid_maps(5).
pub(super) fn maps(subject: &Subject, out: &mut Text<'_>) {
    let Some(mm) = subject.process.mm() else { return };
    for area in mm.maps() {
        line(&area, out);
        out.bytes(b"\n");
    }
}

/// A row of `smaps`, with a number in KiB.
fn row(name: &str, kib: usize, out: &mut Text<'_>) {
    out.line(format_args!("{name:<16}{kib:8} kB"));
}

/// The rows on what is in memory; `whole` for a process and not for an area. A page counts as private if nobody else
/// maps it, and every page as dirty: no file has another place to be read from again.
fn resident(r: &Residency, whole: bool, out: &mut Text<'_>) {
    let kib = |pages: usize| pages * (PAGE_SIZE / 1024);
    row("Rss:", kib(r.pages), out);
    row("Pss:", r.share / 1024, out);
    row("Pss_Dirty:", r.share / 1024, out);
    if whole {
        row("Pss_Anon:", r.anonymous_share / 1024, out);
        row("Pss_File:", r.share.saturating_sub(r.anonymous_share) / 1024, out);
        row("Pss_Shmem:", 0, out);
    }
    row("Shared_Clean:", 0, out);
    row("Shared_Dirty:", kib(r.pages - r.sole), out);
    row("Private_Clean:", 0, out);
    row("Private_Dirty:", kib(r.sole), out);
    row("Referenced:", kib(r.pages), out);
    row("Anonymous:", kib(r.anonymous), out);
    for name in ["KSM:", "LazyFree:", "AnonHugePages:", "ShmemPmdMapped:", "FilePmdMapped:"] {
        row(name, 0, out);
    }
    for name in ["Shared_Hugetlb:", "Private_Hugetlb:", "Swap:", "SwapPss:", "Locked:"] {
        row(name, 0, out);
    }
}

fn smap(area: &Area, r: &Residency, out: &mut Text<'_>) {
    line(area, out);
    out.bytes(b"\n");
    row("Size:", (area.end - area.start) / 1024, out);
    row("KernelPageSize:", PAGE_SIZE / 1024, out);
    row("MMUPageSize:", PAGE_SIZE / 1024, out);
    resident(r, false, out);
    let _ = write!(out, "{:<16}{:8}\nVmFlags: ", "THPeligible:", 0);
    let flags = [
        (area.prot.readable(), "rd "),
        (area.prot.writable(), "wr "),
        (area.prot.executable(), "ex "),
        (area.shared, "sh "),
        (true, "mr mw me "),
        (area.shared, "ms "),
        (matches!(area.name, AreaName::Stack), "gd "),
    ];
    flags.iter().filter(|(set, _)| *set).for_each(|(_, name)| out.bytes(name.as_bytes()));
    out.bytes(b"\n");
}

/// proc_pid_smaps(5).
pub(super) fn smaps(subject: &Subject, out: &mut Text<'_>) {
    let Some(mm) = subject.process.mm() else { return };
    mm.maps().for_each(|area| smap(&area, &mm.residency(area.start, area.end), out));
}

/// `smaps_rollup`: the sum over all areas.
pub(super) fn rollup(subject: &Subject, out: &mut Text<'_>) {
    let Some(mm) = subject.process.mm() else { return };
    let (mut span, mut sum) = (None, Residency::default());
    for area in mm.maps() {
        let r = mm.residency(area.start, area.end);
        sum.pages += r.pages;
        sum.anonymous += r.anonymous;
        sum.sole += r.sole;
        sum.share += r.share;
        sum.anonymous_share += r.anonymous_share;
        span = Some((span.map_or(area.start, |(start, _)| start), area.end));
    }
    if let Some(span) = span {
        sums(span, &sum, out);
    }
}

fn sums((start, end): (usize, usize), sum: &Residency, out: &mut Text<'_>) {
    let at = out.len();
    let _ = write!(out, "{start:08x}-{end:08x} ---p 00000000 00:00 0 ");
    out.pad(at, NAME);
    out.bytes(b"[rollup]\n");
    resident(sum, true, out);
}

#[cfg(test)]
mod tests {
    use super::super::text::written;
    use super::*;
    use alloc::sync::Arc;
    use hal::mem::pgtable::Prot;
    use mm::MappedFile;

    struct Named(&'static str);

    impl MappedFile for Named {
        fn write_path(&self, out: &mut dyn Write) -> fmt::Result {
            out.write_str(self.0)
        }
        fn dev_ino(&self) -> (u64, u64) {
            (2, 40)
        }
    }

    fn area(start: usize, end: usize, prot: Prot, offset: usize, name: AreaName) -> Area {
        Area { start, end, prot, shared: false, offset, name }
    }

    fn busybox(path: &'static str) -> AreaName {
        AreaName::File(Arc::new(Named(path)))
    }

    #[test]
    fn the_lines_of_maps_are_those_of_linux() {
        let rw = Prot::RW;
        let areas = [
            area(0x1_0000, 0x19_1000, Prot::RX, 0, busybox("/usr/bin/busybox")),
            area(0x19_9000, 0x19_b000, rw, 0x18_8000, busybox("/a\nb")),
            area(0x19_b000, 0x1a_2000, rw, 0, AreaName::None),
            area(0xea3_3000, 0xea5_5000, rw, 0, AreaName::Heap),
            area(0x7fff_995a_b000, 0x7fff_995a_c000, Prot::RX, 0, AreaName::Special("[vdso]")),
            area(0x7fff_c42b_6000, 0x7fff_c42d_7000, rw, 0, AreaName::Stack),
        ];
        let lines = [
            "00010000-00191000 r-xp 00000000 00:02 40                                 /usr/bin/busybox",
            "00199000-0019b000 rw-p 00188000 00:02 40                                 /a\\012b",
            "0019b000-001a2000 rw-p 00000000 00:00 0 ",
            "0ea33000-0ea55000 rw-p 00000000 00:00 0                                  [heap]",
            "7fff995ab000-7fff995ac000 r-xp 00000000 00:00 0                          [vdso]",
            "7fffc42b6000-7fffc42d7000 rw-p 00000000 00:00 0                          [stack]",
        ];
        for (area, expected) in areas.iter().zip(lines) {
            assert_eq!(written(|out| line(area, out)), expected);
        }
    }

    #[test]
    fn the_rows_of_smaps_are_those_of_linux() {
        let area = area(0x19_1000, 0x19_9000, Prot::R, 0x18_0000, busybox("/usr/bin/busybox"));
        let r = Residency { pages: 8, anonymous: 2, sole: 0, share: 15 << 10, anonymous_share: 4 << 10 };
        let text = written(|out| smap(&area, &r, out));
        let expected = "00191000-00199000 r--p 00180000 00:02 40                                 /usr/bin/busybox\n\
            Size:                 32 kB\nKernelPageSize:        4 kB\nMMUPageSize:           4 kB\n\
            Rss:                  32 kB\nPss:                  15 kB\nPss_Dirty:            15 kB\n\
            Shared_Clean:          0 kB\nShared_Dirty:         32 kB\nPrivate_Clean:         0 kB\n\
            Private_Dirty:         0 kB\nReferenced:           32 kB\nAnonymous:             8 kB\n\
            KSM:                   0 kB\n";
        assert!(text.starts_with(expected), "{text}");
        assert!(
            text.ends_with("Locked:                0 kB\nTHPeligible:           0\nVmFlags: rd mr mw me \n"),
            "{text}"
        );
        let text = written(|out| sums((0x1_0000, 0x7fff_f812_f000), &r, out));
        let head = "00010000-7ffff812f000 ---p 00000000 00:00 0                              [rollup]\nRss:   ";
        assert!(text.starts_with(head) && text.contains("\nPss_File:             11 kB\n"), "{text}");
    }
}
