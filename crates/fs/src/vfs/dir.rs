//! The table of a directory.
//!
//! One row of slots in the order of creation, so that positions (cookies) only grow and readdir can go on behind a
//! removed entry, and hash chains through the slots for look-up. Removal leaves an empty slot; when more than half are
//! empty the row is packed, which keeps order and cookies. A slot has the name's key, which for a short name is the
//! name, so that a look-up touches nothing else until it has found its entry.

use alloc::sync::Arc;
use alloc::vec::Vec;

use hal::sync::SpinLock;
use uapi::{Errno, Result};

use crate::file::RawEntry;
use crate::vfs::name_key::NameKey;
use crate::vfs::slots::{Slot, Slots};
use crate::vfs::{Dentry, Inode};

const NONE: u32 = u32::MAX;
/// The first cookie: 0 and 1 are `.` and `..`.
const FIRST: u64 = 2;

/// A directory whose entries are not (all) in its table.
pub trait DirOps: Send + Sync {
    /// The file called `name`, if the table has none. `ENOENT`.
    fn lookup(&self, name: &[u8]) -> Result<Arc<Inode>>;

    /// Hands out the entries that are not in the table, in a stable order: from position `from` on, each with the
    /// position after it, until `emit` answers false. Gives false then.
    fn list(&self, from: u64, emit: &mut dyn FnMut(RawEntry<'_>) -> bool) -> bool;
}

#[derive(Default)]
struct Table {
    slots: Slots,
    /// Heads of the hash chains; a power of two of them, none while the table is small.
    heads: Vec<u32>,
    live: usize,
    next_cookie: u64,
    dead: bool,
}

/// A piece of a listing: cookie, name and entry.
type Batch = [Option<(u64, Arc<[u8]>, Arc<Dentry>)>; 8];

/// Below this number of entries a scan of the slots is as good as a chain.
const SMALL: usize = 4;

impl Table {
    #[inline]
    fn find(&self, key: &NameKey, name: &[u8]) -> Option<usize> {
        // Without a call in its loop, the usual case needs no registers saved.
        if key.decides() { self.search(key, |_| true) } else { self.find_long(key, name) }
    }

    #[inline(never)]
    fn find_long(&self, key: &NameKey, name: &[u8]) -> Option<usize> {
        self.search(key, |found| *found == *name)
    }

    #[inline]
    fn search(&self, key: &NameKey, same: impl Fn(&[u8]) -> bool) -> Option<usize> {
        let is = |slot: &Slot| slot.key == *key && slot.entry.as_ref().is_some_and(|(name, _)| same(name));
        if self.heads.is_empty() {
            return self.slots.iter().position(is);
        }
        let mut at = *self.heads.get(key.index() & (self.heads.len() - 1))?;
        while let Some(slot) = self.slots.get(at as usize) {
            if is(slot) {
                return Some(at as usize);
            }
            at = slot.next;
        }
        None
    }

    /// Makes room for one more entry, so that the insertion cannot fail.
    fn reserve(&mut self) -> Result<()> {
        if self.slots.is_full() && self.live < self.slots.len() / 2 {
            self.slots.pack();
            self.chain();
        }
        self.slots.reserve()?;
        if self.slots.len() >= SMALL && self.slots.len() >= self.heads.len() {
            let want = (self.slots.len() + 1).next_power_of_two().max(8);
            match self.heads.try_reserve_exact(want - self.heads.len()) {
                Ok(()) => {
                    self.heads.resize(want, NONE);
                    self.chain();
                }
                // Without memory for more chains they become longer.
                Err(_) if !self.heads.is_empty() => {}
                Err(_) => return Err(Errno::ENOMEM),
            }
        }
        Ok(())
    }

    /// Builds the chains anew. Interrupts may come in on the way.
    fn chain(&mut self) {
        let mask = self.heads.len().wrapping_sub(1);
        self.heads.fill(NONE);
        for (at, slot) in self.slots.iter_mut().enumerate() {
            if at % 2048 == 2047 {
                hal::hart::window();
            }
            if let (Some(head), true) = (self.heads.get_mut(slot.key.index() & mask), slot.entry.is_some()) {
                slot.next = core::mem::replace(head, at as u32);
            }
        }
    }

    fn push(&mut self, key: NameKey, name: Arc<[u8]>, dentry: Arc<Dentry>) {
        let at = self.slots.len() as u32;
        let mask = self.heads.len().wrapping_sub(1);
        let next = self.heads.get_mut(key.index() & mask).map_or(NONE, |head| core::mem::replace(head, at));
        let cookie = self.next_cookie.max(FIRST);
        self.next_cookie = cookie + 1;
        self.slots.push(Slot { cookie, key, next, entry: Some((name, dentry)) });
        self.live += 1;
    }

    fn remove(&mut self, at: usize) -> Option<Arc<Dentry>> {
        let slot = self.slots.get_mut(at)?;
        let (_, dentry) = slot.entry.take()?;
        let (index, next) = (slot.key.index(), slot.next);
        self.live -= 1;
        let mask = self.heads.len().wrapping_sub(1);
        if let Some(head) = self.heads.get_mut(index & mask) {
            if *head as usize == at {
                *head = next;
            } else {
                let mut before = *head as usize;
                while let Some(slot) = self.slots.get_mut(before) {
                    if slot.next as usize == at {
                        slot.next = next;
                        break;
                    }
                    before = slot.next as usize;
                }
            }
        }
        if self.live == 0 {
            self.slots.clear();
            self.heads.fill(NONE);
        }
        Some(dentry)
    }
}

/// A directory's entries.
#[derive(Default)]
pub struct Directory {
    table: SpinLock<Table>,
    ops: Option<&'static dyn DirOps>,
    own_ops: Option<alloc::boxed::Box<dyn DirOps>>,
    /// Entries count in the size that stat(2) shows, as tmpfs has it.
    sized: bool,
}

/// Bytes that tmpfs says a directory entry takes.
const ENTRY_SIZE: u64 = 20;

impl Directory {
    /// An empty directory of a tmpfs.
    pub fn sized() -> Self {
        Self { sized: true, ..Self::default() }
    }

    /// The size that stat(2) shows, in bytes: of a tmpfs, with the two dots.
    pub fn size(&self) -> u64 {
        if self.sized { (self.len() as u64 + 2) * ENTRY_SIZE } else { 0 }
    }

    /// A directory with entries that `ops` makes.
    pub fn with_ops(ops: &'static dyn DirOps) -> Self {
        Self { ops: Some(ops), ..Self::default() }
    }

    /// A directory with entries that `ops` of its own makes.
    pub fn with_own_ops(ops: alloc::boxed::Box<dyn DirOps>) -> Self {
        Self { own_ops: Some(ops), ..Self::default() }
    }

    #[inline]
    fn ops(&self) -> Option<&dyn DirOps> {
        match self.ops {
            Some(ops) => Some(ops),
            None => self.own_ops.as_deref(),
        }
    }

    /// The entry in the table.
    #[inline]
    pub(crate) fn find(&self, key: &NameKey, name: &[u8]) -> Option<Arc<Dentry>> {
        let table = self.table.lock();
        let slot = table.slots.get(table.find(key, name)?)?;
        slot.entry.as_ref().map(|(_, dentry)| dentry.clone())
    }

    /// The entry in the table, or one made for the occasion.
    #[inline]
    pub(crate) fn lookup(&self, parent: &Arc<Dentry>, key: &NameKey, name: &[u8]) -> Result<Option<Arc<Dentry>>> {
        match self.find(key, name) {
            None => self.make_up(parent, name),
            found => Ok(found),
        }
    }

    #[inline(never)]
    fn make_up(&self, parent: &Arc<Dentry>, name: &[u8]) -> Result<Option<Arc<Dentry>>> {
        match self.ops() {
            None => Ok(None),
            Some(ops) => Ok(Some(Dentry::child(parent, Arc::from(name), ops.lookup(name)?))),
        }
    }

    /// Number of entries in the table.
    pub fn len(&self) -> usize {
        self.table.lock().live
    }

    /// True without entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True once the directory was removed: nothing can be made in it.
    pub(crate) fn is_dead(&self) -> bool {
        self.table.lock().dead
    }

    /// Marks it removed, if it is empty.
    pub(crate) fn kill_if_empty(&self) -> Result<()> {
        let mut table = self.table.lock();
        if table.live != 0 {
            return Err(Errno::ENOTEMPTY);
        }
        table.dead = true;
        Ok(())
    }

    /// Makes sure that the next [`Directory::insert`] succeeds. Under the tree lock.
    pub(crate) fn reserve(&self) -> Result<()> {
        self.table.lock().reserve()
    }

    /// Enters `dentry`; the name is not there yet. Under the tree lock.
    pub(crate) fn insert(&self, key: &NameKey, name: Arc<[u8]>, dentry: Arc<Dentry>) -> Result<()> {
        let mut table = self.table.lock();
        table.reserve()?;
        table.push(*key, name, dentry);
        Ok(())
    }

    /// Takes the entry out. Under the tree lock.
    pub(crate) fn remove(&self, key: &NameKey, name: &[u8]) -> Option<Arc<Dentry>> {
        let mut table = self.table.lock();
        let at = table.find(key, name)?;
        table.remove(at)
    }

    /// Puts another entry under a name that is there; gives the old one. Under the tree lock.
    pub(crate) fn replace(&self, key: &NameKey, name: &[u8], dentry: Arc<Dentry>) -> Option<Arc<Dentry>> {
        let mut table = self.table.lock();
        let at = table.find(key, name)?;
        let (_, slot) = table.slots.get_mut(at)?.entry.as_mut()?;
        Some(core::mem::replace(slot, dentry))
    }

    /// Takes any entry out, for tearing a file system down.
    pub(crate) fn pop(&self) -> Option<Arc<Dentry>> {
        let mut table = self.table.lock();
        table.heads = Vec::new();
        table.live = table.live.saturating_sub(1);
        table.slots.pop()
    }

    /// Hands out the entries from cookie `from` on, those of the table first. `emit` runs without the lock.
    pub(crate) fn list(&self, from: u64, emit: &mut dyn FnMut(RawEntry<'_>) -> bool) -> bool {
        /// Entries of the table lie below this position, made-up ones above.
        const MADE_UP: u64 = 1 << 40;
        let mut from = from.max(FIRST);
        while from < MADE_UP {
            let (batch, more) = self.batch(from);
            for (cookie, name, dentry) in batch.into_iter().flatten() {
                from = cookie + 1;
                let inode = dentry.inode();
                if !emit(RawEntry { ino: inode.ino, mode: inode.mode(), name: &name, next: from }) {
                    return false;
                }
            }
            if !more {
                from = MADE_UP;
            }
        }
        let Some(ops) = self.ops() else { return true };
        ops.list(from - MADE_UP, &mut |entry| emit(RawEntry { next: MADE_UP + entry.next, ..entry }))
    }

    fn batch(&self, from: u64) -> (Batch, bool) {
        let mut batch = [const { None }; 8];
        let table = self.table.lock();
        let mut live = table.slots.iter_from(table.slots.position(from)).filter_map(|slot| {
            let (name, dentry) = slot.entry.as_ref()?;
            Some((slot.cookie, name.clone(), dentry.clone()))
        });
        for (place, entry) in batch.iter_mut().zip(&mut live) {
            *place = Some(entry);
        }
        (batch, live.next().is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::plain_inode;

    #[test]
    fn entries_are_found_listed_in_order_and_packed() {
        let dir = Directory::default();
        let root = Dentry::root(plain_inode(1));
        let name = |i: u64| std::format!("file{i}").into_bytes();
        for i in 0..1000 {
            let name: Arc<[u8]> = Arc::from(name(i));
            let dentry = Dentry::child(&root, name.clone(), plain_inode(i));
            dir.insert(&NameKey::of(&name), name, dentry).unwrap();
        }
        let mut seen = std::vec::Vec::new();
        let mut position = 0;
        // Remove every entry right after it was listed, eight at a time.
        loop {
            let mut some = std::vec::Vec::new();
            dir.list(position, &mut |e| {
                position = e.next;
                some.push((e.ino, e.name.to_vec()));
                some.len() < 8
            });
            if some.is_empty() {
                break;
            }
            for (ino, n) in some {
                assert_eq!(n, name(ino));
                assert!(dir.remove(&NameKey::of(&n), &n).is_some());
                assert!(dir.find(&NameKey::of(&n), &n).is_none());
                if ino % 100 == 99 {
                    let late: Arc<[u8]> = Arc::from(std::format!("late{ino}").into_bytes());
                    dir.insert(&NameKey::of(&late), late.clone(), Dentry::child(&root, late, plain_inode(9000)))
                        .unwrap();
                }
                if ino < 1000 {
                    seen.push(ino);
                }
            }
            if seen.len() == 1000 {
                break;
            }
        }
        assert_eq!(seen, (0..1000).collect::<std::vec::Vec<_>>());
        assert_eq!(dir.len(), 10);
        assert!(dir.find(&NameKey::of(b"late99"), b"late99").is_some());
    }
}
