use std::vec::Vec;

use super::*;
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
    // Nearly everything is there in the largest blocks.
    let mut blocks = Vec::new();
    while let Some(block) = Block::alloc(MAX_ORDER, Kind::Heap) {
        assert_eq!(block.phys().0 % block.len(), 0);
        blocks.push(block);
    }
    assert!(blocks.len() + 2 >= before.free >> MAX_ORDER);
    drop(blocks);
    assert_eq!(stats(), before);
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
