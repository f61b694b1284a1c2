//! The load averages: how many tasks ran or wanted to, damped over 1, 5 and 15 minutes.
//!
//! The number of runnable tasks is looked at every five seconds by a timer, the only one that the kernel keeps for
//! itself; the averages are Linux's, in fixed point with 11 bits.

use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use hal::time;
use task::timer::{self, Expire};

/// The value 1.
const ONE: u64 = 1 << 11;
/// What is left of an average after five seconds: `ONE / exp(5 s / period)`.
const DECAY: [u64; 3] = [1884, 2014, 2037];
const PERIOD_S: u64 = 5;

static AVERAGES: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// The averages over 1, 5 and 15 minutes, with 16 fractional bits, as sysinfo(2) has them.
pub fn averages() -> [u64; 3] {
    AVERAGES.each_ref().map(|average| average.load(Ordering::Relaxed) << 5)
}

/// An average after another look that found `active` tasks; rounded up while it rises, so that it reaches them.
fn damp(average: u64, decay: u64, active: u64) -> u64 {
    let active = active * ONE;
    let sum = average * decay + active * (ONE - decay);
    (if active >= average { sum + ONE - 1 } else { sum }) / ONE
}

struct Sampler;

impl Expire for Sampler {
    fn expire(self: Arc<Self>) {
        let active = task::sched::runnable() as u64;
        for (average, decay) in AVERAGES.iter().zip(DECAY) {
            average.store(damp(average.load(Ordering::Relaxed), decay, active), Ordering::Relaxed);
        }
        again(self);
    }
}

fn again(sampler: Arc<Sampler>) {
    timer::add(time::now() + PERIOD_S * time::ticks_per_second(), sampler);
}

pub(super) fn start() {
    again(Arc::new(Sampler));
}

pub(super) fn text() -> String {
    let (active, last) = (task::sched::runnable(), task::tree_lock().last());
    line(AVERAGES.each_ref().map(|average| average.load(Ordering::Relaxed)), active, task::thread_total(), last)
}

/// proc_loadavg(5).
fn line(averages: [u64; 3], active: usize, threads: usize, last_pid: u32) -> String {
    let mut text = String::new();
    for average in averages {
        let rounded = average + ONE / 200;
        text.push_str(&alloc::format!("{}.{:02} ", rounded / ONE, rounded % ONE * 100 / ONE));
    }
    text.push_str(&alloc::format!("{active}/{threads} {last_pid}\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_that_of_linux() {
        assert_eq!(line([0; 3], 1, 61, 138), "0.00 0.00 0.00 1/61 138\n");
        assert_eq!(line([ONE, ONE * 3 / 2, 12 * ONE + 205], 2, 3, 9), "1.00 1.50 12.10 2/3 9\n");
    }

    #[test]
    fn an_average_approaches_the_load_and_falls_back() {
        let mut average = 0;
        // A minute of two tasks takes the first average to 1 - 1/e of them.
        for _ in 0..12 {
            average = damp(average, DECAY[0], 2);
        }
        assert!((1.24..1.30).contains(&(average as f64 / ONE as f64)), "{average}");
        for _ in 0..200 {
            average = damp(average, DECAY[0], 2);
        }
        assert_eq!(average, 2 * ONE);
        for _ in 0..200 {
            average = damp(average, DECAY[0], 0);
        }
        assert_eq!(average, 0);
    }
}
