//! The kernel's log: `/dev/kmsg` (Linux's Documentation/ABI/testing/dev-kmsg), and what syslog(2) reads.
//!
//! A ring of records; a reader holds the number of its next one, in the file's position, and learns with `EPIPE` that
//! the ring has overtaken it.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use hal::sync::{SpinLock, WaitQueue};
use hal::user::{InBuf, OutBuf};
use uapi::fs::S_IFCHR;
use uapi::open::{SEEK_DATA, SEEK_END, SEEK_SET};
use uapi::{Errno, Result, Timespec};

use super::{Device, register};
use crate::file::{File, FileOps, Ops, PollEvents};

/// Most bytes of text kept.
pub const KMSG_CAPACITY: usize = 64 * 1024;
/// The longest record a program may write.
const LINE_MAX: usize = 992;

struct Record {
    /// Level in the low three bits, facility above: syslog(3).
    prefix: u32,
    time: Timespec,
    text: Vec<u8>,
}

struct Log {
    records: VecDeque<Record>,
    /// Number of the first record.
    first: u64,
    bytes: usize,
    /// Number of the first record since it was cleared (`SYSLOG_ACTION_CLEAR`).
    cleared: u64,
}

static LOG: SpinLock<Log> = SpinLock::new(Log { records: VecDeque::new(), first: 0, bytes: 0, cleared: 0 });
static QUEUE: WaitQueue = WaitQueue::new();

/// Appends a line to the kernel's log. `prefix` is facility × 8 + level, 6 for ordinary news.
pub fn kmsg_append(prefix: u32, text: &[u8]) {
    let time = uptime();
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let mut copy = Vec::new();
    let mut log = LOG.lock();
    // A log that has no memory loses lines.
    if copy.try_reserve_exact(text.len()).is_err() || log.records.try_reserve(1).is_err() {
        return;
    }
    copy.extend_from_slice(text);
    log.bytes += text.len();
    log.records.push_back(Record { prefix, time, text: copy });
    while log.bytes > KMSG_CAPACITY {
        let Some(old) = log.records.pop_front() else { break };
        log.bytes -= old.text.len();
        log.first += 1;
    }
    drop(log);
    QUEUE.wake_all();
}

/// The log as dmesg shows it, since it was cleared, in the format of syslog(2).
pub fn kmsg_read_all() -> Vec<u8> {
    let log = LOG.lock();
    let mut text = Vec::new();
    let skip = log.cleared.saturating_sub(log.first) as usize;
    for record in log.records.iter().skip(skip) {
        let (s, us) = (record.time.tv_sec, record.time.tv_nsec / 1000);
        text.extend_from_slice(alloc::format!("<{}>[{s:5}.{us:06}] ", record.prefix).as_bytes());
        text.extend_from_slice(&record.text);
        text.push(b'\n');
    }
    text
}

/// `SYSLOG_ACTION_CLEAR`.
pub fn kmsg_clear() {
    let mut log = LOG.lock();
    log.cleared = log.first + log.records.len() as u64;
}

/// Time since power-on.
fn uptime() -> Timespec {
    Timespec::from_ns(hal::time::ns(hal::time::now()))
}

struct Kmsg;

impl Device for Kmsg {
    fn open(&self, _: u32) -> Result<Ops> {
        Ok(Ops::Static(&Kmsg))
    }
}

impl FileOps for Kmsg {
    fn read(&self, file: &File, out: &mut OutBuf<'_>) -> Result<usize> {
        let mut pos = file.pos.lock();
        let log = LOG.lock();
        if *pos < log.first {
            let overtaken = *pos != 0;
            *pos = log.first;
            if overtaken {
                return Err(Errno::EPIPE);
            }
        }
        let record = log.records.get((*pos - log.first) as usize).ok_or(Errno::EAGAIN)?;
        let us = record.time.tv_sec * 1_000_000 + record.time.tv_nsec / 1000;
        let mut line = alloc::format!("{},{},{us},-;", record.prefix, *pos).into_bytes();
        line.extend_from_slice(&record.text);
        line.push(b'\n');
        drop(log);
        if line.len() > out.len() {
            return Err(Errno::EINVAL);
        }
        *pos += 1;
        out.write(&line)
    }

    fn write(&self, _: &File, input: &mut InBuf<'_>) -> Result<usize> {
        let mut line = [0; LINE_MAX];
        let all = input.len();
        if all > LINE_MAX {
            return Err(Errno::EINVAL);
        }
        let n = input.read(&mut line)?;
        let line = line.get(..n).unwrap_or_default();
        let (prefix, text) = split_prefix(line);
        kmsg_append(prefix, text);
        Ok(n)
    }

    fn seek(&self, file: &File, off: i64, whence: u32) -> Result<u64> {
        let log = LOG.lock();
        let to = match (whence, off) {
            (SEEK_SET, 0) => log.first,
            (SEEK_DATA, 0) => log.cleared.max(log.first),
            (SEEK_END, 0) => log.first + log.records.len() as u64,
            (SEEK_SET | SEEK_DATA | SEEK_END, _) => return Err(Errno::ESPIPE),
            _ => return Err(Errno::EINVAL),
        };
        drop(log);
        *file.pos.lock() = to;
        Ok(0)
    }

    fn poll(&self, file: &File) -> PollEvents {
        let pos = *file.pos.lock();
        let log = LOG.lock();
        let mut events = PollEvents::WRITABLE;
        events.set(PollEvents::READABLE, pos < log.first + log.records.len() as u64);
        events
    }

    fn wait_queue(&self, _: &File) -> Option<&WaitQueue> {
        Some(&QUEUE)
    }
}

/// Takes a leading `<N>` off. A program is never facility 0, the kernel's: it becomes 1, the user's.
fn split_prefix(line: &[u8]) -> (u32, &[u8]) {
    /// Level 4 (warning) is what Linux gives a line without one.
    const DEFAULT: u32 = 1 << 3 | 4;
    let parsed = line.strip_prefix(b"<").and_then(|rest| {
        let end = rest.iter().position(|byte| *byte == b'>')?;
        let number = core::str::from_utf8(rest.get(..end)?).ok()?.parse::<u32>().ok()?;
        Some((number, rest.get(end + 1..)?))
    });
    match parsed {
        Some((number, text)) if number >= 8 => (number, text),
        Some((number, text)) => (1 << 3 | number, text),
        None => (DEFAULT, line),
    }
}

pub(super) fn init() -> Result<()> {
    register(S_IFCHR | 0o644, 1, 11, "kmsg", Arc::new(Kmsg))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes() {
        assert_eq!(split_prefix(b"<30>hello"), (30, &b"hello"[..]));
        assert_eq!(split_prefix(b"<3>hello"), (11, &b"hello"[..]));
        assert_eq!(split_prefix(b"hello <3>"), (12, &b"hello <3>"[..]));
    }
}
