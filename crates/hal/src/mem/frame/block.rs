//! Runs of frames with one owner.

use core::num::NonZeroU32;

use super::{Kind, local};
use crate::addr::{PAGE_SHIFT, PAGE_SIZE, PhysAddr};
use crate::mem::layout::phys_to_virt;

/// 2^order physically contiguous pages, aligned to their size; free again when dropped.
#[derive(Debug)]
pub struct Block {
    number: NonZeroU32,
    order: u8,
}

impl Block {
    /// A block with whatever was in it. `None` when there is none of that size or `order` is above
    /// [`MAX_ORDER`](super::MAX_ORDER).
    pub fn alloc(order: usize, kind: Kind) -> Option<Self> {
        Some(Self { number: local::block(order, kind)?, order: order as u8 })
    }

    /// Physical address of the first byte.
    #[inline]
    pub fn phys(&self) -> PhysAddr {
        PhysAddr((self.number.get() as usize) << PAGE_SHIFT)
    }

    /// Kernel address of the first byte, in the direct map.
    #[inline]
    pub fn virt(&self) -> usize {
        phys_to_virt(self.phys())
    }

    /// Length in bytes. (A block is never empty.)
    #[inline]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        PAGE_SIZE << self.order
    }

    /// Gives up ownership; [`Block::from_phys`] takes it back.
    pub(in crate::mem) fn into_phys(self) -> PhysAddr {
        let phys = self.phys();
        core::mem::forget(self);
        phys
    }

    /// Ownership back from [`Block::into_phys`].
    ///
    /// # Safety
    /// `phys` came from `into_phys` of a block of this order, and is taken back once.
    pub(in crate::mem) unsafe fn from_phys(phys: PhysAddr, order: usize) -> Self {
        // SAFETY: a block's number is never 0.
        let number = unsafe { NonZeroU32::new_unchecked((phys.0 >> PAGE_SHIFT) as u32) };
        Self { number, order: order as u8 }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        local::free_block(self.number.get(), self.order as usize);
    }
}
