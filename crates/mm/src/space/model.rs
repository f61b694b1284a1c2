//! Random calls against a model that knows pages alone: one byte each, no areas, no tables.

use std::collections::BTreeMap;
use std::vec::Vec;

use hal::addr::PAGE_SIZE as P;
use hal::calls::Access;
use hal::mem::frame::stats;
use hal::mem::layout::{Mode, set_mode};
use hal::user::{InBuf, OutBuf};
use proptest::prelude::*;
use uapi::mman::*;

use super::*;

/// The pages that the calls touch: around a border of large tables.
const PAGES: usize = 48;
const BASE: usize = 0x4000_0000 - 24 * P;
const FILES: usize = 2;

#[derive(Clone, Debug)]
enum Call {
    Map { space: usize, at: usize, len: usize, prot: u32, what: What },
    Unmap { space: usize, at: usize, len: usize },
    Protect { space: usize, at: usize, len: usize, prot: u32 },
    Remap { space: usize, at: usize, len: usize, to: usize, new_len: usize, keep: bool },
    Discard { space: usize, at: usize, len: usize },
    Punch { space: usize, at: usize, len: usize },
    Read { space: usize, at: usize },
    Write { space: usize, at: usize, byte: u8 },
    Fork { space: usize },
    Exit { space: usize },
    Truncate { file: usize, pages: usize },
    FileWrite { file: usize, page: usize, byte: u8 },
}

#[derive(Clone, Copy, Debug)]
enum What {
    Private,
    Shared,
    File { file: usize, page: usize, shared: bool },
}

#[derive(Clone, PartialEq, Debug)]
struct Page {
    prot: u32,
    shared: bool,
    /// File and page in it; `None` for private anonymous memory.
    source: Option<(usize, usize)>,
    /// Contents if private and written.
    own: Option<u8>,
}

type Pages = BTreeMap<usize, Page>;

struct World {
    spaces: Vec<(Arc<AddressSpace>, Pages)>,
    files: Vec<Arc<Object>>,
    /// First byte of each page of each file; shared anonymous memory is a file too, with no handle.
    contents: Vec<Vec<u8>>,
}

fn va(page: usize) -> usize {
    BASE + page * P
}

impl World {
    fn new() -> Self {
        let mut world = Self { spaces: Vec::new(), files: Vec::new(), contents: Vec::new() };
        let space = AddressSpace::new(Layout::new(None, 8 << 20), Limits::default()).unwrap();
        world.spaces.push((space, Pages::new()));
        for i in 0..FILES {
            // The second file begins in boot memory.
            let bytes = std::vec![9; 10 * P];
            let object = if i == 0 {
                Object::with_size(10 * P).unwrap()
            } else {
                let start = hal::mem::host::boot_memory(128 * P, &bytes);
                Object::from_boot_memory(start, 10 * P).unwrap()
            };
            world.files.push(object);
            world.contents.push(std::vec![if i == 0 { 0 } else { 9 }; 10]);
        }
        world
    }

    fn expect(&self, pages: &Pages, at: usize, write: bool) -> Result<u8, FaultError> {
        let page = pages.get(&at).ok_or(FaultError::MapErr)?;
        if page.prot & if write { PROT_WRITE } else { PROT_READ | PROT_WRITE } == 0 {
            return Err(FaultError::AccErr);
        }
        match (page.own, page.source) {
            (Some(byte), _) => Ok(byte),
            (None, None) => Ok(0),
            (None, Some((file, index))) => self.contents[file].get(index).copied().ok_or(FaultError::Bus),
        }
    }

    fn apply(&mut self, call: &Call) {
        let count = self.spaces.len();
        match *call {
            Call::Map { space, at, len, prot, what } => {
                let (handle, pages) = &mut self.spaces[space % count];
                let (flags, source, first) = match what {
                    What::Private => (MAP_PRIVATE, Source::Anonymous, None),
                    What::Shared => {
                        self.contents.push(std::vec![0; len]);
                        (MAP_SHARED, Source::Anonymous, Some((self.contents.len() - 1, 0)))
                    }
                    What::File { file, page, shared } => {
                        let source = Source::Object { object: self.files[file].clone(), offset: page * P, file: None };
                        (if shared { MAP_SHARED } else { MAP_PRIVATE }, source, Some((file, page)))
                    }
                };
                let flags = flags | MAP_FIXED;
                let request = MapRequest { addr: va(at), len: len * P, prot, flags, source, may_write: true };
                assert_eq!(handle.mmap(request), Ok(va(at)));
                for i in 0..len {
                    let source = first.map(|(file, page)| (file, page + i));
                    pages.insert(at + i, Page { prot, shared: flags & MAP_SHARED != 0, source, own: None });
                }
            }
            Call::Unmap { space, at, len } => {
                let (handle, pages) = &mut self.spaces[space % count];
                assert_eq!(handle.munmap(va(at), len * P), Ok(()));
                pages.retain(|&i, _| !(at..at + len).contains(&i));
            }
            Call::Protect { space, at, len, prot } => {
                let (handle, pages) = &mut self.spaces[space % count];
                let end = (at..at + len).find(|i| !pages.contains_key(i)).unwrap_or(at + len);
                let expected = if end == at + len { Ok(()) } else { Err(Errno::ENOMEM) };
                assert_eq!(handle.mprotect(va(at), len * P, prot), expected);
                pages.range_mut(at..end).for_each(|(_, page)| page.prot = prot);
            }
            Call::Remap { space, at, len, to, new_len, keep } => {
                let new_len = if keep { len } else { new_len };
                let (handle, pages) = &mut self.spaces[space % count];
                let flags = MREMAP_MAYMOVE | MREMAP_FIXED | if keep { MREMAP_DONTUNMAP } else { 0 };
                let result = handle.mremap(va(at), len * P, new_len * P, flags, va(to));
                assert_eq!(result, remap(pages, at, len, to, new_len, keep).map(|()| va(to)));
            }
            Call::Discard { space, at, len } => {
                let (handle, pages) = &mut self.spaces[space % count];
                let holes = (at..at + len).any(|i| !pages.contains_key(&i));
                let expected = if holes { Err(Errno::ENOMEM) } else { Ok(()) };
                assert_eq!(handle.madvise(va(at), len * P, MADV_DONTNEED), expected);
                pages.range_mut(at..at + len).for_each(|(_, page)| page.own = None);
            }
            Call::Read { space, at } => self.read(space % count, at),
            Call::Write { space, at, byte } => {
                let (handle, pages) = &self.spaces[space % count];
                let expected = self.expect(pages, at, true);
                let fault = handle.lookup_page(va(at), Access::Write);
                assert_eq!(fault.map(drop), expected.map(drop));
                if expected.is_ok() {
                    assert_eq!(handle.write_remote(va(at), &[byte]), 1);
                    let page = self.spaces[space % count].1.get_mut(&at).unwrap();
                    match page.source {
                        Some((file, index)) if page.shared => self.contents[file][index] = byte,
                        _ => page.own = Some(byte),
                    }
                }
            }
            Call::Fork { space } => {
                if count < 4 {
                    let (handle, pages) = &self.spaces[space % count];
                    let child = (handle.fork().unwrap(), pages.clone());
                    self.spaces.push(child);
                }
            }
            Call::Exit { space } => {
                if count > 1 {
                    self.spaces.swap_remove(space % count);
                }
            }
            Call::Truncate { file, pages } => {
                self.files[file].truncate(pages * P);
                self.contents[file].resize(pages, 0);
                for page in self.spaces.iter_mut().flat_map(|(_, p)| p.values_mut()) {
                    if page.source.is_some_and(|(f, index)| f == file && index >= pages) {
                        page.own = None;
                    }
                }
            }
            Call::Punch { space, at, len } => {
                let (handle, pages) = &mut self.spaces[space % count];
                let mut expected = Ok(());
                for i in at..at + len {
                    match pages.get(&i) {
                        None => expected = Err(Errno::ENOMEM),
                        Some(Page { shared: true, source: Some((file, index)), .. }) => {
                            if let Some(byte) = self.contents[*file].get_mut(*index) {
                                *byte = 0;
                            }
                        }
                        Some(page) => {
                            expected = Err(if page.source.is_some() { Errno::EACCES } else { Errno::EINVAL });
                            break;
                        }
                    }
                }
                assert_eq!(handle.madvise(va(at), len * P, MADV_REMOVE), expected);
            }
            Call::FileWrite { file, page, byte } => {
                let old = self.files[file].size() / P;
                self.files[file].write(page * P, &mut InBuf::Kernel(&[byte; P])).unwrap();
                self.contents[file].resize(old.max(page + 1), 0);
                self.contents[file][page] = byte;
            }
        }
    }

    fn read(&self, space: usize, at: usize) {
        let (handle, pages) = &self.spaces[space];
        let mut byte = [0];
        let result = handle.lookup_page(va(at), Access::Read).map(|page| {
            page.read(0, &mut byte);
            byte[0]
        });
        assert_eq!(result, self.expect(pages, at, false), "page {at}");
    }

    /// Everything that can be checked without changing what is checked.
    fn check(&self) {
        for (handle, pages) in &self.spaces {
            let mut inner = handle.alone();
            let Inner { areas, table, mapped: counted, total, .. } = &mut *inner;
            let mapped = areas.iter().flat_map(|a| (a.start..a.end).step_by(P)).collect::<Vec<_>>();
            assert_eq!(mapped, pages.keys().map(|&i| va(i)).collect::<Vec<_>>());
            assert_eq!(*total, pages.len());
            let (mut shared, mut private) = (0, 0);
            table.walk_range(0, user_top(), |at, entry| {
                let (value, page) = (entry.load(), &pages[&((at - BASE) / P)]);
                let area = areas.iter().find(|a| a.start <= at && at < a.end).unwrap();
                assert!(area.past.is_touched());
                assert!(!value.is_private() || area.past.has_private());
                assert!(area.prot.contains(value.prot()));
                assert_eq!(value.is_private(), page.own.is_some());
                assert!(!value.is_writable() || page.shared || entry.is_sole_owner());
                shared += (!value.is_private() && !value.is_borrowed()) as usize;
                private += value.is_private() as usize;
            });
            assert_eq!(*counted, Mapped { shared, private });
            inner.areas.check();
            for pair in inner.areas.iter().collect::<Vec<_>>().windows(2) {
                assert!(pair[0].end <= pair[1].start && !pair[0].merges_with(pair[1]));
            }
        }
    }
}

/// mremap with MREMAP_FIXED on the model.
fn remap(pages: &mut Pages, at: usize, len: usize, to: usize, new_len: usize, keep: bool) -> Result<(), Errno> {
    let first = pages.get(&at).ok_or(Errno::EFAULT)?.clone();
    if to < at + len && at < to + new_len {
        return Err(Errno::EINVAL);
    }
    let moved = len.min(new_len);
    let follows = |i: usize, page: &Page| {
        page.prot == first.prot
            && page.shared == first.shared
            && page.source == first.source.map(|(file, index)| (file, index + i))
    };
    if !(0..moved).all(|i| pages.get(&(at + i)).is_some_and(|page| follows(i, page))) {
        return Err(Errno::EFAULT);
    }
    let old = (0..moved).map(|i| pages.remove(&(at + i)).unwrap()).collect::<Vec<_>>();
    pages.retain(|&i, _| !(to..to + new_len).contains(&i) && !(at..at + len).contains(&i));
    for i in 0..new_len {
        let source = first.source.map(|(file, index)| (file, index + i));
        let fresh = Page { source, own: None, ..first.clone() };
        if keep {
            pages.insert(at + i, fresh.clone());
        }
        pages.insert(to + i, old.get(i).cloned().unwrap_or(fresh));
    }
    Ok(())
}

fn prot() -> impl Strategy<Value = u32> {
    // Writable implies readable, so that the model's rights and the areas' can be compared.
    prop_oneof![
        1 => Just(PROT_NONE),
        1 => Just(PROT_READ),
        4 => Just(PROT_READ | PROT_WRITE),
        1 => Just(PROT_READ | PROT_EXEC),
    ]
}

fn what() -> impl Strategy<Value = What> {
    prop_oneof![
        2 => Just(What::Private),
        1 => Just(What::Shared),
        2 => (0..FILES, 0usize..12, any::<bool>()).prop_map(|(file, page, shared)| What::File { file, page, shared }),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    let place = (0usize..4, 0..PAGES - 8, 1usize..9);
    prop_oneof![
        4 => (place.clone(), prot(), what())
            .prop_map(|((space, at, len), prot, what)| Call::Map { space, at, len, prot, what }),
        2 => place.clone().prop_map(|(space, at, len)| Call::Unmap { space, at, len }),
        3 => (place.clone(), prot())
            .prop_map(|((space, at, len), prot)| Call::Protect { space, at, len, prot }),
        2 => (place.clone(), 0..PAGES - 8, 1usize..9, any::<bool>())
            .prop_map(|((space, at, len), to, new_len, keep)| Call::Remap { space, at, len, to, new_len, keep }),
        1 => place.clone().prop_map(|(space, at, len)| Call::Discard { space, at, len }),
        1 => place.prop_map(|(space, at, len)| Call::Punch { space, at, len }),
        6 => (0usize..4, 0..PAGES).prop_map(|(space, at)| Call::Read { space, at }),
        8 => (0usize..4, 0..PAGES, any::<u8>()).prop_map(|(space, at, byte)| Call::Write { space, at, byte }),
        2 => (0usize..4).prop_map(|space| Call::Fork { space }),
        1 => (0usize..4).prop_map(|space| Call::Exit { space }),
        1 => (0..FILES, 0usize..14).prop_map(|(file, pages)| Call::Truncate { file, pages }),
        1 => (0..FILES, 0usize..14, any::<u8>())
            .prop_map(|(file, page, byte)| Call::FileWrite { file, page, byte }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn address_spaces_behave_like_maps_of_pages(
        mode in prop_oneof![Just(Mode::Sv39), Just(Mode::Sv48), Just(Mode::Sv57)],
        calls in prop::collection::vec(call(), 1..120),
    ) {
        let _turn = hal::mem::host::arena();
        set_mode(mode);
        let before = stats();
        let mut world = World::new();
        for call in &calls {
            world.apply(call);
            world.check();
        }
        for space in 0..world.spaces.len() {
            (0..PAGES).for_each(|at| world.read(space, at));
        }
        for (file, contents) in world.files.iter().zip(&world.contents) {
            for (i, expected) in contents.iter().enumerate() {
                let mut byte = [0];
                file.read(i * P, &mut OutBuf::Kernel(&mut byte)).unwrap();
                prop_assert_eq!(byte[0], *expected);
            }
        }
        drop(world);
        set_mode(Mode::Sv39);
        prop_assert_eq!(stats(), before);
    }
}
