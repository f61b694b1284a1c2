//! The areas of a space, in order.
//!
//! Most programs have tens of areas, and an array is best for them: the last place is looked at first, a miss is a binary
//! search in one piece of memory, and an insertion moves a kilobyte or two. But a program may have 65 530 of them, and then
//! an array moves up to 4 MiB for each area that comes or goes, all that time with interrupts off.
//!
//! Hence both: an array as long as it is short, and a [`Tree`] of such arrays from then on. A place ([`At`]) in the array is
//! an index, and the array is empty when there is a tree; so the bound check that every access makes anyway is also what
//! tells the one from the other, and a small program pays nothing for the tree.
//!
//! Insertions and removals give new places. They leave those below theirs as they are in an array, but not always in a tree:
//! [`AreaList::again`] finds what was there.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem::{replace, take};

use hal::mem::heap::try_box;
use uapi::Errno;

use super::area::Vma;
use super::tree::{At, CHUNK, Chunks, Tree, slot_above};

/// The areas of a space, sorted and disjoint. Up to `N` are an array.
pub struct AreaList<const N: usize = CHUNK> {
    /// All of them, if there is no tree.
    flat: Vec<Vma>,
    tree: Option<Box<Tree<N>>>,
    last: At,
}

impl<const N: usize> AreaList<N> {
    pub const fn new() -> Self {
        Self { flat: Vec::new(), tree: None, last: At(0) }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.tree.as_ref().map_or(self.flat.len(), |tree| tree.len())
    }

    #[inline]
    pub fn get(&self, at: At) -> Option<&Vma> {
        match self.flat.get(at.0) {
            Some(area) => Some(area),
            None => self.get_in_tree(at),
        }
    }

    #[inline(never)]
    fn get_in_tree(&self, at: At) -> Option<&Vma> {
        self.tree.as_ref()?.get(at)
    }

    /// The area at `at`, to be changed in anything but its end: see [`AreaList::set_end`].
    #[inline]
    pub fn get_mut(&mut self, at: At) -> Option<&mut Vma> {
        if at.0 < self.flat.len() { self.flat.get_mut(at.0) } else { self.get_mut_in_tree(at) }
    }

    #[inline(never)]
    fn get_mut_in_tree(&mut self, at: At) -> Option<&mut Vma> {
        self.tree.as_mut()?.get_mut(at)
    }

    /// Moves the end of the area at `at`: upwards, or to where another area will be inserted at once.
    #[inline]
    pub fn set_end(&mut self, at: At, end: usize) {
        match &mut self.tree {
            Some(tree) => tree.set_end(at, end),
            None => {
                if let Some(area) = self.flat.get_mut(at.0) {
                    area.end = end;
                }
            }
        }
    }

    /// All areas, in pieces.
    #[inline]
    pub fn chunks(&self) -> Chunks<'_> {
        self.tree.as_ref().map_or(Chunks::one(&self.flat), |tree| tree.chunks())
    }

    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = &Vma> {
        self.chunks().flatten()
    }

    /// The place of the first area.
    #[inline]
    pub fn start(&self) -> At {
        At(0)
    }

    /// Whether `at` is the first place of a piece: a loop over areas that has come there may be a long one.
    #[inline]
    pub fn begins_chunk(&self, at: At) -> bool {
        Tree::<N>::begins_chunk(at)
    }

    /// The place behind `at`, which is an area's.
    #[inline]
    pub fn next(&self, at: At) -> At {
        match &self.tree {
            Some(tree) => tree.next(at),
            None => At(at.0 + 1),
        }
    }

    /// The place of the area below `at`.
    #[inline]
    pub fn prev(&self, at: At) -> Option<At> {
        match &self.tree {
            Some(tree) => tree.prev(at),
            None => at.0.checked_sub(1).map(At),
        }
    }

    /// The area below `at`.
    #[inline]
    pub fn below(&self, at: At) -> Option<&Vma> {
        self.get(self.prev(at)?)
    }

    /// The place of the area that contains `addr`.
    #[inline]
    pub fn find(&mut self, addr: usize) -> Option<At> {
        let mut last = self.last;
        self.find_near(&mut last, addr)?;
        self.last = last;
        Some(last)
    }

    /// The area that contains `addr`, for several who look at once: `last` is where the caller found something before,
    /// and now.
    #[inline]
    pub fn find_near(&self, last: &mut At, addr: usize) -> Option<&Vma> {
        if let Some(area) = self.get(*last)
            && area.start <= addr
            && addr < area.end
        {
            return Some(area);
        }
        let (at, area) = self.search(addr)?;
        *last = at;
        Some(area)
    }

    #[inline(never)]
    fn search(&self, addr: usize) -> Option<(At, &Vma)> {
        let (at, area) = match &self.tree {
            Some(tree) => tree.search(addr)?,
            None => {
                let slot = slot_above(&self.flat, addr);
                (At(slot), self.flat.get(slot)?)
            }
        };
        if area.start > addr { None } else { Some((at, area)) }
    }

    /// The place of the first area that ends above `addr`: of the one that contains it or the next one.
    #[inline]
    pub fn first_above(&self, addr: usize) -> At {
        match &self.tree {
            Some(tree) => tree.first_above(addr),
            None => At(slot_above(&self.flat, addr)),
        }
    }

    /// The place of the area that was at `at`, and is the first that ends above `addr`, after areas above it have come or
    /// gone.
    #[inline]
    pub fn again(&self, at: At, addr: usize) -> At {
        self.tree.as_ref().map_or(at, |tree| tree.first_above(addr))
    }

    /// The end of the highest gap between `floor` and `ceiling` that has `len` bytes, and the place of what is above it.
    /// Interrupts may come in.
    pub fn highest_gap(&mut self, floor: usize, mut ceiling: usize, len: usize) -> Option<(usize, At)> {
        let mut at = self.first_above(ceiling - 1);
        loop {
            // The first area may reach over the ceiling.
            if let Some(area) = self.get(at) {
                ceiling = ceiling.min(area.start_with_gap());
            }
            let below = self.prev(at);
            let start = below.and_then(|at| self.get(at)).map_or(floor, |area| area.end.max(floor));
            if ceiling > start && ceiling - start >= len {
                return Some((ceiling, at));
            }
            at = below?;
            if let Some(tree) = &mut self.tree {
                at = tree.roomy_below(at, len)?;
            }
        }
    }

    /// The start of the lowest such gap, and the place of what is above it. Interrupts may come in.
    pub fn lowest_gap(&mut self, mut floor: usize, ceiling: usize, len: usize) -> Option<(usize, At)> {
        let mut at = self.first_above(floor);
        loop {
            if let Some(tree) = &mut self.tree {
                at = tree.roomy_above(at, len);
            }
            floor = self.below(at).map_or(floor, |area| area.end.max(floor));
            let area = self.get(at);
            let end = area.map_or(ceiling, |area| area.start_with_gap().min(ceiling));
            if end > floor && end - floor >= len {
                return Some((floor, at));
            }
            area?;
            at = self.next(at);
        }
    }

    /// Where an area of `start..end` belongs, if no other, nor the gap below a stack, has a byte of it.
    pub fn free(&self, start: usize, end: usize) -> Option<At> {
        let at = self.first_above(start);
        self.get(at).is_none_or(|area| end <= area.start_with_gap()).then_some(at)
    }

    /// Where an area of `start..end` belongs, if no other has a byte of it.
    pub fn unmapped(&self, start: usize, end: usize) -> Option<At> {
        let at = self.first_above(start);
        self.get(at).is_none_or(|area| end <= area.start).then_some(at)
    }

    /// Room for one more area, so that inserting it cannot fail. `ENOMEM`.
    #[inline]
    pub fn reserve(&mut self) -> Result<(), Errno> {
        let full = self.flat.len() >= self.flat.capacity().min(N);
        if full || self.tree.is_some() { self.make_room() } else { Ok(()) }
    }

    #[inline(never)]
    fn make_room(&mut self) -> Result<(), Errno> {
        if let Some(tree) = &mut self.tree {
            return tree.reserve();
        }
        let len = self.flat.len();
        if len < N {
            return self.flat.try_reserve_exact((len * 2).clamp(4, N) - len).map_err(|_| Errno::ENOMEM);
        }
        let mut tree = try_box(Tree::new()).map_err(|_| Errno::ENOMEM)?;
        tree.reserve()?;
        tree.adopt(take(&mut self.flat));
        self.tree = Some(tree);
        self.make_room()
    }

    /// What is left in the tree is an array again, if it is not more than that.
    fn flatten(&mut self) {
        if let Some(areas) = self.tree.as_mut().and_then(|tree| tree.flatten()) {
            self.flat = areas;
            self.tree = None;
        }
    }

    /// Inserts `area` before what is at `at`, where it belongs. There is room: [`AreaList::reserve`].
    #[inline]
    pub fn insert(&mut self, at: At, area: Vma) {
        match &mut self.tree {
            Some(tree) => tree.insert(at, area),
            None => self.flat.insert(at.0, area),
        }
    }

    /// Takes out the area at `at`, which `gone` gets; gives the place of what was behind it.
    #[inline]
    pub fn remove(&mut self, at: At, gone: impl FnOnce(Vma)) -> At {
        if self.tree.is_none() {
            gone(self.flat.remove(at.0));
            return at;
        }
        let mut gone = Some(gone);
        self.remove_from_tree(at, self.next(at), &mut |area| {
            if let Some(gone) = gone.take() {
                gone(area);
            }
        })
    }

    /// Takes out the areas from `from` up to `to`, each of which `gone` gets; gives the place of what was behind them.
    /// Interrupts may come in on the way ([`hal::hart::window`]).
    #[inline]
    pub fn remove_range(&mut self, from: At, to: At, mut gone: impl FnMut(Vma)) -> At {
        if self.tree.is_none() {
            self.flat.drain(from.0..to.0).for_each(gone);
            return from;
        }
        self.remove_from_tree(from, to, &mut gone)
    }

    #[inline(never)]
    fn remove_from_tree(&mut self, from: At, to: At, gone: &mut dyn FnMut(Vma)) -> At {
        let behind = self.tree.as_mut().map_or(from, |tree| tree.remove(from, to, gone));
        self.flatten();
        behind
    }

    /// Makes one area of that at `i` and those behind it up to `to`, which `gone` gets; gives its place. Interrupts may
    /// come in.
    pub fn join(&mut self, i: At, to: At, gone: impl FnMut(Vma)) -> At {
        let (flat, end) = (self.tree.is_none(), self.below(to).map(|area| area.end));
        let Some(end) = end else { return i };
        let from = self.next(i);
        self.set_end(i, end);
        let at = if self.next(from) == to { self.remove(from, gone) } else { self.remove_range(from, to, gone) };
        // In a tree, what ends above where the others began is now the first one.
        if flat { i } else { at }
    }

    /// Drops all areas, in pieces that `each` sees first.
    #[inline]
    pub fn clear(&mut self, mut each: impl FnMut(&[Vma])) {
        match self.tree.take() {
            Some(tree) => tree.into_chunks().for_each(|areas| each(&areas)),
            None => {
                each(&self.flat);
                self.flat.clear();
            }
        }
    }

    /// A new last piece, to be filled with copies from `areas`, a piece of `other`, in order. The list is made anew, and
    /// [`AreaList::finish`] completes it. `ENOMEM`.
    #[inline]
    pub fn open(&mut self, other: &Self, areas: &[Vma]) -> Result<&mut Vec<Vma>, Errno> {
        if other.tree.is_some() {
            return self.open_in_tree();
        }
        self.flat.try_reserve_exact(areas.len()).map_err(|_| Errno::ENOMEM)?;
        Ok(&mut self.flat)
    }

    #[inline(never)]
    fn open_in_tree(&mut self) -> Result<&mut Vec<Vma>, Errno> {
        let tree = match self.tree.take() {
            Some(tree) => tree,
            None => try_box(Tree::new()).map_err(|_| Errno::ENOMEM)?,
        };
        self.tree.insert(tree).open()
    }

    /// The pieces that were opened are filled with what those of `other` have, or less.
    #[inline]
    pub fn finish(&mut self, other: &Self) {
        if let (Some(tree), Some(other)) = (&mut self.tree, &other.tree) {
            tree.finish(other);
            self.flatten();
        }
    }
}

/// Areas that are only kept to be dropped, without places and order, in pieces as large as a chunk.
#[derive(Default)]
pub struct Dead {
    areas: Vec<Vma>,
    full: Vec<Vec<Vma>>,
}

impl Dead {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.areas.is_empty()
    }

    /// Keeps `area`, or drops it at once if there is no memory.
    pub fn push(&mut self, area: Vma) {
        if self.areas.len() >= CHUNK && self.full.try_reserve(1).is_ok() {
            self.full.push(take(&mut self.areas));
        }
        if self.areas.len() < CHUNK && self.areas.try_reserve(1).is_ok() {
            self.areas.push(area);
        }
    }

    /// A piece of what was kept.
    pub fn pop(&mut self) -> Option<Vec<Vma>> {
        let next = self.full.pop().unwrap_or_default();
        let areas = replace(&mut self.areas, next);
        (!areas.is_empty()).then_some(areas)
    }
}

#[cfg(test)]
mod tests;
