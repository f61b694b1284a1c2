//! Waiting for several files: poll(2), select(2).
//!
//! A poll looks once; if nothing is ready and it may wait, it registers with every file's queue, looks again, and
//! sleeps until one of them is woken. The files stay open meanwhile, whatever happens to their descriptors.

use alloc::sync::Arc;
use alloc::vec::Vec;

use fs::{File, PollEvents};
use hal::addr::UserAddr;
use hal::user;
use task::{Restart, Sleep, current, wait};
use uapi::poll::*;
use uapi::{Errno, Pollfd, Result, SigSet, Timespec};
use zerocopy::IntoBytes;

use crate::caller::{descriptor_limit, files, get, get_opt, put};
use crate::signal::check_set_size;
use crate::table::calls;

calls! {
    fast {
        PPOLL = ppoll;
        PSELECT6 = pselect6;
    }
}

/// A descriptor that is polled.
struct Polled {
    /// `None` for a descriptor to be skipped or one that is not open.
    file: Option<Arc<File>>,
    /// What is wanted; errors and hang-ups come unasked.
    events: u16,
    /// What was found.
    found: u16,
}

impl Polled {
    fn look(&mut self) -> bool {
        if let Some(file) = &self.file {
            self.found = file.poll().bits() & (self.events | POLLERR | POLLHUP | POLLNVAL);
        }
        self.found != 0
    }
}

/// Waits until at least one is ready, or until `deadline`, in ticks (`Some(0)`: looks only); gives how many are.
fn wait_for(polled: &mut [Polled], deadline: Option<u64>) -> Result<usize> {
    fn look(polled: &mut [Polled]) -> usize {
        polled.iter_mut().map(Polled::look).filter(|&ready| ready).count()
    }
    let ready = look(polled);
    if ready != 0 || deadline == Some(0) {
        return Ok(ready);
    }
    let waker = current().waker();
    let mut entries = Vec::new();
    entries.try_reserve_exact(polled.len()).map_err(|_| Errno::ENOMEM)?;
    for p in polled.iter() {
        entries.push(p.file.as_ref().and_then(|file| Some((file.clone(), file.wait_queue()?.add(&waker)))));
    }
    let result = wait::wait(Sleep::Interruptible, deadline, || Some(look(polled)).filter(|&ready| ready != 0));
    for (file, entry) in entries.iter().flatten() {
        if let Some(queue) = file.wait_queue() {
            queue.remove(*entry);
        }
    }
    match result {
        Err(Errno::ETIMEDOUT) => Ok(0),
        result => result,
    }
}

/// poll(2) until `deadline`: reads the array, waits, writes what was found.
pub(crate) fn poll_until(fds: UserAddr, count: usize, deadline: Option<u64>) -> Result<usize> {
    if count as u64 > descriptor_limit() {
        return Err(Errno::EINVAL);
    }
    let mut array: Vec<Pollfd> = Vec::new();
    let mut polled = Vec::new();
    array.try_reserve_exact(count).map_err(|_| Errno::ENOMEM)?;
    polled.try_reserve_exact(count).map_err(|_| Errno::ENOMEM)?;
    array.resize(count, Pollfd::default());
    user::copy_in(array.as_mut_bytes(), fds)?;
    let table = files();
    for p in &array {
        let file = if p.fd < 0 { None } else { table.get(p.fd).ok() };
        let found = if p.fd >= 0 && file.is_none() { POLLNVAL } else { 0 };
        polled.push(Polled { file, events: p.events, found });
    }
    drop(table);
    let ready = wait_for(&mut polled, deadline)?;
    for (entry, p) in array.iter_mut().zip(&polled) {
        entry.revents = p.found;
    }
    user::copy_out(fds, array.as_bytes())?;
    Ok(ready)
}

/// The deadline of a timeout, `Some(0)` for none at all, `None` for no timeout.
fn deadline(timeout: Option<&Timespec>) -> Result<Option<u64>> {
    match timeout {
        None => Ok(None),
        Some(Timespec { tv_sec: 0, tv_nsec: 0 }) => Ok(Some(0)),
        Some(timeout) => crate::time::deadline_after(timeout).map(Some),
    }
}

/// What ppoll(2) and pselect(2) have in common: a signal mask for the length of the call, and the time left told at its
/// end.
fn with_mask(
    timeout: UserAddr,
    mask: Option<SigSet>,
    restart: impl FnOnce(Option<u64>) -> Errno,
    poll: impl FnOnce(Option<u64>) -> Result<usize>,
) -> Result<usize> {
    let deadline = deadline(get_opt(timeout)?.as_ref())?;
    let me = current();
    if let Some(mask) = mask {
        me.set_blocked_for_call(mask);
    }
    let result = match poll(deadline) {
        // The signal is delivered under the call's mask; the delivery puts the old one back.
        Err(Errno::ERESTARTSYS) => Err(if mask.is_some() { Errno::ERESTARTNOHAND } else { restart(deadline) }),
        result => {
            me.restore_blocked();
            result
        }
    };
    if let (Some(deadline), false) = (deadline, timeout.is_null()) {
        // Linux does not fail a call for this, either: the result is what counts.
        let _ = put(timeout, &crate::time::left_until(deadline));
    }
    result
}

fn ppoll(fds: UserAddr, count: u32, timeout: UserAddr, mask: UserAddr, size: usize) -> Result<usize> {
    let mask: Option<SigSet> = if mask.is_null() {
        None
    } else {
        check_set_size(size)?;
        Some(get(mask)?)
    };
    let count = count as usize;
    let restart = |deadline: Option<u64>| {
        let deadline = deadline.unwrap_or(u64::MAX);
        current().set_restart(Restart::Poll { fds: fds.0, count, deadline });
        Errno::ERESTART_RESTARTBLOCK
    };
    with_mask(timeout, mask, restart, |deadline| poll_until(fds, count, deadline))
}

/// What each of the three sets of select(2) waits for.
const IN_SET: u16 = POLLRDNORM | POLLRDBAND | POLLIN | POLLHUP | POLLERR;
const OUT_SET: u16 = POLLWRBAND | POLLWRNORM | POLLOUT | POLLERR;
const EX_SET: u16 = POLLPRI;
const SETS: [u16; 3] = [IN_SET, OUT_SET, EX_SET];

fn pselect6(
    n: i32,
    input: UserAddr,
    output: UserAddr,
    except: UserAddr,
    timeout: UserAddr,
    mask: UserAddr,
) -> Result<usize> {
    let mask = match get_opt::<SigsetArg>(mask)? {
        Some(arg) if arg.set != 0 => {
            check_set_size(arg.size)?;
            Some(get(UserAddr(arg.set))?)
        }
        _ => None,
    };
    let n = usize::try_from(n).map_err(|_| Errno::EINVAL)?;
    with_mask(timeout, mask, |_| Errno::ERESTARTNOHAND, |deadline| select(n, [input, output, except], deadline))
}

/// The words of a set of select(2).
fn words(n: usize) -> Result<Vec<u64>> {
    let mut words = Vec::new();
    words.try_reserve_exact(n.div_ceil(64)).map_err(|_| Errno::ENOMEM)?;
    words.resize(n.div_ceil(64), 0);
    Ok(words)
}

fn select(n: usize, at: [UserAddr; 3], deadline: Option<u64>) -> Result<usize> {
    let table = files();
    // Descriptors above the table cannot be open: Linux looks no further, either.
    let n = n.min(table.slots());
    let mut sets = [words(n)?, words(n)?, words(n)?];
    for (set, &at) in sets.iter_mut().zip(&at) {
        if !at.is_null() {
            user::copy_in(set.as_mut_bytes(), at)?;
        }
    }
    let has = |set: &[u64], fd: usize| set.get(fd / 64).is_some_and(|word| word >> (fd % 64) & 1 != 0);
    let mut polled = Vec::new();
    let mut numbers = Vec::new();
    for fd in 0..n {
        let events = sets.iter().zip(SETS).filter(|(set, _)| has(set, fd)).fold(0, |all, (_, events)| all | events);
        if events == 0 {
            continue;
        }
        polled.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        numbers.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        polled.push(Polled { file: Some(table.get(fd as i32)?), events, found: 0 });
        numbers.push(fd);
    }
    drop(table);
    wait_for(&mut polled, deadline)?;
    let mut bits = 0;
    let mut found = [words(n)?, words(n)?, words(n)?];
    for (p, &fd) in polled.iter().zip(&numbers) {
        for ((set, events), out) in sets.iter().zip(SETS).zip(&mut found) {
            if has(set, fd) && p.found & events != 0 {
                bits += 1;
                if let Some(word) = out.get_mut(fd / 64) {
                    *word |= 1 << (fd % 64);
                }
            }
        }
    }
    for (set, &at) in found.iter().zip(&at) {
        if !at.is_null() {
            user::copy_out(at, set.as_bytes())?;
        }
    }
    Ok(bits)
}

const _: () = assert!(PollEvents::IN.bits() == POLLIN && PollEvents::HUP.bits() == POLLHUP);
