//! The waiters whose words hash to the same place, in the order they came.

use alloc::vec::Vec;

/// Names a futex word for all who can see it: an address space and an address, or a shared object and an offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// Identity of the address space or of the object.
    pub space: u64,
    /// Where in it, in bytes.
    pub offset: u64,
}

impl Key {
    /// A well-mixed number.
    #[inline]
    pub fn hash(&self) -> usize {
        let mixed = (self.space ^ self.offset.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 40) as usize
    }
}

/// Somebody who waits.
pub struct Waiter<W> {
    /// On what.
    pub key: Key,
    /// Which wake-ups it takes (FUTEX_WAIT_BITSET).
    pub bitset: u32,
    /// Who.
    pub who: W,
}

/// Waiters in the order they came.
pub struct Bucket<W>(Vec<Waiter<W>>);

impl<W> Default for Bucket<W> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W> Bucket<W> {
    /// Nobody waits.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a waiter behind all others; gives it back when there is no memory.
    pub fn push(&mut self, waiter: Waiter<W>) -> Result<(), Waiter<W>> {
        if self.0.try_reserve(1).is_err() {
            return Err(waiter);
        }
        self.0.push(waiter);
        Ok(())
    }

    /// Takes the first waiter on `key` that a wake-up of `bitset` concerns.
    pub fn take(&mut self, key: Key, bitset: u32) -> Option<Waiter<W>> {
        let at = self.0.iter().position(|w| w.key == key && w.bitset & bitset != 0)?;
        Some(self.0.remove(at))
    }

    /// Makes the first `count` waiters on `from` wait on `to`, which hashes to this bucket too, behind those who wait
    /// there. Gives how many there were.
    pub fn rename(&mut self, from: Key, to: Key, count: usize) -> usize {
        let mut moved = 0;
        let mut at = 0;
        let mut left = self.0.len();
        while moved < count && left > 0 {
            left -= 1;
            if self.0[at].key == from {
                let waiter = self.0.remove(at);
                self.0.push(Waiter { key: to, ..waiter });
                moved += 1;
            } else {
                at += 1;
            }
        }
        moved
    }

    /// Takes one waiter back. False if it is not here.
    pub fn remove(&mut self, mut wanted: impl FnMut(&W) -> bool) -> bool {
        let at = self.0.iter().position(|w| wanted(&w.who));
        at.map(|at| self.0.remove(at)).is_some()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;

    fn key(n: u64) -> Key {
        Key { space: 1, offset: n }
    }

    fn waiter(n: u64, bitset: u32, who: u32) -> Waiter<u32> {
        Waiter { key: key(n), bitset, who }
    }

    #[test]
    fn first_come_first_woken_if_the_bits_agree() {
        let mut b = Bucket::new();
        for w in [waiter(1, 1, 10), waiter(2, !0, 20), waiter(1, 2, 11), waiter(1, !0, 12)] {
            assert!(b.push(w).is_ok());
        }
        let mut take = |n, bits| b.take(key(n), bits).map(|w| w.who);
        assert_eq!(take(1, 2), Some(11));
        assert_eq!(take(1, !0), Some(10));
        assert_eq!(take(1, !0), Some(12));
        assert_eq!(take(1, !0), None);
        assert_eq!(take(2, !0), Some(20));
    }

    proptest! {
        /// Requeueing in one bucket keeps everybody, in order: those on the new word first, then those moved.
        #[test]
        fn rename_loses_nobody(words in prop::collection::vec(0u64..3, 0..40), count in 0usize..50) {
            let mut b = Bucket::new();
            for (i, n) in words.iter().enumerate() {
                assert!(b.push(waiter(*n, !0, i as u32)).is_ok());
            }
            let on = |n| words.iter().enumerate().filter(move |(_, w)| **w == n).map(|(i, _)| i as u32);
            let moved = b.rename(key(0), key(1), count);
            prop_assert_eq!(moved, on(0).count().min(count));
            let want: Vec<u32> = on(1).chain(on(0).take(moved)).collect();
            let got: Vec<u32> = std::iter::from_fn(|| b.take(key(1), !0)).map(|w| w.who).collect();
            prop_assert_eq!(got, want);
            let rest: Vec<u32> = std::iter::from_fn(|| b.take(key(0), !0)).map(|w| w.who).collect();
            prop_assert_eq!(rest, on(0).skip(moved).collect::<Vec<_>>());
        }
    }
}
