//! An entry of a table in memory. The translation hardware may read it at any moment, so that every change is one access
//! of full width.

use core::sync::atomic::{AtomicU64, Ordering};

/// An entry in its place.
#[repr(transparent)]
pub(in crate::mem) struct Slot(AtomicU64);

impl Slot {
    #[inline]
    pub fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    /// Writes an entry where none was valid, or takes one out that nobody else changes.
    #[inline]
    pub fn store(&self, entry: u64, order: Ordering) {
        self.0.store(entry, order);
        tell!(Store);
    }

    /// Writes an entry if none is there, and says whether.
    #[inline]
    pub fn claim(&self, entry: u64) -> bool {
        let claimed = self.0.compare_exchange(0, entry, Ordering::Release, Ordering::Relaxed).is_ok();
        tell!(Store);
        claimed
    }

    /// Writes an entry and gives the one before.
    #[inline]
    pub fn swap(&self, entry: u64) -> u64 {
        let before = self.0.swap(entry, Ordering::Relaxed);
        tell!(Store);
        before
    }

    /// Sets bits.
    #[inline]
    pub fn set(&self, bits: u64) {
        self.0.fetch_or(bits, Ordering::Relaxed);
        tell!(Store);
    }

    /// Clears bits.
    #[inline]
    pub fn clear(&self, bits: u64) {
        self.0.fetch_and(!bits, Ordering::Relaxed);
        tell!(Store);
    }

    /// Writes `new` if the entry is still `old`.
    #[inline]
    pub fn exchange(&self, old: u64, new: u64) {
        let _ = self.0.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed);
        tell!(Store);
    }
}
