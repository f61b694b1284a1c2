//! How fast misaligned scalar accesses are.

use riscv_hwprobe::keys::{MISALIGNED_FAST, MISALIGNED_SLOW, MISALIGNED_UNKNOWN, MISALIGNED_UNSUPPORTED};

/// The command line's word for a speed: as in Linux.
pub(crate) fn parse(word: &str) -> Option<u64> {
    match word {
        "fast" => Some(MISALIGNED_FAST),
        "slow" => Some(MISALIGNED_SLOW),
        "unsupported" => Some(MISALIGNED_UNSUPPORTED),
        _ => None,
    }
}

/// What the measurement asks of a hart.
pub(crate) trait Subject {
    /// One misaligned load and store; false when they trap.
    fn access(&self) -> bool;
    /// Copies `bytes` bytes, a multiple of 64, by words from one misaligned place to another.
    fn words(&self, bytes: usize);
    /// The same, byte by byte.
    fn bytes(&self, bytes: usize);
    /// The clock, in ticks.
    fn now(&self) -> u64;
}

/// Bytes of a measured copy: some thousand instructions by bytes, so that even a clock of 1 MHz sees it.
pub(crate) const BYTES: usize = 1024;
/// Bytes after which a copy by words that has already lost is given up.
const FIRST: usize = 128;
/// Bytes of copies that are not looked at: they fill caches, an emulator's translations among them.
const WARM_UP: usize = 64;
/// Copies by bytes, of which the fastest counts.
const BYTE_TRIES: usize = 2;
/// Copies by words, of which the fastest counts, since others may be disturbed by an emulator's host. So many are made in
/// any case, and more as long as there is time.
const WORD_TRIES: usize = 3;
const MOST_WORD_TRIES: usize = 32;

/// Ticks that a copy takes. A function of its own, so that all measurements run the same code.
#[inline(never)]
fn ticks<S: Subject>(subject: &S, copy: fn(&S, usize), bytes: usize) -> u64 {
    let start = subject.now();
    copy(subject, bytes);
    subject.now().wrapping_sub(start)
}

/// How fast misaligned accesses are: fast if a copy by misaligned words beats one by bytes (what Linux asks, too). `time` is
/// what may be spent on copies by words, in ticks. About 15 000 instructions where misaligned accesses are fast. Where the
/// firmware emulates them, fewer than 150 of them are made if each takes a hundredth of `time`.
pub(crate) fn measure<S: Subject>(subject: &S, time: u64) -> u64 {
    if !subject.access() {
        return MISALIGNED_UNSUPPORTED;
    }
    for _ in 0..2 {
        ticks(subject, S::bytes, WARM_UP);
        ticks(subject, S::words, WARM_UP);
    }
    let limit = (0..BYTE_TRIES).map(|_| ticks(subject, S::bytes, BYTES)).min().unwrap_or(0);
    if limit == 0 {
        return MISALIGNED_UNKNOWN;
    }
    let begin = subject.now();
    for attempt in 0..MOST_WORD_TRIES {
        if attempt >= WORD_TRIES && subject.now().wrapping_sub(begin) >= time {
            break;
        }
        let first = ticks(subject, S::words, FIRST);
        if first < limit && first + ticks(subject, S::words, BYTES - FIRST) < limit {
            return MISALIGNED_FAST;
        }
    }
    MISALIGNED_SLOW
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    /// A hart whose clock advances by so much a byte, a word; the first copy by words is disturbed.
    struct Fake {
        traps: bool,
        byte: u64,
        word: u64,
        disturbed: u64,
        clock: Cell<u64>,
        words: Cell<usize>,
    }

    impl Subject for Fake {
        fn access(&self) -> bool {
            !self.traps
        }
        fn words(&self, bytes: usize) {
            self.words.set(self.words.get() + bytes / 8);
            let noise = if self.words.get() == (2 * WARM_UP + FIRST) / 8 { self.disturbed } else { 0 };
            self.clock.set(self.clock.get() + self.word * bytes as u64 / 8 + noise);
        }
        fn bytes(&self, bytes: usize) {
            self.clock.set(self.clock.get() + self.byte * bytes as u64);
        }
        fn now(&self) -> u64 {
            self.clock.get()
        }
    }

    fn found(traps: bool, byte: u64, word: u64, disturbed: u64) -> (u64, usize) {
        let fake = Fake { traps, byte, word, disturbed, clock: Cell::new(5), words: Cell::new(0) };
        (measure(&fake, 100_000), fake.words.get())
    }

    #[test]
    fn speeds_are_told_apart() {
        assert_eq!(found(false, 1, 2, 0).0, MISALIGNED_FAST);
        assert_eq!(found(false, 1, 9, 0).0, MISALIGNED_SLOW);
        assert_eq!(found(true, 1, 1, 0).0, MISALIGNED_UNSUPPORTED);
        assert_eq!(found(false, 0, 0, 0).0, MISALIGNED_UNKNOWN);
        assert_eq!(found(false, 1, 2, 1_000_000).0, MISALIGNED_FAST, "disturbed at first");
    }

    #[test]
    fn emulated_accesses_are_soon_given_up() {
        let (speed, words) = found(false, 1, 2500, 0);
        assert_eq!(speed, MISALIGNED_SLOW);
        assert!(words * 2 < 150, "{words}");
    }

    #[test]
    fn the_command_line_speaks_linux() {
        assert_eq!(["slow", "fast", "unsupported", "quick"].map(parse), [Some(2), Some(3), Some(4), None]);
    }
}
