//! What others want to know about an address space: `/proc/PID/maps`, memory use, futex keys, another process's memory.

use core::sync::atomic::Ordering;

use alloc::sync::Arc;

use hal::addr::{PAGE_SHIFT, PAGE_SIZE, page_down};
use hal::calls::Access;
use hal::hart;
use hal::mem::frame::Frame;
use hal::mem::pgtable::Prot;

use super::area::{AreaFlags, Backing, MappedFile, Vma};
use super::fault::FaultError;
use super::{AddressSpace, Inner};

/// What stands at the end of an area's line in `/proc/PID/maps`.
#[derive(Clone)]
pub enum AreaName {
    /// Nothing.
    None,
    /// `[heap]`.
    Heap,
    /// `[stack]`.
    Stack,
    /// Pages of the kernel, with the name to show.
    Special(&'static str),
    /// Shared anonymous memory: `/dev/zero (deleted)`.
    SharedAnonymous,
    /// A file.
    File(Arc<dyn MappedFile>),
}

/// One area, as `/proc/PID/maps` shows it.
#[derive(Clone)]
pub struct Area {
    /// First address.
    pub start: usize,
    /// Address after the last.
    pub end: usize,
    /// Rights.
    pub prot: Prot,
    /// Writes go to the object.
    pub shared: bool,
    /// Offset in the file in bytes; 0 for what is no file.
    pub offset: usize,
    /// Its name.
    pub name: AreaName,
}

/// Memory use in pages, as `/proc/PID/statm` and `status` show it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Usage {
    /// All areas.
    pub total: usize,
    /// In memory.
    pub resident: usize,
    /// In memory and belonging to files or shared memory.
    pub shared: usize,
    /// The most that was resident.
    pub peak: usize,
    /// Executable areas that cannot be written to.
    pub text: usize,
    /// Private writable areas, the stack not counted.
    pub data: usize,
    /// The stack.
    pub stack: usize,
    /// Page tables.
    pub tables: usize,
    /// Start of the heap, as an address.
    pub brk: usize,
}

/// What of a range is in memory, in pages, as `/proc/PID/smaps` shows it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Residency {
    /// All pages.
    pub pages: usize,
    /// Those that are private to the program or to programs that were forked from one another.
    pub anonymous: usize,
    /// Those that nobody else maps.
    pub sole: usize,
    /// Bytes, each page divided by the number of its mappings.
    pub share: usize,
    /// The same for `anonymous` alone.
    pub anonymous_share: usize,
}

/// What two futex calls must have in common to meet (futex(2)).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FutexKey {
    /// Memory of one address space.
    Private {
        /// The space.
        space: u64,
        /// The word's address.
        addr: usize,
    },
    /// Memory of an object that several spaces may map.
    Shared {
        /// The object.
        object: u64,
        /// The word's offset in it.
        offset: usize,
    },
}

impl AddressSpace {
    /// The first area that ends above `addr`: called with the end of the one before, it gives them all.
    pub fn area_after(&self, addr: usize) -> Option<Area> {
        let inner = self.alone();
        let area = inner.areas.get(inner.areas.first_above(addr))?;
        Some(inner.describe(area))
    }

    /// All areas in order. The list may change between two steps; each area is as it was at its step.
    pub fn maps(&self) -> impl Iterator<Item = Area> + '_ {
        let mut at = 0;
        core::iter::from_fn(move || {
            let area = self.area_after(at)?;
            at = area.end;
            Some(area)
        })
    }

    /// Pages in memory, the shared page of zeroes not counted. Waits for nobody, so that it may be asked with any lock held
    /// and by an interrupt's handler: while somebody changes the mappings, what it was before.
    pub fn rss(&self) -> usize {
        self.inner.figures().fold(self.resident.load(Ordering::Relaxed), usize::wrapping_add)
    }

    /// Memory use. Interrupts may come in ([`hart::window`]).
    pub fn usage(&self) -> Usage {
        let inner = self.alone();
        let mut usage = Usage {
            total: inner.total,
            resident: inner.mapped.total(),
            shared: inner.mapped.shared,
            peak: inner.peak.max(inner.mapped.total()),
            tables: inner.table.table_pages(),
            brk: inner.brk_start,
            ..Usage::default()
        };
        for (n, chunk) in inner.areas.chunks().enumerate() {
            if n != 0 {
                hart::window();
            }
            for area in chunk {
                if area.flags.has(AreaFlags::GROWS_DOWN) {
                    usage.stack += area.pages();
                } else if area.prot.writable() && !area.is_shared() {
                    usage.data += area.pages();
                } else if area.prot.executable() && !area.prot.writable() {
                    usage.text += area.pages();
                }
            }
        }
        usage
    }

    /// What of `start..end` (page-aligned) is in memory; pages that the system keeps anyhow are not counted.
    pub fn residency(&self, start: usize, end: usize) -> Residency {
        let mut sum = Residency::default();
        self.alone().table.walk_range(start, end, |_, entry| {
            let value = entry.load();
            let Some(frame) = entry.frame().filter(|_| !value.is_borrowed()) else { return };
            // References that are no mappings: the handle here and the object's own.
            let mappings = frame.refcount().saturating_sub(1 + u32::from(!value.is_private())).max(1) as usize;
            sum.pages += 1;
            sum.sole += usize::from(mappings == 1);
            sum.share += PAGE_SIZE / mappings;
            if value.is_private() {
                sum.anonymous += 1;
                sum.anonymous_share += PAGE_SIZE / mappings;
            }
        });
        sum
    }

    /// The key of the futex word at `addr`; `private` as FUTEX_PRIVATE_FLAG says.
    pub fn futex_key(&self, addr: usize, private: bool) -> Result<FutexKey, FaultError> {
        let here = FutexKey::Private { space: self.id, addr };
        if private {
            return Ok(here);
        }
        let mut guard = self.inner.read(false);
        let (inner, local) = guard.parts();
        let area = inner.areas.find_near(&mut local.area, addr).ok_or(FaultError::MapErr)?;
        match &area.backing {
            Backing::Object(object) if area.is_shared() => {
                let offset = (area.index_of(page_down(addr)) << PAGE_SHIFT) + addr % PAGE_SIZE;
                Ok(FutexKey::Shared { object: object.id(), offset })
            }
            _ => Ok(here),
        }
    }

    /// The page that an access to `addr` reaches, faulted in for that access. A caller that writes to it after the
    /// lock is free may, if the program forks at that moment, write to what both then share.
    pub fn lookup_page(&self, addr: usize, access: Access) -> Result<Frame, FaultError> {
        let mut inner = self.alone();
        let page = inner.page(addr, access);
        self.tell(&inner);
        page
    }

    /// Reads this space's memory, whichever space is active; gives the bytes read before a fault.
    pub fn read_remote(&self, addr: usize, dst: &mut [u8]) -> usize {
        let mut done = 0;
        while done < dst.len() {
            let Some(at) = addr.checked_add(done) else { break };
            let n = (PAGE_SIZE - at % PAGE_SIZE).min(dst.len() - done);
            let Ok(page) = self.lookup_page(at, Access::Read) else { break };
            page.read(at % PAGE_SIZE, &mut dst[done..done + n]);
            done += n;
        }
        done
    }

    /// Writes to this space's memory, whichever space is active; gives the bytes written before a fault.
    pub fn write_remote(&self, addr: usize, src: &[u8]) -> usize {
        let mut done = 0;
        while done < src.len() {
            let Some(at) = addr.checked_add(done) else { break };
            let n = (PAGE_SIZE - at % PAGE_SIZE).min(src.len() - done);
            // With the lock held, so that no fork comes between the page's becoming private and the write.
            let mut inner = self.alone();
            let page = inner.page(at, Access::Write);
            self.tell(&inner);
            let Ok(page) = page else { break };
            page.write(at % PAGE_SIZE, &src[done..done + n]);
            done += n;
        }
        done
    }
}

impl Inner {
    fn page(&mut self, addr: usize, access: Access) -> Result<Frame, FaultError> {
        let va = page_down(addr);
        let prot = self.table.lookup(va).prot();
        let allowed = match access {
            Access::Read => prot.readable(),
            Access::Write => prot.writable(),
            Access::Execute => prot.executable(),
        };
        if !allowed {
            self.fault_alone(addr, access)?;
        }
        self.table.find(va).and_then(|entry| entry.frame()).ok_or(FaultError::MapErr)
    }

    fn describe(&self, area: &Vma) -> Area {
        let name = match (&area.backing, &area.file) {
            (_, Some(file)) => AreaName::File(file.clone()),
            (Backing::Special(special), _) => AreaName::Special(special.name),
            (Backing::Object(_), _) => AreaName::SharedAnonymous,
            (Backing::Anonymous, _) if area.flags.has(AreaFlags::STACK) => AreaName::Stack,
            (Backing::Anonymous, _) if area.start < self.brk && area.end > self.brk_start => AreaName::Heap,
            (Backing::Anonymous, _) => AreaName::None,
        };
        let offset = if area.is_anonymous() { 0 } else { area.offset << PAGE_SHIFT };
        Area { start: area.start, end: area.end, prot: area.prot, shared: area.is_shared(), offset, name }
    }
}
