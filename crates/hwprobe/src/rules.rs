//! The rules: how words of single harts become the answer to a query.
//!
//! A query is an AND over a set of harts, key by key, and the words of a hart never change while it is up. So whoever
//! answers keeps one word per hart and key, the answer for all harts, and one bit per key that says whether the harts agree
//! on it: then any set of harts is one lookup for the keys on which they agree, which on most machines are all, and a few
//! ANDs for the others. [`Answers`] is that table; [`answer`] is the call, from its first check to its last write, over
//! any kind of memory. A kernel runs it over checked copies from user memory, its vDSO over plain loads and stores, a test
//! over an array: there is one semantics because there is one function.
//!
//! This file stands alone (only `core`), so that a vDSO can be made of it without the crate.
//!
//! The order of checks, the errors and what has been written when an error comes are those of Linux 7.2 (kernel document
//! `arch/riscv/hwprobe.rst`; the order where that is silent was observed).

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Number of keys: they are 0 to 16.
pub const KEYS: usize = 17;
/// Bytes of a pair of key and value.
pub const PAIR: usize = 16;
/// The only flag: reduce the set of harts to those that match the pairs.
pub const WHICH_CPUS: u32 = 1;
/// Most bytes of a set of harts that are looked at; longer sets are cut.
pub const SET: usize = 8;

/// What an unknown key becomes; its value is 0.
pub const UNKNOWN: u64 = u64::MAX;
/// Keys whose values are sets of bits: 3, 4, 5 (a number, wrongly classed: key 9 is there because of it), 11, 13, 14, 16.
pub const BITMASKS: u32 = 1 << 3 | 1 << 4 | 1 << 5 | 1 << 11 | 1 << 13 | 1 << 14 | 1 << 16;
/// Keys of [`BITMASKS`] that are ANDed over a set of harts.
pub const ANDED: u32 = BITMASKS & !(1 << 5);
/// Numbers that become -1 where harts differ: vendor, architecture, implementation. All other numbers become 0.
pub const IDS: u32 = 0b111;

/// An access that user memory does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault;

/// How a query fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// EINVAL.
    Invalid,
    /// EFAULT. What was written before stays.
    Fault,
}

impl From<Fault> for Error {
    #[inline(always)]
    fn from(_: Fault) -> Self {
        Self::Fault
    }
}

/// The arguments of riscv_hwprobe(2), unchecked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Where the pairs lie.
    pub pairs: usize,
    /// How many there are.
    pub count: usize,
    /// Bytes of the set of harts.
    pub size: usize,
    /// Where it lies; 0 together with a `size` of 0 stands for all harts.
    pub cpus: usize,
    /// 0 or [`WHICH_CPUS`].
    pub flags: u32,
}

/// The caller's memory. Words are little-endian and need no alignment.
#[allow(clippy::missing_errors_doc)]
pub trait Memory {
    /// The key of the pair at `at`. A memory that finds out late may give [`UNKNOWN`] for one that cannot be read, and
    /// tell when [`Memory::was_read`] asks.
    fn key(&mut self, at: usize) -> Result<u64, Fault>;
    /// Asked after a key that is not known: whether it could be read.
    #[inline(always)]
    fn was_read(&mut self) -> Result<(), Fault> {
        Ok(())
    }
    /// Key and value of the pair at `at`.
    fn pair(&mut self, at: usize) -> Result<(u64, u64), Fault>;
    /// Writes the pair at `at`, the key first.
    fn put_pair(&mut self, at: usize, key: u64, value: u64) -> Result<(), Fault>;
    /// A set of `size` bytes, at least one; of a longer one the first [`SET`] bytes.
    fn set(&mut self, at: usize, size: usize) -> Result<u64, Fault>;
    /// Writes a set of `size` bytes, at least one; of a longer one the first [`SET`] bytes.
    fn put_set(&mut self, at: usize, size: usize, set: u64) -> Result<(), Fault>;
    /// Called between pairs, `left` of which are still to come: a kernel may let interrupts in.
    #[inline(always)]
    fn pause(&mut self, left: usize) {
        let _ = left;
    }
}

/// What is known of up to 64 harts. The fields are atomic, so that it can be a shared static that is filled once; whoever
/// fills it answers for nobody reading meanwhile.
#[derive(Debug)]
#[repr(C)]
pub struct Answers<const HARTS: usize> {
    /// By key, then by hart. First, so that a row is found without adding more than its number.
    harts: [[AtomicU64; HARTS]; KEYS],
    /// For all harts online.
    all: [AtomicU64; KEYS],
    /// Bit per hart.
    online: AtomicU64,
    /// Bit per hart of the machine, online or not.
    possible: AtomicU64,
    /// Bit per key.
    uniform: AtomicU64,
}

impl<const HARTS: usize> Default for Answers<HARTS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const HARTS: usize> Answers<HARTS> {
    /// No harts yet.
    pub const fn new() -> Self {
        const { assert!(HARTS <= 64, "sets of harts are one word") };
        const { assert!(HARTS.is_multiple_of(4), "words are looked at in fours") };
        Self {
            all: [const { AtomicU64::new(0) }; KEYS],
            online: AtomicU64::new(0),
            possible: AtomicU64::new(0),
            uniform: AtomicU64::new(0),
            harts: [const { [const { AtomicU64::new(0) }; HARTS] }; KEYS],
        }
    }

    /// Fills the table for the harts whose bits are in `online`; `words` gives a hart's words. `possible` has a bit for
    /// each hart of the machine, and all of `online`.
    pub fn publish(&self, possible: u64, online: u64, mut words: impl FnMut(usize) -> [u64; KEYS]) {
        let (online, possible) = (online & mask(HARTS), possible & mask(HARTS));
        self.possible.store(possible, Relaxed);
        self.online.store(online, Relaxed);
        for hart in (0..HARTS).filter(|hart| online >> hart & 1 != 0) {
            for (row, word) in self.harts.iter().zip(words(hart)) {
                row[hart].store(word, Relaxed);
            }
        }
        let mut uniform = 0;
        for (key, all) in self.all.iter().enumerate() {
            let sum = self.sum(key, online);
            all.store(sum.answer(key), Relaxed);
            uniform |= u64::from(sum.any == sum.each) << key;
        }
        self.uniform.store(uniform, Relaxed);
    }

    /// The harts that are online, a bit each.
    #[inline]
    pub fn online(&self) -> u64 {
        self.online.load(Relaxed)
    }

    /// The keys for which every subset of `set` that is asked about gets the answer for all harts: those on which the harts
    /// agree, or every key if the set is all of `online`.
    #[inline(always)]
    fn same(&self, set: u64, online: u64) -> u64 {
        if set == online { u64::MAX } else { self.uniform.load(Relaxed) }
    }

    /// The answer for `set`, harts that are online and at least one; `same` is [`Answers::same`] of it. `None` for an unknown
    /// key.
    #[inline(always)]
    fn value(&self, key: u64, set: u64, same: u64) -> Option<u64> {
        let index = index(key)?;
        let all = self.all.get(index)?;
        if same >> index & 1 != 0 { Some(all.load(Relaxed)) } else { Some(self.sum(index, set).answer(index)) }
    }

    /// The harts of `set` whose word for `key` satisfies `wanted`. `None` for an unknown key.
    #[inline(always)]
    fn matching(&self, key: u64, wanted: u64, set: u64) -> Option<u64> {
        let index = index(key)?;
        let all = self.all.get(index)?;
        let looked_at = if BITMASKS >> index & 1 != 0 { wanted } else { u64::MAX };
        if self.uniform.load(Relaxed) >> index & 1 != 0 {
            return Some(if all.load(Relaxed) & looked_at == wanted { set } else { 0 });
        }
        let fits = |found, word, hart| found | u64::from(word & looked_at == wanted) << hart;
        Some(self.fold(index, set, 0, fits))
    }

    /// Folds the words of the harts in `set`, which are online.
    #[inline(always)]
    fn fold<T>(&self, key: usize, set: u64, start: T, with: impl Fn(T, u64, u32) -> T) -> T {
        // Nothing changes by that but for the compiler: a set that is the same for all pairs it would take apart before the
        // first, and keep each bit in a register.
        let set = set & self.online.load(Relaxed);
        let words = self.harts.get(key).map_or(&[][..], |row| row.as_chunks().0);
        let Some((words, rest)) = words.split_first() else { return start };
        let (mut sum, mut left, mut first) = (four(words, set, 0, start, &with), set >> 4, 4);
        for words in rest {
            if left == 0 {
                break;
            }
            sum = four(words, left, first, sum, &with);
            (left, first) = (left >> 4, first + 4);
        }
        sum
    }

    /// What all harts of `set` have, and what any of them has.
    #[inline(always)]
    fn sum(&self, key: usize, set: u64) -> Sum {
        let add = |sum: Sum, word, _| Sum { each: sum.each & word, any: sum.any | word };
        self.fold(key, set, Sum { each: u64::MAX, any: 0 }, add)
    }
}

/// Folds the words of four harts, those whose bits are in `set`; the first of them has number `first`. The loop is written
/// out, as places that are constants cost no instructions.
#[inline(always)]
fn four<T>(words: &[AtomicU64; 4], set: u64, first: u32, sum: T, with: impl Fn(T, u64, u32) -> T) -> T {
    let one = |sum, place: u32, word: &AtomicU64| {
        if set & 1 << place != 0 { with(sum, word.load(Relaxed), first + place) } else { sum }
    };
    let [a, b, c, d] = words;
    one(one(one(one(sum, 0, a), 1, b), 2, c), 3, d)
}

/// AND and OR of words: equal where all words are.
struct Sum {
    each: u64,
    any: u64,
}

impl Sum {
    /// What the call says of harts with these words.
    #[inline(always)]
    fn answer(&self, key: usize) -> u64 {
        match () {
            () if self.any == self.each || ANDED >> key & 1 != 0 => self.each,
            () if IDS >> key & 1 != 0 => UNKNOWN,
            () => 0,
        }
    }
}

/// What an unknown key becomes, and its value.
#[cold]
#[inline(always)]
fn unknown(memory: &mut impl Memory) -> Result<(u64, u64), Fault> {
    memory.was_read()?;
    Ok((UNKNOWN, 0))
}

/// A key as an index, where it can be one.
#[inline(always)]
fn index(key: u64) -> Option<usize> {
    usize::try_from(key).ok()
}

/// A word with the lowest `bits` bits set.
const fn mask(bits: usize) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// riscv_hwprobe(2).
///
/// # Errors
/// As the call.
#[inline(always)]
pub fn answer<const HARTS: usize, M: Memory>(
    answers: &Answers<HARTS>,
    memory: &mut M,
    mut request: Request,
) -> Result<(), Error> {
    if request.flags != 0 {
        return which(answers, memory, request);
    }
    if request.size == 0 && request.cpus == 0 {
        return Ok(all(answers, memory, &mut request)?);
    }
    some(answers, memory, request)
}

impl Request {
    /// Leaves the first pair behind.
    #[inline(always)]
    fn advance(&mut self, memory: &mut impl Memory) {
        self.pairs = self.pairs.wrapping_add(PAIR);
        self.count -= 1;
        memory.pause(self.count);
    }
}

/// A query without flags for all harts: what every C library asks when a program starts, hence the shortest way. If it
/// fails, `request` is what is left of it.
///
/// # Errors
/// EFAULT.
#[inline(always)]
pub fn all<const HARTS: usize, M: Memory>(
    answers: &Answers<HARTS>,
    memory: &mut M,
    request: &mut Request,
) -> Result<(), Fault> {
    if request.count == 0 {
        return Ok(());
    }
    loop {
        let key = memory.key(request.pairs)?;
        let (key, value) = match index(key).and_then(|index| answers.all.get(index)) {
            Some(value) => (key, value.load(Relaxed)),
            None => unknown(memory)?,
        };
        memory.put_pair(request.pairs, key, value)?;
        request.count -= 1;
        memory.pause(request.count);
        if request.count == 0 {
            return Ok(());
        }
        request.pairs = request.pairs.wrapping_add(PAIR);
    }
}

/// A query without flags for a set of harts, which is given by its size and place.
///
/// # Errors
/// EFAULT. EINVAL for a set without a hart that is online.
#[inline(always)]
pub fn some<const HARTS: usize, M: Memory>(
    answers: &Answers<HARTS>,
    memory: &mut M,
    mut request: Request,
) -> Result<(), Error> {
    if request.size == 0 {
        return Err(Error::Invalid);
    }
    let online = answers.online();
    let set = memory.set(request.cpus, request.size)? & online;
    if set == 0 {
        return Err(Error::Invalid);
    }
    let same = answers.same(set, online);
    while request.count != 0 {
        let key = memory.key(request.pairs)?;
        let (key, value) = match answers.value(key, set, same) {
            Some(value) => (key, value),
            None => unknown(memory)?,
        };
        memory.put_pair(request.pairs, key, value)?;
        request.advance(memory);
    }
    Ok(())
}

/// A query with flags. With WHICH_CPUS the set is reduced to the harts that match. An empty set stands for all harts; a set
/// is empty if it names no hart of the machine. An unknown key matches nowhere, and is marked; the pairs behind it are
/// still looked at for their keys.
///
/// # Errors
/// EFAULT. EINVAL for other flags, or without a set.
#[inline(always)]
pub fn which<const HARTS: usize, M: Memory>(
    answers: &Answers<HARTS>,
    memory: &mut M,
    mut request: Request,
) -> Result<(), Error> {
    if request.flags != WHICH_CPUS || request.size == 0 || request.cpus == 0 {
        return Err(Error::Invalid);
    }
    let given = memory.set(request.cpus, request.size)?;
    let online = answers.online();
    let mut set = if given & answers.possible.load(Relaxed) == 0 { online } else { given & online };
    while request.count != 0 {
        let (key, wanted) = memory.pair(request.pairs)?;
        set = match answers.matching(key, wanted, set) {
            Some(found) => found,
            None => {
                memory.put_pair(request.pairs, UNKNOWN, 0)?;
                0
            }
        };
        request.advance(memory);
    }
    Ok(memory.put_set(request.cpus, request.size, set)?)
}
