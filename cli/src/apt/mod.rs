//! Debian packages without touching the host's architectures or package sources.
//!
//! apt is told, by options, to keep its lists, cache and status in a directory of the cache and to read one sources file
//! written here. The mirror's address is whatever the host's own apt uses. Packages for riscv64 are never installed: they
//! are downloaded and unpacked. Packages for the host are installed against its real status, as its own apt would.

mod private;
pub mod sources;

pub use private::{Apt, Release, host_codename};
