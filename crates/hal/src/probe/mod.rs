//! What each hart finds out about itself while it comes up, and what programs are told of it by riscv_hwprobe(2).
//!
//! The device tree says which extensions a hart has; the hart itself asks the firmware for its identity, sets what user
//! mode needs to execute cache-block instructions, and measures how fast misaligned accesses are: all of it before it
//! is reported up, so that the answers are complete when the first program runs and never change.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use riscv_hwprobe::keys::{MISALIGNED_UNKNOWN, MISALIGNED_UNSUPPORTED};
use riscv_hwprobe::rules::KEYS;
use riscv_hwprobe::words::Hart;

use crate::hart::{MAX_HARTS, PerHart};
use crate::{boot, time};

#[cfg(any(test, target_os = "none"))]
pub(crate) mod speed;

/// What a hart has found out.
struct Found {
    ids: [AtomicUsize; 3],
    scalar: AtomicU64,
}

static FOUND: PerHart<Found> = PerHart::new(
    [const { Found { ids: [const { AtomicUsize::new(0) }; 3], scalar: AtomicU64::new(MISALIGNED_UNKNOWN) } };
        MAX_HARTS],
);

/// mvendorid, marchid and mimpid of hart `index`, once it has come up; 0 is "not implemented".
pub fn ids(index: usize) -> [usize; 3] {
    FOUND.at(index).ids.each_ref().map(|id| id.load(Relaxed))
}

/// The answers of hart `index`, which has come up, to each key of riscv_hwprobe(2). Panics when there is no such hart.
pub fn words(index: usize) -> [u64; KEYS] {
    let info = boot::info();
    let hart = &info.harts()[index];
    let found = Hart {
        ids: ids(index).map(|id| id as u64),
        isa: hart.isa,
        common: info.common_isa(),
        blocks: hart.blocks.map(u64::from),
        // There is no vector unit for programs.
        misaligned: [FOUND.at(index).scalar.load(Relaxed), MISALIGNED_UNSUPPORTED],
        highest_address: crate::mem::layout::user_top() as u64,
        time_frequency: time::ticks_per_second(),
    };
    found.words()
}

/// Looks at the hart this runs on. Once on each, before it counts as online.
#[cfg(target_os = "none")]
pub(crate) fn look() {
    let (start, index, info) = (time::now(), crate::hart::id(), boot::info());
    let counter = &crate::hart::this().counters.discovery_ticks;
    if let Some(hart) = info.harts().get(index) {
        counter.add(hart.ticks);
        crate::arch::probe::allow_cache_blocks(hart.isa.has("zicbom"), hart.isa.has("zicboz"));
    }
    let (vendor, architecture, implementation) = crate::machine::ids();
    let found = FOUND.get();
    for (place, id) in found.ids.iter().zip([vendor, architecture, implementation]) {
        place.store(id, Relaxed);
    }
    let given = info.argument("unaligned_scalar_speed").and_then(speed::parse);
    found
        .scalar
        .store(given.unwrap_or_else(|| speed::measure(&crate::arch::probe::Copies, time::ticks(100_000))), Relaxed);
    counter.add(time::now() - start);
}
