use core::sync::atomic::AtomicBool;
use std::vec::Vec;

use super::*;
use crate::hart::host::on;
use crate::mem::host;

#[test]
fn frames_come_back_and_are_counted_by_kind() {
    let _turn = host::arena();
    let before = stats();
    let a = Frame::alloc_zeroed(Kind::Anonymous).unwrap();
    let b = a.clone();
    assert_eq!(a.refcount(), 2);
    let c = Frame::alloc(Kind::PageTable).unwrap();
    assert_eq!(stats().free, before.free - 2);
    assert_eq!(stats().anonymous, before.anonymous + 1);
    drop(a);
    assert_eq!(b.refcount(), 1);
    assert_eq!(stats().free, before.free - 2);
    let mut batch = FrameBatch::new();
    batch.push(b);
    batch.push(c);
    drop(batch);
    assert_eq!(stats(), before);
}

#[test]
fn contents_are_zeroed_copied_and_bounded() {
    let _turn = host::arena();
    let a = Frame::alloc(Kind::Anonymous).unwrap();
    a.write(0, &[7; PAGE_SIZE]);
    a.zero_range(10, 5);
    let b = Frame::alloc_copy(Kind::Anonymous, &a).unwrap();
    drop(a);
    let mut bytes = [1; 20];
    b.read(0, &mut bytes);
    assert_eq!(bytes, [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 0, 0, 0, 7, 7, 7, 7, 7]);
    assert!(std::panic::catch_unwind(|| b.write(PAGE_SIZE - 1, &[0; 2])).is_err());
    let zeroed = (0..100).map(|_| Frame::alloc_zeroed(Kind::Anonymous).unwrap()).collect::<Vec<_>>();
    for frame in zeroed {
        frame.with_bytes(0, PAGE_SIZE, |b| assert!(b.iter().all(|&x| x == 0)));
        frame.write(0, &[9; PAGE_SIZE]);
    }
}

#[test]
fn reserved_pages_are_adopted_and_never_freed() {
    let _turn = host::arena();
    let phys = host::boot_memory(0, b"hello");
    let before = stats();
    let page = adopt(phys).unwrap();
    let mut bytes = [0; 5];
    page.read(0, &mut bytes);
    assert_eq!(&bytes, b"hello");
    assert_eq!(page.kind(), Kind::Reserved);
    drop(page);
    assert_eq!(stats(), before);
    assert!(adopt(PhysAddr(host::ARENA_PHYS)).is_none());
    assert!(adopt(PhysAddr(phys.0 + 1)).is_none());
}

#[test]
fn all_of_memory_can_be_taken_and_merges_again() {
    let _turn = host::arena();
    let before = stats();
    let mut frames = Vec::new();
    while let Some(frame) = Frame::alloc(Kind::Heap) {
        frames.push(frame);
    }
    assert_eq!((stats().free, frames.len()), (0, before.free));
    let mut numbers = frames.iter().map(Frame::number).collect::<Vec<_>>();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), frames.len());
    // Free in an order that scatters buddies.
    let (odd, even): (Vec<_>, Vec<_>) = frames.into_iter().partition(|f| f.number() % 2 == 1);
    drop(odd);
    drop(even);
    assert_eq!(stats(), before);
    all_but_a_little_is_there_in_blocks(before.free);
    assert_eq!(stats(), before);
}

/// What other tests have left in the heap, a page a size, may lie in the way of a block each.
fn all_but_a_little_is_there_in_blocks(free: usize) {
    let blocks = std::iter::from_fn(|| Block::alloc(6, Kind::Heap)).collect::<Vec<_>>();
    assert!(blocks.iter().all(|block| block.phys().0 % block.len() == 0));
    assert!(blocks.len() + 20 >= free >> 6, "{} blocks, {free} pages", blocks.len());
}

#[test]
fn user_pages_leave_a_reserve_for_the_kernel() {
    let _turn = host::arena();
    let before = stats();
    let mut frames = Vec::new();
    while let Some(frame) = Frame::alloc(Kind::Anonymous) {
        frames.push(frame);
    }
    assert!(stats().free >= 32);
    assert!(Frame::alloc(Kind::PageTable).is_some());
    assert!(Block::alloc(2, Kind::Stack).is_some());
    drop(frames);
    assert_eq!(stats(), before);
}

#[test]
fn blocks_of_mixed_sizes_do_not_overlap() {
    let _turn = host::arena();
    let before = stats();
    let mut seed = 12345u32;
    let mut held: Vec<Block> = Vec::new();
    for _ in 0..4000 {
        seed = seed.wrapping_mul(1664525).wrapping_add(1013904223);
        if seed >> 31 == 0 || held.is_empty() {
            if let Some(block) = Block::alloc((seed >> 20) as usize % 7, Kind::Heap) {
                for other in &held {
                    let (a, b) = (block.phys().0, other.phys().0);
                    assert!(a + block.len() <= b || b + other.len() <= a);
                }
                held.push(block);
            }
        } else {
            held.swap_remove((seed >> 8) as usize % held.len());
        }
    }
    drop(held);
    assert_eq!(stats(), before);
}

#[test]
fn what_one_hart_keeps_another_gets_before_an_allocation_fails() {
    let _turn = host::arena();
    let before = stats();
    // Singles, a page table and a stack lie on hart 1.
    on(1, || {
        let frames = (0..40).map(|_| Frame::alloc(Kind::Anonymous).unwrap()).collect::<Vec<_>>();
        let mut batch = FrameBatch::new();
        batch.push_table(Frame::alloc_table().unwrap());
        drop((frames, batch, Block::alloc(2, Kind::Stack).unwrap()));
    });
    assert_eq!(stats(), before);
    let mut frames = Vec::new();
    while let Some(frame) = Frame::alloc(Kind::Heap) {
        frames.push(frame);
    }
    assert_eq!((stats().free, frames.len()), (0, before.free));
    assert!(on(1, || Frame::alloc(Kind::Heap)).is_none() && on(1, || Block::alloc(0, Kind::Heap)).is_none());
    // Freed on another hart than they were taken on.
    on(2, || drop(frames));
    assert_eq!(stats(), before);
    // Kept frames can be what is missing of a block.
    all_but_a_little_is_there_in_blocks(before.free);
    assert_eq!(stats(), before);
}

#[test]
fn harts_keep_nothing_of_the_reserve() {
    let _turn = host::arena();
    let before = stats();
    let frames = std::iter::from_fn(|| Frame::alloc(Kind::Anonymous)).collect::<Vec<_>>();
    assert!(is_low());
    let reserve = stats().free;
    // What the kernel took and gave back is the reserve's again, on whatever hart and in whatever way it comes.
    for round in 0..200 {
        on(round % 4, || {
            let kernel = (0..20).map(|_| Frame::alloc(Kind::Heap).unwrap()).collect::<Vec<_>>();
            let mut batch = FrameBatch::new();
            batch.push_table(Frame::alloc_table().unwrap());
            // There may be no whole block left.
            let stack = Block::alloc(2, Kind::Stack);
            if round % 2 == 0 {
                kernel.into_iter().for_each(|frame| batch.push(frame));
            } else {
                drop(kernel);
            }
            drop((batch, stack));
            assert!(Frame::alloc(Kind::Anonymous).is_none());
        });
    }
    assert_eq!(stats().free, reserve);
    // Some of it is for programs' pages in need, but never all.
    let borrowed = from_reserve(|| std::iter::from_fn(|| Frame::alloc_zeroed(Kind::Anonymous)).collect::<Vec<_>>());
    assert!(!borrowed.is_empty() && Frame::alloc(Kind::Anonymous).is_none());
    assert!(stats().free >= reserve / 4 && Frame::alloc(Kind::Heap).is_some());
    drop(borrowed);
    assert_eq!(stats().free, reserve);
    drop(frames);
    assert!(!is_low());
    assert_eq!(stats(), before);
}

#[test]
fn batches_of_any_length_and_kind_come_back() {
    let _turn = host::arena();
    let before = stats();
    for count in [0, 1, 31, 32, 33, 63, 64, 65, 100, 1000] {
        for hart in 0..3 {
            let mut batch = FrameBatch::new();
            for i in 0..count {
                let kind = [Kind::Anonymous, Kind::PageCache, Kind::Heap][i % (1 + hart)];
                batch.push(Frame::alloc(kind).unwrap());
                if i % 3 == 0 {
                    batch.push_table(Frame::alloc_table().unwrap());
                }
            }
            assert_eq!(stats().free, before.free - count - count.div_ceil(3));
            on(hart, || batch.flush());
            assert_eq!(stats(), before);
        }
    }
}

#[test]
fn an_idle_hart_clears_some_pages_which_are_used_first() {
    let _turn = host::arena();
    let before = stats();
    // Hart 3 begins with nothing, and no page is clear.
    let frames = std::iter::from_fn(|| Frame::alloc(Kind::Heap)).collect::<Vec<_>>();
    frames.iter().for_each(|frame| frame.write(100, b"dirty"));
    drop(frames);
    let counters = on(3, || &crate::hart::this().counters);
    let (idle, taken) = (counters.zeroed_idle.get(), counters.zeroed_taken.get());
    on(3, || while clear_one() {});
    assert_eq!(counters.zeroed_idle.get() - idle, 64);
    assert_eq!(stats(), before);
    let frames = on(3, || (0..100).map(|_| Frame::alloc_zeroed(Kind::Anonymous).unwrap()).collect::<Vec<_>>());
    assert_eq!(counters.zeroed_taken.get() - taken, 64);
    for frame in &frames {
        frame.with_bytes(0, PAGE_SIZE, |bytes| assert!(bytes.iter().all(|&byte| byte == 0)));
    }
    drop(frames);
    // Not when memory is scarce, and what is cleared can be had by others.
    on(3, || while clear_one() {});
    let frames = std::iter::from_fn(|| Frame::alloc(Kind::Heap)).collect::<Vec<_>>();
    assert_eq!(frames.len(), before.free);
    assert!(!on(3, clear_one));
    drop(frames);
    assert_eq!(stats(), before);
}

/// One hart's part in the game below.
struct Player<'a> {
    taken: &'a [AtomicBool],
    seed: u32,
    frames: Vec<Frame>,
    blocks: Vec<Block>,
}

impl Player<'_> {
    fn next(&mut self, below: usize) -> usize {
        self.seed = self.seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.seed >> 8) as usize % below
    }

    fn mark(&self, first: u32, count: u32, taken: bool) {
        for number in first..first + count {
            let slot = &self.taken[number as usize - (host::ARENA_PHYS >> PAGE_SHIFT)];
            assert_ne!(slot.swap(taken, Ordering::Relaxed), taken, "frame {number:#x}");
        }
    }

    fn block_of(block: &Block) -> (u32, u32) {
        ((block.phys().0 >> PAGE_SHIFT) as u32, (block.len() >> PAGE_SHIFT) as u32)
    }

    fn take(&mut self) -> bool {
        let kind = [Kind::Anonymous, Kind::PageCache, Kind::Heap][self.next(3)];
        let frame = match self.next(16) {
            0 => {
                let Some(block) = Block::alloc(self.next(4), Kind::Stack) else { return false };
                let (first, count) = Self::block_of(&block);
                self.mark(first, count, true);
                self.blocks.push(block);
                return true;
            }
            1..5 => match Frame::alloc_zeroed(kind) {
                Some(frame) => {
                    frame.with_bytes(0, PAGE_SIZE, |bytes| assert!(bytes.iter().all(|&byte| byte == 0)));
                    frame.write(self.next(PAGE_SIZE), &[7]);
                    frame
                }
                None => return false,
            },
            _ => match Frame::alloc(kind) {
                Some(frame) => frame,
                None => return false,
            },
        };
        self.mark(frame.number(), 1, true);
        self.frames.push(frame);
        true
    }

    fn give(&mut self, count: usize) {
        let mut batch = FrameBatch::new();
        let together = self.next(2) == 0;
        for _ in 0..count.min(self.frames.len()) {
            let at = self.next(self.frames.len());
            let frame = self.frames.swap_remove(at);
            self.mark(frame.number(), 1, false);
            match together {
                true if self.next(8) == 0 && frame.kind() == Kind::Heap => {
                    // Played by a page table, all zeroes.
                    drop(frame);
                    let Some(table) = Frame::alloc_table() else { continue };
                    batch.push_table(table);
                }
                true => batch.push(frame),
                false => drop(frame),
            }
        }
        for block in self.blocks.drain(count.min(self.blocks.len())..).collect::<Vec<_>>() {
            let (first, count) = Self::block_of(&block);
            self.mark(first, count, false);
        }
    }

    fn play(&mut self, rounds: usize, greedy: bool) {
        for round in 0..rounds {
            if greedy && round % 500 == 499 {
                // To the end of memory, which others have a part of.
                while self.take() {}
                self.give(self.frames.len() / 2);
            }
            let count = self.next(100);
            if self.next(4) == 0 {
                while clear_one() {}
            }
            if self.next(2) == 0 {
                let _ = (0..count).all(|_| self.take());
            } else {
                self.give(count);
            }
        }
        self.give(self.frames.len());
        self.give(0);
    }
}

#[test]
fn harts_take_and_give_at_once_and_no_frame_is_lost_or_handed_out_twice() {
    let _turn = host::arena();
    let before = stats();
    let taken = (0..host::ARENA_LEN >> PAGE_SHIFT).map(|_| AtomicBool::new(false)).collect::<Vec<_>>();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let counter = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                // Would overflow if frames were counted twice or not at all.
                assert_eq!(stats().total, before.total);
                std::thread::yield_now();
            }
        });
        let players = (0..4)
            .map(|hart| {
                let (taken, seed) = (&taken[..], hart as u32 + 1);
                let mut player = Player { taken, seed, frames: Vec::new(), blocks: Vec::new() };
                scope.spawn(move || on(hart, || player.play(1500, hart % 2 == 1)))
            })
            .collect::<Vec<_>>();
        let results = players.into_iter().map(|player| player.join()).collect::<Vec<_>>();
        done.store(true, Ordering::Relaxed);
        counter.join().unwrap();
        results.into_iter().for_each(|result| result.unwrap());
    });
    assert_eq!(stats(), before);
}
