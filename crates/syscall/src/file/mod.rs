//! Files.

pub(crate) mod attr;
pub(crate) mod copy;
pub(crate) mod fd;
mod iovec;
pub(crate) mod path;
pub(crate) mod poll;
pub(crate) mod rw;
pub(crate) mod xattr;
