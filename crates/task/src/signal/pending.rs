//! Signals that were sent and not yet taken: a set, and the information that came with them.
//!
//! A standard signal (1 to 31) is pending or not; the first information counts. A real-time signal queues each time, in
//! order (signal(7)), up to a bound; beyond it sigqueue(3) gives EAGAIN and kill(2) sets the bit without information.

use alloc::vec::Vec;

use uapi::signal::{SI_USER, SIGRTMIN, sigmask};
use uapi::{SigSet, Siginfo};

/// A set of pending signals.
pub struct Pending {
    set: SigSet,
    queue: Vec<Siginfo>,
}

/// Why a signal was not queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueFull;

impl Default for Pending {
    fn default() -> Self {
        Self::new()
    }
}

impl Pending {
    /// Nothing pending.
    pub const fn new() -> Self {
        Self { set: 0, queue: Vec::new() }
    }

    /// The pending signals.
    #[inline]
    pub fn set(&self) -> SigSet {
        self.set
    }

    /// Adds a signal. `limit` bounds the queue (RLIMIT_SIGPENDING). With the queue full, a standard signal and one
    /// that kill(2) or the kernel sent is pending without its information; a queued real-time one is refused.
    pub fn add(&mut self, info: &Siginfo, limit: usize) -> Result<(), QueueFull> {
        let signal = info.si_signo as u32;
        let bit = sigmask(signal);
        if signal < SIGRTMIN && self.set & bit != 0 {
            return Ok(());
        }
        if self.queue.len() < limit && self.queue.try_reserve(1).is_ok() {
            self.queue.push(*info);
        } else if signal >= SIGRTMIN && info.si_code < SI_USER {
            return Err(QueueFull);
        }
        self.set |= bit;
        Ok(())
    }

    /// Takes one instance of `signal`, which is pending, into `info`.
    pub fn take_into(&mut self, signal: u32, info: &mut Siginfo) {
        let mut of_signal = self.queue.iter().enumerate().filter(|(_, i)| i.si_signo as u32 == signal);
        let first = of_signal.next().map(|(at, _)| at);
        if of_signal.next().is_none() {
            self.set &= !sigmask(signal);
        }
        match first.and_then(|at| self.queue.get(at)) {
            Some(queued) => *info = *queued,
            None => *info = Siginfo::plain(signal, SI_USER),
        }
        if let Some(at) = first {
            if at + 1 == self.queue.len() {
                self.queue.truncate(at);
            } else {
                self.queue.remove(at);
            }
        }
    }

    /// Forgets all signals in `set`.
    pub fn remove(&mut self, set: SigSet) {
        if self.set & set != 0 {
            self.set &= !set;
            self.queue.retain(|i| sigmask(i.si_signo as u32) & set == 0);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use uapi::signal::*;

    impl Pending {
        fn take(&mut self, signal: u32) -> Siginfo {
            let mut info = Siginfo::default();
            self.take_into(signal, &mut info);
            info
        }
    }

    #[test]
    fn standard_signals_do_not_queue_and_real_time_ones_do() {
        let mut p = Pending::new();
        p.add(&Siginfo::kill(SIGUSR1, 1, 0), 10).unwrap();
        p.add(&Siginfo::kill(SIGUSR1, 2, 0), 10).unwrap();
        p.add(&Siginfo::queue(40, 1, 0, 7), 10).unwrap();
        p.add(&Siginfo::queue(40, 1, 0, 8), 10).unwrap();
        assert_eq!(p.take(SIGUSR1).pid(), 1);
        assert_eq!(p.set(), sigmask(40));
        assert_eq!(p.take(40).fields[1], 7);
        assert_eq!(p.set(), sigmask(40));
        assert_eq!(p.take(40).fields[1], 8);
        assert_eq!(p.set(), 0);
    }

    #[test]
    fn a_full_queue_refuses_only_what_was_queued() {
        let mut p = Pending::new();
        p.add(&Siginfo::queue(40, 1, 0, 7), 1).unwrap();
        assert_eq!(p.add(&Siginfo::queue(41, 1, 0, 7), 1), Err(QueueFull));
        assert_eq!(p.add(&Siginfo::kill(41, 1, 0), 1), Ok(()));
        assert_eq!(p.add(&Siginfo::kill(SIGTERM, 1, 0), 1), Ok(()));
        assert_eq!(p.set(), sigmask(40) | sigmask(41) | sigmask(SIGTERM));
        assert_eq!(p.take(SIGTERM), Siginfo::plain(SIGTERM, SI_USER));
    }

    proptest! {
        /// The set always says exactly which signals can be taken.
        #[test]
        fn set_and_queue_agree(ops in prop::collection::vec((1u32..=64, any::<bool>()), 0..200)) {
            let mut p = Pending::new();
            for (signal, add) in ops {
                if add {
                    let _ = p.add(&Siginfo::queue(signal, 1, 0, 0), 20);
                } else if p.set() & sigmask(signal) != 0 {
                    p.take(signal);
                }
            }
            let mut guard = 0;
            while p.set() != 0 {
                p.take(p.set().trailing_zeros() + 1);
                guard += 1;
                prop_assert!(guard <= 64 + 20);
            }
            prop_assert!(p.queue.is_empty());
        }
    }
}
