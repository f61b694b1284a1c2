//! Each call with each awkward range.

use core::sync::atomic::AtomicU8;

use crate::arena::{Arena, At, BASE, Line, Shown};
use kit::call;
use kit::check::Outcome;
use kit::memory::PAGE;
use kit::uapi::mman::*;
use kit::uapi::nr;

const TOP39: usize = 1 << 38;
const TOP48: usize = 1 << 47;
const TOP57: usize = 1 << 56;
const KERNEL: usize = 0xffff_ffc0_0000_0000;
const LAST: usize = usize::MAX - PAGE + 1;

/// Where ranges begin.
const ADDRESSES: &[usize] = &[
    0,
    PAGE,
    BASE,
    BASE + 8,
    BASE + PAGE,
    BASE + 3 * PAGE,
    BASE + 4 * PAGE,
    BASE + 5 * PAGE,
    BASE + 6 * PAGE,
    BASE + 7 * PAGE + 5,
    BASE + 8 * PAGE,
    BASE + 10 * PAGE,
    BASE + 12 * PAGE,
    BASE + 14 * PAGE,
    BASE + 15 * PAGE,
    BASE + 17 * PAGE,
    BASE + 18 * PAGE,
    TOP39,
    TOP48,
    TOP57 - PAGE,
    TOP57,
    TOP57 + PAGE,
    1 << 63,
    KERNEL,
    LAST,
    KERNEL + 8,
];

/// How long they are.
const LENGTHS: &[usize] = &[
    0,
    1,
    PAGE,
    PAGE + 1,
    3 * PAGE,
    4 * PAGE,
    5 * PAGE,
    20 * PAGE,
    TOP57 - BASE,
    TOP57 - BASE + 1,
    TOP57,
    TOP57 + PAGE,
    1 << 63,
    usize::MAX - BASE,
    usize::MAX - BASE - 3 * PAGE,
    LAST,
    LAST + 1,
    usize::MAX,
];

/// Ranges up to here take effect in most calls; beyond, they are errors.
const SPACE: u128 = TOP57 as u128;
/// Holes do not end what some do, and they go on to the end of all addresses.
const EVERYTHING: u128 = 1 << 64;
/// The call changes nothing anywhere.
const NOTHING: u128 = 0;

/// Runs `operation` on each range but those that would reach out of the arena, with the state afterwards if it may have
/// changed anything.
fn ranges(arena: &Arena, name: &str, kind: u32, bound: u128, operation: impl Fn(usize, usize) -> isize) -> Outcome {
    for &address in ADDRESSES {
        let mut line = Line::new(format_args!("{name} {kind:#x} {}", At(address)));
        for &length in LENGTHS.iter().filter(|length| !Arena::reaches_out(address, **length, bound)) {
            let result = operation(address, length);
            if bound == NOTHING || result < 0 && result != -12 || length == 0 {
                line.add(format_args!("{}", Shown(result)));
            } else {
                arena.report(&mut line, result)?;
                arena.reset()?;
            }
        }
        line.end();
    }
    Ok(())
}

/// All of them.
pub fn run(arena: &Arena) -> Outcome {
    ranges(arena, "munmap", 0, SPACE, |at, length| call!(nr::MUNMAP, at, length))?;
    let known = PROT_READ | PROT_WRITE | PROT_EXEC;
    for prot in [PROT_NONE, PROT_READ, known, PROT_READ | PROT_GROWSDOWN, PROT_READ | PROT_GROWSUP, 0x300_0001, 0x101] {
        ranges(arena, "mprotect", prot, SPACE, |at, length| call!(nr::MPROTECT, at, length, prot))?;
    }
    let advice = (0..=4).chain(8..=24).chain([100, 101, 102, 103, 9_999, u32::MAX]);
    for advice in advice {
        ranges(arena, "madvise", advice, EVERYTHING, |at, length| call!(nr::MADVISE, at, length, advice))?;
    }
    for flags in [0, MS_ASYNC, MS_SYNC, MS_INVALIDATE, MS_SYNC | MS_INVALIDATE, MS_SYNC | MS_ASYNC, 8] {
        ranges(arena, "msync", flags, NOTHING, |at, length| call!(nr::MSYNC, at, length, flags))?;
    }
    let bytes = [const { AtomicU8::new(0) }; 64];
    ranges(arena, "mincore", 0, NOTHING, |at, length| call!(nr::MINCORE, at, length, bytes.as_ptr()))?;
    for bad in [0, KERNEL, usize::MAX] {
        ranges(arena, "mincore to nowhere", bad as u32, NOTHING, |at, length| call!(nr::MINCORE, at, length, bad))?;
    }
    ranges(arena, "mlock", 0, NOTHING, |at, length| call!(nr::MLOCK, at, length))?;
    for flags in [0, MLOCK_ONFAULT, 2] {
        ranges(arena, "mlock2", flags, NOTHING, |at, length| call!(nr::MLOCK2, at, length, flags))?;
    }
    ranges(arena, "munlock", 0, NOTHING, |at, length| call!(nr::MUNLOCK, at, length))?;
    arena.reset()?;
    map(arena)?;
    remap(arena)
}

fn map(arena: &Arena) -> Outcome {
    let anonymous = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    for flags in [anonymous | MAP_FIXED, anonymous | MAP_FIXED_NOREPLACE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED] {
        ranges(arena, "mmap", flags, SPACE, |at, length| call!(nr::MMAP, at, length, PROT_READ, flags, -1_isize, 0))?;
    }
    // With a hint, addresses that were not chosen are not to be kept.
    ranges(arena, "mmap with a hint", anonymous, SPACE, |at, length| {
        let got = call!(nr::MMAP, at, length, PROT_READ, anonymous, -1_isize, 0);
        if got > 0 && Arena::reaches_out(got.cast_unsigned(), length, SPACE) {
            call!(nr::MUNMAP, got, length);
        }
        got
    })?;
    let at = BASE + 20 * PAGE;
    for file in [arena.file, arena.read_only] {
        for flags in [MAP_PRIVATE, MAP_SHARED, MAP_SHARED_VALIDATE, 0, 4, MAP_SHARED | MAP_SYNC, 0x13 | MAP_SYNC] {
            let how = if file == arena.file { "rw" } else { "r" };
            let mut line = Line::new(format_args!("mmap of a file {flags:#x} {how}"));
            for prot in [PROT_NONE, PROT_READ, PROT_WRITE, PROT_READ | PROT_WRITE, PROT_READ | PROT_EXEC] {
                for offset in [0, 1, PAGE, 5 * PAGE, 1 << 62, (1 << 63) - PAGE, 1 << 63, LAST] {
                    let got = call!(nr::MMAP, at, 2 * PAGE, prot, flags | MAP_FIXED, file, offset);
                    line.add(format_args!("{}", Shown(got)));
                    call!(nr::MUNMAP, at, 2 * PAGE);
                }
            }
            line.end();
        }
    }
    Ok(())
}

fn remap(arena: &Arena) -> Outcome {
    const FLAGS: &[u32] = &[0, 1, 2, 3, 4, 5, 7, 9];
    const SIZES: &[usize] = &[0, 1, 2 * PAGE, 3 * PAGE + 1, 30 * PAGE, TOP57, usize::MAX];
    const TARGETS: &[usize] = &[0, BASE + PAGE, BASE + 20 * PAGE, BASE + 20 * PAGE + 1, TOP57 - PAGE, TOP57];
    let starts =
        [0, BASE, BASE + 8, BASE + 2 * PAGE, BASE + 3 * PAGE, BASE + 4 * PAGE, BASE + 8 * PAGE, BASE + 10 * PAGE];
    let reaches = |at, length: usize| Arena::reaches_out(at, length.max(1), SPACE);
    for &flags in FLAGS {
        for old in starts.into_iter().chain([BASE + 12 * PAGE, BASE + 14 * PAGE, TOP57, LAST]) {
            for &old_length in SIZES {
                let mut line = Line::new(format_args!("mremap {flags} {} {old_length:#x}", At(old)));
                for &new_length in SIZES {
                    // Without an address to go to, the target is looked at all the same by some.
                    for &target in if flags & MREMAP_FIXED == 0 { &TARGETS[..1] } else { TARGETS } {
                        if reaches(old, old_length) || reaches(target, new_length) {
                            continue;
                        }
                        let got = call!(nr::MREMAP, old, old_length, new_length, flags, target);
                        if got < 0 {
                            line.add(format_args!("{}", Shown(got)));
                            // Linux has unmapped the target by then.
                            if flags & MREMAP_FIXED != 0 {
                                arena.reset()?;
                            }
                            continue;
                        }
                        arena.report(&mut line, got)?;
                        if Arena::reaches_out(got.cast_unsigned(), new_length, SPACE) {
                            call!(nr::MUNMAP, got, new_length);
                        }
                        arena.reset()?;
                    }
                }
                line.end();
            }
        }
    }
    Ok(())
}
