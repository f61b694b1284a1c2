//! Several threads at one address space, its children and a file: nothing hangs, nothing is lost.

use hal::addr::PAGE_SIZE as P;
use hal::calls::Access;
use hal::hart;
use hal::mem::frame::stats;
use hal::mem::host;
use hal::user::InBuf;
use uapi::mman::*;

use super::*;

const BASE: usize = 0x4000_0000;
const PAGES: usize = 64;

fn thread(space: &Arc<AddressSpace>, file: &Arc<Object>, mut seed: u32) {
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) as usize % below
    };
    let mut child: Option<Arc<AddressSpace>> = None;
    for _ in 0..3000 {
        let (at, len) = (next(PAGES - 8), 1 + next(8));
        let va = BASE + at * P;
        let target = match &child {
            Some(child) if next(2) == 0 => child.clone(),
            _ => space.clone(),
        };
        // What fails because another thread was faster is no concern here.
        match next(12) {
            0 => {
                let request = MapRequest {
                    addr: va,
                    len: len * P,
                    prot: PROT_READ | PROT_WRITE,
                    flags: MAP_FIXED | if next(2) == 0 { MAP_SHARED } else { MAP_PRIVATE },
                    source: if next(2) == 0 {
                        Source::Anonymous
                    } else {
                        Source::Object { object: file.clone(), offset: next(8) * P, file: None }
                    },
                    may_write: true,
                };
                target.mmap(request).unwrap();
            }
            1 => target.munmap(va, len * P).unwrap(),
            2 => drop(target.mprotect(va, len * P, if next(2) == 0 { PROT_READ } else { PROT_READ | PROT_WRITE })),
            3 => drop(target.madvise(va, len * P, MADV_DONTNEED)),
            4 => child = Some(target.fork().unwrap()),
            5 => file.truncate(next(16) * P),
            6 => drop(file.write(next(16) * P, &mut InBuf::Kernel(b"stress"))),
            7 => drop(target.mremap(va, len * P, (1 + next(8)) * P, MREMAP_MAYMOVE, 0)),
            8 => drop(target.write_remote(va, b"x")),
            9 => drop(target.lookup_page(va, Access::Read)),
            _ => drop(target.fault(va, if next(2) == 0 { Access::Read } else { Access::Write })),
        }
    }
}

#[test]
fn threads_share_a_space_without_losing_pages() {
    let _turn = host::arena();
    hart::host::set_count(4);
    let before = stats();
    let space = AddressSpace::new(Layout::new(None, 8 << 20), Limits::default()).unwrap();
    let file = Object::with_size(8 * P).unwrap();
    std::thread::scope(|scope| {
        for seed in 1..=4 {
            let (space, file) = (&space, &file);
            scope.spawn(move || hart::host::on(seed as usize - 1, || thread(space, file, seed)));
        }
    });
    {
        let mut inner = space.alone();
        let mut mapped = 0;
        inner.table.walk_range(0, user_top(), |_, entry| mapped += !entry.load().is_borrowed() as usize);
        assert_eq!((inner.mapped.total(), space.rss()), (mapped, mapped));
    }
    drop((space, file));
    assert_eq!(stats(), before);
    hart::host::set_count(1);
}
