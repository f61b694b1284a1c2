//! Processes and threads.

pub(crate) mod identity;
pub(crate) mod life;
pub(crate) mod limits;
pub(crate) mod prctl;
