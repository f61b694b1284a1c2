//! Random queries to everything that answers: results and memory have to be the same.

use crate::entry::{Entry, HARTS, by_call, by_vdso, is_linux, online, words};
use kit::memory::{self, PAGE};
use kit::random::Random;
use kit::uapi::mman::PROT_NONE;
use riscv_hwprobe::reference::{Bytes, Machine};
use riscv_hwprobe::rules::{KEYS, Request};

/// Bytes at the end of a page in which queries lie; behind them nothing is mapped.
const AREA: usize = 192;

/// Bytes of it that hold the pairs of a legal query.
pub const PAIRS: usize = 96;

/// Makes queries.
pub struct Maker<'a> {
    pub random: Random,
    pub words: &'a [[u64; KEYS]],
    pub base: usize,
    /// With sets of more than 8 bytes, which Linux reads up to the size of its own.
    pub long_sets: bool,
}

impl Maker<'_> {
    fn key(&mut self) -> u64 {
        match self.random.below(12) {
            0 => self.random.next(),
            1 => self.random.pick(&[17, u64::MAX, 1 << 63, 1 << 32]),
            _ => self.random.below(KEYS as u64),
        }
    }

    fn value(&mut self, key: u64) -> u64 {
        let hart = self.random.below(self.words.len() as u64) as usize;
        let word = self.words[hart].get(key as usize).copied().unwrap_or(0);
        match self.random.below(4) {
            0 => self.random.next(),
            1 => word & self.random.next(),
            _ => word,
        }
    }

    fn set(&mut self) -> u64 {
        match self.random.below(4) {
            0 => self.random.next(),
            1 => self.random.pick(&[0, u64::MAX, 1 << 40, 1]),
            _ => self.random.below(1 << self.words.len()),
        }
    }

    /// A place in the first so many bytes of the area, now and then one outside; never one before it.
    fn place(&mut self, bytes: usize) -> usize {
        let inside = self.base + 8 * self.random.below(bytes as u64 / 8) as usize;
        match self.random.below(48) {
            0 => self.random.pick(&[0, 8, 1 << 40, 1 << 63, usize::MAX - 15]),
            1 => self.base + AREA + self.random.below(64) as usize,
            2 => inside + self.random.below(8) as usize,
            _ => inside,
        }
    }

    /// Fills the area and gives a query: anything at all.
    pub fn any(&mut self, area: &mut [u8; AREA]) -> Request {
        for pair in area.chunks_exact_mut(16) {
            let key = self.key();
            pair[..8].copy_from_slice(&key.to_le_bytes());
            pair[8..].copy_from_slice(&self.value(key).to_le_bytes());
        }
        let cpus = match self.random.below(6) {
            0 => 0,
            _ => self.place(AREA),
        };
        if let Some(place) = cpus.checked_sub(self.base).and_then(|at| area.get_mut(at..at + 8)) {
            place.copy_from_slice(&self.set().to_le_bytes());
        }
        let count = match self.random.below(40) {
            0 => self.random.pick(&[usize::MAX, usize::MAX / 16 + 2, 1 << 28]),
            _ => self.random.below(7) as usize,
        };
        let size = match self.random.below(16) {
            0 | 3 => self.random.below(9) as usize,
            1 => 0,
            2 if self.long_sets => self.random.pick(&[9, 64, 128, usize::MAX]),
            _ => 8,
        };
        let (pairs, flags) = (self.place(AREA * 2 / 3), self.random.pick(&[0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 3]));
        match self.random.below(4) {
            0 => Request { pairs, count, size: 0, cpus: 0, flags },
            _ => Request { pairs, count, size, cpus, flags },
        }
    }

    /// Fills the area and gives a query that succeeds: six pairs at its start, the set at its end.
    pub fn legal(&mut self, area: &mut [u8; AREA]) -> Request {
        let _ = self.any(area);
        let (set, flags) = (self.set(), self.random.below(2) as u32);
        let online = (1_u64 << self.words.len()) - 1;
        let set = if flags == 0 && set & online == 0 { 1 } else { set };
        area[AREA - 8..].copy_from_slice(&set.to_le_bytes());
        let (size, cpus) = match self.random.below(4) {
            0 if flags == 0 => (0, 0),
            _ => (8, self.base + AREA - 8),
        };
        Request { pairs: self.base, count: self.random.below(7) as usize, size, cpus, flags }
    }
}

/// The area itself, at the end of a page with nothing behind.
pub struct Area(pub usize);

impl Area {
    pub fn new() -> Option<Self> {
        let base = memory::private(2 * PAGE).ok()?;
        memory::protect(base + PAGE, PAGE, PROT_NONE).ok()?;
        Some(Self(base + PAGE - AREA))
    }

    /// Asks with this in the area; gives the result, and what is in the area then.
    pub fn ask(&self, entry: Entry, area: &[u8; AREA], q: Request) -> (isize, [u8; AREA]) {
        let place = self.0 as *mut [u8; AREA];
        // SAFETY: the area is mapped, and nobody else's.
        unsafe { place.write(*area) };
        let result = entry(q.pairs, q.count, q.size, q.cpus, q.flags as usize);
        // SAFETY: the same.
        (result, unsafe { place.read() })
    }
}

/// An empty area.
pub const EMPTY: [u8; AREA] = [0; AREA];

/// Compares; the status is 0 only if all agree.
pub fn compare(queries: u64, seed: u64) -> u8 {
    let (words, count) = words();
    let Some(area) = Area::new() else { return 1 };
    let online: [bool; HARTS] = core::array::from_fn(|hart| online() >> hart & 1 != 0);
    let machine = Machine { harts: &words[..count], online: &online[..count] };
    let linux = is_linux();
    let random = Random::new(seed);
    let mut maker = Maker { random, words: &words[..count], base: area.0, long_sets: !linux };
    let (mut bytes, mut failed, mut errors) = (EMPTY, 0_u32, 0_u64);
    for query in 0..queries {
        let request = maker.any(&mut bytes);
        let mut expected = bytes;
        let wanted = machine.call(&mut Bytes { base: area.0, bytes: &mut expected }, request) as isize;
        errors += u64::from(wanted != 0);
        // A word across the end of the page may be written in part; by whom and how far is nobody's promise.
        let exact = wanted == 0 || request.pairs.is_multiple_of(8) && request.cpus.is_multiple_of(8);
        let ways: &[(&str, Entry)] = if linux { &[("call", by_call)] } else { &[("call", by_call), ("vDSO", by_vdso)] };
        for (name, way) in ways {
            let (got, after) = area.ask(*way, &bytes, request);
            if got == wanted && (after == expected || !exact) {
                continue;
            }
            failed += 1;
            if failed <= 5 {
                rt::println!("# query {query} by {name}: {request:x?}: {got}, wanted {wanted}");
                for at in (0..AREA).step_by(8).filter(|at| after[*at..at + 8] != expected[*at..at + 8]) {
                    let word = |from: &[u8; AREA]| from[at..at + 8].iter().rev().fold(0, |w, b| w << 8 | u64::from(*b));
                    rt::println!(
                        "#   word {at}: {:x}, got {:x}, wanted {:x}",
                        word(&bytes),
                        word(&after),
                        word(&expected)
                    );
                }
            }
        }
    }
    rt::println!("# {errors} of {queries} queries fail, as they should");
    rt::println!(
        "{}: {queries} queries on {count} harts, {failed} differ",
        if failed == 0 { "same" } else { "different" }
    );
    u8::from(failed != 0)
}
