//! A growing row of table slots in pieces of a page.
//!
//! One vector would have to be moved whenever it grows, and needs ever larger blocks of memory in one piece, which the
//! kernel has up to a few megabytes. Here a directory of any size takes pages.

use alloc::sync::Arc;
use alloc::vec::Vec;

use uapi::{Errno, Result};

use crate::vfs::Dentry;
use crate::vfs::name_key::NameKey;

/// A place in a directory's table.
pub(super) struct Slot {
    /// Position for readdir; grows from slot to slot.
    pub cookie: u64,
    /// What look-up compares.
    pub key: NameKey,
    /// The next slot of the hash chain.
    pub next: u32,
    /// Name and entry; `None`: removed.
    pub entry: Option<(Arc<[u8]>, Arc<Dentry>)>,
}

const EMPTY: Slot = Slot { cookie: 0, key: NameKey::EMPTY, next: u32::MAX, entry: None };

/// Slots in a piece: a page of them.
const PIECE: usize = 64;
const _: () = assert!(size_of::<Slot>() * PIECE == 4096);

/// The slots. All pieces but the last are full; the first grows by doubling, so that a small directory stays small.
#[derive(Default)]
pub(super) struct Slots {
    pieces: Vec<Vec<Slot>>,
    len: usize,
}

impl Slots {
    /// Slots in use or emptied.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub fn get(&self, at: usize) -> Option<&Slot> {
        self.pieces.get(at / PIECE)?.get(at % PIECE)
    }

    #[inline]
    pub fn get_mut(&mut self, at: usize) -> Option<&mut Slot> {
        self.pieces.get_mut(at / PIECE)?.get_mut(at % PIECE)
    }

    /// True when another slot needs memory.
    pub fn is_full(&self) -> bool {
        self.pieces.last().is_none_or(|piece| piece.len() == piece.capacity())
    }

    /// Makes room for one more.
    pub fn reserve(&mut self) -> Result<()> {
        if let Some(last) = self.pieces.last_mut()
            && last.len() < PIECE
        {
            return last.try_reserve(1).map_err(|_| Errno::ENOMEM);
        }
        let mut piece = Vec::new();
        let first = if self.pieces.is_empty() { 4 } else { PIECE };
        piece.try_reserve_exact(first).map_err(|_| Errno::ENOMEM)?;
        self.pieces.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        self.pieces.push(piece);
        Ok(())
    }

    /// Appends; after [`Slots::reserve`].
    pub fn push(&mut self, slot: Slot) {
        if let Some(last) = self.pieces.last_mut() {
            last.push(slot);
            self.len += 1;
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.pieces.iter().flatten()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.pieces.iter_mut().flatten()
    }

    /// The slots from `at` on.
    pub fn iter_from(&self, at: usize) -> impl Iterator<Item = &Slot> {
        let (piece, within) = (at / PIECE, at % PIECE);
        let rest = self.pieces.get(piece + 1..).unwrap_or_default();
        let first = self.pieces.get(piece).and_then(|piece| piece.get(within..)).unwrap_or_default();
        first.iter().chain(rest.iter().flatten())
    }

    /// The first slot whose cookie is not below `cookie`.
    pub fn position(&self, cookie: u64) -> usize {
        let before = self.pieces.partition_point(|piece| piece.last().is_some_and(|slot| slot.cookie < cookie));
        let within = self.pieces.get(before).map_or(0, |piece| piece.partition_point(|slot| slot.cookie < cookie));
        before * PIECE + within
    }

    /// Takes the emptied slots out; the order stays.
    pub fn pack(&mut self) {
        let mut to = 0;
        for from in 0..self.len {
            let Some(slot) = self.get_mut(from) else { break };
            if slot.entry.is_none() {
                continue;
            }
            let slot = core::mem::replace(slot, EMPTY);
            if let Some(place) = self.get_mut(to) {
                *place = slot;
                to += 1;
            }
        }
        self.len = to;
        self.pieces.truncate(to.div_ceil(PIECE));
        if let Some(last) = self.pieces.last_mut() {
            last.truncate(to - (to - 1) / PIECE * PIECE);
        }
    }

    pub fn clear(&mut self) {
        self.pieces.clear();
        self.len = 0;
    }

    /// Takes the last entry, for tearing a file system down.
    pub fn pop(&mut self) -> Option<Arc<Dentry>> {
        loop {
            let Some(slot) = self.pieces.last_mut()?.pop() else {
                self.pieces.pop();
                continue;
            };
            self.len -= 1;
            if let Some((_, dentry)) = slot.entry {
                return Some(dentry);
            }
        }
    }
}
