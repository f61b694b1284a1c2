//! Mispredicted returns: of a recursion, against a stack simulated beside it, and of two styles of trap entry.

use super::{adds_up, region, same, verdict};
use model::{Context, Mode, Report};

/// A circular stack written for this test: a ring of places, a hand that moves round.
struct Ring {
    places: Vec<u8>,
    hand: usize,
    missed: u64,
}

impl Ring {
    fn of(depth: usize) -> Self {
        Self { places: vec![0; depth], hand: 0, missed: 0 }
    }

    fn call(&mut self, from: u8) {
        self.hand = (self.hand + 1) % self.places.len();
        self.places[self.hand] = from;
    }

    fn back(&mut self, to: u8) {
        self.missed += u64::from(self.places[self.hand] != to);
        self.hand = (self.hand + self.places.len() - 1) % self.places.len();
    }

    /// fib(n) as the guest computes it, called from place `from`. Gives the number of calls.
    fn fib(&mut self, n: u32, from: u8) -> u64 {
        self.call(from);
        let inner = if n < 2 { 0 } else { self.fib(n - 1, 2) + self.fib(n - 2, 3) };
        self.back(from);
        inner + 1
    }
}

/// fib(20) in M mode.
pub fn recursion(report: &Report) -> Result<(), String> {
    let region = region(report, 1)?;
    adds_up(region)?;
    let mut missed = [0; 5];
    let mut calls = 0;
    for (missed, depth) in missed.iter_mut().zip([4, 8, 16, 32, 1000]) {
        let mut ring = Ring::of(depth);
        calls = ring.fib(20, 1);
        *missed = ring.missed;
    }
    // Of the calls, one more is a leaf than is not: 16 instructions in an inner one, 4 in a leaf.
    let inner = calls / 2;
    let expected = [
        ("instructions", 1 + 16 * inner + 4 * (inner + 1)),
        ("loads", 3 * inner),
        ("stores", 3 * inner),
        ("calls", calls),
        ("returns", calls),
        ("mispredicted_4", missed[0]),
        ("mispredicted_8", missed[1]),
        ("mispredicted_16", missed[2]),
        ("mispredicted_32", missed[3]),
        ("mispredicted_unbounded", missed[4]),
    ];
    verdict(same("fib(20)", &region.total.firmware, &expected))
}

/// System calls of each region of `user/bare/src/entry.S`, and the user calls they were under in the last one.
const CALLS: u64 = 100;
const NESTED: u64 = 16;

/// For each region: user calls, then mispredicted returns by mode and depth.
fn each(report: &Report, judge: impl Fn(u64, [u64; 5], [u64; 5]) -> bool) -> Result<(), String> {
    for nested in 0..=NESTED {
        let region = region(report, 1 + nested as u16)?;
        adds_up(region)?;
        let (user, kernel) = (&region.total.user, &region.total.kernel);
        let calls = (nested + 1) * CALLS;
        if (user.ecall, user.calls, user.returns, user.instructions) != (CALLS, calls, calls, 6 * calls + 1) {
            return Err(format!("{nested} nested calls: {user:?}"));
        }
        if !region.returns.iter().all(|part| part.mode == Mode::Firmware || part.context == Context::Call) {
            return Err(format!("returns with another context than a call: {:?}", region.returns));
        }
        if !judge(nested + 1, user.mispredicted, kernel.mispredicted) {
            return Err(format!(
                "{nested} nested calls: mispredicted in user mode {:?}, in the kernel {:?}",
                user.mispredicted, kernel.mispredicted
            ));
        }
    }
    Ok(())
}

/// Two pops without a push: both miss, and every user return after them finds an address two levels off, at any depth
/// from three levels on (below, a small ring may hold the right address from earlier rounds).
pub fn old_entry(report: &Report) -> Result<(), String> {
    each(report, |levels, user, kernel| {
        kernel == [2 * CALLS; 5]
            && user[4] == levels * CALLS
            && user.iter().all(|missed| *missed >= CALLS * if levels > 3 { levels } else { levels.saturating_sub(2) })
    })
}

/// No miss while the ring holds the user's calls and the kernel's one; beyond it as many as it lacks places.
pub fn balanced_entry(report: &Report) -> Result<(), String> {
    each(report, |levels, user, kernel| {
        let lacking = |depth: u64| (levels + 1).saturating_sub(depth) * CALLS;
        kernel == [0; 5] && user == [lacking(4), lacking(8), lacking(16), lacking(32), 0]
    })
}
