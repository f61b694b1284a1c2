//! The return-address stack, as a core has one for each hart.
//!
//! A core predicts the target of a return by popping what the matching call pushed. The stack is circular: a push onto a
//! full one overwrites the oldest entry, a pop of an empty one gives whatever lies there. A misprediction repairs the
//! fetch, not the stack. Nothing else touches it: trap entry and exit are no calls, which is why a kernel whose entry
//! pushes or pops without a counterpart spoils the predictions of the program it returns to.
//!
//! All modelled depths see the same pushes and pops, so they share one position, and an entry of depth D is the last
//! address written at a position that is the same modulo D.

use crate::{DEPTHS, UNBOUNDED};

const SHORT: [usize; 4] = [4, 8, 16, 32];

/// One hart's stack, at all depths at once.
#[derive(Clone, Debug)]
pub struct Ras {
    top: usize,
    short: [[u64; 32]; SHORT.len()],
    long: Vec<u64>,
}

impl Default for Ras {
    fn default() -> Self {
        const { assert!(SHORT.len() + 1 == DEPTHS.len()) };
        Self { top: 0, short: [[0; 32]; SHORT.len()], long: vec![0; UNBOUNDED as usize] }
    }
}

impl Ras {
    /// A call: the address of the instruction after it is pushed.
    #[inline]
    pub fn push(&mut self, address: u64) {
        self.top = self.top.wrapping_add(1);
        for (stack, depth) in self.short.iter_mut().zip(SHORT) {
            stack[self.top & (depth - 1) & 31] = address;
        }
        let top = self.top & (UNBOUNDED as usize - 1);
        self.long[top] = address;
    }

    /// A return that went to `target`: whether each depth mispredicted it.
    #[inline]
    pub fn pop(&mut self, target: u64) -> [bool; DEPTHS.len()] {
        let mut missed = [false; DEPTHS.len()];
        for ((missed, stack), depth) in missed.iter_mut().zip(&self.short).zip(SHORT) {
            *missed = stack[self.top & (depth - 1) & 31] != target;
        }
        missed[SHORT.len()] = self.long[self.top & (UNBOUNDED as usize - 1)] != target;
        self.top = self.top.wrapping_sub(1);
        missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// A circular stack said in another way: a list of the last `depth` pushes, with what a pop leaves behind put at
    /// the far end.
    struct Ring(VecDeque<u64>);

    impl Ring {
        fn push(&mut self, address: u64) {
            self.0.pop_back();
            self.0.push_front(address);
        }

        fn pop(&mut self) -> u64 {
            self.0.rotate_left(1);
            self.0[self.0.len() - 1]
        }
    }

    proptest! {
        #[test]
        fn each_depth_is_a_ring(steps in prop::collection::vec(prop::option::of(1_u64..4), 0..400)) {
            let mut ras = Ras::default();
            let mut rings = SHORT.map(|depth| Ring(VecDeque::from(vec![0; depth])));
            for step in steps {
                match step {
                    Some(address) => {
                        ras.push(address);
                        rings.iter_mut().for_each(|ring| ring.push(address));
                    }
                    None => {
                        let missed = ras.pop(2);
                        let expected = rings.each_mut().map(|ring| ring.pop() != 2);
                        prop_assert_eq!(&missed[..SHORT.len()], expected.as_slice());
                    }
                }
            }
        }

        #[test]
        fn matched_calls_miss_only_beyond_the_depth(deep in 1_u64..100) {
            let mut ras = Ras::default();
            (1..=deep).for_each(|address| ras.push(address));
            let mut missed = [0; DEPTHS.len()];
            for address in (1..=deep).rev() {
                for (sum, miss) in missed.iter_mut().zip(ras.pop(address)) {
                    *sum += u64::from(miss);
                }
            }
            let expected = DEPTHS.map(|depth| depth.map_or(0, |depth| deep.saturating_sub(depth.into())));
            prop_assert_eq!(missed, expected);
        }
    }
}
