//! Addresses. Physical and user addresses are different types, so that one cannot be taken for the other.

/// Size of a base page in bytes (privileged specification, Sv39/Sv48/Sv57).
pub const PAGE_SIZE: usize = 4096;
/// log2 of [`PAGE_SIZE`].
pub const PAGE_SHIFT: usize = 12;

/// A physical address, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct PhysAddr(pub usize);

/// An address that a user program named: an allegation until a checked copy has gone through it.
///
/// Holds any 64-bit value; [`crate::user`] refuses what is not in the user half.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct UserAddr(pub usize);

impl UserAddr {
    /// The null pointer, which many calls take for "not wanted".
    pub const NULL: Self = Self(0);

    /// True for the null pointer.
    #[inline]
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// The address `bytes` further on; wraps, and a wrapped address is refused by the copy that uses it.
    #[inline]
    #[must_use]
    pub const fn add(self, bytes: usize) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

/// Rounds `value` down to a page boundary.
#[inline]
pub const fn page_down(value: usize) -> usize {
    value & !(PAGE_SIZE - 1)
}

/// Rounds `value` up to a page boundary; `None` when that leaves the address range.
#[inline]
pub const fn page_up(value: usize) -> Option<usize> {
    match value.checked_add(PAGE_SIZE - 1) {
        Some(v) => Some(page_down(v)),
        None => None,
    }
}
