//! The rules against the slow reference: same result, same bytes in memory, whatever is asked.
#![cfg(feature = "reference")]

use proptest::collection::vec;
use proptest::prelude::*;
use riscv_hwprobe::reference::{Bytes, Machine};
use riscv_hwprobe::rules::{Answers, Error, Fault, KEYS, Memory, Request, answer};

/// The memory of the test, as a kernel would see it.
struct Fake<'a> {
    base: usize,
    bytes: &'a mut [u8],
}

impl Fake<'_> {
    fn place(&mut self, at: usize, bytes: usize) -> Result<&mut [u8], Fault> {
        let start = at.wrapping_sub(self.base);
        let end = start.checked_add(bytes).ok_or(Fault)?;
        self.bytes.get_mut(start..end).ok_or(Fault)
    }
}

impl Memory for Fake<'_> {
    fn key(&mut self, at: usize) -> Result<u64, Fault> {
        self.set(at, 8)
    }

    fn pair(&mut self, at: usize) -> Result<(u64, u64), Fault> {
        Ok((self.set(at, 8)?, self.set(at.wrapping_add(8), 8)?))
    }

    fn put_pair(&mut self, at: usize, key: u64, value: u64) -> Result<(), Fault> {
        for (at, word) in [(at, key), (at.wrapping_add(8), value)] {
            for (index, byte) in word.to_le_bytes().iter().enumerate() {
                self.place(at.wrapping_add(index), 1)?[0] = *byte;
            }
        }
        Ok(())
    }

    fn set(&mut self, at: usize, size: usize) -> Result<u64, Fault> {
        let bytes = size.min(8);
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(self.place(at, bytes)?);
        Ok(u64::from_le_bytes(word))
    }

    fn put_set(&mut self, at: usize, size: usize, set: u64) -> Result<(), Fault> {
        let bytes = size.min(8);
        self.place(at, bytes)?.copy_from_slice(&set.to_le_bytes()[..bytes]);
        Ok(())
    }
}

const HARTS: usize = 8;
const BASE: usize = 0x10_0000;
const LEN: usize = 160;

/// Few different values, so that harts agree often.
fn word() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..4u64, 1 => Just(u64::MAX), 1 => any::<u64>()]
}

fn harts() -> impl Strategy<Value = Vec<([u64; KEYS], bool)>> {
    let hart = (any::<bool>(), prop::array::uniform17(word()));
    (vec(hart, 1..=HARTS), any::<bool>()).prop_map(|(mut harts, same)| {
        // The first is always up; half of the machines are of one kind but for a key or two.
        harts[0].0 = true;
        let first = harts[0].1;
        for (index, hart) in harts.iter_mut().enumerate().filter(|_| same) {
            for key in (0..KEYS).filter(|key| key % 5 != index % 5) {
                hart.1[key] = first[key];
            }
        }
        harts.into_iter().map(|(online, words)| (words, online)).collect()
    })
}

fn key() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..17u64, 1 => Just(17u64), 1 => Just(u64::MAX), 1 => any::<u64>()]
}

/// Addresses inside, at the edges and outside.
fn place() -> impl Strategy<Value = usize> {
    prop_oneof![6 => (0..LEN / 8).prop_map(|w| BASE + w * 8), 2 => BASE - 20..BASE + LEN + 20, 1 => Just(0usize),
        1 => any::<usize>()]
}

fn request() -> impl Strategy<Value = Request> {
    let size = prop_oneof![4 => Just(0usize), 4 => Just(8usize), 4 => 0..20usize, 1 => any::<usize>()];
    let count = prop_oneof![12 => 0..8usize, 1 => Just(usize::MAX / 16 + 2), 1 => Just(usize::MAX)];
    let cpus = prop_oneof![1 => Just(0usize), 2 => place()];
    let flags = prop_oneof![3 => Just(0u32), 3 => Just(1u32), 1 => 0..4u32, 1 => any::<u32>()];
    (place(), count, size, cpus, flags).prop_map(|(pairs, count, size, cpus, flags)| Request {
        pairs,
        count,
        size,
        cpus,
        flags,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_rules_are_those_of_the_reference(
        harts in harts(),
        keys in vec(key(), LEN / 16),
        values in vec(word(), LEN / 16),
        set in word(),
        request in request(),
    ) {
        let (words, online): (Vec<_>, Vec<_>) = harts.iter().copied().unzip();
        let mask = |bits: &[bool]| bits.iter().enumerate().fold(0, |sum, (at, bit)| sum | u64::from(*bit) << at);
        let answers = Answers::<HARTS>::new();
        answers.publish((1 << words.len()) - 1, mask(&online), |hart| words[hart]);

        let mut bytes = vec![0; LEN];
        for (pair, (key, value)) in keys.iter().zip(&values).enumerate() {
            bytes[pair * 16..][..8].copy_from_slice(&key.to_le_bytes());
            bytes[pair * 16 + 8..][..8].copy_from_slice(&value.to_le_bytes());
        }
        if let Some(place) = request.cpus.checked_sub(BASE).filter(|at| at + 8 <= LEN) {
            bytes[place..place + 8].copy_from_slice(&set.to_le_bytes());
        }
        let mut expected = bytes.clone();
        let machine = Machine { harts: &words, online: &online };
        let wanted = machine.call(&mut Bytes { base: BASE, bytes: &mut expected }, request);
        let got = match answer(&answers, &mut Fake { base: BASE, bytes: &mut bytes }, request) {
            Ok(()) => 0,
            Err(Error::Invalid) => -22,
            Err(Error::Fault) => -14,
        };
        prop_assert_eq!(got, wanted);
        // What a store that faults half-way leaves in the word it was about to write is nobody's promise.
        if got != -14 {
            prop_assert_eq!(bytes, expected);
        }
    }
}
