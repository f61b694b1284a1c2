//! How much is left to faults, hart by hart.
//!
//! The table ([`owed`](super::owed)) lets the fence after a new entry, or after more rights, wait until a stale entry
//! causes a fault. Most harts never keep an absent entry, and then there is no fence at all; a hart that does keep them
//! pays with a second fault for what a fence would have cost less. So each hart begins without fences, counts the
//! faults that the tables do not explain, and fences at once from then on if they come too often: for new entries and
//! for wider rights apart, since the first says nothing about the second. `limen.tlb=` on the command line decides
//! otherwise for all harts.
//!
//! `inject` plays a hart that caches what is not valid, on an emulator that does not: a new entry is written with V
//! clear and gets it only when the fence that such a hart would need is issued: the page's for some, the ASID's for
//! others, as if the cached entry were of an inner level.

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::owed::Features;
use crate::hart::{self, Counter, MAX_HARTS};

/// What `limen.tlb=` says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Mode {
    /// Fences are left to faults until a hart has too many of them.
    #[default]
    Auto,
    /// Fences are left to faults.
    Optimistic,
    /// Fences after each new entry and after more rights.
    Preventive,
    /// As [`Mode::Optimistic`], on a hart that is made to cache entries that are not valid.
    Inject,
}

impl Mode {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Auto, "auto"),
        (Self::Optimistic, "optimistic"),
        (Self::Preventive, "preventive"),
        (Self::Inject, "inject"),
    ];

    /// The mode of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(mode, _)| *mode)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

static MODE: AtomicU8 = AtomicU8::new(Mode::Auto as u8);
static FEATURES: AtomicU8 = AtomicU8::new(0);
/// Whom something is asked of when it changes a page table: a bit per hart that fences after linking, one (from
/// [`WIDEN`]) per hart that fences after widening, and [`INJECT`].
static EAGER: AtomicU32 = AtomicU32::new(0);
const WIDEN: u32 = 8;
const INJECT: u32 = 1 << 31;
const _: () = assert!(MAX_HARTS <= WIDEN as usize);

/// Sets what the command line and the harts say. At boot, before the second hart runs.
pub(super) fn set(mode: Mode, features: Features) {
    MODE.store(mode as u8, Ordering::Relaxed);
    let bits = features.svvptc as u8 | (features.svinval as u8) << 1 | (features.svadu as u8) << 2;
    FEATURES.store(bits, Ordering::Relaxed);
    let eager = match mode {
        Mode::Auto | Mode::Optimistic => 0,
        Mode::Preventive => (1 << (2 * WIDEN)) - 1,
        Mode::Inject => INJECT,
    };
    EAGER.store(eager, Ordering::Relaxed);
}

/// What `limen.tlb=` said.
pub fn mode() -> Mode {
    Mode::ALL.iter().map(|(mode, _)| *mode).find(|&m| m as u8 == MODE.load(Ordering::Relaxed)).unwrap_or_default()
}

/// What the harts promise.
#[inline]
pub fn features() -> Features {
    let bits = FEATURES.load(Ordering::Relaxed);
    Features {
        svvptc: bits & 1 != 0,
        svinval: bits & 2 != 0,
        svadu: bits & 4 != 0,
        asids: !super::asid::without_asids(),
    }
}

/// True when nothing is asked of anybody, on any hart: the test of the fault path.
#[inline]
pub(in crate::mem) fn is_lazy() -> bool {
    EAGER.load(Ordering::Relaxed) == 0
}

/// Whether new entries are hidden at first.
#[inline]
pub(in crate::mem) fn injects() -> bool {
    EAGER.load(Ordering::Relaxed) & INJECT != 0
}

/// Whether this hart fences after linking.
pub(super) fn fences_links() -> bool {
    EAGER.load(Ordering::Relaxed) >> hart::id() & 1 != 0
}

/// Whether this hart fences after widening.
#[inline]
pub(super) fn fences_widening() -> bool {
    let eager = EAGER.load(Ordering::Relaxed);
    eager != 0 && eager >> (WIDEN as usize + hart::id()) & 1 != 0
}

/// Faults over which spurious ones are counted, and how many of them are too many.
const WINDOW: u64 = 256;
const TOO_MANY: u64 = 32;
/// Pages that are fenced one by one before an unexplained fault has the whole ASID fenced. An instruction touches few
/// pages; more than these in a row mean that single pages are not what is stale.
const PAGES: usize = 8;

/// Spurious faults within a window of faults.
struct Window {
    start: AtomicU64,
    count: AtomicU64,
}

impl Window {
    const fn new() -> Self {
        Self { start: AtomicU64::new(0), count: AtomicU64::new(0) }
    }

    /// One more, at the hart's fault number `faults`: whether there are too many.
    fn add(&self, faults: u64) -> bool {
        if faults.wrapping_sub(self.start.load(Ordering::Relaxed)) > WINDOW {
            self.start.store(faults, Ordering::Relaxed);
            self.count.store(0, Ordering::Relaxed);
        }
        let count = self.count.load(Ordering::Relaxed) + 1;
        self.count.store(count, Ordering::Relaxed);
        count >= TOO_MANY
    }
}

/// What a hart remembers of its spurious faults. Only its own hart writes.
pub(super) struct Spurious {
    /// Root of the space that the pages below belong to.
    root: AtomicU32,
    /// Pages fenced since the last fence of the ASID.
    pages: [AtomicUsize; PAGES],
    len: AtomicUsize,
    /// The page whose fault had the ASID fenced last.
    wide: AtomicUsize,
    /// The page whose rights were widened last without a fence.
    widened: AtomicUsize,
    /// The last spurious fault: page, number of the fault, how many in a row it was of that page.
    last: AtomicUsize,
    last_fault: AtomicU64,
    chain: AtomicU64,
    after_link: Window,
    after_widening: Window,
    total: Counter,
    longest: Counter,
}

impl Spurious {
    pub const fn new() -> Self {
        Self {
            root: AtomicU32::new(0),
            pages: [const { AtomicUsize::new(0) }; PAGES],
            len: AtomicUsize::new(0),
            wide: AtomicUsize::new(0),
            widened: AtomicUsize::new(0),
            last: AtomicUsize::new(0),
            last_fault: AtomicU64::new(0),
            chain: AtomicU64::new(0),
            after_link: Window::new(),
            after_widening: Window::new(),
            total: Counter::new(),
            longest: Counter::new(),
        }
    }

    /// The rights of `page` were widened and no fence followed.
    #[inline]
    pub fn note_widened(&self, page: usize) {
        self.widened.store(page, Ordering::Relaxed);
    }

    /// A fault at `page` of the space with this root that the tables do not explain, the hart's fault number `faults`:
    /// how much is to be fenced. The page first; if it comes again, or many pages come, the ASID, as the stale entry may
    /// be of an inner level; then everything.
    pub fn fault(&self, root: u32, page: usize, faults: u64) -> Wide {
        self.total.add(1);
        self.count_chain(page, faults);
        self.learn(page, faults);
        if self.root.swap(root, Ordering::Relaxed) != root {
            self.len.store(0, Ordering::Relaxed);
            self.wide.store(0, Ordering::Relaxed);
        }
        let len = self.len.load(Ordering::Relaxed).min(PAGES);
        let known = self.pages[..len].iter().any(|p| p.load(Ordering::Relaxed) == page);
        if !known && len < PAGES && self.wide.load(Ordering::Relaxed) != page {
            self.pages[len].store(page, Ordering::Relaxed);
            self.len.store(len + 1, Ordering::Relaxed);
            return Wide::Page;
        }
        self.len.store(0, Ordering::Relaxed);
        if self.wide.swap(page, Ordering::Relaxed) == page {
            self.wide.store(0, Ordering::Relaxed);
            return Wide::All;
        }
        Wide::Asid
    }

    fn count_chain(&self, page: usize, faults: u64) {
        let follows = faults.wrapping_sub(self.last_fault.swap(faults, Ordering::Relaxed)) <= 1;
        let same = self.last.swap(page, Ordering::Relaxed) == page;
        let chain = if follows && same { self.chain.load(Ordering::Relaxed) + 1 } else { 1 };
        self.chain.store(chain, Ordering::Relaxed);
        self.longest.raise_to(chain);
    }

    /// If there are too many spurious faults of a kind, this hart fences at once from now on.
    fn learn(&self, page: usize, faults: u64) {
        if mode() != Mode::Auto {
            return;
        }
        let (window, bit) = if self.widened.load(Ordering::Relaxed) == page {
            (&self.after_widening, WIDEN as usize)
        } else {
            (&self.after_link, 0)
        };
        if window.add(faults) {
            EAGER.fetch_or(1 << (bit + hart::id()), Ordering::Relaxed);
        }
    }

    pub fn report(&self, hart: usize) -> HartReport {
        let eager = EAGER.load(Ordering::Relaxed);
        HartReport {
            spurious: self.total.get(),
            longest_chain: self.longest.get(),
            fences_links: eager >> hart & 1 != 0,
            fences_widening: eager >> (WIDEN as usize + hart) & 1 != 0,
        }
    }
}

/// How much a spurious fault has fenced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wide {
    Page,
    Asid,
    All,
}

/// What a hart's faults were like.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct HartReport {
    /// Faults that the tables did not explain.
    pub spurious: u64,
    /// The most of them in a row at one page.
    pub longest_chain: u64,
    /// The hart fences after each new entry.
    pub fences_links: bool,
    /// The hart fences after more rights.
    pub fences_widening: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_comes_again_has_more_fenced() {
        let spurious = Spurious::new();
        let forms = [5, 5, 5, 5, 6].map(|page| spurious.fault(1, page, 0));
        assert_eq!(forms, [Wide::Page, Wide::Asid, Wide::All, Wide::Page, Wide::Page]);
    }

    #[test]
    fn pages_that_take_turns_have_more_fenced_too() {
        let spurious = Spurious::new();
        let forms = [5, 6, 5, 6, 5].map(|page| spurious.fault(1, page, 0));
        assert_eq!(forms, [Wide::Page, Wide::Page, Wide::Asid, Wide::Page, Wide::All]);
        for start in [10, 30] {
            let spurious = Spurious::new();
            let wide = (0..9).filter(|i| spurious.fault(1, start + i, 0) != Wide::Page).count();
            assert_eq!(wide, 1);
        }
    }

    #[test]
    fn another_space_begins_anew() {
        let spurious = Spurious::new();
        assert_eq!([1, 2, 1].map(|root| spurious.fault(root, 5, 0)), [Wide::Page; 3]);
    }

    #[test]
    fn a_chain_is_of_one_page_and_without_other_faults_between() {
        let spurious = Spurious::new();
        for (page, fault) in [(5, 10), (5, 11), (5, 13), (6, 14), (6, 15)] {
            spurious.fault(1, page, fault);
        }
        assert_eq!(spurious.report(0).longest_chain, 2);
    }

    #[test]
    fn too_many_are_so_many_among_the_last_faults() {
        let window = Window::new();
        assert!((0..TOO_MANY * 4).all(|i| !window.add(i * (WINDOW / TOO_MANY + 1))));
        let window = Window::new();
        assert!((1..TOO_MANY).all(|i| !window.add(i * 4)));
        assert!(window.add(TOO_MANY * 4));
    }

    #[test]
    fn modes_have_names() {
        assert_eq!(Mode::parse("inject").map(Mode::name), Some("inject"));
        assert_eq!(Mode::parse("yes"), None);
    }
}
