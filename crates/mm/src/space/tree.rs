//! Very many areas, in order.
//!
//! A tree of two levels: chunks of up to 64 areas (one page), and an array of the chunks with the address where each
//! ends, for the search. A full chunk is divided in two, an empty one goes, two small neighbours become one. So 65 530
//! areas are 1 024 to 4 096 chunks: the array of these is a few pages for a search, and a division moves at most 128 KiB
//! of it, once in 16 insertions or more. A deeper tree would move less, and search longer.
//!
//! Each chunk also knows a bound for the gaps below its areas, so that who looks for room passes over full chunks. It is
//! raised whenever a gap grows, and made exact when the chunk is divided, joined, or looked into in vain.

use alloc::vec::Vec;
use core::mem::take;

use hal::hart;
use uapi::Errno;

use super::area::Vma;

/// Areas of a chunk: a page of them. Tests have many chunks of few areas.
pub const CHUNK: usize = if cfg!(test) { 4 } else { 64 };

/// A place in a list of areas: an area's, or that behind the last area. The number of the chunk, times twice its size,
/// plus the slot: so the place behind a full chunk is still that chunk's.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct At(pub(super) usize);

/// Sorted and disjoint areas in chunks of up to `N`.
pub struct Tree<const N: usize> {
    /// None is empty, and all have room for `N` areas. There is at least one.
    chunks: Vec<Chunk>,
    /// What the next chunk is made of, if [`Tree::reserve`] has promised one.
    spare: Vec<Vma>,
    len: usize,
}

struct Chunk {
    /// Where its last area ends.
    end: usize,
    /// No gap right below one of its areas is larger.
    room: usize,
    areas: Vec<Vma>,
}

impl Chunk {
    fn note_end(&mut self) {
        self.end = self.areas.last().map_or(0, |area| area.end);
    }

    /// Makes all that is known about it exact. The area before it ends at `floor`.
    fn measure(&mut self, mut floor: usize) {
        self.room = 0;
        for area in &self.areas {
            self.room = self.room.max(area.start_with_gap().saturating_sub(floor));
            floor = area.end;
        }
        self.end = floor;
    }
}

/// The pieces of a list.
pub struct Chunks<'a> {
    next: Option<&'a [Vma]>,
    more: core::slice::Iter<'a, Chunk>,
}

impl<'a> Chunks<'a> {
    /// There is only this one.
    #[inline]
    pub fn one(areas: &'a [Vma]) -> Self {
        Self { next: Some(areas), more: [].iter() }
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = &'a [Vma];
    #[inline]
    fn next(&mut self) -> Option<&'a [Vma]> {
        let areas = self.next?;
        self.next = self.more.next().map(|chunk| &*chunk.areas);
        Some(areas)
    }
}

/// The slot of the first of `areas` that ends above `addr`.
#[inline]
pub fn slot_above(areas: &[Vma], addr: usize) -> usize {
    areas.partition_point(|area| area.end <= addr)
}

impl<const N: usize> Tree<N> {
    /// Chunks of at most so many areas are joined with a small neighbour, and a division leaves more on both sides.
    const SMALL: usize = N / 4;
    /// Chunks are joined if they have no more than so many areas together.
    const JOINED: usize = N - N / 4;

    /// A tree without a chunk, to be given one at once.
    pub const fn new() -> Self {
        assert!(N.is_power_of_two() && N >= 4);
        Self { chunks: Vec::new(), spare: Vec::new(), len: 0 }
    }

    /// Makes `areas`, with room for `N`, the only chunk. There is room: [`Tree::reserve`].
    pub fn adopt(&mut self, areas: Vec<Vma>) {
        self.len = areas.len();
        self.chunks.push(Chunk { end: 0, room: 0, areas });
        self.measure(0);
    }

    /// The areas of the only chunk, if there are so few that it may stay the only one for a while. The tree is empty then.
    pub fn flatten(&mut self) -> Option<Vec<Vma>> {
        if self.chunks.len() > 1 || self.len > Self::JOINED {
            return None;
        }
        self.len = 0;
        Some(self.chunks.pop().map(|chunk| chunk.areas).unwrap_or_default())
    }

    pub fn len(&self) -> usize {
        self.len
    }

    const fn at(chunk: usize, slot: usize) -> At {
        At(chunk * 2 * N + slot)
    }

    /// Chunk and slot.
    const fn parts(at: At) -> (usize, usize) {
        (at.0 / (2 * N), at.0 % (2 * N))
    }

    /// Whether `at` is the first place of a chunk.
    #[inline]
    pub fn begins_chunk(at: At) -> bool {
        Self::parts(at).1 == 0
    }

    /// Areas of a chunk.
    fn count(&self, index: usize) -> usize {
        self.chunks.get(index).map_or(0, |chunk| chunk.areas.len())
    }

    pub fn get(&self, at: At) -> Option<&Vma> {
        let (index, slot) = Self::parts(at);
        self.chunks.get(index)?.areas.get(slot)
    }

    pub fn get_mut(&mut self, at: At) -> Option<&mut Vma> {
        let (index, slot) = Self::parts(at);
        self.chunks.get_mut(index)?.areas.get_mut(slot)
    }

    /// Moves the end of the area at `at`: upwards, or to where another area will be inserted at once.
    #[inline(never)]
    pub fn set_end(&mut self, at: At, end: usize) {
        let (index, slot) = Self::parts(at);
        let Some(chunk) = self.chunks.get_mut(index) else { return };
        if let Some(area) = chunk.areas.get_mut(slot) {
            area.end = end;
        }
        chunk.note_end();
    }

    #[inline(never)]
    pub fn chunks(&self) -> Chunks<'_> {
        let mut more = self.chunks.iter();
        Chunks { next: more.next().map(|chunk| &*chunk.areas), more }
    }

    pub fn into_chunks(self) -> impl Iterator<Item = Vec<Vma>> {
        self.chunks.into_iter().map(|chunk| chunk.areas)
    }

    /// The place behind `at`, which is an area's.
    #[inline(never)]
    pub fn next(&self, at: At) -> At {
        let (index, slot) = Self::parts(at);
        let last = slot + 1 >= self.count(index) && index + 1 < self.chunks.len();
        if last { Self::at(index + 1, 0) } else { At(at.0 + 1) }
    }

    /// The place of the area below `at`.
    #[inline(never)]
    pub fn prev(&self, at: At) -> Option<At> {
        let (index, slot) = Self::parts(at);
        if slot != 0 {
            return Some(At(at.0 - 1));
        }
        let below = index.checked_sub(1)?;
        Some(Self::at(below, self.count(below).checked_sub(1)?))
    }

    /// The place of the first area that ends above `addr`.
    #[inline(never)]
    pub fn first_above(&self, addr: usize) -> At {
        let above = self.chunks.partition_point(|chunk| chunk.end <= addr);
        // Behind the last area is the end of the last chunk.
        let index = above.min(self.chunks.len().saturating_sub(1));
        Self::at(index, self.chunks.get(index).map_or(0, |chunk| slot_above(&chunk.areas, addr)))
    }

    /// The first area that ends above `addr`, and its place.
    #[inline(never)]
    pub fn search(&self, addr: usize) -> Option<(At, &Vma)> {
        let at = self.first_above(addr);
        Some((at, self.get(at)?))
    }

    /// Room for one more area, even if a chunk must be divided for it. `ENOMEM`.
    pub fn reserve(&mut self) -> Result<(), Errno> {
        self.chunks.try_reserve(1).and_then(|()| self.spare.try_reserve_exact(N)).map_err(|_| Errno::ENOMEM)
    }

    /// Inserts `area` before what is at `at`, where it belongs. There is room: [`Tree::reserve`].
    #[inline(never)]
    pub fn insert(&mut self, mut at: At, area: Vma) {
        let (index, slot) = Self::parts(at);
        if self.count(index) >= N {
            self.divide(index, slot);
            at = self.first_above(area.start);
        }
        let (index, slot) = Self::parts(at);
        if let Some(chunk) = self.chunks.get_mut(index) {
            chunk.areas.insert(slot, area);
            chunk.note_end();
            self.len += 1;
        }
        self.note_gap(at);
    }

    /// The gap below the area at `at`, if there is one, may have become larger.
    fn note_gap(&mut self, at: At) {
        let floor = self.prev(at).and_then(|below| self.get(below)).map_or(0, |area| area.end);
        let Some(gap) = self.get(at).map(|area| area.start_with_gap().saturating_sub(floor)) else { return };
        if let Some(chunk) = self.chunks.get_mut(Self::parts(at).0) {
            chunk.room = chunk.room.max(gap);
        }
    }

    /// Makes all that is known about a chunk exact; gives its largest gap.
    fn measure(&mut self, index: usize) -> usize {
        let floor = index.checked_sub(1).and_then(|below| self.chunks.get(below)).map_or(0, |chunk| chunk.end);
        let Some(chunk) = self.chunks.get_mut(index) else { return 0 };
        chunk.measure(floor);
        chunk.room
    }

    /// The highest place, from `at` downwards, below whose area there may be a gap of `len` bytes. Interrupts may come in
    /// between two chunks.
    #[inline(never)]
    pub fn roomy_below(&mut self, at: At, len: usize) -> Option<At> {
        let (mut index, slot) = Self::parts(at);
        if slot + 1 < self.count(index) {
            return Some(at);
        }
        while self.chunks.get(index)?.room < len || self.measure(index) < len {
            index = index.checked_sub(1)?;
            if index.is_multiple_of(64) {
                hart::window();
            }
        }
        Some(Self::at(index, self.count(index).checked_sub(1)?))
    }

    /// The lowest place, from `at` upwards, below whose area there may be a gap of `len` bytes, or that behind all areas.
    /// Interrupts may come in between two chunks.
    #[inline(never)]
    pub fn roomy_above(&mut self, at: At, len: usize) -> At {
        let (mut index, slot) = Self::parts(at);
        if slot != 0 {
            return at;
        }
        while let Some(chunk) = self.chunks.get(index) {
            if chunk.room >= len && self.measure(index) >= len {
                return Self::at(index, 0);
            }
            index += 1;
            if index.is_multiple_of(64) {
                hart::window();
            }
        }
        let last = index.saturating_sub(1);
        Self::at(last, self.count(last))
    }

    /// Makes two chunks of one, near `slot`: areas often come one below or above the other, and then the chunks that are
    /// left behind are fuller than half.
    fn divide(&mut self, index: usize, slot: usize) {
        let mut areas = take(&mut self.spare);
        let Some(chunk) = self.chunks.get_mut(index) else { return };
        areas.extend(chunk.areas.drain(slot.clamp(Self::SMALL, Self::JOINED)..));
        self.chunks.insert(index + 1, Chunk { end: 0, room: 0, areas });
        self.measure(index);
        self.measure(index + 1);
    }

    /// Takes out the areas from `from` up to `to`, each of which `gone` gets; gives the place of what was behind them.
    /// Interrupts may come in between two chunks ([`hart::window`]).
    pub fn remove(&mut self, from: At, to: At, gone: &mut dyn FnMut(Vma)) -> At {
        let Some(start) = self.get(from).map(|area| area.start) else { return from };
        let ((low, from), (high, to)) = (Self::parts(from), Self::parts(to));
        if low == high {
            self.remove_slots(low, from, to, gone);
        } else {
            self.remove_slots(low, from, self.count(low), gone);
            self.remove_slots(high, 0, to, gone);
            for chunk in self.chunks.drain(low + 1..high) {
                self.len -= chunk.areas.len();
                chunk.areas.into_iter().for_each(&mut *gone);
                hart::window();
            }
            self.settle(low + 1);
        }
        self.settle(low);
        let behind = self.first_above(start);
        self.note_gap(behind);
        behind
    }

    fn remove_slots(&mut self, index: usize, from: usize, to: usize, gone: &mut dyn FnMut(Vma)) {
        if let Some(chunk) = self.chunks.get_mut(index) {
            chunk.areas.drain(from..to).for_each(gone);
            chunk.note_end();
            self.len -= to - from;
        }
    }

    /// After areas of a chunk have gone: it goes if it is empty, and is joined with a neighbour if both are small.
    fn settle(&mut self, index: usize) {
        let len = self.count(index);
        if index < self.chunks.len() && len == 0 {
            self.chunks.remove(index);
        } else if len <= Self::SMALL {
            if index + 1 < self.chunks.len() && len + self.count(index + 1) <= Self::JOINED {
                self.join(index);
            } else if index != 0 && len + self.count(index - 1) <= Self::JOINED {
                self.join(index - 1);
            }
        }
    }

    /// Makes one chunk of this and the next one.
    fn join(&mut self, index: usize) {
        let mut above = self.chunks.remove(index + 1);
        if let Some(chunk) = self.chunks.get_mut(index) {
            chunk.areas.append(&mut above.areas);
        }
        self.measure(index);
    }

    /// A new last chunk, to be filled in order; [`Tree::finish`] completes a tree that is made so. `ENOMEM`.
    pub fn open(&mut self) -> Result<&mut Vec<Vma>, Errno> {
        let mut areas = Vec::new();
        areas.try_reserve_exact(N).and_then(|()| self.chunks.try_reserve(1)).map_err(|_| Errno::ENOMEM)?;
        self.chunks.push(Chunk { end: 0, room: 0, areas });
        self.chunks.last_mut().map(|chunk| &mut chunk.areas).ok_or(Errno::ENOMEM)
    }

    /// The chunks that were opened are filled with what those of `other` have, or less. Interrupts may come in on the way.
    #[inline(never)]
    pub fn finish(&mut self, other: &Self) {
        self.len = self.chunks.iter().map(|chunk| chunk.areas.len()).sum();
        if self.len == other.len {
            for (chunk, like) in self.chunks.iter_mut().zip(&other.chunks) {
                (chunk.end, chunk.room) = (like.end, like.room);
            }
            return;
        }
        self.chunks.retain(|chunk| !chunk.areas.is_empty());
        for index in 0..self.chunks.len() {
            self.measure(index);
            hart::window();
        }
    }

    /// What holds between any two calls.
    #[cfg(test)]
    pub fn check(&self) {
        let mut floor = 0;
        assert_eq!(self.len, self.chunks.iter().map(|chunk| chunk.areas.len()).sum::<usize>());
        assert!(!self.chunks.is_empty());
        for chunk in &self.chunks {
            assert!((1..=N).contains(&chunk.areas.len()) && chunk.areas.capacity() >= N);
            assert_eq!(Some(chunk.end), chunk.areas.last().map(|area| area.end));
            for area in &chunk.areas {
                assert!(area.start_with_gap().saturating_sub(floor) <= chunk.room);
                floor = area.end;
            }
        }
    }

    #[cfg(test)]
    pub fn chunk_count(&self) -> usize {
        self.chunks.len()
    }
}
