//! The two ways to ask.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use kit::uapi::{nr, open};
use kit::vdso::Vdso;
use kit::{call, rt};
use riscv_hwprobe::rules::KEYS;
use rt::io;

/// A pair of key and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Pair {
    pub key: i64,
    pub value: u64,
}

/// A pair that asks for a key.
pub const fn ask(key: i64) -> Pair {
    Pair { key, value: 0x5555 }
}

/// A way to ask: as riscv_hwprobe(2), with the negated error as the result.
pub type Entry = fn(pairs: usize, count: usize, size: usize, cpus: usize, flags: usize) -> isize;

/// By system call.
pub fn by_call(pairs: usize, count: usize, size: usize, cpus: usize, flags: usize) -> isize {
    call!(nr::RISCV_HWPROBE, pairs, count, size, cpus, flags)
}

static VDSO: AtomicUsize = AtomicUsize::new(0);

/// By the vDSO's function. Its `int` result is extended.
pub fn by_vdso(pairs: usize, count: usize, size: usize, cpus: usize, flags: usize) -> isize {
    type Function = extern "C" fn(usize, usize, usize, usize, usize) -> i32;
    // SAFETY: the address is that of the vDSO's function, which has this signature.
    let function = unsafe { core::mem::transmute::<usize, Function>(VDSO.load(Relaxed)) };
    function(pairs, count, size, cpus, flags) as isize
}

/// Looks for the vDSO's function.
pub fn find(args: rt::Args) {
    let function = Vdso::find(args).and_then(|vdso| vdso.function(c"__vdso_riscv_hwprobe"));
    VDSO.store(function.unwrap_or(0), Relaxed);
}

/// Whether this is a Linux, which has no `/proc/limen`.
pub fn is_linux() -> bool {
    io::open(c"/proc/limen/boundary", open::O_RDONLY, 0).map(io::close).is_err()
}

/// The ways that have to obey the rules.
pub fn entries() -> &'static [Entry] {
    const BOTH: &[Entry] = &[by_call, by_vdso];
    if is_linux() || VDSO.load(Relaxed) == 0 { &BOTH[..1] } else { BOTH }
}

/// Asks about the harts of `set`, or with [`None`] all.
pub fn plain(entry: Entry, pairs: &mut [Pair], set: Option<u64>) -> isize {
    let set = set.as_ref();
    let (size, cpus) = set.map_or((0, 0), |set| (8, core::ptr::from_ref(set).addr()));
    entry(pairs.as_mut_ptr().expose_provenance(), pairs.len(), size, cpus, 0)
}

/// Reduces `set` to the harts that match.
pub fn which(entry: Entry, pairs: &mut [Pair], set: &mut u64) -> isize {
    entry(pairs.as_mut_ptr().expose_provenance(), pairs.len(), 8, core::ptr::from_mut(set).expose_provenance(), 1)
}

/// Most harts that are looked at.
pub const HARTS: usize = 8;

/// The harts online, a bit each.
pub fn online() -> u64 {
    let mut set = 0;
    which(by_call, &mut [], &mut set);
    set
}

/// The answers of each hart alone, by the call, and how many there are up to the last that is online.
pub fn words() -> ([[u64; KEYS]; HARTS], usize) {
    let (mut words, online) = ([[0; KEYS]; HARTS], online());
    let count = (64 - online.leading_zeros() as usize).min(HARTS);
    for hart in (0..count).filter(|hart| online >> hart & 1 != 0) {
        let mut pairs: [Pair; KEYS] = core::array::from_fn(|key| ask(key as i64));
        plain(by_call, &mut pairs, Some(1 << hart));
        words[hart] = pairs.map(|pair| pair.value);
    }
    (words, count)
}
