//! Frames by page index: a radix tree, 64 slots a node, as deep as the highest index needs.
//!
//! The first pages of a file, for most files all, are held in the tree's head, so that a small file needs no node.

use alloc::boxed::Box;
use core::mem::take;

use hal::mem::frame::{Frame, FrameBatch};
use hal::mem::heap::try_box;

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
/// Pages held in the head.
const HEAD: usize = 4;

/// Memory ran out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoMemory;

enum Node {
    Leaf(Box<[Option<Frame>; SLOTS]>),
    Inner(Box<[Option<Node>; SLOTS]>),
}

impl Node {
    fn leaf() -> Result<Self, NoMemory> {
        try_box([const { None }; SLOTS]).map(Self::Leaf).map_err(|_| NoMemory)
    }

    fn inner() -> Result<Self, NoMemory> {
        try_box([const { None }; SLOTS]).map(Self::Inner).map_err(|_| NoMemory)
    }
}

/// A sparse array of frames.
#[derive(Default)]
pub struct Tree {
    head: [Option<Frame>; HEAD],
    root: Option<Node>,
    /// Levels of nodes below `root`, itself included: indexes below `64^height` have a place.
    height: u32,
    len: usize,
}

impl Tree {
    /// A tree without pages.
    pub const fn new() -> Self {
        Self { head: [const { None }; HEAD], root: None, height: 0, len: 0 }
    }

    /// Number of pages.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The page at `index`.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&Frame> {
        if index < HEAD {
            return self.head[index].as_ref();
        }
        if !self.covers(index) {
            return None;
        }
        let mut node = self.root.as_ref()?;
        let mut level = self.height;
        loop {
            level -= 1;
            let slot = index >> (level * BITS) & (SLOTS - 1);
            match node {
                Node::Leaf(pages) => return pages[slot].as_ref(),
                Node::Inner(nodes) => node = nodes[slot].as_ref()?,
            }
        }
    }

    /// The first index from `from` on that has a frame.
    pub fn next(&self, from: usize) -> Option<usize> {
        let head = (from..HEAD).find(|&index| self.head[index].is_some());
        head.or_else(|| next_in(self.root.as_ref()?, self.height, 0, from))
    }

    /// Whether the tree is deep enough for `index`.
    #[inline]
    fn covers(&self, index: usize) -> bool {
        let bits = self.height * BITS;
        bits >= usize::BITS || index >> bits == 0
    }

    /// Puts `frame` at `index`, in the place of what was there. Fails when there is no memory for a node.
    pub fn insert(&mut self, index: usize, frame: Frame) -> Result<(), NoMemory> {
        let place = self.place(index)?;
        let new = place.is_none();
        *place = Some(frame);
        self.len += new as usize;
        Ok(())
    }

    fn place(&mut self, index: usize) -> Result<&mut Option<Frame>, NoMemory> {
        if index < HEAD {
            return Ok(&mut self.head[index]);
        }
        while self.height == 0 || !self.covers(index) {
            let mut root = if self.height == 0 { Node::leaf()? } else { Node::inner()? };
            if let Node::Inner(nodes) = &mut root {
                nodes[0] = self.root.take();
            }
            self.root = Some(root);
            self.height += 1;
        }
        let mut level = self.height;
        let mut node = self.root.as_mut().ok_or(NoMemory)?;
        loop {
            level -= 1;
            let slot = index >> (level * BITS) & (SLOTS - 1);
            match node {
                Node::Leaf(pages) => return Ok(&mut pages[slot]),
                Node::Inner(nodes) => {
                    let child = &mut nodes[slot];
                    if child.is_none() {
                        *child = Some(if level == 1 { Node::leaf()? } else { Node::inner()? });
                    }
                    node = child.as_mut().ok_or(NoMemory)?;
                }
            }
        }
    }

    /// Takes out all pages from `first` on.
    pub fn truncate(&mut self, first: usize, batch: &mut FrameBatch) {
        self.remove(first, usize::MAX, batch, || {});
    }

    /// Takes out the pages `first..end`; calls `now_and_then` when it has been at it for a while.
    pub fn remove(&mut self, first: usize, end: usize, batch: &mut FrameBatch, now_and_then: impl Fn() + Copy) {
        for page in self.head.iter_mut().take(end).skip(first) {
            if let Some(frame) = take(page) {
                self.len -= 1;
                batch.push(frame);
            }
        }
        if let Some(root) = &mut self.root {
            self.len -= clear(root, self.height, 0, (first, end), batch, now_and_then);
            if first <= HEAD && end == usize::MAX {
                (self.root, self.height) = (None, 0);
            }
        }
    }
}

/// Takes the pages `first..end` out of `node`, which holds the indexes from `base` on at `height` levels; gives their
/// number. Inner nodes that lie in the range as a whole are freed.
fn clear(
    node: &mut Node,
    height: u32,
    base: usize,
    (first, end): (usize, usize),
    batch: &mut FrameBatch,
    now_and_then: impl Fn() + Copy,
) -> usize {
    let mut cleared = 0;
    match node {
        Node::Leaf(pages) => {
            now_and_then();
            for (i, page) in pages.iter_mut().enumerate() {
                if (first..end).contains(&(base + i))
                    && let Some(frame) = take(page)
                {
                    cleared += 1;
                    batch.push(frame);
                }
            }
        }
        Node::Inner(nodes) => {
            let bits = (height - 1) * BITS;
            for (i, slot) in nodes.iter_mut().enumerate() {
                let Some(child) = slot else { continue };
                let low = base | i << bits;
                let high = low | ((1 << bits) - 1);
                if high < first || low >= end {
                    continue;
                }
                cleared += clear(child, height - 1, low, (first, end), batch, now_and_then);
                if low >= first && high < end {
                    *slot = None;
                }
            }
        }
    }
    cleared
}

/// The first index from `from` on that has a frame below `node`, whose first is `base`.
fn next_in(node: &Node, height: u32, base: usize, from: usize) -> Option<usize> {
    let bits = (height - 1) * BITS;
    let first = from.saturating_sub(base) >> bits;
    match node {
        Node::Leaf(pages) => pages.iter().skip(first).position(Option::is_some).map(|at| base + first + at),
        Node::Inner(nodes) => nodes.iter().enumerate().skip(first).find_map(|(i, child)| {
            let child = child.as_ref()?;
            next_in(child, height - 1, base | i << bits, from)
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hal::mem::frame::Kind;
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Op {
        Insert(usize),
        Remove(usize, usize),
        Truncate(usize),
    }

    fn index() -> impl Strategy<Value = usize> {
        prop_oneof![0usize..10, 0usize..200, 0usize..10_000, (0u32..51).prop_map(|b| 1usize << b)]
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => index().prop_map(Op::Insert),
            1 => (index(), index()).prop_map(|(a, b)| Op::Remove(a.min(b), a.max(b))),
            1 => index().prop_map(Op::Truncate),
        ]
    }

    proptest! {
        #[test]
        fn agrees_with_a_map(ops in prop::collection::vec(op(), 1..60)) {
            let _turn = hal::mem::host::arena();
            let mut tree = Tree::new();
            let mut map = BTreeMap::new();
            for op in ops {
                let mut batch = FrameBatch::new();
                match op {
                    Op::Insert(i) => {
                        let frame = Frame::alloc(Kind::PageCache).unwrap();
                        map.insert(i, frame.number());
                        tree.insert(i, frame).unwrap();
                    }
                    Op::Remove(a, b) => {
                        map.retain(|&i, _| !(a..b).contains(&i));
                        tree.remove(a, b, &mut batch, || {});
                    }
                    Op::Truncate(a) => {
                        map.retain(|&i, _| i < a);
                        tree.truncate(a, &mut batch);
                    }
                }
                prop_assert_eq!(tree.len(), map.len());
                for (i, number) in &map {
                    prop_assert_eq!(tree.get(*i).map(Frame::number), Some(*number));
                }
                for from in [0, 3, 4, 5, 77, 4096, 1 << 40] {
                    prop_assert_eq!(tree.next(from), map.range(from..).next().map(|(i, _)| *i));
                }
                prop_assert!(tree.get(77).map(Frame::number) == map.get(&77).copied());
            }
        }
    }
}
