//! Address spaces on several adversarial harts (see `hal::mem::tlb::model`): whatever programs do, no access that should
//! succeed fails for ever, none that should fail succeeds after the call returned, no stale code runs, and no page is
//! freed while a hart can reach it. Each fence that is left out is found.

use std::boxed::Box;
use std::cell::RefCell;
use std::format;
use std::rc::Rc;
use std::string::String;

use hal::addr::PAGE_SIZE as P;
use hal::calls::Access;
use hal::hart;
use hal::mem::host;
use hal::mem::pgtable::Prot;
use hal::mem::tlb::hook::{self, Plant};
use hal::mem::tlb::{Config, Features, Mode, configure, deactivate, model};
use hal::user::InBuf;
use uapi::mman::*;

use super::*;

/// Pages on both sides of the border of two leaf tables, and some far away.
const BASE: usize = 0x4020_0000 - 6 * P;
const NEAR: usize = 12;
const FAR: usize = 0x8000_0000;
const PAGES: usize = NEAR + 4;
const FILE_PAGES: usize = 6;
const SPACES: usize = 4;

fn page(n: usize) -> usize {
    if n < NEAR { BASE + n * P } else { FAR + (n - NEAR) * P }
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// What other harts can do in the middle of a call: run another space.
struct World {
    spaces: Vec<Weak<AddressSpace>>,
    /// What each hart runs; dangling for the kernel's own table.
    runs: Vec<Weak<AddressSpace>>,
    /// The hart that is in the middle of a call.
    busy: usize,
    /// The space whose lock that call may hold; `None`: any.
    locked: Option<Weak<AddressSpace>>,
    /// The call is a fault: other harts may resolve theirs in the same space.
    faulting: bool,
}

#[derive(Clone, Copy)]
struct Setup {
    harts: usize,
    asid_bits: usize,
    mode: Mode,
    svvptc: bool,
    by_ipi: bool,
}

const PLAIN: Setup = Setup { harts: 3, asid_bits: 3, mode: Mode::Auto, svvptc: false, by_ipi: false };

struct Run {
    random: Random,
    world: Rc<RefCell<World>>,
    spaces: Vec<Arc<AddressSpace>>,
    file: Arc<Object>,
    setup: Setup,
    /// The longest chain of spurious faults.
    longest: usize,
}

fn any_prot(random: &mut Random) -> u32 {
    const RW: u32 = PROT_READ | PROT_WRITE;
    random.one_of(&[PROT_NONE, PROT_READ, RW, RW, RW, PROT_READ | PROT_EXEC, RW | PROT_EXEC])
}

impl Run {
    fn new(seed: u64, setup: Setup) -> Self {
        hart::host::set_count(setup.harts);
        let features = Features { svvptc: setup.svvptc, svinval: seed.is_multiple_of(2), ..Features::default() };
        configure(Config { mode: setup.mode, features, asid_bits: setup.asid_bits, by_ipi: setup.by_ipi });
        for index in 0..setup.harts {
            hart::host::on(index, deactivate);
        }
        model::start(setup.harts, (0..PAGES).map(page).collect(), setup.svvptc);
        let space = AddressSpace::new(Layout::new(None, 8 << 20), Limits::default()).unwrap();
        let world = World {
            spaces: std::vec![Arc::downgrade(&space)],
            runs: std::vec![Weak::new(); setup.harts],
            busy: 0,
            locked: None,
            faulting: false,
        };
        let world = Rc::new(RefCell::new(world));
        let (others, mut random) = (world.clone(), Random(seed ^ 0x5555));
        model::between(Some(Box::new(move || {
            if random.below(6) == 0 {
                let index = random.below(setup.harts);
                if others.try_borrow().is_ok_and(|world| world.busy != index) {
                    hart::host::on(index, || match random.below(4) {
                        0 => switch(&others, &mut random),
                        1 => discard(&others, &mut random),
                        _ => fault_too(&others, &mut random),
                    });
                }
            }
        })));
        let file = Object::with_size(FILE_PAGES * P).unwrap();
        Self { random: Random(seed), world, spaces: std::vec![space], file, setup, longest: 0 }
    }

    fn range(&mut self) -> (usize, usize) {
        let first = self.random.below(PAGES);
        let last = if first < NEAR { NEAR } else { PAGES };
        (page(first), (1 + self.random.below(last - first)) * P)
    }

    /// One random thing on a random hart. `Err` says what went wrong.
    fn step(&mut self) -> Result<(), String> {
        let index = self.random.below(self.setup.harts);
        self.world.borrow_mut().busy = index;
        hart::host::on(index, || self.step_here(index))?;
        model::check().map_or(Ok(()), Err)
    }

    fn step_here(&mut self, index: usize) -> Result<(), String> {
        let current = self.world.borrow().runs[index].upgrade();
        let Some(space) = current.filter(|_| self.random.below(8) != 0) else {
            switch(&self.world, &mut self.random);
            return Ok(());
        };
        self.world.borrow_mut().locked = Some(Arc::downgrade(&space));
        let result = self.call(index, space);
        self.world.borrow_mut().locked = None;
        result
    }

    fn call(&mut self, index: usize, space: Arc<AddressSpace>) -> Result<(), String> {
        let (at, len) = self.range();
        match self.random.below(32) {
            0 | 1 => {
                let shared = self.random.below(2) == 0;
                let source = match self.random.below(2) {
                    0 => Source::Anonymous,
                    _ => Source::Object { object: self.file.clone(), offset: self.random.below(3) * P, file: None },
                };
                let flags = MAP_FIXED | if shared { MAP_SHARED } else { MAP_PRIVATE };
                let prot = any_prot(&mut self.random);
                space.mmap(MapRequest { addr: at, len, prot, flags, source, may_write: true }).unwrap();
            }
            2 => space.munmap(at, len).unwrap(),
            3 => drop(space.mprotect(at, len, any_prot(&mut self.random))),
            4 => drop(space.madvise(at, len, MADV_DONTNEED)),
            5 => self.fork(&space),
            6 if self.spaces.len() > 1 => {
                let gone = self.random.below(self.spaces.len());
                let gone = self.spaces.swap_remove(gone);
                drop(space);
                // Its last thread ends here: this hart runs something else.
                if core::ptr::eq(self.world.borrow().runs[index].as_ptr(), &*gone) {
                    deactivate();
                    self.world.borrow_mut().runs[index] = Weak::new();
                }
                drop(gone);
            }
            7 => {
                let to = page(self.random.below(NEAR));
                let _ = space.mremap(at, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, to);
            }
            8 => {
                self.world.borrow_mut().locked = None;
                self.file.truncate(self.random.below(FILE_PAGES) * P);
                self.file.truncate(FILE_PAGES * P);
            }
            9 => drop(self.file.write(self.random.below(FILE_PAGES) * P, &mut InBuf::Kernel(b"code"))),
            _ => return self.access(index, &space),
        }
        Ok(())
    }

    fn fork(&mut self, parent: &AddressSpace) {
        if self.spaces.len() < SPACES {
            let child = parent.fork().unwrap();
            self.world.borrow_mut().spaces.push(Arc::downgrade(&child));
            self.spaces.push(child);
        }
    }

    /// An access by a program, with all the faults it takes.
    fn access(&mut self, index: usize, space: &AddressSpace) -> Result<(), String> {
        let va = page(self.random.below(PAGES));
        let access = self.random.one_of(&[Access::Read, Access::Write, Access::Write, Access::Execute]);
        let (mut spurious, mut faults) = (0, 0);
        while model::faults(index, va, access) {
            let explained = !model::tables_allow(index, va, access);
            hart::this().counters.write_faults.add(1);
            self.world.borrow_mut().faulting = true;
            let result = space.fault(va, access);
            self.world.borrow_mut().faulting = false;
            if let Err(error) = result {
                return if explained { Ok(()) } else { Err(format!("{access:?} at {va:#x} is refused: {error:?}")) };
            }
            if let Some(error) = model::check() {
                return Err(error);
            }
            if !explained {
                spurious += 1;
                self.longest = self.longest.max(spurious);
            }
            faults += 1;
            if spurious > 2 || faults > 8 {
                return Err(format!("{access:?} at {va:#x} fails again and again"));
            }
            model::pass(index);
        }
        let prot = space.area_after(va).filter(|area| area.start <= va).map_or(Prot::NONE, |area| area.prot);
        let may = match access {
            Access::Read => prot.readable(),
            Access::Write => prot.writable(),
            Access::Execute => prot.executable(),
        };
        if may { Ok(()) } else { Err(format!("{access:?} at {va:#x} succeeds, and must not")) }
    }
}

/// This hart enters another space, or the kernel's own table.
fn switch(world: &RefCell<World>, random: &mut Random) {
    let mut world = world.borrow_mut();
    world.spaces.retain(|space| space.strong_count() != 0);
    let index = hart::id();
    if random.below(5) == 0 || world.spaces.is_empty() {
        world.runs[index] = Weak::new();
        drop(world);
        deactivate();
        return;
    }
    let n = random.below(world.spaces.len());
    let Some(space) = world.spaces[n].upgrade() else { return };
    world.runs[index] = Arc::downgrade(&space);
    drop(world);
    space.activate();
}

/// In the middle of another hart's call, this one gives back a page of a space that the call does not use.
fn discard(world: &RefCell<World>, random: &mut Random) {
    let world = world.borrow();
    let Some(locked) = &world.locked else { return };
    let n = random.below(world.spaces.len());
    let Some(space) = world.spaces[n].upgrade().filter(|space| !core::ptr::eq(locked.as_ptr(), &**space)) else {
        return;
    };
    drop(world);
    for n in 0..PAGES {
        let _ = space.madvise(page(n), P, MADV_DONTNEED);
    }
}

/// In the middle of a fault, this hart has one in the same space: in anonymous memory where nothing is mapped yet, perhaps at
/// the very page. (The other hart cannot give back here what it has locked, which may be a table or a file.)
fn fault_too(world: &RefCell<World>, random: &mut Random) {
    let world = world.borrow();
    let Some(space) = world.locked.as_ref().filter(|_| world.faulting).and_then(Weak::upgrade) else { return };
    if !core::ptr::eq(world.runs[hart::id()].as_ptr(), &*space) {
        return;
    }
    drop(world);
    let (va, access) = (page(random.below(PAGES)), random.one_of(&[Access::Read, Access::Write, Access::Execute]));
    let absent = {
        let mut guard = space.inner.read(false);
        let (inner, local) = guard.parts();
        let area = inner.areas.find_near(&mut local.area, va);
        area.is_some_and(Vma::is_anonymous)
            && inner.table.entry_shared(&mut local.cursor, va).is_ok_and(|entry| !entry.load().is_present())
    };
    if absent {
        let _ = space.fault(va, access);
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        model::between(None);
        for index in 0..self.setup.harts {
            hart::host::on(index, deactivate);
        }
        self.spaces.clear();
        model::stop();
        hart::host::set_count(1);
        configure(Config { asid_bits: 16, ..Config::default() });
    }
}

/// Runs `steps` random steps; gives the longest chain of spurious faults, or what went wrong.
fn run(seed: u64, steps: usize, setup: Setup) -> Result<usize, String> {
    let mut run = Run::new(seed, setup);
    for step in 0..steps {
        run.step().map_err(|error| format!("seed {seed}, step {step}: {error}"))?;
    }
    Ok(run.longest)
}

fn passes(seeds: core::ops::Range<u64>, setup: Setup) -> usize {
    let _arena = host::arena();
    let longest = seeds.map(|seed| run(seed, 600, setup));
    longest.map(|result| result.unwrap_or_else(|error| panic!("{error}"))).max().unwrap_or(0)
}

#[test]
fn nothing_stale_is_used_and_nothing_fails_for_ever() {
    assert_eq!(passes(0..16, PLAIN), 2);
}

#[test]
fn nothing_stale_is_used_without_asids() {
    passes(0..8, Setup { asid_bits: 0, ..PLAIN });
}

#[test]
fn nothing_stale_is_used_when_harts_interrupt_each_other() {
    passes(0..8, Setup { by_ipi: true, ..PLAIN });
}

#[test]
fn nothing_stale_is_used_with_svvptc() {
    passes(0..8, Setup { svvptc: true, ..PLAIN });
}

#[test]
fn nothing_stale_is_used_by_one_hart() {
    passes(0..8, Setup { harts: 1, asid_bits: 2, ..PLAIN });
}

#[test]
fn nothing_stale_is_used_by_many_harts() {
    passes(0..4, Setup { harts: 8, asid_bits: 16, ..PLAIN });
}

#[test]
fn harts_that_fence_preventively_use_nothing_stale() {
    passes(0..8, Setup { mode: Mode::Preventive, ..PLAIN });
}

#[test]
fn a_hart_that_faults_spuriously_too_often_fences_from_then_on() {
    let _arena = host::arena();
    let run = Run::new(7, Setup { harts: 1, ..PLAIN });
    let space = run.spaces[0].clone();
    space.activate();
    run.world.borrow_mut().runs[0] = Arc::downgrade(&space);
    let before = tlb::hart_report(0);
    assert!(!before.fences_links);
    let map = |prot| {
        let source = Source::Anonymous;
        let flags = MAP_FIXED | MAP_PRIVATE;
        space.mmap(MapRequest { addr: FAR, len: 4 * P, prot, flags, source, may_write: true }).unwrap();
    };
    let mut faults = std::vec![];
    for _ in 0..40 {
        map(PROT_READ | PROT_WRITE);
        for n in NEAR..PAGES {
            let mut count = 0;
            while model::faults(0, page(n), Access::Write) {
                hart::this().counters.write_faults.add(1);
                space.fault(page(n), Access::Write).unwrap();
                count += 1;
            }
            faults.push(count);
        }
    }
    assert!(tlb::hart_report(0).fences_links && !tlb::hart_report(0).fences_widening);
    assert_eq!((faults[0], faults[faults.len() - 1]), (3, 1));
}

/// Each planted mistake, and where it shows.
#[test]
fn every_fence_that_is_left_out_is_found() {
    let _arena = host::arena();
    let mut missed = std::vec![];
    for &plant in Plant::ALL {
        let setup = match plant {
            Plant::NoAsidFlush => Setup { asid_bits: 0, ..PLAIN },
            _ => PLAIN,
        };
        let found = (0..100).find_map(|seed| {
            hook::plant(Some(plant));
            let result = run(seed, 600, setup);
            hook::plant(None);
            result.err()
        });
        match found {
            Some(text) => std::println!("{plant:?}: {text}"),
            None => missed.push(plant),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
