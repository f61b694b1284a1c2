//! What one hart counted: for each region, for each reason for being in the kernel, for each mode.

use crate::slots::{CAUSES, COUNT, Registry, Slots, returns};
use crate::{Bucket, Cause, Context, Mode, Modes, REGIONS, Region, Returns, trap_name};
use std::collections::BTreeMap;

/// A reason, as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(u16);

/// System calls with a number of their own.
const CALLS: u16 = 1024;

impl Key {
    pub(crate) const BOOT: Key = Key(0);
    pub(crate) const USER: Key = Key(1);
    const CALL: u16 = 2;
    const CALL_OTHER: u16 = Self::CALL + CALLS;
    const FAULT: u16 = Self::CALL_OTHER + 1;
    const INTERRUPT: u16 = Self::FAULT + CAUSES as u16;
    const END: u16 = Self::INTERRUPT + CAUSES as u16;

    pub(crate) const fn call(number: u64) -> Self {
        Key(if number < CALLS as u64 { Self::CALL + number as u16 } else { Self::CALL_OTHER })
    }

    pub(crate) const fn trap(interrupt: bool, code: u64) -> Self {
        let first = if interrupt { Self::INTERRUPT } else { Self::FAULT };
        Key(first + (code % CAUSES as u64) as u16)
    }

    pub(crate) const fn context(self) -> Context {
        match self.0 {
            0 | 1 => Context::Boot,
            Self::CALL..=Self::CALL_OTHER => Context::Call,
            Self::FAULT..Self::INTERRUPT => Context::Fault,
            _ => Context::Interrupt,
        }
    }

    fn cause(self) -> Cause {
        match self.0 {
            0 => Cause::Boot,
            1 => Cause::User,
            Self::CALL..Self::CALL_OTHER => Cause::Call(Some(self.0 - Self::CALL)),
            Self::CALL_OTHER => Cause::Call(None),
            Self::FAULT..Self::INTERRUPT => Cause::Fault(trap_name(false, (self.0 - Self::FAULT).into())),
            _ => Cause::Interrupt(trap_name(true, (self.0 - Self::INTERRUPT).into())),
        }
    }
}

/// The place of counts that are not kept.
pub(crate) const NOWHERE: usize = usize::MAX - Mode::ALL.len();

#[derive(Debug)]
struct Part {
    begun: u64,
    ended: u64,
    /// By key: the place of the counts and the entries.
    buckets: Vec<Option<(usize, u64)>>,
}

/// The counts of one hart.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    parts: BTreeMap<u16, Part>,
    /// Three neighbours, one for each mode, at each place.
    arena: Vec<Slots>,
}

impl Tally {
    fn part(&mut self, region: u16) -> &mut Part {
        debug_assert!(region <= REGIONS);
        let new = || Part { begun: 0, ended: 0, buckets: vec![None; Key::END.into()] };
        self.parts.entry(region).or_insert_with(new)
    }

    pub(crate) fn begin(&mut self, region: u16) {
        self.part(region).begun += 1;
    }

    pub(crate) fn end(&mut self, region: u16) {
        self.part(region).ended += 1;
    }

    /// The place of the counts of a bucket.
    pub(crate) fn place(&mut self, region: u16, key: Key) -> usize {
        let next = self.arena.len();
        let place = self.part(region).buckets[usize::from(key.0)].get_or_insert((next, 0)).0;
        if place == next {
            self.arena.resize(next + Mode::ALL.len(), [0; COUNT]);
        }
        place
    }

    /// A trap from user mode opened a bucket.
    pub(crate) fn enter(&mut self, region: u16, key: Key) {
        if let Some((_, entries)) = &mut self.part(region).buckets[usize::from(key.0)] {
            *entries += 1;
        }
    }

    /// The counts at a place, `None` for [`NOWHERE`].
    #[inline]
    pub(crate) fn slots(&mut self, place: usize, mode: Mode) -> Option<&mut Slots> {
        self.arena.get_mut(place + mode as usize)
    }
}

/// The regions of several harts, summed.
pub(crate) fn regions(harts: &[&Tally], registry: &Registry) -> Vec<Region> {
    let mut ids: Vec<u16> = harts.iter().flat_map(|hart| hart.parts.keys().copied()).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.into_iter().map(|id| region(id, harts, registry)).collect()
}

fn region(id: u16, harts: &[&Tally], registry: &Registry) -> Region {
    let (mut begun, mut ended) = (0, 0);
    let mut buckets: BTreeMap<u16, (u64, Modes)> = BTreeMap::new();
    let mut all_returns: BTreeMap<(Mode, Context), Returns> = BTreeMap::new();
    for (hart, part) in harts.iter().filter_map(|hart| Some((hart, hart.parts.get(&id)?))) {
        begun += part.begun;
        ended += part.ended;
        for (key, (place, entries)) in
            part.buckets.iter().enumerate().filter_map(|(key, bucket)| Some((key, (*bucket)?)))
        {
            let (all_entries, modes) = buckets.entry(key as u16).or_default();
            *all_entries += entries;
            for (mode, slots) in Mode::ALL.into_iter().zip(&hart.arena[place..]) {
                *modes.of_mut(mode) += &registry.counts(slots);
                add_returns(&mut all_returns, mode, slots);
            }
        }
    }
    let mut total = Modes::default();
    buckets.values().for_each(|(_, modes)| total += modes);
    let buckets = buckets.into_iter().filter(|(_, (entries, modes))| *entries != 0 || *modes != Modes::default());
    Region {
        id,
        entries: begun,
        complete: begun == ended,
        total,
        buckets: buckets.map(|(key, (entries, counts))| Bucket { cause: Key(key).cause(), entries, counts }).collect(),
        returns: all_returns.into_values().collect(),
    }
}

fn add_returns(all: &mut BTreeMap<(Mode, Context), Returns>, mode: Mode, slots: &Slots) {
    for context in Context::ALL {
        let counts = &slots[returns(context)..];
        if counts[0] == 0 {
            continue;
        }
        let new = Returns { mode, context, returns: 0, mispredicted: [0; 5] };
        let sum = all.entry((mode, context)).or_insert(new);
        sum.returns += counts[0];
        sum.mispredicted.iter_mut().zip(&counts[1..]).for_each(|(sum, count)| *sum += count);
    }
}
