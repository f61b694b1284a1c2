//! Numbers and kinship: which process, thread, group and session a number names, and who is whose child.
//!
//! One table answers all of it, because all of it changes together: a fork takes a number and links a child, an exit
//! gives children away, a wait frees a number. Kinship is kept as *numbers* inside the table (parent, first child,
//! next and previous sibling), not as pointers between processes: there is no cycle of references to break, a fork
//! allocates nothing for its links, and the whole of it is plain data that the host can test.
//!
//! The table is a radix tree of one level, so a lookup is two loads. Numbers are handed out in rising order and wrap,
//! so that a number is not reused soon after its owner is gone. A number that is still some process's group or session
//! is not free either (setpgid(2): the group outlives its leader).
//!
//! One lock guards the table; it is taken before a process's signal lock and never the other way round.

use alloc::boxed::Box;
use alloc::vec::Vec;

use uapi::Errno;

/// Numbers run from 1 to `PID_MAX - 1` (proc(5), `pid_max`).
pub const PID_MAX: u32 = 32768;
/// Where counting goes on after a wrap; lower numbers stay with what started at boot.
const WRAP_TO: u32 = 300;
const CHUNK: usize = 64;

/// Where a process stands among the others.
pub struct Node<P> {
    /// What the number names.
    pub value: P,
    parent: u32,
    first_child: u32,
    next: u32,
    prev: u32,
    pgid: u32,
    sid: u32,
    dead: bool,
}

impl<P> Node<P> {
    /// Number of the parent; 0 for the first process.
    pub fn parent(&self) -> u32 {
        self.parent
    }

    /// Process group.
    pub fn pgid(&self) -> u32 {
        self.pgid
    }

    /// Session.
    pub fn sid(&self) -> u32 {
        self.sid
    }
}

struct Slot<T, P> {
    thread: Option<T>,
    node: Option<Node<P>>,
    /// Processes whose group is this number, plus those whose session it is.
    uses: u32,
    /// Handed out, but nothing is installed yet.
    reserved: bool,
}

impl<T, P> Slot<T, P> {
    const fn new() -> Self {
        Self { thread: None, node: None, uses: 0, reserved: false }
    }

    fn is_free(&self) -> bool {
        self.thread.is_none() && self.node.is_none() && self.uses == 0 && !self.reserved
    }
}

type Chunk<T, P> = Box<[Slot<T, P>; CHUNK]>;

/// The table. `T` is what a thread number names, `P` what a process number names.
pub struct Tree<T, P> {
    chunks: Vec<Option<Chunk<T, P>>>,
    last: u32,
}

impl<T, P> Default for Tree<T, P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, P> Tree<T, P> {
    /// An empty table.
    pub const fn new() -> Self {
        Self { chunks: Vec::new(), last: 0 }
    }

    fn slot(&self, id: u32) -> Option<&Slot<T, P>> {
        let id = id as usize;
        Some(&self.chunks.get(id / CHUNK)?.as_ref()?[id % CHUNK])
    }

    fn slot_mut(&mut self, id: u32) -> Option<&mut Slot<T, P>> {
        let id = id as usize;
        Some(&mut self.chunks.get_mut(id / CHUNK)?.as_mut()?[id % CHUNK])
    }

    fn slot_or_new(&mut self, id: u32) -> Result<&mut Slot<T, P>, Errno> {
        let (at, index) = (id as usize / CHUNK, id as usize % CHUNK);
        if at >= self.chunks.len() {
            self.chunks.try_reserve(at + 1 - self.chunks.len()).map_err(|_| Errno::ENOMEM)?;
            self.chunks.resize_with(at + 1, || None);
        }
        if self.chunks[at].is_none() {
            self.tidy();
        }
        Ok(&mut self.chunks[at].get_or_insert_with(|| Box::new([const { Slot::new() }; CHUNK]))[index])
    }

    /// Frees the chunks in which no number is taken. Once for each chunk that is made, so that a system that goes
    /// through the numbers holds memory for those in use only.
    fn tidy(&mut self) {
        for chunk in &mut self.chunks {
            if chunk.as_ref().is_some_and(|slots| slots.iter().all(Slot::is_free)) {
                *chunk = None;
            }
        }
    }

    fn is_free(&self, id: u32) -> bool {
        self.slot(id).is_none_or(Slot::is_free)
    }

    /// The number that was handed out last.
    pub fn last(&self) -> u32 {
        self.last
    }

    /// Takes a free number; it stays taken until something is installed under it and removed, or it is released.
    /// `EAGAIN` when all are taken.
    pub fn reserve(&mut self) -> Result<u32, Errno> {
        let mut id = self.last;
        for _ in 0..PID_MAX {
            id = if id + 1 >= PID_MAX { WRAP_TO } else { id + 1 };
            if self.is_free(id) {
                self.slot_or_new(id)?.reserved = true;
                self.last = id;
                return Ok(id);
            }
        }
        Err(Errno::EAGAIN)
    }

    /// Gives back a reserved number under which nothing was installed.
    pub fn release(&mut self, id: u32) {
        if let Some(slot) = self.slot_mut(id) {
            slot.reserved = false;
        }
    }

    /// Installs a thread under a reserved number (or that of a process whose first thread it is).
    pub fn insert_thread(&mut self, tid: u32, thread: T) {
        if let Some(slot) = self.slot_mut(tid) {
            slot.reserved = false;
            slot.thread = Some(thread);
        }
    }

    /// Takes a thread out.
    pub fn remove_thread(&mut self, tid: u32) -> Option<T> {
        self.slot_mut(tid)?.thread.take()
    }

    /// The thread of a number.
    pub fn thread(&self, tid: u32) -> Option<&T> {
        self.slot(tid)?.thread.as_ref()
    }

    /// Installs a process under a reserved number, as a child of `parent` (0: of nobody).
    pub fn insert_process(&mut self, pid: u32, value: P, parent: u32, pgid: u32, sid: u32) {
        let Some(slot) = self.slot_mut(pid) else { return };
        slot.reserved = false;
        slot.node = Some(Node { value, parent: 0, first_child: 0, next: 0, prev: 0, pgid, sid, dead: false });
        self.uses(pgid, 1);
        self.uses(sid, 1);
        self.link(pid, parent);
    }

    /// Takes a process out. Its children must have been given away.
    pub fn remove_process(&mut self, pid: u32) -> Option<P> {
        self.unlink(pid);
        let node = self.slot_mut(pid)?.node.take()?;
        self.uses(node.pgid, -1);
        self.uses(node.sid, -1);
        Some(node.value)
    }

    /// The process of a number.
    pub fn process(&self, pid: u32) -> Option<&P> {
        Some(&self.node(pid)?.value)
    }

    /// The process of a number and its place among the others.
    pub fn node(&self, pid: u32) -> Option<&Node<P>> {
        self.slot(pid)?.node.as_ref()
    }

    fn node_mut(&mut self, pid: u32) -> Option<&mut Node<P>> {
        self.slot_mut(pid)?.node.as_mut()
    }

    fn uses(&mut self, id: u32, change: i32) {
        if let Some(slot) = self.slot_mut(id) {
            slot.uses = slot.uses.saturating_add_signed(change);
        }
    }

    /// Marks a process as a zombie: it no longer keeps a group from being orphaned.
    pub fn mark_dead(&mut self, pid: u32) {
        if let Some(node) = self.node_mut(pid) {
            node.dead = true;
        }
    }

    fn link(&mut self, child: u32, parent: u32) {
        let Some(node) = self.node_mut(parent) else { return };
        let old = core::mem::replace(&mut node.first_child, child);
        if let Some(node) = self.node_mut(old) {
            node.prev = child;
        }
        if let Some(node) = self.node_mut(child) {
            (node.parent, node.next, node.prev) = (parent, old, 0);
        }
    }

    fn unlink(&mut self, child: u32) {
        let Some(node) = self.node_mut(child) else { return };
        let (parent, next, prev) = (node.parent, node.next, node.prev);
        (node.parent, node.next, node.prev) = (0, 0, 0);
        if let Some(node) = self.node_mut(next) {
            node.prev = prev;
        }
        if prev != 0 {
            if let Some(node) = self.node_mut(prev) {
                node.next = next;
            }
        } else if let Some(node) = self.node_mut(parent)
            && node.first_child == child
        {
            node.first_child = next;
        }
    }

    /// Gives every child of `from` to `to` and tells `each` of them. With `to` 0 they are left without a parent.
    pub fn reparent(&mut self, from: u32, to: u32, mut each: impl FnMut(u32, &P)) {
        while let Some(child) = self.node(from).map(|n| n.first_child).filter(|&c| c != 0) {
            self.unlink(child);
            self.link(child, to);
            if let Some(node) = self.node(child) {
                each(child, &node.value);
            }
        }
    }

    /// The children of a process, youngest first.
    pub fn children(&self, pid: u32) -> impl Iterator<Item = (u32, &Node<P>)> {
        let mut next = self.node(pid).map_or(0, |n| n.first_child);
        core::iter::from_fn(move || {
            let id = next;
            let node = self.node(id)?;
            next = node.next;
            Some((id, node))
        })
    }

    /// All processes, in the order of their numbers.
    pub fn processes(&self) -> impl Iterator<Item = (u32, &Node<P>)> {
        let chunks = self.chunks.iter().enumerate();
        chunks.filter_map(|(at, chunk)| Some((at, chunk.as_ref()?))).flat_map(|(at, chunk)| {
            let slots = chunk.iter().enumerate();
            slots.filter_map(move |(i, slot)| Some(((at * CHUNK + i) as u32, slot.node.as_ref()?)))
        })
    }

    /// The processes of a group.
    pub fn group(&self, pgid: u32) -> impl Iterator<Item = (u32, &Node<P>)> {
        self.processes().filter(move |(_, n)| n.pgid == pgid)
    }

    /// True when some process of session `sid` is in group `pgid`.
    pub fn group_in_session(&self, pgid: u32, sid: u32) -> bool {
        self.group(pgid).any(|(_, n)| n.sid == sid)
    }

    /// Moves a process into a group.
    pub fn set_group(&mut self, pid: u32, pgid: u32) {
        let Some(node) = self.node_mut(pid) else { return };
        let old = core::mem::replace(&mut node.pgid, pgid);
        self.uses(old, -1);
        self.uses(pgid, 1);
    }

    /// Makes a process the leader of a new session and group of its own number.
    pub fn new_session(&mut self, pid: u32) {
        let Some(node) = self.node_mut(pid) else { return };
        let old = core::mem::replace(&mut node.sid, pid);
        self.uses(old, -1);
        self.uses(pid, 1);
        self.set_group(pid, pid);
    }

    /// True when no living member of the group, `without` left out, has a parent in another group of its session: then
    /// nobody is there to continue its stopped jobs (POSIX: an orphaned process group). Children of `init` do not count.
    pub fn is_orphaned(&self, pgid: u32, without: u32) -> bool {
        !self.group(pgid).any(|(pid, n)| {
            let parent = self.node(n.parent);
            pid != without && !n.dead && n.parent > 1 && parent.is_some_and(|p| p.pgid != pgid && p.sid == n.sid)
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec;

    type Table = Tree<u32, u32>;

    fn spawn(t: &mut Table, parent: u32) -> u32 {
        let pid = t.reserve().unwrap();
        let (pgid, sid) = t.node(parent).map_or((pid, pid), |n| (n.pgid(), n.sid()));
        t.insert_process(pid, pid, parent, pgid, sid);
        t.insert_thread(pid, pid);
        pid
    }

    #[test]
    fn a_group_number_outlives_its_leader() {
        let mut t = Table::new();
        let init = spawn(&mut t, 0);
        let leader = spawn(&mut t, init);
        t.set_group(leader, leader);
        let member = spawn(&mut t, leader);
        t.reparent(leader, init, |_, _| {});
        t.remove_thread(leader);
        t.remove_process(leader);
        assert!(!t.is_free(leader), "the member's group has the number");
        assert_eq!(t.node(member).unwrap().parent(), init);
        t.remove_thread(member);
        t.remove_process(member);
        assert!(t.is_free(leader) && t.is_free(member));
    }

    #[test]
    fn numbers_that_came_and_went_take_no_memory() {
        let mut t = Table::new();
        let init = spawn(&mut t, 0);
        for _ in 0..PID_MAX {
            let pid = spawn(&mut t, init);
            t.remove_thread(pid);
            t.remove_process(pid);
        }
        assert!(t.chunks.iter().flatten().count() <= 3);
        assert!(t.process(init).is_some());
    }

    #[test]
    fn numbers_wrap_and_run_out() {
        let mut t = Table::new();
        let mut seen = 0;
        while t.reserve().is_ok() {
            seen += 1;
        }
        assert_eq!(seen, PID_MAX - 1);
        t.release(WRAP_TO + 7);
        assert_eq!(t.reserve(), Ok(WRAP_TO + 7));
    }

    #[test]
    fn a_job_is_orphaned_when_its_shell_is_gone() {
        let mut t = Table::new();
        let init = spawn(&mut t, 0);
        let shell = spawn(&mut t, init);
        t.new_session(shell);
        let job = spawn(&mut t, shell);
        t.set_group(job, job);
        assert!(!t.is_orphaned(job, 0));
        assert!(t.is_orphaned(shell, 0), "the shell's parent is in another session");
        assert!(t.is_orphaned(job, job));
        t.reparent(shell, init, |_, _| {});
        assert!(t.is_orphaned(job, 0));
    }

    proptest! {
        /// Forks, exits, group changes and reaps in any order keep every child linked exactly once, and free all
        /// numbers at the end.
        #[test]
        fn kinship_stays_consistent(ops in prop::collection::vec((0u8..5, any::<prop::sample::Index>()), 1..200)) {
            let mut t = Table::new();
            let init = spawn(&mut t, 0);
            let mut live = vec![init];
            for (op, which) in ops {
                let pid = *which.get(&live);
                match op {
                    0 | 1 => live.push(spawn(&mut t, pid)),
                    2 => t.set_group(pid, pid),
                    3 if t.node(pid).unwrap().pgid() != pid => t.new_session(pid),
                    4 if pid != init => {
                        t.reparent(pid, init, |_, _| {});
                        t.remove_thread(pid);
                        t.remove_process(pid);
                        live.retain(|&p| p != pid);
                    }
                    _ => {}
                }
                let mut linked: Vec<u32> = live.iter().flat_map(|&p| t.children(p).map(|(id, n)| {
                    assert_eq!(n.parent(), p);
                    id
                }).collect::<Vec<_>>()).collect();
                linked.push(init);
                linked.sort_unstable();
                let mut all = live.clone();
                all.sort_unstable();
                prop_assert_eq!(linked, all.clone());
                prop_assert_eq!(t.processes().map(|(id, _)| id).collect::<Vec<_>>(), all);
            }
            for pid in live {
                t.reparent(pid, 0, |_, _| {});
                t.remove_thread(pid);
                t.remove_process(pid);
            }
            prop_assert!((1..PID_MAX).all(|id| t.is_free(id)));
        }
    }
}
