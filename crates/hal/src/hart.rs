//! Harts: who runs here, per-hart data, interrupts between harts, idling.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

#[cfg(target_os = "none")]
use crate::arch::{self, csr};

/// Most harts that Limen starts; more in the device tree stay parked.
pub const MAX_HARTS: usize = 8;

/// A counter that only its own hart writes, so that counting is a load, an add and a store.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// A counter at 0.
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds `n`; on the owning hart only.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    /// Raises the counter to `n` if it is below; on the owning hart only.
    #[inline]
    pub fn raise_to(&self, n: u64) {
        if self.get() < n {
            self.0.store(n, Ordering::Relaxed);
        }
    }

    /// The count, from any hart.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a hart has counted since boot.
#[derive(Default)]
#[allow(missing_docs)]
pub struct Counters {
    pub fast_calls: Counter,
    pub full_calls: Counter,
    pub read_faults: Counter,
    pub write_faults: Counter,
    pub execute_faults: Counter,
    /// Faults inside copies to and from user memory.
    pub copy_faults: Counter,
    /// Exceptions other than page faults and calls.
    pub other_exceptions: Counter,
    pub timer_interrupts: Counter,
    pub external_interrupts: Counter,
    pub ipis: Counter,
    pub switches: Counter,
    /// Longest time in clock ticks by which a timer interrupt came late: the longest stretch seen with interrupts off.
    pub longest_off: Counter,
    /// Spin locks that were found taken.
    pub lock_waits: Counter,
    /// Clock ticks spent waiting for them.
    pub lock_wait_ticks: Counter,
    /// Pages that it cleared while it had nothing else to do.
    pub zeroed_idle: Counter,
    /// Pages of zeroes that were there when they were asked for.
    pub zeroed_taken: Counter,
    /// Clock ticks for finding out what the hart can do, before it was online.
    pub discovery_ticks: Counter,
}

impl Counters {
    const fn new() -> Self {
        Self {
            fast_calls: Counter::new(),
            full_calls: Counter::new(),
            read_faults: Counter::new(),
            write_faults: Counter::new(),
            execute_faults: Counter::new(),
            copy_faults: Counter::new(),
            other_exceptions: Counter::new(),
            timer_interrupts: Counter::new(),
            external_interrupts: Counter::new(),
            ipis: Counter::new(),
            switches: Counter::new(),
            longest_off: Counter::new(),
            lock_waits: Counter::new(),
            lock_wait_ticks: Counter::new(),
            zeroed_idle: Counter::new(),
            zeroed_taken: Counter::new(),
            discovery_ticks: Counter::new(),
        }
    }

    /// Page faults, those inside copies included.
    #[inline]
    pub fn faults(&self) -> u64 {
        self.read_faults.get() + self.write_faults.get() + self.execute_faults.get() + self.copy_faults.get()
    }

    #[cfg(target_os = "none")]
    #[inline]
    pub(crate) fn fault(&self, access: crate::calls::Access) {
        use crate::calls::Access;
        match access {
            Access::Read => self.read_faults.add(1),
            Access::Write => self.write_faults.add(1),
            Access::Execute => self.execute_faults.add(1),
        }
    }
}

/// A hart, as the HAL knows it.
#[repr(C, align(64))]
pub struct Hart {
    /// Where the stack-overflow report finds a stack.
    pub(crate) emergency_sp: AtomicUsize,
    index: usize,
    id: AtomicUsize,
    /// `REQUEST_STOP` and others, set by other harts together with a software interrupt.
    requests: AtomicUsize,
    boot_context_claimed: AtomicBool,
    /// Deadline the hart's timer is set to, in ticks; `u64::MAX` when none.
    pub(crate) deadline: AtomicU64,
    /// Whose FP state is in the registers (see arch/fp.rs).
    pub(crate) fp_owner: AtomicUsize,
    /// What it has counted.
    pub counters: Counters,
    /// Its free frames.
    pub(crate) frames: crate::mem::frame::Local,
    /// Programs' pages may come from the reserve just now: see [`crate::mem::frame::from_reserve`].
    pub(crate) urgent: AtomicBool,
}

#[cfg(target_os = "none")]
const REQUEST_STOP: usize = 1;

impl Hart {
    const fn new(index: usize) -> Self {
        Self {
            emergency_sp: AtomicUsize::new(0),
            index,
            id: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            boot_context_claimed: AtomicBool::new(false),
            deadline: AtomicU64::new(u64::MAX),
            fp_owner: AtomicUsize::new(0),
            counters: Counters::new(),
            frames: crate::mem::frame::Local::new(),
            urgent: AtomicBool::new(false),
        }
    }

    /// The hart's id for the firmware.
    pub fn id(&self) -> usize {
        self.id.load(Ordering::Relaxed)
    }

    #[cfg(target_os = "none")]
    #[inline]
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    #[cfg(target_os = "none")]
    pub(crate) fn claim_boot_context(&self) -> bool {
        !self.boot_context_claimed.swap(true, Ordering::Relaxed)
    }
}

static HARTS: [Hart; MAX_HARTS] =
    [Hart::new(0), Hart::new(1), Hart::new(2), Hart::new(3), Hart::new(4), Hart::new(5), Hart::new(6), Hart::new(7)];
static COUNT: AtomicUsize = AtomicUsize::new(1);
static ONLINE: AtomicUsize = AtomicUsize::new(1);

/// The hart this runs on. Interrupts are off and nothing switches, so it stays true while the caller looks.
#[inline]
pub fn this() -> &'static Hart {
    #[cfg(target_os = "none")]
    {
        // SAFETY: tp points at the running task's head, whose hart field is set before the task first runs.
        unsafe {
            let head = &*arch::head_pointer();
            &*core::ptr::with_exposed_provenance(head.hart.load(Ordering::Relaxed))
        }
    }
    #[cfg(not(target_os = "none"))]
    &HARTS[host::current()]
}

/// The free frames of all harts, those included that are not there.
pub(crate) fn all_frames() -> impl Iterator<Item = &'static crate::mem::frame::Local> {
    HARTS.iter().map(|hart| &hart.frames)
}

/// Index of the hart this runs on, from 0.
#[inline]
pub fn id() -> usize {
    this().index
}

/// Number of harts in the system, those not yet online included.
#[inline]
pub fn count() -> usize {
    COUNT.load(Ordering::Relaxed)
}

/// The harts that run, a bit each.
#[inline]
pub fn online_mask() -> usize {
    ONLINE.load(Ordering::Acquire)
}

/// A set of harts, a bit each, shown as Linux shows one: `0-3,5`.
#[derive(Clone, Copy, Debug)]
pub struct List(pub usize);

impl core::fmt::Display for List {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (mut rest, mut comma) = (self.0, "");
        while rest != 0 {
            let first = rest.trailing_zeros();
            let last = first + (!(rest >> first)).trailing_zeros() - 1;
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
            rest &= usize::MAX.checked_shl(last + 1).unwrap_or(0);
            comma = ",";
        }
        Ok(())
    }
}

/// The hart with this index, for its counters. None when there is no such hart.
pub fn get(index: usize) -> Option<&'static Hart> {
    if index < count() { HARTS.get(index) } else { None }
}

/// A value for each hart.
pub struct PerHart<T>([T; MAX_HARTS]);

impl<T> PerHart<T> {
    /// One value a hart.
    pub const fn new(values: [T; MAX_HARTS]) -> Self {
        Self(values)
    }

    /// This hart's.
    #[inline]
    pub fn get(&self) -> &T {
        &self.0[id()]
    }

    /// Hart `index`'s. Panics when there is no such hart.
    #[inline]
    pub fn at(&self, index: usize) -> &T {
        &self.0[index]
    }
}

/// Interrupts hart `index`, so that it looks at its task's work, or wakes from [`idle`].
pub fn send_reschedule(index: usize) {
    #[cfg(target_os = "none")]
    crate::sbi::send_ipi(HARTS[index].id());
    #[cfg(not(target_os = "none"))]
    let _ = index;
}

/// A turn of a loop that waits for another hart.
#[inline]
pub(crate) fn pause() {
    #[cfg(target_os = "none")]
    core::hint::spin_loop();
    // A thread of a test plays the other hart.
    #[cfg(not(target_os = "none"))]
    std::thread::yield_now();
}

/// Interrupts the harts of a mask of indices, so that they serve what was asked of them.
pub(crate) fn interrupt(harts: u64) {
    #[cfg(target_os = "none")]
    each_mask(harts, crate::sbi::send_ipis);
    #[cfg(not(target_os = "none"))]
    host::interrupt(harts);
}

/// Waits for an interrupt and serves it. Interrupts are off before and after; one that came in between the caller's
/// last look and this is not lost, as `wfi` returns at once while one is pending.
///
/// Time that nobody wants goes into clearing pages, one by one, as long as nothing is pending: whoever makes this hart's
/// next thread runnable interrupts it, since it counts as idle already.
pub fn idle() {
    while !is_wanted() && crate::mem::frame::clear_one() {}
    #[cfg(target_os = "none")]
    {
        // SAFETY: wfi has no effect but waiting.
        unsafe { core::arch::asm!("wfi", options(nomem, nostack)) };
        window();
    }
}

/// Whether an interrupt is pending.
fn is_wanted() -> bool {
    #[cfg(target_os = "none")]
    return csr::sip() & csr::sie() != 0;
    #[cfg(not(target_os = "none"))]
    false
}

/// Lets pending interrupts in. The caller holds no lock that a handler takes: those of run queues, timers, signals,
/// processes and terminals. Nothing else is switched or preempted here.
#[inline]
pub fn window() {
    #[cfg(target_os = "none")]
    // SAFETY: the kernel trap path handles an interrupt here.
    unsafe {
        csr::set_sstatus(csr::SIE);
        csr::clear_sstatus(csr::SIE);
    }
}

#[cfg(target_os = "none")]
mod target {
    use super::{COUNT, HARTS, MAX_HARTS, ONLINE, Ordering, REQUEST_STOP, this};
    use crate::arch::{self, csr};
    use crate::task::Context;

    /// A stack for the report of a stack overflow.
    #[repr(align(16))]
    struct Emergency(#[allow(dead_code)] core::cell::UnsafeCell<[u8; 4096]>);
    // SAFETY: used by one hart each, as a stack.
    unsafe impl Sync for Emergency {}
    static EMERGENCY: [Emergency; MAX_HARTS] = [const { Emergency(core::cell::UnsafeCell::new([0; 4096])) }; MAX_HARTS];

    /// Makes the boot block's head of hart `index` valid. Before anything else on that hart.
    ///
    /// # Safety
    /// Once a hart, before its block is used for anything but the stack of the caller.
    pub(crate) unsafe fn init(index: usize, hart_id: usize) {
        let hart = &HARTS[index];
        hart.id.store(hart_id, Ordering::Relaxed);
        let top = (&raw const EMERGENCY[index]).addr() + size_of::<Emergency>();
        hart.emergency_sp.store(top, Ordering::Relaxed);
        let head = arch::boot_head(index);
        // SAFETY: the block is the hart's own, by the caller's promise.
        unsafe {
            Context::init_head(head);
            (*head).hart.store((&raw const *hart).expose_provenance(), Ordering::Relaxed);
            (*head).on_hart.store(1, Ordering::Relaxed);
            (*head).fs.store(0, Ordering::Relaxed);
        }
    }

    pub(crate) fn set_count(count: usize) {
        COUNT.store(count.clamp(1, MAX_HARTS), Ordering::Relaxed);
    }

    pub(crate) fn set_online(index: usize) {
        ONLINE.fetch_or(1 << index, Ordering::AcqRel);
    }

    /// Calls `request` with the harts of a mask of hart indices, as the firmware names them: one mask if their ids are
    /// small, as they are nearly everywhere.
    pub(crate) fn each_mask(harts: u64, mut request: impl FnMut(sbi_rt::HartMask)) {
        let mut together = 0;
        for index in (0..MAX_HARTS).filter(|i| harts >> i & 1 != 0) {
            match HARTS[index].id() {
                id @ 0..64 => together |= 1 << id,
                id => request(sbi_rt::HartMask::from_mask_base(1, id)),
            }
        }
        if together != 0 {
            request(sbi_rt::HartMask::from_mask_base(together, 0));
        }
    }

    /// Serves what other harts asked for.
    pub(crate) fn serve_requests() {
        crate::mem::tlb::serve();
        if this().requests.swap(0, Ordering::AcqRel) & REQUEST_STOP != 0 {
            stop();
        }
        // A task that raised RESCHED finds it on its way to user mode; an idle hart looks at its queue.
    }

    /// Asks all other harts to stop for good; a panicking hart does not wait for them.
    pub(crate) fn stop_others() {
        let mine = super::id();
        for (index, hart) in HARTS.iter().enumerate().take(super::count()) {
            if index != mine && super::online_mask() & 1 << index != 0 {
                hart.requests.fetch_or(REQUEST_STOP, Ordering::AcqRel);
                crate::sbi::send_ipi(hart.id());
            }
        }
    }

    /// Stops this hart for good.
    pub(crate) fn stop() -> ! {
        loop {
            // SAFETY: all interrupts masked, the hart waits for ever.
            unsafe {
                csr::write_sie(0);
                core::arch::asm!("wfi", options(nomem, nostack));
            }
        }
    }
}
#[cfg(target_os = "none")]
pub(crate) use target::*;

/// Adds the calls that the running task has made since its last switch to this hart's counters, where they would
/// otherwise arrive at its next.
pub fn collect_calls() {
    #[cfg(target_os = "none")]
    // SAFETY: tp points at the running task's head.
    crate::arch::switch::collect_calls(unsafe { &*arch::head_pointer() });
}

/// Starts all other harts of the device tree; each calls [`crate::calls::Upcalls::secondary`]. Returns when all run.
pub fn start_others() {
    #[cfg(target_os = "none")]
    arch::boot::start_others();
}

/// Which hart a thread of a test plays.
#[cfg(not(target_os = "none"))]
pub mod host {
    use core::cell::Cell;
    use core::sync::atomic::Ordering;

    std::thread_local! {
        static CURRENT: Cell<usize> = const { Cell::new(0) };
        static SERVES: Cell<bool> = const { Cell::new(false) };
    }

    /// Has this thread serve what it asks of other harts itself, since no other thread plays them.
    pub fn serve_all(yes: bool) {
        SERVES.set(yes);
    }

    pub(super) fn interrupt(harts: u64) {
        if SERVES.get() {
            let asked = (0..super::MAX_HARTS).filter(|i| harts >> i & 1 != 0);
            asked.for_each(|index| on(index, crate::mem::tlb::serve));
        }
    }

    pub(super) fn current() -> usize {
        CURRENT.get()
    }

    /// Has this thread play hart `index` while `f` runs.
    pub fn on<R>(index: usize, f: impl FnOnce() -> R) -> R {
        let before = CURRENT.replace(index);
        let result = f();
        CURRENT.set(before);
        result
    }

    /// Sets the number of harts. For tests that hold the arena.
    pub fn set_count(count: usize) {
        super::COUNT.store(count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::List;

    #[test]
    fn harts_are_listed_in_ranges() {
        let text = |set: usize| List(set).to_string();
        assert_eq!(text(0b1011_0111), "0-2,4-5,7");
        assert_eq!((text(1), text(0), text(usize::MAX)), ("0".into(), "".into(), "0-63".into()));
    }
}
