//! Random operations against a sorted vector.

use hal::mem::pgtable::Prot;
use proptest::prelude::*;

use super::super::area::{AreaFlags, Backing, Past};
use super::*;

/// Addresses of the tests.
const TOP: usize = 4096;

#[derive(Clone, Debug)]
enum Step {
    /// Areas of one address each from here on, upwards or downwards, where there is room.
    Insert {
        at: usize,
        count: usize,
        down: bool,
    },
    Remove {
        nth: usize,
    },
    RemoveRange {
        nth: usize,
        count: usize,
    },
    /// An area grows by up to so much.
    GrowUp {
        nth: usize,
        by: usize,
    },
    GrowDown {
        nth: usize,
        by: usize,
    },
    /// Makes one area of it and all behind it that touch.
    Join {
        nth: usize,
    },
    /// Inserts an area into the middle of another, as a change of rights does.
    Split {
        nth: usize,
    },
    /// Makes a list of those that are not at multiples of `but`.
    Copy {
        but: usize,
    },
    /// Looks for an address, near where something was found before.
    Find {
        addr: usize,
    },
    /// Looks for gaps between two addresses.
    Gap {
        floor: usize,
        ceiling: usize,
        len: usize,
    },
}

type Ranges = Vec<(usize, usize)>;

fn area(start: usize, end: usize) -> Vma {
    Vma {
        start,
        end,
        backing: Backing::Anonymous,
        offset: 0,
        file: None,
        slot: 0,
        prot: Prot::RW,
        flags: AreaFlags(0),
        past: Past::default(),
    }
}

fn range(area: &Vma) -> (usize, usize) {
    (area.start, area.end)
}

impl<const N: usize> AreaList<N> {
    /// What holds between any two calls.
    pub(in crate::space) fn check(&self) {
        assert_eq!(self.len(), self.iter().count());
        let all = self.iter().map(range).collect::<Vec<_>>();
        assert!(all.iter().all(|(start, end)| start < end) && all.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        if let Some(tree) = &self.tree {
            assert!(self.flat.is_empty());
            tree.check();
        }
    }

    fn nth(&self, n: usize) -> At {
        (0..n).fold(self.start(), |at, _| self.next(at))
    }

    fn step(&mut self, model: &mut Ranges, near: &mut At, step: &Step) {
        let pick = |nth: usize| (!model.is_empty()).then(|| nth % model.len());
        match *step {
            Step::Insert { at, count, down } => {
                for i in 0..count {
                    let start = if down { at.wrapping_sub(i) } else { at + i };
                    if start < TOP && self.unmapped(start, start + 1).is_some() {
                        self.reserve().unwrap();
                        self.insert(self.first_above(start), area(start, start + 1));
                        let n = model.partition_point(|&(s, _)| s < start);
                        model.insert(n, (start, start + 1));
                    }
                }
            }
            Step::Remove { nth } => {
                let Some(n) = pick(nth) else { return };
                let behind = self.remove(self.nth(n), |area| assert_eq!(range(&area), model[n]));
                model.remove(n);
                assert_eq!(self.get(behind).map(range), model.get(n).copied());
                assert_eq!(self.below(behind).map(range), n.checked_sub(1).map(|n| model[n]));
            }
            Step::RemoveRange { nth, count } => {
                let Some(n) = pick(nth) else { return };
                let m = (n + count).min(model.len());
                let (from, to) = (self.nth(n), self.nth(m));
                let mut gone = Vec::new();
                let behind = self.remove_range(from, to, |area| gone.push(range(&area)));
                gone.sort_unstable();
                assert_eq!(gone, model.drain(n..m).collect::<Vec<_>>());
                assert_eq!(self.get(behind).map(range), model.get(n).copied());
            }
            Step::GrowUp { nth, by } => {
                let Some(n) = pick(nth) else { return };
                let ceiling = model.get(n + 1).map_or(TOP, |next| next.0);
                model[n].1 = (model[n].1 + by).min(ceiling);
                self.set_end(self.nth(n), model[n].1);
            }
            Step::GrowDown { nth, by } => {
                let Some(n) = pick(nth) else { return };
                let floor = n.checked_sub(1).map_or(0, |n| model[n].1);
                model[n].0 = model[n].0.saturating_sub(by).max(floor);
                self.get_mut(self.nth(n)).unwrap().start = model[n].0;
            }
            Step::Join { nth } => {
                let Some(n) = pick(nth) else { return };
                let touch = model[n..].windows(2).take_while(|pair| pair[0].1 == pair[1].0).count();
                if touch != 0 {
                    let (at, to, mut gone) = (self.nth(n), self.nth(n + touch + 1), Vec::new());
                    let joined = self.join(at, to, |area| gone.push(range(&area)));
                    model[n].1 = model[n + touch].1;
                    gone.sort_unstable();
                    assert_eq!(gone, model.drain(n + 1..n + touch + 1).collect::<Vec<_>>());
                    assert_eq!(self.get(joined).map(range), Some(model[n]));
                }
            }
            Step::Split { nth } => {
                let Some(n) = pick(nth).filter(|&n| model[n].1 - model[n].0 > 1) else { return };
                let ((start, end), at) = (model[n], self.nth(n));
                let middle = start + (end - start) / 2;
                self.reserve().unwrap();
                self.set_end(at, middle);
                self.insert(self.next(at), area(middle, end));
                model[n].1 = middle;
                model.insert(n + 1, (middle, end));
                assert_eq!(self.get(self.again(at, start)).map(range), Some((start, middle)));
                assert_eq!(self.get(self.again(self.next(at), middle)).map(range), Some((middle, end)));
            }
            Step::Copy { but } => {
                let mut copy = Self::new();
                for areas in self.chunks() {
                    let copies = copy.open(self, areas).unwrap();
                    copies.extend(areas.iter().map(range).filter(|r| r.0 % but != 0).map(|(s, e)| area(s, e)));
                }
                copy.finish(self);
                model.retain(|r| r.0 % but != 0);
                *self = copy;
            }
            Step::Find { addr } => {
                let found = model.iter().find(|r| (r.0..r.1).contains(&addr)).copied();
                assert_eq!(self.find_near(near, addr).map(range), found);
                let place = self.find(addr);
                assert_eq!(place.and_then(|at| self.get(at)).map(range), found);
                let above = model.iter().find(|r| r.1 > addr).copied();
                assert_eq!(self.get(self.first_above(addr)).map(range), above);
            }
            Step::Gap { floor, ceiling, len } => {
                let starts = floor..(ceiling + 1).saturating_sub(len).max(floor);
                let free = |&start: &usize| model.iter().all(|r| r.1 <= start || r.0 >= start + len);
                let behind = |start: usize| (start, model.iter().find(|r| r.1 > start).copied());
                let highest = starts.clone().rev().find(free).map(behind);
                let found = self.highest_gap(floor, ceiling, len);
                assert_eq!(found.map(|(end, at)| (end - len, self.get(at).map(range))), highest);
                let lowest = starts.clone().find(free).map(behind);
                let found = self.lowest_gap(floor, ceiling, len);
                assert_eq!(found.map(|(start, at)| (start, self.get(at).map(range))), lowest);
            }
        }
    }

    fn run(steps: &[Step]) {
        let (mut list, mut model, mut near) = (Self::new(), Ranges::new(), At::default());
        for step in steps {
            list.step(&mut model, &mut near, step);
            list.check();
            assert_eq!(list.len(), model.len());
            assert_eq!(list.iter().map(range).collect::<Ranges>(), model);
            // There and back again.
            let mut at = list.start();
            for expected in &model {
                assert_eq!(list.get(at).map(range), Some(*expected));
                at = list.next(at);
            }
            assert!(list.get(at).is_none());
            for expected in model.iter().rev() {
                at = list.prev(at).unwrap();
                assert_eq!(list.get(at).map(range), Some(*expected));
            }
            assert!(list.prev(at).is_none());
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let nth = 0usize..1000;
    prop_oneof![
        4 => (0..TOP, 1usize..40, any::<bool>()).prop_map(|(at, count, down)| Step::Insert { at, count, down }),
        4 => nth.clone().prop_map(|nth| Step::Remove { nth }),
        2 => (nth.clone(), 0usize..30).prop_map(|(nth, count)| Step::RemoveRange { nth, count }),
        2 => (nth.clone(), 1usize..60).prop_map(|(nth, by)| Step::GrowUp { nth, by }),
        2 => (nth.clone(), 1usize..60).prop_map(|(nth, by)| Step::GrowDown { nth, by }),
        3 => nth.clone().prop_map(|nth| Step::Join { nth }),
        4 => (0..TOP, 1..TOP, prop_oneof![1usize..5, 1usize..200])
            .prop_map(|(floor, ceiling, len)| Step::Gap { floor, ceiling, len }),
        3 => nth.prop_map(|nth| Step::Split { nth }),
        1 => prop_oneof![2usize..5, Just(usize::MAX)].prop_map(|but| Step::Copy { but }),
        4 => (0..TOP).prop_map(|addr| Step::Find { addr }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]
    #[test]
    fn a_list_in_chunks_is_a_sorted_list(steps in prop::collection::vec(step(), 1..80)) {
        AreaList::<4>::run(&steps);
        AreaList::<8>::run(&steps);
        AreaList::<64>::run(&steps);
    }
}

/// Areas that come in order leave chunks behind that are three quarters full.
#[test]
fn chunks_are_well_filled() {
    for down in [false, true] {
        let mut list = AreaList::<64>::new();
        for i in 0..65_530 {
            let start = if down { 65_530 - i } else { i };
            list.reserve().unwrap();
            list.insert(list.first_above(start), area(start, start + 1));
        }
        list.check();
        assert!(list.tree.as_ref().unwrap().chunk_count() <= 65_530 / 47);
        let mut gone = 0;
        let end = list.first_above(65_536);
        list.remove_range(list.start(), end, |_| gone += 1);
        assert!(gone == 65_530 && list.len() == 0 && list.tree.is_none());
    }
}

/// Areas that come and go anywhere do not leave many small chunks.
#[test]
fn small_chunks_are_joined() {
    let mut list = AreaList::<64>::new();
    for start in 0..4096 {
        list.reserve().unwrap();
        list.insert(list.first_above(start), area(start, start + 1));
    }
    for start in (0..4096).filter(|start| start % 64 != 0) {
        let at = list.find(start).unwrap();
        list.remove(at, drop);
        list.check();
    }
    assert!(list.len() == 64 && list.tree.as_ref().unwrap().chunk_count() <= 4);
}
