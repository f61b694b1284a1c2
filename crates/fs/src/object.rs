//! The memory object behind a regular file: the one place that names it.

pub use mm::Object;
