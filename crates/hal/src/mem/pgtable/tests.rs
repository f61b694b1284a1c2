use super::*;
use crate::mem::frame::{Kind, Stats, stats};
use crate::mem::{host, layout::set_mode};

fn page(fill: u8) -> Frame {
    let frame = Frame::alloc(Kind::Anonymous).unwrap();
    frame.write(0, &[fill; PAGE_SIZE]);
    frame
}

/// Counters but the heap's, of which a slab may stay.
fn counters() -> Stats {
    let stats = stats();
    Stats { free: stats.free + stats.heap, heap: 0, ..stats }
}

fn in_each_mode(f: impl Fn(usize)) {
    let _turn = host::arena();
    for mode in [Mode::Sv39, Mode::Sv48, Mode::Sv57] {
        set_mode(mode);
        let before = counters();
        f(mode.user_top());
        assert_eq!(counters(), before);
    }
    set_mode(Mode::Sv39);
}

#[test]
fn mapped_pages_are_found_and_freed() {
    in_each_mode(|top| {
        let mut pt = PageTable::new().unwrap();
        let places = [0x1000, 0x2000, 0x20_0000, 0x4000_0000, top - PAGE_SIZE];
        for (i, &va) in places.iter().enumerate() {
            pt.entry(va).unwrap().install(page(i as u8), Prot::RW, true);
        }
        assert!(pt.entry(top).is_err());
        assert!(pt.find(usize::MAX - 4095).is_none());
        let mut seen = std::vec::Vec::new();
        pt.walk_range(0, top, |va, entry| {
            let mut byte = [0];
            entry.frame().unwrap().read(9, &mut byte);
            seen.push((va, byte[0] as usize));
        });
        assert_eq!(seen, places.iter().copied().enumerate().map(|(i, va)| (va, i)).collect::<std::vec::Vec<_>>());
        let space = pt.space().clone();
        let mut gather = PageTable::gather(&space, Reason::Unmap);
        assert_eq!(pt.clear(0x1000, 0x20_0000, &mut gather), (2, 2));
        let tables = pt.table_pages();
        pt.free_tables(0x1000, 0x20_0000, 0, 0x20_0000, &mut gather);
        assert_eq!(pt.table_pages(), tables - 1);
        drop(gather);
        assert!(!pt.lookup(0x1000).is_present());
        assert!(pt.lookup(0x20_0000).is_present());
    });
}

#[test]
fn forked_pages_are_shared_and_read_only() {
    in_each_mode(|_| {
        let mut parent = PageTable::new().unwrap();
        for i in 0..600 {
            parent.entry(0x10_0000 + i * PAGE_SIZE).unwrap().install(page(1), Prot::RW, true);
        }
        parent.entry(0x8000).unwrap().install(page(2), Prot::RX, false);
        let mut child = PageTable::new().unwrap();
        let shared = parent.share_range(&mut child, 0, 0x4000_0000).unwrap();
        parent.fork_done();
        assert_eq!((shared.pages, shared.protected), (600, 600));
        assert!(!child.lookup(0x8000).is_present());
        for pt in [&mut parent, &mut child] {
            let value = pt.lookup(0x10_0000 + 599 * PAGE_SIZE);
            assert_eq!(value.prot(), Prot::R);
            assert!(value.is_private());
        }
        assert!(!child.find(0x10_0000).unwrap().is_sole_owner());
        drop(parent);
        let entry = child.find(0x10_0000).unwrap();
        assert!(entry.is_sole_owner());
        entry.widen(Prot::RW);
        assert!(child.lookup(0x10_0000).is_writable());
    });
}

#[test]
fn borrowed_pages_are_never_freed_nor_writable() {
    in_each_mode(|_| {
        let mut pt = PageTable::new().unwrap();
        let zero = crate::mem::frame::zero_page().unwrap();
        let refs = zero.refcount();
        pt.entry(0x1000).unwrap().install_borrowed(&zero, Prot::RW);
        assert_eq!(pt.lookup(0x1000).prot(), Prot::R);
        assert_eq!(zero.refcount(), refs);
        pt.find(0x1000).unwrap().replace(page(3), Prot::RW, true);
        assert!(pt.lookup(0x1000).is_writable());
        let space = pt.space().clone();
        let mut gather = PageTable::gather(&space, Reason::Unmap);
        pt.clear_page(0x1000, &mut gather);
        drop(gather);
        assert_eq!(zero.refcount(), refs);
    });
}

#[test]
fn moving_and_protecting_keep_the_pages() {
    in_each_mode(|_| {
        let mut pt = PageTable::new().unwrap();
        for i in 0..20 {
            pt.entry(0x1f_0000 + i * PAGE_SIZE).unwrap().install(page(i as u8), Prot::RW, true);
        }
        pt.move_range(0x1f_0000, 0x7ff_f000, 20 * PAGE_SIZE).unwrap();
        pt.protect(0x7ff_f000, 0x801_3000, |_| Prot::NONE);
        pt.protect(0x7ff_f000, 0x801_3000, |_| Prot::R);
        let mut count = 0;
        pt.walk_range(0, 0x4000_0000, |va, entry| {
            let mut byte = [0];
            entry.frame().unwrap().read(0, &mut byte);
            assert_eq!(va, 0x7ff_f000 + byte[0] as usize * PAGE_SIZE);
            assert_eq!(entry.load().prot(), Prot::R);
            count += 1;
        });
        assert_eq!(count, 20);
    });
}

/// Harts that fill the same entries at once: each entry gets one page, and the others' are free again.
#[test]
fn one_of_several_harts_fills_an_entry() {
    in_each_mode(|_| {
        let before = crate::mem::frame::stats();
        let pt = PageTable::new().unwrap();
        let filled = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut cursor = Cursor::default();
                    for va in (0x1f_0000..0x23_0000).step_by(PAGE_SIZE) {
                        let entry = pt.entry_shared(&mut cursor, va).unwrap();
                        filled.fetch_add(entry.install(page(1), Prot::R, true) as usize, Ordering::Relaxed);
                        let entry = entry.lock();
                        if !entry.load().is_writable() {
                            entry.replace(page(2), Prot::RW, true);
                        }
                    }
                });
            }
        });
        assert_eq!(filled.into_inner(), 64);
        drop(pt);
        assert_eq!(crate::mem::frame::stats(), before);
    });
}
