//! Fences on other harts: by the firmware (SBI RFENCE), or by an interrupt of our own.
//!
//! A request is a few words in a slot of the hart that asks: there is one at a time, since it waits until all have
//! served it. A bit per asking hart in each asked hart's `PENDING` word says that there is something to serve.
//!
//! Interrupts are off in the kernel, so a hart that waits for others would never see their requests: two harts that
//! fence each other would wait for ever. Hence the rule: **whoever waits serves**. The wait here does, and so does the
//! wait for a contended spin lock, for the holder may be waiting here. Serving takes no lock and touches nothing but
//! the slots, so it can be done anywhere. A hart that does neither reaches user mode or an interrupt window in bounded
//! time, where the interrupt comes in; the pending bit is cleared before the word is taken, so a request that comes in
//! between raises it again.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::fence::{Account, Form, Reason, count, fence_i, flush_asid, flush_range};
use crate::hart::{self, Counter, MAX_HARTS};

/// What other harts are asked to fence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Request {
    /// The pages from the first address to the second, of an ASID.
    Pages(usize, usize, usize),
    /// An ASID.
    Asid(usize),
    /// Instruction fetches.
    Fetch,
}

struct Slot {
    asid: AtomicUsize,
    /// First address; `usize::MAX` for the whole ASID, [`FETCH`] for instruction fetches.
    start: AtomicUsize,
    end: AtomicUsize,
    /// Harts that have not served it yet.
    waiting: AtomicU64,
}

const WHOLE: usize = usize::MAX;
const FETCH: usize = usize::MAX - 1;

static SLOTS: [Slot; MAX_HARTS] = [const {
    Slot { asid: AtomicUsize::new(0), start: AtomicUsize::new(0), end: AtomicUsize::new(0), waiting: AtomicU64::new(0) }
}; MAX_HARTS];
/// For each hart, the harts whose request it has to serve.
static PENDING: [AtomicU64; MAX_HARTS] = [const { AtomicU64::new(0) }; MAX_HARTS];
static SERVED: [Counter; MAX_HARTS] = [const { Counter::new() }; MAX_HARTS];
static BY_IPI: AtomicBool = AtomicBool::new(false);

/// Chooses the own interrupt, or the firmware. At boot.
pub(super) fn set_by_ipi(own: bool) {
    BY_IPI.store(own, Ordering::Relaxed);
}

/// Whether remote fences go by an own interrupt.
pub fn by_ipi() -> bool {
    BY_IPI.load(Ordering::Relaxed)
}

/// Requests of other harts that `hart` has served.
pub fn served(hart: usize) -> u64 {
    SERVED.get(hart).map_or(0, Counter::get)
}

/// Fences `harts` (a bit per index, not this one). Returns when they have all done it.
pub(super) fn fence(harts: u64, request: Request, reason: Reason) {
    count(reason, Form::Remote);
    if by_ipi() {
        ask(harts, request);
    } else {
        by_firmware(harts, request);
    }
}

#[cfg(target_os = "none")]
fn by_firmware(harts: u64, request: Request) {
    hart::each_mask(harts, |mask| {
        let done = match request {
            Request::Pages(asid, start, end) => crate::sbi::remote_fence(mask, asid, start, end - start),
            Request::Asid(asid) => crate::sbi::remote_fence(mask, asid, 0, usize::MAX),
            Request::Fetch => crate::sbi::remote_fence_i(mask),
        };
        assert!(done, "the firmware fences a hart that runs");
    });
}

/// The firmware's part on the host: each hart fences, whatever it is doing.
#[cfg(not(target_os = "none"))]
fn by_firmware(harts: u64, request: Request) {
    for index in (0..MAX_HARTS).filter(|i| harts >> i & 1 != 0) {
        hart::host::on(index, || request.serve());
    }
}

fn ask(harts: u64, request: Request) {
    let me = hart::id();
    let slot = &SLOTS[me];
    let (asid, start, end) = match request {
        Request::Pages(asid, start, end) => (asid, start, end),
        Request::Asid(asid) => (asid, WHOLE, WHOLE),
        Request::Fetch => (0, FETCH, FETCH),
    };
    slot.asid.store(asid, Ordering::Relaxed);
    slot.start.store(start, Ordering::Relaxed);
    slot.end.store(end, Ordering::Relaxed);
    slot.waiting.store(harts, Ordering::Relaxed);
    for index in (0..MAX_HARTS).filter(|i| harts >> i & 1 != 0) {
        // Publishes the slot, and the changed entries before it.
        PENDING[index].fetch_or(1 << me, Ordering::Release);
    }
    hart::interrupt(harts);
    while slot.waiting.load(Ordering::Acquire) != 0 {
        serve();
        hart::pause();
    }
}

/// Serves what other harts ask of this one. Called by the software interrupt, and by whoever waits for something that
/// another hart does.
#[inline]
pub(crate) fn serve() {
    let me = hart::id();
    if PENDING[me].load(Ordering::Relaxed) != 0 {
        serve_all(me);
    }
}

#[cold]
fn serve_all(me: usize) {
    let mut sources = PENDING[me].swap(0, Ordering::Acquire);
    while sources != 0 {
        let slot = &SLOTS[sources.trailing_zeros() as usize];
        sources &= sources - 1;
        let asid = slot.asid.load(Ordering::Relaxed);
        let request = match slot.start.load(Ordering::Relaxed) {
            WHOLE => Request::Asid(asid),
            FETCH => Request::Fetch,
            start => Request::Pages(asid, start, slot.end.load(Ordering::Relaxed)),
        };
        request.serve();
        SERVED[me].add(1);
        slot.waiting.fetch_and(!(1 << me), Ordering::Release);
    }
}

/// The hart that asked has counted the request.
#[derive(Clone, Copy)]
struct Theirs;

impl Account for Theirs {
    #[inline]
    fn note(self, _: Form) {}
}

impl Request {
    fn serve(self) {
        match self {
            Self::Pages(asid, start, end) => flush_range(asid, start, end, Theirs),
            Self::Asid(asid) => flush_asid(asid, Theirs),
            Self::Fetch => fence_i(Theirs),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Barrier;
    use std::vec::Vec;

    use super::super::hook::{self, Event};
    use super::*;

    std::thread_local! {
        static SEEN: Cell<u64> = const { Cell::new(0) };
    }

    /// Every hart fences all others again and again, at once; each request is served once by each, and nobody hangs.
    #[test]
    fn harts_that_all_fence_each_other_lose_no_request() {
        const HARTS: usize = MAX_HARTS;
        const ROUNDS: usize = 300;
        let _turn = crate::mem::host::arena();
        let barrier = Barrier::new(HARTS);
        let running = AtomicUsize::new(HARTS);
        let before: Vec<u64> = (0..HARTS).map(served).collect();
        std::thread::scope(|scope| {
            for me in 0..HARTS {
                let (barrier, running) = (&barrier, &running);
                scope.spawn(move || {
                    hart::host::on(me, || {
                        hook::set(Some(|event| {
                            if matches!(event, Event::Pages(..) | Event::Asid(..) | Event::Fetch(_)) {
                                SEEN.set(SEEN.get() + 1);
                            }
                        }));
                        barrier.wait();
                        let others = ((1u64 << HARTS) - 1) & !(1 << me);
                        for round in 0..ROUNDS {
                            let request = match round % 3 {
                                0 => Request::Asid(me),
                                1 => Request::Pages(me, round << 12, (round + 1) << 12),
                                _ => Request::Fetch,
                            };
                            ask(others, request);
                        }
                        running.fetch_sub(1, Ordering::SeqCst);
                        while running.load(Ordering::SeqCst) != 0 {
                            serve();
                            hart::pause();
                        }
                        hook::set(None);
                        assert_eq!(SEEN.get(), ((HARTS - 1) * ROUNDS) as u64);
                    });
                });
            }
        });
        for (hart, before) in before.into_iter().enumerate() {
            assert_eq!(served(hart) - before, ((HARTS - 1) * ROUNDS) as u64);
        }
    }

    /// Two harts hold what the other waits for: one the lock, the other a fence that is still to be served.
    #[test]
    fn a_wait_for_a_lock_serves_the_holders_fence() {
        let _turn = crate::mem::host::arena();
        let lock = crate::sync::SpinLock::new(0);
        let barrier = Barrier::new(4);
        let running = AtomicUsize::new(4);
        std::thread::scope(|scope| {
            for me in 0..4usize {
                let (lock, barrier, running) = (&lock, &barrier, &running);
                scope.spawn(move || {
                    hart::host::on(me, || {
                        barrier.wait();
                        for _ in 0..200 {
                            let mut count = lock.lock();
                            *count += 1;
                            ask(0b1111 & !(1 << me), Request::Asid(1));
                        }
                        running.fetch_sub(1, Ordering::SeqCst);
                        while running.load(Ordering::SeqCst) != 0 {
                            serve();
                            hart::pause();
                        }
                    });
                });
            }
        });
        assert_eq!(lock.into_inner(), 800);
    }
}
