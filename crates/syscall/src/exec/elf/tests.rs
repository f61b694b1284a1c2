//! Well-formed files, and files that lie.

use super::*;
use proptest::prelude::*;
use std::vec;
use zerocopy::IntoBytes;

const LIMIT: usize = 1 << 38;

fn ehdr(kind: u16, phnum: usize) -> Ehdr {
    let mut e_ident = [0; 16];
    e_ident[..4].copy_from_slice(&ELFMAG);
    (e_ident[EI_CLASS], e_ident[EI_DATA], e_ident[EI_VERSION]) = (ELFCLASS64, ELFDATA2LSB, EV_CURRENT);
    Ehdr {
        e_ident,
        e_type: kind,
        e_machine: EM_RISCV,
        e_version: 1,
        e_entry: 0x10200,
        e_phoff: 64,
        e_phentsize: 56,
        e_phnum: phnum as u16,
        ..Ehdr::default()
    }
}

fn load(offset: u64, vaddr: u64, filesz: u64, memsz: u64, flags: u32) -> Phdr {
    Phdr {
        p_type: PT_LOAD,
        p_flags: flags,
        p_offset: offset,
        p_vaddr: vaddr,
        p_paddr: vaddr,
        p_filesz: filesz,
        p_memsz: memsz,
        p_align: 4096,
    }
}

fn parsed(kind: u16, phdrs: &[Phdr]) -> Result<Image> {
    let (e, offset, len) = header(ehdr(kind, phdrs.len()).as_bytes())?;
    assert_eq!((offset, len), (64, phdrs.len() * 56));
    parse(&e, phdrs.as_bytes(), LIMIT)
}

#[test]
fn a_static_program() {
    let text = load(0, 0x10000, 0x800, 0x800, PF_R | PF_X);
    let data = load(0x1800, 0x12800, 0x100, 0x3000, PF_R | PF_W);
    let stack = Phdr { p_type: PT_GNU_STACK, p_flags: PF_R | PF_W, ..Phdr::default() };
    let image = parsed(ET_EXEC, &[text, data, stack]).unwrap();
    assert_eq!((image.low, image.high, image.phdr), (0x10000, 0x16000, Some(0x10040)));
    assert_eq!((image.segments.len(), image.exec_stack, image.interp), (2, false, None));
    assert_eq!((image.placement, image.align), (Placement::Fixed, 4096));
}

#[test]
fn what_does_not_fit_is_refused() {
    let text = load(0, 0x10000, 0x800, 0x800, PF_R);
    assert!(parsed(ET_EXEC, &[text]).is_ok());
    let bad = [
        load(0, LIMIT as u64, 1, 1, PF_R),
        load(0, LIMIT as u64 - 0x1000, 1, 0x1001, PF_R),
        load(0, 0, 1, 1, PF_R),
        load(0, 0x10000, 2, 1, PF_R),
        load(1, 0x10000, 1, 1, PF_R),
        load(u64::MAX - 0xfff, 0x10000, 0x1000, 0x1000, PF_R),
        load(0, u64::MAX, 1, 1, PF_R),
        load(0, 0x10000, 1, u64::MAX, PF_R),
        Phdr { p_align: 1 << 63, ..text },
    ];
    for p in bad {
        assert_eq!(parsed(ET_EXEC, &[p]), Err(Errno::ENOEXEC), "{p:x?}");
    }
    assert!(parsed(ET_DYN, &[load(0, 0, 1, 1, PF_R)]).is_ok());
    assert_eq!(parsed(ET_EXEC, &[Phdr::default()]), Err(Errno::ENOEXEC), "nothing to load");
    let interp = |len| Phdr { p_type: PT_INTERP, p_filesz: len, ..Phdr::default() };
    assert_eq!(parsed(ET_DYN, &[text, interp(20)]).unwrap().interp, Some((0, 20)));
    assert_eq!(parsed(ET_DYN, &[text, interp(1)]), Err(Errno::ENOEXEC));
    assert_eq!(parsed(ET_DYN, &[text, interp(4097)]), Err(Errno::ENOEXEC));
}

#[test]
fn headers_of_others_are_refused() {
    let good = ehdr(ET_EXEC, 1);
    assert!(header(good.as_bytes()).is_ok());
    let mut class = good;
    class.e_ident[EI_CLASS] = 1;
    let bad = [
        class,
        Ehdr { e_machine: 62, ..good },
        Ehdr { e_type: 1, ..good },
        Ehdr { e_phnum: 0, ..good },
        Ehdr { e_phnum: 1171, ..good },
        Ehdr { e_phentsize: 32, ..good },
        Ehdr { e_phoff: u64::MAX - 8, ..good },
    ];
    for e in bad {
        assert_eq!(header(e.as_bytes()).err(), Some(Errno::ENOEXEC), "{e:x?}");
    }
    assert_eq!(header(&good.as_bytes()[..63]).err(), Some(Errno::ENOEXEC));
}

proptest! {
    /// Whatever bytes a file has, the parser answers, and what it accepts is what its invariants say.
    #[test]
    fn mutated_headers_never_break_the_invariants(
        kind in prop_oneof![Just(ET_EXEC), Just(ET_DYN)],
        changes in prop::collection::vec((0usize..64 + 3 * 56, any::<u8>()), 0..12),
        words in prop::collection::vec((0usize..21, prop_oneof![any::<u64>(), 0u64..0x20000, Just(u64::MAX), Just(LIMIT as u64)]), 0..4),
    ) {
        let phdrs = [load(0, 0x10000, 0x800, 0x800, 5), load(0x1800, 0x12800, 0x100, 0x3000, 6),
            Phdr { p_type: PT_INTERP, p_filesz: 20, ..Phdr::default() }];
        let mut file = vec![];
        file.extend_from_slice(ehdr(kind, 3).as_bytes());
        file.extend_from_slice(phdrs.as_bytes());
        for (at, word) in words {
            file[64 + at * 8..][..8].copy_from_slice(&word.to_le_bytes());
        }
        for (at, byte) in changes {
            file[at] = byte;
        }
        let Ok((e, offset, len)) = header(&file) else { return Ok(()) };
        let found = usize::try_from(offset).ok().and_then(|o| file.get(o..o.checked_add(len)?));
        let Some(found) = found else { return Ok(()) };
        let Ok(image) = parse(&e, found, LIMIT) else { return Ok(()) };
        prop_assert!(!image.segments.is_empty() && image.entry < LIMIT);
        prop_assert!(image.low < image.high && image.high <= LIMIT && image.align.is_power_of_two());
        for s in &image.segments {
            prop_assert!(s.filesz <= s.memsz && s.memsz > 0);
            prop_assert!(s.vaddr >= image.low && s.vaddr + s.memsz <= image.high);
            prop_assert!(s.offset.checked_add(s.filesz as u64).is_some());
            prop_assert!(s.filesz == 0 || s.offset as usize % 4096 == s.vaddr % 4096);
        }
    }
}
