//! Putting a program into an address space.
//!
//! Segments are mapped from the file's pages, nothing is copied but the page in which the file's part of a segment ends
//! and its zeroes begin. All of it happens in a new space that nobody runs yet: whatever fails, the caller goes on.

use alloc::sync::Arc;
use alloc::vec::Vec;

use fs::File;
use hal::addr::{PAGE_SIZE, page_down, page_up};
use hal::mem::layout::user_top;
use hal::user::OutBuf;
use mm::{AddressSpace, MapRequest, MappedFile, Object, Source};
use uapi::elf::{PF_R, PF_W, PF_X};
use uapi::mman::*;
use uapi::{Errno, Result};

use super::elf::{self, Image, Placement, Segment};
use crate::memory::{Mapped, may_map_at};

/// Pages of zeroes at the end of a segment's last page are written from this.
static ZEROES: [u8; PAGE_SIZE] = [0; PAGE_SIZE];

/// An ELF file, read and checked.
pub struct Program {
    file: Arc<File>,
    /// What its headers say.
    pub image: Image,
}

/// Reads exactly `out.len()` bytes at `offset`; `ENOEXEC` when the file ends before.
pub fn read_exact(file: &File, offset: u64, out: &mut [u8]) -> Result<()> {
    let offset = i64::try_from(offset).map_err(|_| Errno::ENOEXEC)?;
    let len = out.len();
    if file.read_at(offset, &mut OutBuf::Kernel(out))? == len { Ok(()) } else { Err(Errno::ENOEXEC) }
}

impl Program {
    /// Reads the headers of `file`, whose first bytes are `head`. `ENOEXEC`, `ENOMEM`.
    pub fn read(file: Arc<File>, head: &[u8]) -> Result<Self> {
        let (header, offset, len) = elf::header(head)?;
        let from_head = usize::try_from(offset).ok().and_then(|at| head.get(at..at.checked_add(len)?));
        let image = match from_head {
            Some(headers) => elf::parse(&header, headers, user_top())?,
            None => {
                let mut headers = Vec::new();
                headers.try_reserve_exact(len).map_err(|_| Errno::ENOMEM)?;
                headers.resize(len, 0);
                read_exact(&file, offset, &mut headers)?;
                elf::parse(&header, &headers, user_top())?
            }
        };
        let size = file.inode().size();
        if image.segments.iter().any(|s| s.filesz != 0 && s.offset + s.filesz as u64 > size) {
            return Err(Errno::ENOEXEC);
        }
        Ok(Self { file, image })
    }

    /// The path in `PT_INTERP`, without its NUL. `ENOEXEC` when it has none.
    pub fn interpreter(&self) -> Result<Option<Vec<u8>>> {
        let Some((offset, len)) = self.image.interp else { return Ok(None) };
        let mut path = Vec::new();
        path.try_reserve_exact(len).map_err(|_| Errno::ENOMEM)?;
        path.resize(len, 0);
        read_exact(&self.file, offset, &mut path)?;
        let end = path.iter().position(|&b| b == 0).ok_or(Errno::ENOEXEC)?;
        if path.last() != Some(&0) {
            return Err(Errno::ENOEXEC);
        }
        path.truncate(end);
        Ok(Some(path))
    }

    /// Maps the segments with the lowest page at `image.low + bias`.
    pub fn map(&self, mm: &AddressSpace, bias: usize) -> Result<()> {
        let object = self.file.mmap_object()?;
        let mapped: Arc<dyn MappedFile> = Arc::new(Mapped(self.file.clone()));
        self.image.segments.iter().try_for_each(|segment| map_segment(mm, segment, bias, &object, &mapped))
    }

    /// Where to put it, as a distance from the addresses in the file, if it can go anywhere: at `base` or above, aligned.
    /// `ENOMEM` when it does not fit there.
    pub fn bias_at(&self, base: usize) -> Result<usize> {
        let image = &self.image;
        if image.placement == Placement::Fixed {
            return Ok(0);
        }
        let start = base.checked_next_multiple_of(image.align).ok_or(Errno::ENOMEM)?;
        // The lowest page keeps its place within the alignment.
        let start = start.checked_add(image.low % image.align).ok_or(Errno::ENOMEM)?;
        start.checked_add(image.high - image.low).filter(|&end| end <= user_top()).ok_or(Errno::ENOMEM)?;
        Ok(start.wrapping_sub(image.low))
    }

    /// As [`Program::bias_at`], where mappings are placed.
    pub fn bias_anywhere(&self, mm: &AddressSpace) -> Result<usize> {
        let image = &self.image;
        if image.placement == Placement::Fixed {
            return Ok(0);
        }
        let len = image.high - image.low + if image.align > PAGE_SIZE { 2 * image.align } else { 0 };
        let flags = MAP_PRIVATE | MAP_NORESERVE;
        let room = MapRequest { addr: 0, len, prot: PROT_NONE, flags, source: Source::Anonymous, may_write: true };
        let base = mm.mmap(room)?;
        // The room was only to be found: nobody else can take it, as nobody else has the space.
        mm.munmap(base, len)?;
        self.bias_at(base)
    }
}

fn map_segment(
    mm: &AddressSpace,
    segment: &Segment,
    bias: usize,
    object: &Arc<Object>,
    file: &Arc<dyn MappedFile>,
) -> Result<()> {
    let mut prot = 0;
    for (flag, bit) in [(PF_R, PROT_READ), (PF_W, PROT_WRITE), (PF_X, PROT_EXEC)] {
        prot |= if segment.flags & flag != 0 { bit } else { 0 };
    }
    let start = bias.wrapping_add(segment.vaddr);
    let overflow = || Errno::ENOMEM;
    let file_end = start.checked_add(segment.filesz).ok_or_else(overflow)?;
    let end = start.checked_add(segment.memsz).and_then(page_up).ok_or_else(overflow)?;
    let first = page_down(start);
    may_map_at(first).map_err(refused)?;
    // Where pages without a part of the file begin.
    let fresh = if segment.filesz == 0 { first } else { page_up(file_end).ok_or_else(overflow)? };
    let flags = MAP_PRIVATE | MAP_FIXED | MAP_DENYWRITE;
    if first < fresh {
        let offset = page_down(usize::try_from(segment.offset).map_err(|_| Errno::ENOEXEC)?);
        let source = Source::Object { object: object.clone(), offset, file: Some(file.clone()) };
        let request = MapRequest { addr: first, len: fresh - first, prot, flags, source, may_write: true };
        mm.mmap(request).map_err(refused)?;
        let tail = fresh - file_end;
        if segment.memsz > segment.filesz && segment.flags & PF_W != 0 {
            let zeroes = ZEROES.get(..tail).unwrap_or_default();
            if mm.write_remote(file_end, zeroes) < tail {
                return Err(Errno::ENOMEM);
            }
        }
    }
    if fresh < end {
        let request =
            MapRequest { addr: fresh, len: end - fresh, prot, flags, source: Source::Anonymous, may_write: true };
        mm.mmap(request).map_err(refused)?;
    }
    Ok(())
}

/// An address that mappings refuse is a broken file.
fn refused(error: Errno) -> Errno {
    if error == Errno::ENOMEM { Errno::ENOMEM } else { Errno::ENOEXEC }
}
