//! Reading an ELF file's headers: elf(5), the riscv64 psABI.
//!
//! Headers are an allegation. Everything that the loader does arithmetic with is checked here, once, against the user
//! half of the address space, so that the rest of exec can add and round without a second thought; what is wrong in
//! any way is `ENOEXEC`. Nothing here allocates more than the bounded list of segments, and nothing panics: a property
//! test throws mutated headers at it.
//!
//! Where Linux finds a bad address only after it has thrown the old program away, and kills, this refuses before.

use alloc::vec::Vec;

use hal::addr::{PAGE_SIZE, page_down, page_up};
use uapi::elf::*;
use uapi::fs::PATH_MAX;
use uapi::{Ehdr, Errno, Phdr, Result};
use zerocopy::FromBytes;

/// Most bytes of program headers: Linux's limit.
const PHDRS_MAX: usize = 65536;
/// Lowest address a segment of a program at a fixed place may have: the page at 0 is never mapped.
const LOWEST: usize = PAGE_SIZE;

/// Where a program wants to lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// At the addresses it names (`ET_EXEC`).
    Fixed,
    /// Anywhere (`ET_DYN`).
    Anywhere,
}

/// A `PT_LOAD` segment. Invariants: `filesz <= memsz`, `memsz > 0`, `vaddr + memsz` rounded up to a page is at most the
/// `limit` given to [`parse`], `offset + filesz` does not overflow, `offset` and `vaddr` agree within a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Address of the first byte, before relocation.
    pub vaddr: usize,
    /// Bytes that come from the file.
    pub filesz: usize,
    /// Bytes in memory; what the file does not give is zero.
    pub memsz: usize,
    /// `PF_*`.
    pub flags: u32,
}

/// What exec needs to know of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Image {
    /// Fixed or not.
    pub placement: Placement,
    /// First instruction, before relocation.
    pub entry: usize,
    /// Where the program headers lie in memory, before relocation, if a segment has them.
    pub phdr: Option<usize>,
    /// Number of program headers.
    pub phnum: usize,
    /// What is loaded, in the file's order; never empty.
    pub segments: Vec<Segment>,
    /// Lowest page of all segments.
    pub low: usize,
    /// First page behind all segments.
    pub high: usize,
    /// Largest alignment that a segment asks for: a power of two, at least a page.
    pub align: usize,
    /// `PT_INTERP`: offset and length of the path, NUL included.
    pub interp: Option<(u64, usize)>,
    /// `PT_GNU_STACK` asks for an executable stack.
    pub exec_stack: bool,
}

/// Reads and checks the file header, the first [`size_of::<Ehdr>()`] bytes of a file; gives offset and length of
/// the program headers.
pub fn header(bytes: &[u8]) -> Result<(Ehdr, u64, usize)> {
    let (header, _) = Ehdr::read_from_prefix(bytes).map_err(|_| Errno::ENOEXEC)?;
    let ident = &header.e_ident;
    let right = ident.starts_with(&ELFMAG)
        && ident[EI_CLASS] == ELFCLASS64
        && ident[EI_DATA] == ELFDATA2LSB
        && header.e_machine == EM_RISCV
        && matches!(header.e_type, ET_EXEC | ET_DYN)
        && usize::from(header.e_phentsize) == size_of::<Phdr>();
    let len = usize::from(header.e_phnum) * size_of::<Phdr>();
    if !right || len == 0 || len > PHDRS_MAX || header.e_phoff.checked_add(len as u64).is_none() {
        return Err(Errno::ENOEXEC);
    }
    Ok((header, header.e_phoff, len))
}

/// Reads and checks the program headers, `phdrs` as found at the place that [`header`] gave. `limit` is the end of the
/// user half of the address space.
pub fn parse(header: &Ehdr, phdrs: &[u8], limit: usize) -> Result<Image> {
    let placement = if header.e_type == ET_EXEC { Placement::Fixed } else { Placement::Anywhere };
    let mut image = Image {
        placement,
        entry: user(header.e_entry, limit)?,
        phdr: None,
        phnum: usize::from(header.e_phnum),
        segments: Vec::new(),
        low: usize::MAX,
        high: 0,
        align: PAGE_SIZE,
        interp: None,
        exec_stack: false,
    };
    let headers = || phdrs.chunks_exact(size_of::<Phdr>()).filter_map(|b| Phdr::read_from_bytes(b).ok());
    if headers().count() != image.phnum {
        return Err(Errno::ENOEXEC);
    }
    let loads = headers().filter(|p| p.p_type == PT_LOAD && p.p_memsz != 0).count();
    image.segments.try_reserve_exact(loads).map_err(|_| Errno::ENOMEM)?;
    for p in headers() {
        match p.p_type {
            PT_LOAD => image.load(&p, header, limit)?,
            PT_INTERP if image.interp.is_none() => image.interp = Some(interp(&p)?),
            PT_GNU_STACK => image.exec_stack = p.p_flags & PF_X != 0,
            _ => {}
        }
    }
    let span = image.high.checked_sub(image.low).ok_or(Errno::ENOEXEC)?;
    if image.segments.is_empty() || image.align > limit || span.checked_add(image.align).is_none_or(|s| s > limit) {
        return Err(Errno::ENOEXEC);
    }
    Ok(image)
}

/// An address of the user half.
fn user(address: u64, limit: usize) -> Result<usize> {
    usize::try_from(address).ok().filter(|&a| a < limit).ok_or(Errno::ENOEXEC)
}

fn interp(p: &Phdr) -> Result<(u64, usize)> {
    let len = usize::try_from(p.p_filesz).map_err(|_| Errno::ENOEXEC)?;
    if !(2..=PATH_MAX).contains(&len) || p.p_offset.checked_add(len as u64).is_none() {
        return Err(Errno::ENOEXEC);
    }
    Ok((p.p_offset, len))
}

impl Image {
    /// From the first to the last byte that the file gives segments with one of `flags`, moved by `bias`; (0, 0) when
    /// there are none.
    pub fn extent(&self, bias: usize, flags: u32) -> (usize, usize) {
        let chosen = || self.segments.iter().filter(|s| s.flags & flags != 0);
        let start = chosen().map(|s| s.vaddr).min().map_or(0, |at| at.wrapping_add(bias));
        (start, chosen().map(|s| s.vaddr + s.filesz).max().map_or(0, |at| at.wrapping_add(bias)))
    }

    fn load(&mut self, p: &Phdr, header: &Ehdr, limit: usize) -> Result<()> {
        if p.p_memsz == 0 {
            return if p.p_filesz == 0 { Ok(()) } else { Err(Errno::ENOEXEC) };
        }
        let vaddr = user(p.p_vaddr, limit)?;
        let memsz = user(p.p_memsz, limit)?;
        let end = vaddr.checked_add(memsz).and_then(page_up).filter(|&end| end <= limit).ok_or(Errno::ENOEXEC)?;
        let file_end = p.p_offset.checked_add(p.p_filesz).ok_or(Errno::ENOEXEC)?;
        let agree = p.p_offset % PAGE_SIZE as u64 == (vaddr % PAGE_SIZE) as u64;
        let low_enough = self.placement == Placement::Anywhere || vaddr >= LOWEST;
        if p.p_filesz > p.p_memsz || p.p_filesz != 0 && !agree || file_end > i64::MAX as u64 || !low_enough {
            return Err(Errno::ENOEXEC);
        }
        if p.p_align.is_power_of_two() {
            self.align = self.align.max(usize::try_from(p.p_align).map_err(|_| Errno::ENOEXEC)?);
        }
        // AT_PHDR: the headers are in memory where a segment maps their place in the file.
        if self.phdr.is_none() && (p.p_offset..file_end).contains(&header.e_phoff) {
            self.phdr = vaddr.checked_add((header.e_phoff - p.p_offset) as usize);
        }
        self.low = self.low.min(page_down(vaddr));
        self.high = self.high.max(end);
        let filesz = p.p_filesz as usize;
        self.segments.push(Segment { offset: p.p_offset, vaddr, filesz, memsz, flags: p.p_flags });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
