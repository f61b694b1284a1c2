//! The calls on paths, against what the man pages say.

mod calls;
mod model;
mod mounts;
