//! Queries that fail: which error, and what was written before.

use crate::entry::{Entry, Pair, ask, entries, which};
use kit::check::{Must, Outcome};
use kit::memory::{self, PAGE};
use kit::uapi::mman::{PROT_NONE, PROT_READ};
use kit::{ensure, equal, fails};
use rt::tap::Test;

pub const TESTS: &[Test] = &[
    Test::new("errors/flags", flags),
    Test::new("errors/sets", sets),
    Test::new("errors/sets-that-cannot-be-read", bad_sets),
    Test::new("errors/pairs-that-cannot-be-read", bad_pairs),
    Test::new("errors/pairs-that-cannot-be-written", read_only),
    Test::new("errors/earlier-pairs-stay-written", partly),
    Test::new("errors/huge-counts", huge),
    Test::new("errors/which-writes-nothing-into-a-bad-set", which_read_only),
    Test::new("errors/flags-come-before-pointers", order),
    Test::new("errors/pairs-anywhere-are-answered", unaligned),
    Test::new("errors/a-page-that-is-not-there-yet", fresh),
];

const ALL: u64 = u64::MAX;

/// Addresses at which no program has memory.
const BAD: [usize; 6] = [8, 0xdead_0000, 1 << 40, 1 << 63, usize::MAX - 7, 0xffff_ffff_8000_0000];

fn place<T>(value: &T) -> usize {
    core::ptr::from_ref(value).expose_provenance()
}

fn flags() -> Outcome {
    for entry in entries() {
        for flags in [2, 3, 4, 0x8000_0000, 0x8000_0001, 0xffff_ffff] {
            let (mut pair, set) = ([ask(3)], ALL);
            let at = pair.as_mut_ptr().expose_provenance();
            for (size, cpus) in [(0, 0), (8, place(&set))] {
                fails!(entry(at, 1, size, cpus, flags), EINVAL, "flags that are none");
            }
            equal!((pair[0], set), (ask(3), ALL), "nothing is written");
        }
        let mut pair = [ask(3)];
        let result = entry(pair.as_mut_ptr().expose_provenance(), 1, 0, 0, 1 << 32);
        equal!((result, pair[0].value), (0, 1), "the upper half of the register of an int");
    }
    Ok(())
}

fn sets() -> Outcome {
    for entry in entries() {
        let (mut pair, set) = ([ask(3)], ALL);
        let at = pair.as_mut_ptr().expose_provenance();
        fails!(entry(at, 1, 0, place(&set), 0), EINVAL, "a set without a size");
        fails!(entry(at, 1, 8, 0, 0), EFAULT, "a size without a set");
        fails!(entry(at, 1, 1, 0, 0), EFAULT, "a small size without a set");
        fails!(entry(at, 1, 8, place(&0_u64), 0), EINVAL, "an empty set");
        fails!(entry(at, 1, 8, place(&(1_u64 << 40)), 0), EINVAL, "a hart that is not there");
        fails!(entry(at, 1, 0, place(&set), 1), EINVAL, "which harts of a set without a size");
        fails!(entry(at, 1, 8, 0, 1), EINVAL, "which harts of no set");
        fails!(entry(0, 0, 0, place(&set), 0), EINVAL, "also without pairs");
        equal!(pair[0], ask(3), "nothing is written");
    }
    Ok(())
}

fn bad_sets() -> Outcome {
    for entry in entries() {
        let mut pair = [ask(3)];
        let at = pair.as_mut_ptr().expose_provenance();
        for cpus in BAD {
            for (size, flags) in [(1, 0), (8, 0), (64, 0), (1, 1), (8, 1), (usize::MAX, 1)] {
                fails!(entry(at, 1, size, cpus, flags), EFAULT, "a set that cannot be read");
            }
        }
        let edge = edge()?;
        for back in 1..8 {
            memory::poke(edge - back, 0xff);
            fails!(entry(at, 1, 8, edge - back, 0), EFAULT, "a set that ends too early");
            equal!(entry(at, 1, back, edge - back, 0), 0, "a set that just fits");
        }
    }
    Ok(())
}

/// The end of a page, behind which there is none.
fn edge() -> Result<usize, &'static str> {
    let base = memory::private(2 * PAGE).must("mmap")?;
    memory::protect(base + PAGE, PAGE, PROT_NONE).must("mprotect")?;
    Ok(base + PAGE)
}

fn put(at: usize, pair: Pair) {
    // SAFETY: all callers pass places in pages of this test's own.
    unsafe { (at as *mut Pair).write_unaligned(pair) };
}

fn get(at: usize) -> Pair {
    // SAFETY: as `put`.
    unsafe { (at as *const Pair).read_unaligned() }
}

fn bad_pairs() -> Outcome {
    for entry in entries() {
        for pairs in BAD {
            let mut set = ALL;
            fails!(entry(pairs, 1, 0, 0, 0), EFAULT, "pairs that are not there");
            fails!(entry(pairs, 3, 8, place(&set), 0), EFAULT, "pairs that are not there, for a set");
            let cpus = core::ptr::from_mut(&mut set).expose_provenance();
            fails!(entry(pairs, 1, 8, cpus, 1), EFAULT, "which harts, by pairs that are not there");
            equal!(set, ALL, "the set is left alone");
        }
        fails!(entry(0, 1, 0, 0, 0), EFAULT, "no pairs, but one of them");
    }
    Ok(())
}

fn read_only() -> Outcome {
    for entry in entries() {
        let page = memory::private(PAGE).must("mmap")?;
        for key in [3, 0x5555] {
            memory::protect(page, PAGE, 3).must("mprotect")?;
            put(page, ask(key));
            memory::protect(page, PAGE, PROT_READ).must("mprotect")?;
            fails!(entry(page, 1, 0, 0, 0), EFAULT, "a pair that cannot be written");
            fails!(entry(page, 1, 8, place(&ALL), 0), EFAULT, "the same for a set");
            equal!(get(page), ask(key), "the pair is left alone");
        }
        // Which harts: a known key need not be written, an unknown one must.
        let mut set = 0;
        fails!(entry(page, 1, 8, core::ptr::from_mut(&mut set).expose_provenance(), 1), EFAULT, "marking a key");
        memory::protect(page, PAGE, 3).must("mprotect")?;
        put(page, Pair { key: 3, value: 1 });
        memory::protect(page, PAGE, PROT_READ).must("mprotect")?;
        equal!(entry(page, 1, 8, core::ptr::from_mut(&mut set).expose_provenance(), 1), 0, "a pair that is only read");
        ensure!(set != 0, "no hart matches");
    }
    Ok(())
}

fn partly() -> Outcome {
    for entry in entries() {
        let edge = edge()?;
        // Two pairs and a half.
        let (first, second, half) = (edge - 40, edge - 24, edge - 8);
        let fill = || {
            put(first, ask(3));
            put(second, ask(0x5555));
            // SAFETY: the last word of the test's own page.
            unsafe { (half as *mut i64).write(0x77) };
        };
        for (size, cpus) in [(0, 0), (8, place(&1_u64))] {
            fill();
            fails!(entry(first, 3, size, cpus, 0), EFAULT, "two and a half pairs");
            let written = (get(first), get(second), memory::peek(half));
            let wanted = (Pair { key: 3, value: 1 }, Pair { key: -1, value: 0 }, 0xff);
            equal!(written, wanted, "the pairs before, and the key of the last");
        }
        fill();
        let mut set = ALL;
        let cpus = core::ptr::from_mut(&mut set).expose_provenance();
        fails!(entry(first, 3, 8, cpus, 1), EFAULT, "which harts, by two and a half pairs");
        let written = (get(first), get(second), memory::peek(half), set);
        equal!(written, (ask(3), Pair { key: -1, value: 0 }, 0x77, ALL), "the unknown key, and nothing else");
    }
    Ok(())
}

fn huge() -> Outcome {
    for entry in entries() {
        let edge = edge()?;
        for count in [1 << 28, 1 << 60, (1 << 60) + 1, usize::MAX / 16, usize::MAX / 16 + 2, usize::MAX] {
            put(edge - 16, ask(3));
            fails!(entry(edge - 16, count, 0, 0, 0), EFAULT, "more pairs than there can be");
            equal!(get(edge - 16), Pair { key: 3, value: 1 }, "the first of them");
            let mut set = ALL;
            let cpus = core::ptr::from_mut(&mut set).expose_provenance();
            fails!(entry(edge - 16, count, 8, cpus, 1), EFAULT, "the same with which harts");
        }
    }
    Ok(())
}

fn which_read_only() -> Outcome {
    for entry in entries() {
        let page = memory::private(PAGE).must("mmap")?;
        memory::poke(page, 1);
        memory::protect(page, PAGE, PROT_READ).must("mprotect")?;
        let mut pairs = [ask(0x5555)];
        let at = pairs.as_mut_ptr().expose_provenance();
        fails!(entry(at, 1, 8, page, 1), EFAULT, "a set that cannot be written");
        equal!(pairs[0], Pair { key: -1, value: 0 }, "the pairs come first");
        fails!(entry(at, 0, 3, page, 1), EFAULT, "three bytes of it");
        equal!(entry(at, 1, 8, page, 0), 0, "a set that is only read");
    }
    Ok(())
}

fn order() -> Outcome {
    for entry in entries() {
        fails!(entry(8, 1, 8, 8, 2), EINVAL, "flags, then pointers");
        fails!(entry(8, 1, 0, 8, 0), EINVAL, "the size of the set, then pairs");
        fails!(entry(8, 1, 8, 8, 3), EINVAL, "flags of which harts, then pointers");
        fails!(entry(8, 1, 8, place(&0_u64), 0), EINVAL, "the set, then pairs");
        let mut set = 1;
        fails!(entry(8, 1, 8, core::ptr::from_mut(&mut set).expose_provenance(), 1), EFAULT, "pairs, then the set");
        equal!(set, 1, "the set is left alone");
    }
    Ok(())
}

fn unaligned() -> Outcome {
    let page = memory::private(2 * PAGE).must("mmap")?;
    for entry in entries() {
        for at in (page + 1..page + 16).chain(page + PAGE - 33..page + PAGE) {
            put(at, ask(3));
            put(at + 16, ask(0x5555));
            equal!(entry(at, 2, 0, 0, 0), 0, "pairs at any place");
            let answers = (Pair { key: 3, value: 1 }, Pair { key: -1, value: 0 });
            equal!((get(at), get(at + 16)), answers, "their answers");
            put(at, ask(3));
            put(at + 16, ask(0x5555));
            equal!(entry(at, 2, 8, place(&1_u64), 0), 0, "for a set");
            equal!((get(at), get(at + 16)), answers, "their answers for a set");
            put(at, Pair { key: 3, value: 1 });
            let mut set = 1_u64;
            let cpus = core::ptr::from_mut(&mut set).expose_provenance();
            equal!((entry(at, 1, 8, cpus, 1), set), (0, 1), "which harts");
            equal!((entry(at, 2, 8, cpus, 1), set, get(at + 16)), (0, 0, answers.1), "which harts, and an unknown key");
        }
    }
    Ok(())
}

/// Pages that nobody has touched are filled on the way, which is no error.
fn fresh() -> Outcome {
    let check = |entry: Entry| {
        let page = memory::private(3 * PAGE).must("mmap")?;
        equal!(entry(page + PAGE - 16, 2, 0, 0, 0), 0, "pairs in fresh pages");
        equal!(get(page + PAGE - 16).key, 0, "key 0");
        let mut pairs = [Pair { key: 3, value: 1 }];
        let at = pairs.as_mut_ptr().expose_provenance();
        equal!(entry(at, 1, 8, page + 2 * PAGE, 1), 0, "an empty set in a fresh page");
        ensure!(memory::peek(page + 2 * PAGE) & 1 != 0, "hart 0 matches");
        let mut set = 0;
        equal!((which(entry, &mut pairs, &mut set), set & 1), (0, 1), "and in an old one");
        Ok(())
    };
    entries().iter().try_for_each(|entry| check(*entry))
}
