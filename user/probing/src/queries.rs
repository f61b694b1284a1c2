//! Queries that a program may make.

use crate::entry::{Pair, ask, by_call, entries, online, plain, which, words};
use kit::check::Outcome;
use kit::{ensure, equal, fails};
use riscv_hwprobe::keys::{BASE_BEHAVIOR, IMA_EXT_0, IMA_EXT_1, MIMPID};
use riscv_hwprobe::rules::KEYS;
use rt::tap::Test;

pub const TESTS: &[Test] = &[
    Test::new("queries/known-keys", known),
    Test::new("queries/unknown-keys", unknown),
    Test::new("queries/sets-of-any-size", sizes),
    Test::new("queries/no-pairs", no_pairs),
    Test::new("queries/all-keys-of-all-subsets", subsets),
    Test::new("which/empty-and-full-sets", which_sets),
    Test::new("which/sizes-keep-what-lies-beyond", which_sizes),
    Test::new("which/sizes-beyond-any-machine", large),
    Test::new("which/unknown-keys-match-nowhere", which_unknown),
    Test::new("which/bits-and-numbers", which_values),
    Test::new("which/each-hart-finds-itself", which_self),
];

fn known() -> Outcome {
    for entry in entries() {
        let mut pairs: [Pair; 8] = core::array::from_fn(|key| ask(key as i64));
        let set = 0xff_u8;
        let at = pairs.as_mut_ptr().expose_provenance();
        equal!(entry(at, 8, 1, core::ptr::from_ref(&set).addr(), 0), 0, "a set of one byte");
        for (key, pair) in pairs.iter().enumerate() {
            equal!(pair.key, key as i64, "a key that is known");
        }
        ensure!(pairs[BASE_BEHAVIOR as usize].value & 1 == 1, "IMA is not promised");
        let mut pairs = [ask(MIMPID as i64); 3];
        equal!(plain(*entry, &mut pairs, None), 0, "the same key three times");
        ensure!(pairs.iter().all(|pair| *pair == pairs[0]), "the same key has different values");
    }
    Ok(())
}

fn unknown() -> Outcome {
    for entry in entries() {
        let mut pairs = [0x5555, 1, -1, i64::MIN, i64::MAX, 1 << 32, 64 << 3, KEYS as i64, 3].map(ask);
        equal!(plain(*entry, &mut pairs, None), 0, "unknown keys among others");
        for (index, pair) in pairs.iter().enumerate() {
            let wanted = if index == 1 { 1 } else { -1 };
            let last = index == 8;
            equal!(pair.key, if last { 3 } else { wanted }, "the key");
            ensure!(pair.value == 0 || index == 1 || last, "an unknown key has a value");
        }
        equal!(pairs[8].value, 1, "the key after all these");
        let mut again = [ask(-1)];
        equal!((plain(*entry, &mut again, Some(1)), again[0]), (0, Pair { key: -1, value: 0 }), "with a set");
    }
    Ok(())
}

fn sizes() -> Outcome {
    for entry in entries() {
        let set = [u64::MAX; 4];
        let at = core::ptr::from_ref(&set).addr();
        for size in [1, 2, 3, 7, 8, 9, 12, 16, 31] {
            for offset in 0..8_usize.min(32 - size) {
                let mut pair = [ask(3)];
                let result = entry(pair.as_mut_ptr().expose_provenance(), 1, size, at + offset, 0);
                equal!((result, pair[0].value), (0, 1), "a set of some size at some place");
            }
        }
    }
    Ok(())
}

fn no_pairs() -> Outcome {
    for entry in entries() {
        let set = 1_u64;
        let at = core::ptr::from_ref(&set).addr();
        for pairs in [0, 1, 0xdead_beef, usize::MAX, 1 << 63] {
            equal!(entry(pairs, 0, 0, 0, 0), 0, "no pairs, wherever they are");
            equal!(entry(pairs, 0, 8, at, 0), 0, "no pairs for a set");
        }
        let mut set = 0;
        equal!((which(*entry, &mut [], &mut set), set), (0, online()), "no pairs, an empty set");
        let mut set = u64::MAX;
        equal!((which(*entry, &mut [], &mut set), set), (0, online()), "no pairs, a full set");
    }
    Ok(())
}

/// The answer for a set follows from those of its harts, by what the kernel's document says.
fn subsets() -> Outcome {
    let (words, count) = words();
    for entry in entries() {
        for set in 1_u64..1 << count {
            let mut pairs: [Pair; KEYS] = core::array::from_fn(|key| ask(key as i64));
            equal!(plain(*entry, &mut pairs, Some(set)), 0, "a set of harts");
            for (key, pair) in pairs.iter().enumerate() {
                let mut values = (0..count).filter(|hart| set >> hart & 1 != 0).map(|hart| words[hart][key]);
                let first = values.next().unwrap_or(0);
                let wanted = match key {
                    3 | 4 | 11 | 13 | 14 | 16 => values.fold(first, |all, word| all & word),
                    _ if values.all(|word| word == first) => first,
                    0..=2 => u64::MAX,
                    _ => 0,
                };
                equal!((key, set, pair.value), (key, set, wanted), "the answer for a set of harts");
            }
        }
        let (mut all, mut set) = ([ask(4)], [ask(4)]);
        plain(*entry, &mut all, None);
        plain(*entry, &mut set, Some(online()));
        equal!(all, set, "no set is all harts");
    }
    Ok(())
}

fn exact() -> [Pair; 3] {
    let mut pairs = [BASE_BEHAVIOR, IMA_EXT_0, IMA_EXT_1].map(|key| ask(key as i64));
    plain(by_call, &mut pairs, None);
    pairs
}

fn which_sets() -> Outcome {
    let (online, exact) = (online(), exact());
    for entry in entries() {
        for given in [0, u64::MAX, online, 1 << 40, 3 << 62] {
            let (mut set, mut pairs) = (given, exact);
            equal!(which(*entry, &mut pairs, &mut set), 0, "what all harts have");
            equal!(set, online, "all harts match what all have");
            equal!(pairs, exact, "the pairs are left alone");
        }
        let (mut set, mut pairs) = (1, exact);
        equal!((which(*entry, &mut pairs, &mut set), set), (0, 1), "one hart");
        let (mut set, mut pairs) = (0, [exact[0], exact[0], exact[0]]);
        equal!((which(*entry, &mut pairs, &mut set), set), (0, online), "the same pair three times");
        let (mut set, mut pairs) = (0, exact.map(|pair| Pair { value: !pair.value, ..pair }));
        equal!((which(*entry, &mut pairs, &mut set), set), (0, 0), "what no hart has");
    }
    Ok(())
}

fn which_sizes() -> Outcome {
    let online = online();
    for entry in entries() {
        for (size, offset) in [1, 2, 3, 7, 8].into_iter().flat_map(|size| (0..8).map(move |offset| (size, offset))) {
            let mut set = [u64::MAX; 3];
            let mut pairs = exact();
            let at = set.as_mut_ptr().expose_provenance() + offset;
            equal!(entry(pairs.as_mut_ptr().expose_provenance(), 3, size, at, 1), 0, "a set of some size");
            // All that the call may write, at its place.
            let written = (1_u128 << (8 * size)) - 1;
            let wanted = !(written << (8 * offset)) | u128::from(online) << (8 * offset);
            let found = u128::from(set[0]) | u128::from(set[1]) << 64;
            equal!((found, set[2]), (wanted, u64::MAX), "bytes beyond the set");
        }
    }
    Ok(())
}

/// As much as there could be of a set, or more: the kernel looks at as much as it has harts for.
fn large() -> Outcome {
    for entry in entries() {
        for size in [9, 16, 63, 64, 128, 1 << 20, 1 << 32, 1 << 63, usize::MAX] {
            let mut set = [0_u64; 16];
            let at = set.as_mut_ptr().expose_provenance();
            set[0] = 1;
            let mut pairs = exact();
            let place = pairs.as_mut_ptr().expose_provenance();
            equal!((entry(place, 3, size, at, 0), pairs[0].value), (0, 1), "a large set");
            set[0] = u64::MAX;
            let mut pairs = exact();
            let place = pairs.as_mut_ptr().expose_provenance();
            equal!(entry(place, 3, size, at, 1), 0, "which harts of a large set");
            equal!((set[0], &set[1..]), (online(), &[0; 15][..]), "what is left of it");
        }
    }
    Ok(())
}

fn which_unknown() -> Outcome {
    for entry in entries() {
        let good = exact()[0];
        let mut pairs = [good, Pair { key: 0x5555, value: 7 }, good, Pair { key: -1, value: 1 }, good];
        let mut set = u64::MAX;
        equal!((which(*entry, &mut pairs, &mut set), set), (0, 0), "an unknown key");
        let marked = Pair { key: -1, value: 0 };
        equal!(pairs, [good, marked, good, marked, good], "unknown keys are marked, others left alone");
    }
    Ok(())
}

fn which_values() -> Outcome {
    for entry in entries() {
        let find = |key: i64, value: u64| {
            let mut set = 0;
            let result = which(*entry, &mut [Pair { key, value }], &mut set);
            if result == 0 { Some(set) } else { None }
        };
        let mut pair = [ask(8)];
        plain(*entry, &mut pair, None);
        let frequency = pair[0].value;
        equal!(find(8, frequency), Some(online()), "a number that is right");
        equal!(find(8, frequency & (frequency - 1)), Some(0), "a part of its bits");
        for key in [3, 4, 5, 11, 13, 14, 16] {
            equal!(find(key, 0), Some(online()), "no bit wanted");
        }
        equal!(find(3, 2), Some(0), "a bit that is not there");
        fails!(entry(0, 0, 0, 0, 1), EINVAL, "no set");
    }
    Ok(())
}

/// Each hart's own words, asked for among all harts, find at least itself, and those that have the same or more.
fn which_self() -> Outcome {
    let (words, count) = words();
    for entry in entries() {
        for hart in (0..count).filter(|hart| online() >> hart & 1 != 0) {
            let mut pairs: [Pair; KEYS] = core::array::from_fn(|key| Pair { key: key as i64, value: words[hart][key] });
            let mut set = 0;
            equal!(which(*entry, &mut pairs, &mut set), 0, "all keys of a hart");
            let matches = |other: usize| {
                (0..KEYS).all(|key| match key {
                    3 | 4 | 5 | 11 | 13 | 14 | 16 => words[other][key] & words[hart][key] == words[hart][key],
                    _ => words[other][key] == words[hart][key],
                })
            };
            let wanted = (0..count).filter(|other| online() >> other & 1 != 0 && matches(*other));
            equal!(set, wanted.fold(0, |set, other| set | 1 << other), "the harts like it");
            ensure!(set >> hart & 1 != 0, "a hart does not find itself");
        }
    }
    Ok(())
}
