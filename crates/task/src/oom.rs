//! When memory is gone: who goes.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use hal::mem::frame;
use uapi::Siginfo;
use uapi::signal::{SI_KERNEL, SIGKILL, sigmask};

use crate::process::{Process, State, tree_lock};
use crate::signal::{group_flag, send_process};

/// How much killing a process would help, in pages; None: it must not be killed. `adjust` is oom_score_adj: each point
/// is a thousandth of all memory.
fn score(rss: usize, total: usize, adjust: i32) -> Option<i64> {
    (adjust > -1000).then(|| rss as i64 + i64::from(adjust) * (total as i64 / 1000))
}

/// Whether the process is about to give its memory back: it was killed, or is at it, which takes a while.
fn is_leaving(process: &Process) -> bool {
    let mut leaves = process.signals.has(group_flag::EXIT) || process.signals.pending() & sigmask(SIGKILL) != 0;
    process.for_each_thread(|thread| leaves |= thread.dying() || thread.signals.exiting.load(Ordering::Relaxed));
    leaves
}

/// Pages in memory; `None` when all its threads are just looking at their space, which takes a moment. No reference is
/// taken: it might be the last one when it is dropped.
fn resident(process: &Process) -> Option<usize> {
    let (mut known, mut busy) = (None, false);
    process.for_each_thread(|thread| {
        if known.is_none() {
            match thread.mm_slot().try_with(|mm| mm.map(|mm| mm.rss())) {
                Some(pages) => known = pages,
                None => busy = true,
            }
        }
    });
    known.or((!busy).then_some(0))
}

/// Kills the process with the largest resident set, adjusted by its oom_score_adj, the youngest of equals; never the
/// first one. False when there is nobody, when one that was chosen before is still on its way out, when a size cannot be
/// told at the moment, or when there is memory again.
pub fn kill(total_pages: usize) -> bool {
    let victim = {
        let tree = tree_lock();
        // With the tree locked: who has left it has given its memory back before.
        if !frame::is_low() {
            return false;
        }
        let mut best: Option<(i64, Arc<Process>)> = None;
        for (pid, node) in tree.processes() {
            let process = &node.value;
            if pid == 1 || process.state() != State::Alive {
                continue;
            }
            if is_leaving(process) {
                return false;
            }
            // Better nobody for now than the wrong one: whoever asks tries again.
            let Some(rss) = resident(process) else { return false };
            let adjust = process.oom_adjust.load(Ordering::Relaxed);
            let score = score(rss, total_pages, adjust).filter(|_| rss != 0);
            if let Some(score) = score
                && best.as_ref().is_none_or(|(s, _)| score >= *s)
            {
                best = Some((score, process.clone()));
            }
        }
        best
    };
    let Some((_, victim)) = victim else { return false };
    // A standard signal is never refused.
    let _ = send_process(&victim, &Siginfo::plain(SIGKILL, SI_KERNEL));
    true
}

#[cfg(test)]
mod tests {
    use super::score;

    #[test]
    fn the_adjustment_protects_and_offers() {
        assert_eq!(score(100, 10_000, -1000), None);
        assert_eq!(score(100, 10_000, 0), Some(100));
        assert!(score(100, 10_000, 500) > score(4000, 10_000, 0));
        assert!(score(4000, 10_000, -500) < score(100, 10_000, 0));
    }
}
