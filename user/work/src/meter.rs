//! Repeating an operation between two markers, and what is missing when it cannot be done.

use crate::marker;
use kit::clock;
use rt::uapi::Errno;

/// Why a workload cannot be measured.
#[derive(Clone, Copy, Debug)]
pub enum Lack {
    /// A call failed.
    Call(Errno),
    /// Something else.
    Because(&'static str),
}

impl From<Errno> for Lack {
    fn from(error: Errno) -> Self {
        Lack::Call(error)
    }
}

/// How a workload ends: the ticks its operations took.
pub type Outcome = Result<u64, Lack>;

/// What a workload measures with.
pub struct Meter {
    /// The program's arguments, for the auxiliary vector and the environment.
    pub args: rt::Args,
    /// How often the operation is to be done.
    pub rounds: u32,
    number: u16,
}

impl Meter {
    /// A meter for workload `number` of the table.
    pub(crate) const fn new(args: rt::Args, rounds: u32, number: u16) -> Self {
        Self { args, rounds, number }
    }

    /// Does the operation a tenth as often to warm up, then the full number of times between the markers.
    #[inline(always)]
    pub fn each(&self, mut body: impl FnMut() -> Result<(), Lack>) -> Outcome {
        for _ in 0..self.rounds.div_ceil(10) {
            body()?;
        }
        self.between(|| {
            for _ in 0..self.rounds {
                body()?;
            }
            Ok(())
        })
    }

    /// The markers around `work`, which does all of the operations by itself.
    #[inline(always)]
    pub fn between(&self, work: impl FnOnce() -> Result<(), Lack>) -> Outcome {
        marker::begin(self.number);
        let start = clock::ticks();
        let done = work();
        let ticks = clock::ticks() - start;
        marker::end(self.number);
        done.map(|()| ticks)
    }
}

/// `Ok` if the condition holds.
///
/// # Errors
/// It does not, for this reason.
#[inline(always)]
pub fn holds(condition: bool, reason: &'static str) -> Result<(), Lack> {
    if condition { Ok(()) } else { Err(Lack::Because(reason)) }
}
