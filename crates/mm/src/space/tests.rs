use std::sync::MutexGuard;
use std::vec::Vec;

use hal::addr::PAGE_SIZE;
use hal::calls::Access;
use hal::mem::frame::{Stats, stats};
use hal::mem::host;
use hal::mem::layout::{Mode, set_mode};
use hal::user::{InBuf, OutBuf};
use uapi::Errno;
use uapi::mman::*;

use super::*;

const P: usize = PAGE_SIZE;
const RW: u32 = PROT_READ | PROT_WRITE;

/// One test at a time, with the counters it began with; checks at the end that they are the same.
struct Arena {
    before: Stats,
    _turn: MutexGuard<'static, ()>,
}

/// Counters but the heap's, of which an empty slab may stay.
fn counters() -> Stats {
    let stats = stats();
    Stats { free: stats.free + stats.heap, heap: 0, ..stats }
}

fn arena() -> Arena {
    let turn = host::arena();
    set_mode(Mode::Sv39);
    Arena { before: counters(), _turn: turn }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(counters(), self.before, "pages leaked");
        }
    }
}

fn space() -> Arc<AddressSpace> {
    AddressSpace::new(Layout::new(None, 8 << 20), Limits::default()).unwrap()
}

fn anonymous(addr: usize, len: usize, prot: u32, flags: u32) -> MapRequest {
    let flags = flags | if flags & MAP_TYPE == 0 { MAP_PRIVATE } else { 0 };
    MapRequest { addr, len, prot, flags, source: Source::Anonymous, may_write: true }
}

fn file(object: &Arc<Object>, offset: usize, len: usize, prot: u32, flags: u32) -> MapRequest {
    let source = Source::Object { object: object.clone(), offset, file: None };
    MapRequest { addr: 0, len, prot, flags, source, may_write: true }
}

fn read(space: &AddressSpace, addr: usize, len: usize) -> Vec<u8> {
    let mut bytes = std::vec![0; len];
    let n = space.read_remote(addr, &mut bytes);
    bytes.truncate(n);
    bytes
}

fn ranges(space: &AddressSpace) -> Vec<(usize, usize)> {
    space.maps().map(|area| (area.start, area.end)).collect()
}

#[test]
fn anonymous_memory_is_zero_private_and_given_back() {
    let _arena = arena();
    let space = space();
    let at = space.mmap(anonymous(0, 16 * P, RW, 0)).unwrap();
    assert_eq!(at + 16 * P, space.layout().mmap_base);
    assert_eq!(space.rss(), 0);
    assert_eq!(read(&space, at, 3), [0, 0, 0]);
    assert_eq!(space.rss(), 0);
    assert_eq!(space.write_remote(at + P - 1, b"abc"), 3);
    assert_eq!(space.rss(), 2);
    assert_eq!(read(&space, at + P - 2, 5), b"\0abc\0");
    assert_eq!(space.fault(at - 1, Access::Read), Err(FaultError::MapErr));
    assert_eq!(space.fault(at, Access::Execute), Err(FaultError::AccErr));
    // A present page that allows the access: a stale translation.
    assert_eq!(space.fault(at, Access::Write), Ok(()));
    space.munmap(at + P, P).unwrap();
    assert_eq!(space.rss(), 1);
    assert_eq!(ranges(&space), [(at, at + P), (at + 2 * P, at + 16 * P)]);
    space.munmap(at, 16 * P).unwrap();
    assert_eq!((space.rss(), space.usage().total, space.usage().tables), (0, 0, 1));
}

#[test]
fn forked_memory_is_copied_by_the_first_write_of_either() {
    let _arena = arena();
    let parent = space();
    let at = parent.mmap(anonymous(0, 4 * P, RW, 0)).unwrap();
    parent.write_remote(at, b"parent");
    parent.write_remote(at + P, b"second");
    assert_eq!(read(&parent, at + 2 * P, 1), [0]);
    let pages = stats().anonymous;
    let child = parent.fork().unwrap();
    assert_eq!(stats().anonymous, pages);
    assert_eq!(child.rss(), 2);
    child.write_remote(at, b"child!");
    assert_eq!(read(&parent, at, 6), b"parent");
    parent.write_remote(at + P, b"PARENT");
    assert_eq!(read(&child, at + P, 6), b"second");
    // Both are the only owners now: no further copy.
    let pages = stats().anonymous;
    parent.write_remote(at, b"again");
    child.write_remote(at + P, b"again");
    assert_eq!(stats().anonymous, pages);
    child.write_remote(at + 2 * P, b"x");
    assert_eq!(read(&parent, at + 2 * P, 1), [0]);
    drop(parent);
    assert_eq!(read(&child, at, 6), b"child!");
}

#[test]
fn file_mappings_share_or_copy() {
    let _arena = arena();
    let object = Object::new().unwrap();
    let contents = (0..5 * P).map(|i| (i / P) as u8 + 1).collect::<Vec<_>>();
    object.write(0, &mut InBuf::Kernel(&contents)).unwrap();
    let (a, b) = (space(), space());
    let shared = a.mmap(file(&object, P, 2 * P, RW, MAP_SHARED)).unwrap();
    let private = b.mmap(file(&object, 0, 6 * P, RW, MAP_PRIVATE)).unwrap();
    assert_eq!(read(&b, private + P, 1), [2]);
    // The neighbours came along.
    assert_eq!(b.rss(), 5);
    a.write_remote(shared, b"S");
    assert_eq!(read(&b, private + P, 2), [b'S', 2]);
    b.write_remote(private + P, b"P");
    assert_eq!(read(&a, shared, 1), b"S");
    assert_eq!(b.usage().shared, 4);
    let mut byte = [0];
    object.read(P, &mut OutBuf::Kernel(&mut byte)).unwrap();
    assert_eq!(&byte, b"S");
    assert_eq!(b.fault(private + 5 * P, Access::Read), Err(FaultError::Bus));
    // Truncation reaches into both, private copies too.
    object.truncate(P + 10);
    assert_eq!(a.fault(shared + P, Access::Read), Err(FaultError::Bus));
    assert_eq!(read(&b, private + P, 11), b"P\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02");
    object.truncate(P);
    assert_eq!(b.fault(private + P, Access::Read), Err(FaultError::Bus));
    assert_eq!((a.rss(), b.rss()), (0, 1));
    let child = b.fork().unwrap();
    assert_eq!(child.rss(), 0);
    assert_eq!(read(&child, private, 1), [1]);
}

#[test]
fn shared_anonymous_memory_is_one_in_parent_and_child() {
    let _arena = arena();
    let parent = space();
    let at = parent.mmap(anonymous(0, 2 * P, RW, MAP_SHARED)).unwrap();
    let child = parent.fork().unwrap();
    child.write_remote(at + 5, b"seen");
    assert_eq!(read(&parent, at + 5, 4), b"seen");
    assert_eq!(parent.futex_key(at + 8, false), child.futex_key(at + 8, false));
    assert_ne!(parent.futex_key(at + 8, true), child.futex_key(at + 8, true));
    parent.munmap(at, 2 * P).unwrap();
    assert_eq!(read(&child, at + 5, 4), b"seen");
}

#[test]
fn rights_change_and_areas_split_and_join() {
    let _arena = arena();
    let space = space();
    let at = space.mmap(anonymous(0, 6 * P, RW, 0)).unwrap();
    space.write_remote(at, &[7; 6 * P]);
    space.mprotect(at + 2 * P, P, PROT_READ).unwrap();
    assert_eq!(ranges(&space).len(), 3);
    assert_eq!(space.fault(at + 2 * P, Access::Write), Err(FaultError::AccErr));
    space.mprotect(at + 2 * P, P, PROT_NONE).unwrap();
    assert_eq!(space.fault(at + 2 * P, Access::Read), Err(FaultError::AccErr));
    assert_eq!(space.rss(), 6);
    space.mprotect(at + 2 * P, P, PROT_WRITE).unwrap();
    assert_eq!(ranges(&space).len(), 1);
    assert_eq!(read(&space, at + 2 * P, 1), [7]);
    space.write_remote(at + 2 * P, &[8]);
    assert_eq!(space.rss(), 6);
    space.munmap(at + 3 * P, P).unwrap();
    assert_eq!(space.mprotect(at, 6 * P, PROT_READ), Err(Errno::ENOMEM));
    assert_eq!(space.fault(at, Access::Write), Err(FaultError::AccErr));
    assert_eq!(space.mprotect(at + 1, P, RW), Err(Errno::EINVAL));
    assert_eq!(space.mprotect(at, P, 0x40), Err(Errno::EINVAL));
    assert_eq!(space.mprotect(at, 0, RW), Ok(()));
    let object = Object::with_size(P).unwrap();
    let mut request = file(&object, 0, P, PROT_READ, MAP_SHARED);
    request.may_write = false;
    if let Source::Object { file, .. } = &mut request.source {
        *file = Some(Arc::new(Named));
    }
    let at = space.mmap(request).unwrap();
    assert_eq!(space.mprotect(at, P, RW), Err(Errno::EACCES));
    assert!(matches!(space.area_after(at).unwrap().name, AreaName::File(_)));
}

struct Named;

impl MappedFile for Named {
    fn write_path(&self, out: &mut dyn core::fmt::Write) -> core::fmt::Result {
        out.write_str("/named")
    }
    fn dev_ino(&self) -> (u64, u64) {
        (1, 2)
    }
}

#[test]
fn mappings_are_placed_as_linux_places_them() {
    let _arena = arena();
    let space = space();
    let base = space.layout().mmap_base;
    let a = space.mmap(anonymous(0, P, PROT_READ, 0)).unwrap();
    let b = space.mmap(anonymous(0, P, RW, 0)).unwrap();
    assert_eq!((a, b), (base - P, base - 2 * P));
    // A hint is honoured if the place is free, above the base too.
    let hint = base + (64 << 20);
    assert_eq!(space.mmap(anonymous(hint, P, RW, 0)), Ok(hint));
    assert_eq!(space.mmap(anonymous(hint, P, RW, 0)), Ok(base - 3 * P));
    assert_eq!(space.mmap(anonymous(hint, P, RW, MAP_FIXED_NOREPLACE)), Err(Errno::EEXIST));
    assert_eq!(space.mmap(anonymous(hint, P, PROT_READ, MAP_FIXED)), Ok(hint));
    assert_eq!(space.mmap(anonymous(hint + 1, P, RW, MAP_FIXED)), Err(Errno::EINVAL));
    assert_eq!(space.mmap(anonymous(1 << 38, P, RW, MAP_FIXED)), Err(Errno::ENOMEM));
    assert_eq!(space.mmap(anonymous(0, P, RW, MAP_FIXED)), Ok(0));
    assert!(space.mmap(anonymous(usize::MAX, P, RW, 0)).is_ok_and(|at| at >= MIN_ADDR));
    assert_eq!(space.mmap(anonymous(0, 0, RW, 0)), Err(Errno::EINVAL));
    assert_eq!(space.mmap(anonymous(0, usize::MAX, RW, 0)), Err(Errno::ENOMEM));
    assert_eq!(space.mmap(anonymous(0, 1 << 37, RW, 0)), Err(Errno::ENOMEM));
    assert_eq!(space.mmap(anonymous(0, P, RW, 0x4)), Err(Errno::EINVAL));
    // A freed gap is used again.
    space.munmap(a, P).unwrap();
    assert_eq!(space.mmap(anonymous(0, P, RW, 0)), Ok(a));
    assert!(space.mmap(anonymous(0, 1 << 36, PROT_NONE, MAP_NORESERVE)).is_ok());
}

#[test]
fn the_heap_grows_and_shrinks() {
    let _arena = arena();
    let space = space();
    space.set_brk(0x2_0123);
    let start = space.brk(0);
    assert_eq!(start, 0x2_1000);
    assert_eq!(space.brk(start + 100), start + 100);
    assert_eq!(space.brk(start + 3 * P), start + 3 * P);
    assert_eq!(ranges(&space), [(start, start + 3 * P)]);
    assert!(matches!(space.area_after(0).unwrap().name, AreaName::Heap));
    space.write_remote(start, &[1; 3 * P]);
    assert_eq!(space.brk(start + 1), start + 1);
    assert_eq!(space.rss(), 1);
    assert_eq!(space.brk(start - 1), start + 1);
    space.mmap(anonymous(start + 4 * P, P, RW, MAP_FIXED)).unwrap();
    assert_eq!(space.brk(start + 5 * P), start + 1);
    space.set_limits(Limits { data: P, ..Limits::default() });
    assert_eq!(space.brk(start + 2 * P), start + 1);
}

#[test]
fn a_stack_grows_to_its_limit_and_keeps_its_gap() {
    let _arena = arena();
    let space = space();
    let top = space.map_stack(2 * P, false).unwrap();
    assert_eq!(space.write_remote(top - 5 * P, b"deep"), 4);
    assert_eq!(ranges(&space), [(top - 5 * P, top)]);
    assert_eq!(space.fault(top - (8 << 20) - 1, Access::Write), Err(FaultError::MapErr));
    assert_eq!(space.fault(top - (8 << 20), Access::Write), Ok(()));
    assert!(matches!(space.area_after(top - 1).unwrap().name, AreaName::Stack));
    let other = top - (20 << 20);
    space.mmap(anonymous(other, P, RW, MAP_FIXED)).unwrap();
    space.set_limits(Limits { stack: 64 << 20, ..Limits::default() });
    assert_eq!(space.fault(other + 100 * P, Access::Write), Err(FaultError::MapErr));
    assert_eq!(space.fault(other + 257 * P, Access::Write), Ok(()));
}

#[test]
fn memory_is_remapped_in_place_and_elsewhere() {
    let _arena = arena();
    let space = space();
    let base = space.layout().mmap_base;
    let at = space.mmap(anonymous(base - 64 * P, 4 * P, RW, 0)).unwrap();
    for i in 0..4 {
        space.write_remote(at + i * P, &[i as u8 + 1]);
    }
    assert_eq!(space.mremap(at, 4 * P, 2 * P, 0, 0), Ok(at));
    assert_eq!(space.rss(), 2);
    assert_eq!(space.mremap(at, 2 * P, 8 * P, 0, 0), Ok(at));
    assert_eq!(read(&space, at + 2 * P, 1), [0]);
    space.mmap(anonymous(at + 8 * P, P, PROT_READ, MAP_FIXED)).unwrap();
    assert_eq!(space.mremap(at, 8 * P, 16 * P, 0, 0), Err(Errno::ENOMEM));
    let moved = space.mremap(at, 8 * P, 16 * P, MREMAP_MAYMOVE, 0).unwrap();
    assert_ne!(moved, at);
    assert_eq!((read(&space, moved, 1), read(&space, moved + P, 1)), (std::vec![1], std::vec![2]));
    assert_eq!(space.fault(at, Access::Read), Err(FaultError::MapErr));
    let fixed = 0x5000_0000;
    assert_eq!(space.mremap(moved + P, 2 * P, P, MREMAP_MAYMOVE | MREMAP_FIXED, fixed), Ok(fixed));
    assert_eq!(read(&space, fixed, 1), [2]);
    assert_eq!(space.mremap(at, P, P, MREMAP_MAYMOVE, 0), Err(Errno::EFAULT));
    assert_eq!(space.mremap(moved, P, P, MREMAP_FIXED, 0), Err(Errno::EINVAL));
    assert_eq!(space.mremap(moved, P, 0, 0, 0), Err(Errno::EINVAL));
    assert_eq!(space.mremap(moved, P, P, MREMAP_MAYMOVE | MREMAP_FIXED, moved), Err(Errno::EINVAL));
    assert_eq!(space.mremap(moved, 0, P, MREMAP_MAYMOVE, 0), Err(Errno::EINVAL));
    let shared = space.mmap(anonymous(0, P, RW, MAP_SHARED)).unwrap();
    let twice = space.mremap(shared, 0, P, MREMAP_MAYMOVE, 0).unwrap();
    space.write_remote(shared, b"both");
    assert_eq!(read(&space, twice, 4), b"both");
}

#[test]
fn advice_is_followed_or_refused() {
    let _arena = arena();
    let parent = space();
    let at = parent.mmap(anonymous(0, 4 * P, RW, 0)).unwrap();
    parent.write_remote(at, &[1; 4 * P]);
    parent.madvise(at + P, P, MADV_DONTNEED).unwrap();
    assert_eq!(read(&parent, at + P, 1), [0]);
    assert_eq!(parent.rss(), 3);
    parent.madvise(at, P, MADV_WIPEONFORK).unwrap();
    parent.madvise(at + 2 * P, P, MADV_DONTFORK).unwrap();
    let child = parent.fork().unwrap();
    assert_eq!(read(&child, at, 1), [0]);
    assert_eq!(child.fault(at + 2 * P, Access::Read), Err(FaultError::MapErr));
    assert_eq!(read(&child, at + 3 * P, 1), [1]);
    parent.madvise(at, 4 * P, MADV_KEEPONFORK).unwrap();
    parent.madvise(at, 4 * P, MADV_DOFORK).unwrap();
    assert_eq!(ranges(&parent).len(), 1);
    assert_eq!(parent.madvise(at, P, 9999), Err(Errno::EINVAL));
    assert_eq!(parent.madvise(at, 5 * P, MADV_WILLNEED), Err(Errno::ENOMEM));
    assert_eq!(parent.msync(at, 4 * P, MS_SYNC), Ok(()));
    assert_eq!(parent.msync(at, 4 * P, MS_SYNC | MS_ASYNC), Err(Errno::EINVAL));
    assert_eq!(parent.msync(at, 5 * P, MS_SYNC), Err(Errno::ENOMEM));
    parent.madvise(at + P, P, MADV_POPULATE_WRITE).unwrap();
    assert_eq!(parent.rss(), 4);
    let out = hal::user::host::install(P);
    parent.madvise(at, P, MADV_FREE).unwrap();
    parent.mincore(at, 4 * P, out).unwrap();
    assert_eq!(hal::user::host::peek(out, 4), [0, 1, 1, 1]);
}

#[test]
fn kernel_pages_are_mapped_and_copied_when_written() {
    let _arena = arena();
    let space = space();
    let frame = hal::mem::frame::Frame::alloc_zeroed(hal::mem::frame::Kind::PageCache).unwrap();
    frame.write(0, b"vdso");
    let part = Arc::new(Special { name: "[vdso]", frames: std::vec![frame.clone()] });
    let at = space.map_special(&[(part.clone(), hal::mem::pgtable::Prot::RX)]).unwrap();
    assert_eq!(read(&space, at, 4), b"vdso");
    let child = space.fork().unwrap();
    child.mprotect(at, P, RW).unwrap();
    child.write_remote(at, b"mine");
    assert_eq!(read(&space, at, 4), b"vdso");
    assert_eq!(read(&child, at, 4), b"mine");
    assert!(matches!(space.area_after(at).unwrap().name, AreaName::Special("[vdso]")));
}

#[test]
fn running_out_of_memory_is_an_error_and_nothing_is_lost() {
    let _arena = arena();
    let space = space();
    let len = 60 << 20;
    let at = space.mmap(anonymous(0, len, RW, 0)).unwrap();
    let mut result = Ok(());
    for va in (at..at + len).step_by(P) {
        result = space.fault(va, Access::Write);
        if result.is_err() {
            break;
        }
    }
    assert_eq!(result, Ok(()));
    let more = space.mmap(anonymous(0, 16 << 20, RW, 0)).unwrap();
    for va in (more..more + (16 << 20)).step_by(P) {
        result = space.fault(va, Access::Write);
        if result.is_err() {
            break;
        }
    }
    assert_eq!(result, Err(FaultError::Oom));
    let child = space.fork();
    if let Ok(child) = &child {
        assert_eq!(child.fault(at, Access::Write), Err(FaultError::Oom));
    }
    drop(child);
    assert_eq!(space.mmap(anonymous(0, 1 << 30, RW, 0)), Err(Errno::ENOMEM));
}

#[test]
fn only_so_many_areas_fit() {
    let _arena = arena();
    let space = space();
    let at = space.mmap(anonymous(0, 4 * 65_536 * P, PROT_NONE, MAP_NORESERVE)).unwrap();
    let mut result = Ok(());
    for i in 0..65_536 {
        result = space.mprotect(at + 2 * i * P, P, PROT_READ);
        if result.is_err() {
            break;
        }
    }
    assert_eq!(result, Err(Errno::ENOMEM));
    assert!(ranges(&space).len() <= 65_530);
    space.munmap(at, 4 * 65_536 * P).unwrap();
}

#[test]
fn pages_in_memory_are_shared_out_among_those_who_map_them() {
    let _arena = arena();
    let parent = space();
    let own = parent.mmap(anonymous(0, 4 * P, RW, 0)).unwrap();
    let object = Object::new().unwrap();
    object.write(0, &mut InBuf::Kernel(&[1; P])).unwrap();
    let mapped = parent.mmap(file(&object, 0, P, PROT_READ, MAP_SHARED)).unwrap();
    parent.write_remote(own, &[1; 2 * P]);
    read(&parent, mapped, 1);
    // A page of zeroes that was only read is nobody's.
    read(&parent, own + 3 * P, 1);
    let alone = Residency { pages: 2, anonymous: 2, sole: 2, share: 2 * P, anonymous_share: 2 * P };
    assert_eq!(parent.residency(own, own + 4 * P), alone);
    assert_eq!(parent.residency(mapped, mapped + P), Residency { pages: 1, sole: 1, share: P, ..Residency::default() });
    let child = parent.fork().unwrap();
    child.write_remote(own, b"x");
    read(&child, mapped, 1);
    let halves = Residency { pages: 2, anonymous: 2, sole: 1, share: P + P / 2, anonymous_share: P + P / 2 };
    assert_eq!(parent.residency(own, own + 4 * P), halves);
    assert_eq!(child.residency(mapped, mapped + P), Residency { pages: 1, share: P / 2, ..Residency::default() });
}
