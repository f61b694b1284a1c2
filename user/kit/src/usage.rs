//! Pages in use, by kind, as the kernel tells.
//!
//! Limen tells in `/proc/limen/boundary`: lines `pages KIND N KIND N…`. Kinds that caches make vary a little: their slack is
//! small and fixed, so that a leak by each child cannot hide in it. A Linux tells free memory only, and keeps what it
//! likes: there the figures are shown and not judged.

use crate::check::Outcome;
use crate::{clock, file};

/// Kinds with the pages by which they may differ.
const KINDS: &[(&str, u64)] =
    &[("anonymous", 0), ("page_cache", 0), ("page_tables", 0), ("kernel_stacks", 8), ("heap", 16)];

/// Pages of each kind; `None` where the kernel does not tell.
pub struct Usage {
    pages: [Option<u64>; KINDS.len()],
    free: Option<u64>,
}

/// Uses as much of the stack as whoever compares will, so that its pages are there each time.
#[inline(never)]
fn touch_stack() {
    core::hint::black_box(&mut [1_u8; 16_384]);
}

/// Looks.
pub fn now() -> Usage {
    touch_stack();
    look()
}

fn look() -> Usage {
    // Whoever has just been killed is gone after a while.
    clock::sleep(300_000_000);
    static mut BUFFER: [u8; 16_384] = [0; 16_384];
    // SAFETY: one thread, and no reference lives on.
    #[allow(clippy::deref_addrof)]
    let buffer = unsafe { &mut *(&raw mut BUFFER) };
    buffer.fill(1);
    let mut pages = [None; KINDS.len()];
    let text = file::text(c"/proc/limen/boundary", buffer).unwrap_or("");
    for (slot, (kind, _)) in pages.iter_mut().zip(KINDS) {
        let count = |line: &str| {
            let mut words = line.strip_prefix("pages ")?.split_ascii_whitespace();
            words.find(|word| word == kind)?;
            words.next()?.parse().ok()
        };
        *slot = text.lines().find_map(count);
    }
    let free = file::text(c"/proc/meminfo", buffer).ok().and_then(|text| file::number(text, "MemFree"));
    Usage { pages, free }
}

/// Compares with now.
pub fn compare(before: &Usage) -> Outcome {
    let after = look();
    rt::println!("# free memory: {:?} kB before, {:?} kB after", before.free, after.free);
    let mut same = true;
    for ((kind, slack), (before, after)) in KINDS.iter().zip(before.pages.iter().zip(after.pages)) {
        let (Some(before), Some(after)) = (before, after) else { continue };
        rt::println!("# pages {kind}: {before} before, {after} after");
        same &= before.abs_diff(after) <= *slack;
    }
    if same { Ok(()) } else { Err("pages in use differ") }
}
