//! How much of memory a tmpfs may take: tmpfs(5), `size` and `nr_inodes`.
//!
//! Without a limit one program could fill all memory with files, and nothing could be started any more to remove them. So
//! the limits are, as Linux has them, half of memory for content and one inode per two pages, unless the mount says
//! otherwise. Content is counted as the pages that files have in memory when they were last written, cut or dropped;
//! a write is cut short only where it would make the file longer.

use core::sync::atomic::{AtomicU64, Ordering};

use hal::addr::PAGE_SIZE;
use hal::mem::frame::{is_low, stats, total};
use uapi::{Errno, Result};

/// The accounts of one file system. Limits of 0 bind nothing.
#[derive(Debug)]
pub struct Usage {
    max_pages: u64,
    max_inodes: u64,
    pages: AtomicU64,
    inodes: AtomicU64,
}

/// Limits as a mount gives them; `None` is the default.
#[derive(Default)]
pub(super) struct Limits {
    pub pages: Option<u64>,
    pub inodes: Option<u64>,
}

/// What statfs(2) shows: total and free pages, total and free inodes.
pub(crate) struct Room {
    pub pages: u64,
    pub free_pages: u64,
    pub inodes: u64,
    pub free_inodes: u64,
}

impl Usage {
    /// The accounts of a file system with the default limits.
    pub(crate) fn with_defaults() -> Self {
        Self::new(&Limits::default())
    }

    pub(super) fn new(limits: &Limits) -> Self {
        let half = total() as u64 / 2;
        Self {
            max_pages: limits.pages.unwrap_or(half),
            max_inodes: limits.inodes.unwrap_or(half),
            pages: AtomicU64::new(0),
            inodes: AtomicU64::new(0),
        }
    }

    /// `ENOSPC` when there can be no more names.
    pub(crate) fn check_inodes(&self) -> Result<()> {
        let full = self.max_inodes != 0 && self.inodes.load(Ordering::Relaxed) >= self.max_inodes;
        // A name, its entry and its inode are small allocations, which must not eat what running calls need.
        if full || is_low() { Err(Errno::ENOSPC) } else { Ok(()) }
    }

    /// How far a write at `off` may go in a file of `size` bytes, in bytes from the file's start.
    #[inline]
    pub(super) fn limit(&self, size: u64, off: u64) -> u64 {
        const PAGE: u64 = PAGE_SIZE as u64;
        if self.max_pages == 0 {
            return u64::MAX;
        }
        let left = self.max_pages.saturating_sub(self.pages.load(Ordering::Relaxed));
        let base = size.next_multiple_of(PAGE).max(off / PAGE * PAGE);
        base.saturating_add(left.saturating_mul(PAGE))
    }

    /// `ENOSPC` when `bytes` cannot all be had.
    pub(super) fn check_allocation(&self, bytes: u64) -> Result<()> {
        let wanted = bytes.div_ceil(PAGE_SIZE as u64);
        let left = self.max_pages.saturating_sub(self.pages.load(Ordering::Relaxed));
        if self.max_pages != 0 && wanted > left { Err(Errno::ENOSPC) } else { Ok(()) }
    }

    /// Another inode, or another name of one.
    pub(crate) fn add_inode(&self) {
        self.inodes.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn remove_inode(&self) {
        self.inodes.fetch_sub(1, Ordering::Relaxed);
    }

    /// A file that had `before` pages has `now`.
    #[inline]
    pub(super) fn change_pages(&self, before: u64, now: u64) {
        // Wraps where it shrinks: the sum of all changes is what counts.
        self.pages.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }

    pub(crate) fn room(&self) -> Room {
        let stats = stats();
        let free = stats.free as u64;
        let (used, inodes) = (self.pages.load(Ordering::Relaxed), self.inodes.load(Ordering::Relaxed));
        let left = |max: u64, used: u64| max.saturating_sub(used);
        Room {
            pages: if self.max_pages == 0 { stats.total as u64 } else { self.max_pages },
            free_pages: if self.max_pages == 0 { free } else { left(self.max_pages, used).min(free) },
            inodes: self.max_inodes,
            free_inodes: left(self.max_inodes, inodes),
        }
    }
}

/// The value of `size`: bytes with `k`, `m`, `g`, or a percentage of memory. In pages, rounded up.
pub(super) fn size(text: &[u8]) -> Result<u64> {
    let (digits, unit) = match text.split_last() {
        Some((b'%', digits)) => {
            let share = decimal(digits)?.checked_mul(stats().total as u64).ok_or(Errno::EINVAL)?;
            return Ok(share / 100);
        }
        Some((b'k' | b'K', digits)) => (digits, 1 << 10),
        Some((b'm' | b'M', digits)) => (digits, 1 << 20),
        Some((b'g' | b'G', digits)) => (digits, 1 << 30),
        _ => (text, 1),
    };
    let bytes = decimal(digits)?.checked_mul(unit).ok_or(Errno::EINVAL)?;
    Ok(bytes.div_ceil(PAGE_SIZE as u64))
}

/// A count, with `k`, `m` or `g`.
pub(super) fn count(text: &[u8]) -> Result<u64> {
    let (digits, unit) = match text.split_last() {
        Some((b'k' | b'K', digits)) => (digits, 1 << 10),
        Some((b'm' | b'M', digits)) => (digits, 1 << 20),
        Some((b'g' | b'G', digits)) => (digits, 1 << 30),
        _ => (text, 1),
    };
    decimal(digits)?.checked_mul(unit).ok_or(Errno::EINVAL)
}

fn decimal(digits: &[u8]) -> Result<u64> {
    core::str::from_utf8(digits).ok().and_then(|text| text.parse().ok()).ok_or(Errno::EINVAL)
}
