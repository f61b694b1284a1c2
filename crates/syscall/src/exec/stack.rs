//! What a program finds on its stack: the psABI's process initialisation, getauxval(3).
//!
//! ```text
//!   top ──► 8 bytes of zero
//!           the path that was executed (AT_EXECFN)
//!           environment strings
//!           argument strings                      (in this order so that argv[0] is lowest)
//!           up to a page of random padding
//!           16 random bytes (AT_RANDOM)
//!           auxiliary vector, AT_NULL last
//!           envp[], NULL
//!           argv[], NULL
//!   sp  ──► argc                                  (sp is a multiple of 16)
//! ```

use alloc::vec::Vec;

use uapi::auxv::*;
use uapi::{Errno, Result};

use super::strings::Strings;

/// What the auxiliary vector says of the program.
#[derive(Clone, Copy, Default, Debug)]
pub struct Aux {
    /// The vDSO's ELF header; 0 for none.
    pub vdso: usize,
    /// `AT_HWCAP`.
    pub hwcap: u64,
    /// The program headers in memory; 0 when no segment has them.
    pub phdr: usize,
    /// Their number.
    pub phnum: usize,
    /// Where the interpreter lies; 0 without one.
    pub base: usize,
    /// The program's first instruction.
    pub entry: usize,
    /// uid, euid, gid, egid.
    pub ids: [u32; 4],
    /// The program was given rights that its caller does not have.
    pub secure: bool,
}

/// Bytes of a signal frame without vector state, as Linux reports the least stack a handler needs: `AT_MINSIGSTKSZ`.
const SIGNAL_STACK: u64 = size_of::<uapi::SigFrame>() as u64;

/// The stack of a new program, ready to be written.
#[derive(Debug)]
pub struct Layout {
    /// The stack pointer.
    pub sp: usize,
    /// What goes to `sp`: argc up to the auxiliary vector.
    pub words: Vec<u64>,
    /// Where the 16 random bytes go.
    pub random: usize,
    /// Where the argument strings go; the environment and the executed path follow without a gap.
    pub arguments: usize,
    /// Where the environment strings go.
    pub environment: usize,
    /// Where the executed path goes, with a NUL.
    pub execfn: usize,
}

impl Layout {
    /// Lays a stack out below `top`. `padding` is a random number of bytes below a page. `E2BIG` when the stack would
    /// have less than `limit` bytes, `ENOMEM`.
    pub fn new(
        top: usize,
        limit: usize,
        padding: usize,
        argv: &Strings,
        envp: &Strings,
        execfn: &[u8],
        aux: &Aux,
    ) -> Result<Self> {
        let below = |at: usize, bytes: usize| at.checked_sub(bytes).ok_or(Errno::E2BIG);
        let execfn = below(top, size_of::<u64>() + execfn.len() + 1)?;
        let environment = below(execfn, envp.bytes().len())?;
        let arguments = below(environment, argv.bytes().len())?;
        let random = below(arguments, padding)? & !15;
        let random = below(random, 16)?;
        let auxv = aux.vector(random, execfn);
        let count = 1 + argv.len() + 1 + envp.len() + 1 + auxv.len() * 2;
        let sp = below(random, count * size_of::<u64>())? & !15;
        if top - sp > limit {
            return Err(Errno::E2BIG);
        }
        let mut words = Vec::new();
        words.try_reserve_exact(count).map_err(|_| Errno::ENOMEM)?;
        words.push(argv.len() as u64);
        words.extend(argv.starts().map(|at| (arguments + at) as u64));
        words.push(0);
        words.extend(envp.starts().map(|at| (environment + at) as u64));
        words.push(0);
        words.extend(auxv.iter().flatten());
        Ok(Self { sp, words, random, arguments, environment, execfn })
    }
}

impl Aux {
    /// Bytes of the vector.
    pub fn size(&self) -> usize {
        size_of_val(&self.vector(0, 0))
    }

    /// Type and value, in Linux's order. The caches' geometry is not known: 0, as Linux says then.
    fn vector(&self, random: usize, execfn: usize) -> [[u64; 2]; 27] {
        let [uid, euid, gid, egid] = self.ids.map(u64::from);
        [
            if self.vdso != 0 { [AT_SYSINFO_EHDR, self.vdso as u64] } else { [AT_IGNORE, 0] },
            [AT_L1I_CACHESIZE, 0],
            [AT_L1I_CACHEGEOMETRY, 0],
            [AT_L1D_CACHESIZE, 0],
            [AT_L1D_CACHEGEOMETRY, 0],
            [AT_L2_CACHESIZE, 0],
            [AT_L2_CACHEGEOMETRY, 0],
            [AT_L3_CACHESIZE, 0],
            [AT_L3_CACHEGEOMETRY, 0],
            [AT_MINSIGSTKSZ, SIGNAL_STACK],
            [AT_HWCAP, self.hwcap],
            [AT_PAGESZ, hal::addr::PAGE_SIZE as u64],
            [AT_CLKTCK, uapi::time::USER_HZ],
            [AT_PHDR, self.phdr as u64],
            [AT_PHENT, size_of::<uapi::Phdr>() as u64],
            [AT_PHNUM, self.phnum as u64],
            [AT_BASE, self.base as u64],
            [AT_FLAGS, 0],
            [AT_ENTRY, self.entry as u64],
            [AT_UID, uid],
            [AT_EUID, euid],
            [AT_GID, gid],
            [AT_EGID, egid],
            [AT_SECURE, u64::from(self.secure)],
            [AT_RANDOM, random as u64],
            [AT_EXECFN, execfn as u64],
            [AT_NULL, 0],
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::String;
    use std::vec;
    use zerocopy::IntoBytes;

    const TOP: usize = 0x3f_ffff_f000;

    fn list(strings: &[String]) -> Strings {
        let mut list = Strings::default();
        for s in strings {
            list.push(s.as_bytes(), &mut 1_000_000).unwrap();
        }
        list
    }

    /// Writes the stack as exec does and gives memory from `sp` to `TOP`.
    fn memory(l: &Layout, argv: &Strings, envp: &Strings, execfn: &[u8]) -> Vec<u8> {
        let mut memory = vec![0xaa; TOP - l.sp];
        let mut put = |at: usize, bytes: &[u8]| {
            let gap = &mut memory[at - l.sp..][..bytes.len()];
            assert!(gap.iter().all(|&b| b == 0xaa), "two things at one place");
            gap.copy_from_slice(bytes);
        };
        put(l.sp, l.words.as_bytes());
        put(l.random, &[0x55; 16]);
        put(l.arguments, argv.bytes());
        put(l.environment, envp.bytes());
        put(l.execfn, execfn);
        put(l.execfn + execfn.len(), &[0; 9]);
        memory
    }

    proptest! {
        /// A program that walks its stack finds what was passed, whatever that is.
        #[test]
        fn a_program_finds_its_arguments(argv in prop::collection::vec("[ -~]{0,40}", 0..9),
            envp in prop::collection::vec("[A-Z]{1,8}=[ -~]{0,90}", 0..9), path in "[!-~]{1,50}", padding in 0usize..4096) {
            let (a, e) = (list(&argv), list(&envp));
            let aux = Aux { phdr: 0x10040, phnum: 7, entry: 0x10400, ids: [1, 2, 3, 4], ..Aux::default() };
            let l = Layout::new(TOP, 1 << 20, padding, &a, &e, path.as_bytes(), &aux).unwrap();
            prop_assert_eq!(l.sp % 16, 0);
            let memory = memory(&l, &a, &e, path.as_bytes());
            let word = |at: usize| usize::from_le_bytes(memory[at - l.sp..][..8].try_into().unwrap());
            let text = |at: usize| {
                let bytes = &memory[at - l.sp..];
                String::from_utf8(bytes[..bytes.iter().position(|&b| b == 0).unwrap()].to_vec()).unwrap()
            };
            prop_assert_eq!(word(l.sp), argv.len());
            let mut at = l.sp + 8;
            let mut array = || {
                let mut found = vec![];
                while word(at) != 0 {
                    found.push(text(word(at)));
                    at += 8;
                }
                at += 8;
                found
            };
            prop_assert_eq!(array(), argv);
            prop_assert_eq!(array(), envp);
            let mut seen = vec![];
            while word(at) as u64 != AT_NULL {
                seen.push((word(at) as u64, word(at + 8)));
                at += 16;
            }
            let value = |kind| seen.iter().find(|(k, _)| *k == kind).map(|(_, v)| *v);
            prop_assert_eq!(value(AT_PHDR), Some(0x10040));
            prop_assert_eq!(value(AT_EGID), Some(4));
            prop_assert_eq!(value(AT_PHENT), Some(56));
            prop_assert_eq!(text(value(AT_EXECFN).unwrap()), path);
            let random = value(AT_RANDOM).unwrap();
            prop_assert!(memory[random - l.sp..][..16].iter().all(|&b| b == 0x55));
        }
    }

    #[test]
    fn a_stack_that_is_too_small_is_refused() {
        let none = Strings::default();
        let error = |top, limit| Layout::new(top, limit, 0, &none, &none, b"x", &Aux::default()).err();
        assert_eq!(error(TOP, 1 << 20), None);
        assert_eq!(error(TOP, 100), Some(Errno::E2BIG));
        assert_eq!(error(64, 1 << 20), Some(Errno::E2BIG));
    }
}
