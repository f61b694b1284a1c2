//! Copying an address space.
//!
//! A child gets the areas and shares the private pages, write-protected on both sides. What can be found again by a
//! fault (pages of files, the page of zeroes) is not copied; an area that never had a private page costs nothing but
//! its entry in the list.

use alloc::sync::Arc;

use hal::hart;
use uapi::Errno;

use super::area::{AreaFlags, Past, Vma};
use super::{AddressSpace, Inner};

impl AddressSpace {
    /// A copy for a child process. `ENOMEM`.
    pub fn fork(&self) -> Result<Arc<Self>, Errno> {
        let mut parent = self.take(true);
        let child = Self::new(parent.layout, parent.limits)?;
        let mut protected = 0;
        let mut inner = child.alone();
        let result = parent.copy_to(&mut inner, &mut protected);
        child.tell(&inner);
        drop(inner);
        if protected != 0 {
            parent.table.fork_done();
        }
        // A child that failed half way is dropped after the parent's lock is free: it may hold areas' last references.
        drop(parent);
        result.map(|()| child)
    }
}

impl Inner {
    fn copy_to(&mut self, child: &mut Inner, protected: &mut usize) -> Result<(), Errno> {
        (child.brk_start, child.brk) = (self.brk_start, self.brk);
        child.program = self.program;
        let result = self.copy_areas(child, protected);
        child.areas.finish(&self.areas);
        child.search_top = self.search_top;
        child.search_len = self.search_len;
        result
    }

    fn copy_areas(&mut self, child: &mut Inner, protected: &mut usize) -> Result<(), Errno> {
        for (n, areas) in self.areas.chunks().enumerate() {
            if n != 0 {
                hart::window();
            }
            let copies = child.areas.open(&self.areas, areas)?;
            for area in areas.iter().filter(|area| !area.flags.has(AreaFlags::DONT_FORK)) {
                let wiped = area.flags.has(AreaFlags::WIPE_ON_FORK);
                let share = area.past.has_private() && !wiped;
                let mut copy = Vma {
                    start: area.start,
                    end: area.end,
                    backing: area.backing.clone(),
                    offset: area.offset,
                    file: area.file.clone(),
                    slot: 0,
                    prot: area.prot,
                    flags: area.flags,
                    past: if share { area.past.clone() } else { Past::default() },
                };
                Self::register(&child.me, &mut copy)?;
                child.total += copy.pages();
                copies.push(copy);
                if share {
                    let shared = self.table.share_range(&mut child.table, area.start, area.end);
                    let shared = shared.map_err(|_| {
                        // Some pages of the area may be shared already.
                        *protected += 1;
                        Errno::ENOMEM
                    })?;
                    child.mapped.private += shared.pages;
                    *protected += shared.protected;
                }
            }
        }
        Ok(())
    }
}
