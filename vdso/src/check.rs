//! What the linked image must be, checked by the build script after each link and by the tests.
//!
//! A C library meets the vDSO before it can complain of anything, and the kernel maps it without looking: so the
//! image is held here to everything either relies on. Lookups go through both hash tables, as the libraries' do.

use std::format;
use std::string::String;
use std::vec::Vec;

/// The functions of the image.
pub const SYMBOLS: [&str; 7] = [
    "__vdso_rt_sigreturn",
    "__vdso_clock_gettime",
    "__vdso_gettimeofday",
    "__vdso_clock_getres",
    "__vdso_getcpu",
    "__vdso_flush_icache",
    "__vdso_riscv_hwprobe",
];

const SONAME: &str = "linux-vdso.so.1";
const VERSION: &str = "LINUX_4.15";
/// `li a7, 139` and `ecall`, uncompressed.
const SIGRETURN: [u8; 8] = [0x93, 0x08, 0xb0, 0x08, 0x73, 0, 0, 0];

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_NOTE: u32 = 4;
const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
const DT_NULL: u64 = 0;
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_STRSZ: u64 = 10;
const DT_SYMENT: u64 = 11;
const DT_SONAME: u64 = 14;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
const DT_VERSYM: u64 = 0x6fff_fff0;
const DT_VERDEF: u64 = 0x6fff_fffc;
const DT_VERDEFNUM: u64 = 0x6fff_fffd;
const ALLOWED: [u64; 10] =
    [DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, DT_SONAME, DT_GNU_HASH, DT_VERSYM, DT_VERDEF, DT_VERDEFNUM];

type Result<T> = std::result::Result<T, String>;

/// Little-endian words of the image, by offset; an offset is also an address, since the segment starts at both' 0.
struct Image<'a>(&'a [u8]);

impl Image<'_> {
    fn word(&self, at: u64, len: usize) -> Result<u64> {
        let at = usize::try_from(at).map_err(|_| format!("offset {at:#x}"))?;
        let bytes = at.checked_add(len).and_then(|end| self.0.get(at..end));
        let bytes = bytes.ok_or_else(|| format!("offset {at:#x} lies outside"))?;
        Ok(bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)))
    }

    fn u16(&self, at: u64) -> Result<u64> {
        self.word(at, 2)
    }

    fn u32(&self, at: u64) -> Result<u64> {
        self.word(at, 4)
    }

    fn u64(&self, at: u64) -> Result<u64> {
        self.word(at, 8)
    }

    fn string(&self, at: u64) -> Result<&str> {
        let bytes = usize::try_from(at).ok().and_then(|at| self.0.get(at..)).unwrap_or_default();
        let end = bytes.iter().position(|&byte| byte == 0).ok_or("a string does not end")?;
        std::str::from_utf8(&bytes[..end]).map_err(|_| String::from("a string is not UTF-8"))
    }
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<()> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found:x?}, expected {expected:x?}")) }
}

/// Checks a linked image and returns its functions with their offsets, in the order of [`SYMBOLS`].
///
/// # Errors
/// What is wrong, in words.
pub fn check(bytes: &[u8]) -> Result<Vec<(&'static str, u64)>> {
    let image = Image(bytes);
    header(&image)?;
    let dynamic = segments(&image)?;
    sections(&image)?;
    let table = Dynamic::read(&image, dynamic)?;
    let mut found = Vec::new();
    for name in SYMBOLS {
        let by_sysv = table.find_by_hash(name)?;
        expect(&format!("{name} through DT_GNU_HASH"), table.find_by_gnu_hash(name)?, by_sysv)?;
        found.push((name, table.function(by_sysv)?));
    }
    expect("number of symbols", table.count()?, SYMBOLS.len() as u64 + 1)?;
    let start = found[0].1 as usize;
    expect("the code of rt_sigreturn", bytes.get(start..start + 8), Some(&SIGRETURN[..]))?;
    Ok(found)
}

fn header(image: &Image) -> Result<()> {
    expect("magic, class, byte order", image.u64(0)?, 0x0001_0102_464c_457f)?;
    expect("type", image.u16(16)?, 3)?;
    expect("machine", image.u16(18)?, 243)?;
    expect("entry", image.u64(24)?, 0)?;
    expect("flags (compressed, soft float)", image.u32(48)?, 1)?;
    expect("program header size", image.u16(54)?, 56)
}

/// The four program headers; the offset and size of the dynamic section.
fn segments(image: &Image) -> Result<(u64, u64)> {
    let table = image.u64(32)?;
    let kinds = [(PT_LOAD, 5), (PT_DYNAMIC, 4), (PT_NOTE, 4), (PT_GNU_EH_FRAME, 4)];
    expect("number of program headers", image.u16(56)?, kinds.len() as u64)?;
    let mut end = 0;
    let mut dynamic = (0, 0);
    for (index, (kind, flags)) in kinds.into_iter().enumerate() {
        let at = table + 56 * index as u64;
        expect("segment type and flags", image.u64(at)?, u64::from(kind) | flags << 32)?;
        let (offset, filesz) = (image.u64(at + 8)?, image.u64(at + 32)?);
        expect("segment address", image.u64(at + 16)?, offset)?;
        expect("segment size in memory", image.u64(at + 40)?, filesz)?;
        match kind {
            PT_LOAD => {
                expect("offset of the loaded segment", offset, 0)?;
                expect("alignment of the loaded segment", image.u64(at + 48)?, 4096)?;
                end = filesz;
                if end > image.0.len() as u64 {
                    return Err("the loaded segment is cut off".into());
                }
            }
            _ if offset.checked_add(filesz).is_none_or(|last| last > end) => {
                return Err(format!("segment {index} lies outside the loaded one"));
            }
            PT_DYNAMIC => dynamic = (offset, filesz),
            _ => {}
        }
    }
    Ok(dynamic)
}

/// No section may be writable, take memory without file contents, or hold relocations.
fn sections(image: &Image) -> Result<()> {
    let (table, count, names) = (image.u64(40)?, image.u16(60)?, image.u16(62)?);
    if table == 0 {
        // They were looked at before they were cut off.
        return Ok(());
    }
    let strings = image.u64(table + 64 * names + 24)?;
    for index in 1..count {
        let at = table + 64 * index;
        let name = image.string(strings + image.u32(at)?)?;
        let (kind, flags) = (image.u32(at + 4)?, image.u64(at + 8)?);
        if kind == 4 || kind == 8 || kind == 9 || kind == 19 || flags & 1 != 0 || flags & 0x400 != 0 {
            return Err(format!(
                "section {name}: type {kind}, flags {flags:#x}: writable, thread-local or relocations"
            ));
        }
    }
    Ok(())
}

/// The table of accesses that may fault: offsets of the instructions, in order, and where to go on.
///
/// # Errors
/// The table is missing, or an offset does not lie in the code.
pub fn exceptions(bytes: &[u8]) -> Result<Vec<(u64, u64)>> {
    let image = Image(bytes);
    let (first, size) = section(&image, ".exceptions")?;
    let (text, length) = section(&image, ".text")?;
    let target = |at: u64| {
        let offset = image.u32(at)? as u32 as i32;
        let target = at.wrapping_add_signed(offset.into());
        if (text..text + length).contains(&target) {
            Ok(target)
        } else {
            Err(format!("exception at {at:#x}: {target:#x} is no code"))
        }
    };
    let mut table =
        (first..first + size).step_by(8).map(|at| Ok((target(at)?, target(at + 4)?))).collect::<Result<Vec<_>>>()?;
    table.sort_unstable();
    table.dedup();
    if table.is_empty() || table.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err("the table of exceptions is empty, or an instruction is in it twice".into());
    }
    Ok(table)
}

/// Cuts off what is not loaded, the section headers.
///
/// # Errors
/// A header lies outside.
pub fn strip(bytes: &mut Vec<u8>) -> Result<()> {
    let image = Image(bytes);
    let loaded = image.u64(image.u64(32)? + 32)?;
    bytes.truncate(usize::try_from(loaded).map_err(|_| "too long")?);
    for field in [40..48, 58..64] {
        bytes.get_mut(field).ok_or("no header")?.fill(0);
    }
    Ok(())
}

/// Offset and size of a section.
fn section(image: &Image, wanted: &str) -> Result<(u64, u64)> {
    let (table, count, names) = (image.u64(40)?, image.u16(60)?, image.u16(62)?);
    let strings = image.u64(table + 64 * names + 24)?;
    for at in (1..count).map(|index| table + 64 * index) {
        if image.string(strings + image.u32(at)?)? == wanted {
            return Ok((image.u64(at + 16)?, image.u64(at + 32)?));
        }
    }
    Err(format!("no section {wanted}"))
}

/// What the dynamic section points to.
struct Dynamic<'a> {
    image: &'a Image<'a>,
    hash: u64,
    gnu_hash: u64,
    strings: u64,
    symbols: u64,
    versions: u64,
    definitions: u64,
}

impl<'a> Dynamic<'a> {
    fn read(image: &'a Image, (offset, size): (u64, u64)) -> Result<Self> {
        let mut entries = Vec::new();
        for at in (offset..offset + size).step_by(16) {
            let (tag, value) = (image.u64(at)?, image.u64(at + 8)?);
            if tag == DT_NULL {
                break;
            }
            if !ALLOWED.contains(&tag) {
                return Err(format!("dynamic tag {tag:#x} is not wanted"));
            }
            entries.push((tag, value));
        }
        let get = |tag| {
            let entry = entries.iter().find(|entry| entry.0 == tag);
            entry.map(|entry| entry.1).ok_or_else(|| format!("dynamic tag {tag:#x} is missing"))
        };
        let dynamic = Dynamic {
            image,
            hash: get(DT_HASH)?,
            gnu_hash: get(DT_GNU_HASH)?,
            strings: get(DT_STRTAB)?,
            symbols: get(DT_SYMTAB)?,
            versions: get(DT_VERSYM)?,
            definitions: get(DT_VERDEF)?,
        };
        expect("soname", image.string(dynamic.strings + get(DT_SONAME)?)?, SONAME)?;
        expect("version definitions", get(DT_VERDEFNUM)?, 2)?;
        dynamic.version()?;
        Ok(dynamic)
    }

    /// The second definition is the version; the first is the file's own.
    fn version(&self) -> Result<()> {
        let second = self.definitions + self.image.u32(self.definitions + 16)?;
        expect("version index", self.image.u16(second + 4)?, 2)?;
        expect("version hash", self.image.u32(second + 8)?, u64::from(sysv_hash(VERSION)))?;
        let aux = second + self.image.u32(second + 12)?;
        expect("version", self.image.string(self.strings + self.image.u32(aux)?)?, VERSION)
    }

    fn count(&self) -> Result<u64> {
        self.image.u32(self.hash + 4)
    }

    fn name(&self, index: u64) -> Result<&str> {
        self.image.string(self.strings + self.image.u32(self.symbols + 24 * index)?)
    }

    fn find_by_hash(&self, name: &str) -> Result<u64> {
        let (buckets, count) = (self.image.u32(self.hash)?.max(1), self.count()?);
        let chains = self.hash + 8 + 4 * buckets;
        let mut index = self.image.u32(self.hash + 8 + 4 * (u64::from(sysv_hash(name)) % buckets))?;
        for _ in 0..count {
            if index == 0 {
                break;
            }
            if self.name(index)? == name {
                return Ok(index);
            }
            index = self.image.u32(chains + 4 * index)?;
        }
        Err(format!("{name} is not found through DT_HASH"))
    }

    fn find_by_gnu_hash(&self, name: &str) -> Result<u64> {
        let at = self.gnu_hash;
        let (buckets, first) = (self.image.u32(at)?.max(1), self.image.u32(at + 4)?);
        let (words, shift) = (self.image.u32(at + 8)?.max(1), self.image.u32(at + 12)?);
        let hash = gnu_hash(name);
        let filter = self.image.u64(at + 16 + 8 * (u64::from(hash) / 64 % words))?;
        let wanted = 1u64 << (hash % 64) | 1u64 << ((hash >> (shift & 31)) % 64);
        expect(&format!("Bloom filter bits of {name}"), filter & wanted, wanted)?;
        let table = at + 16 + 8 * words;
        let mut index = self.image.u32(table + 4 * (u64::from(hash) % buckets))?;
        while index >= first {
            let link = self.image.u32(table + 4 * buckets + 4 * (index - first))?;
            if link | 1 == u64::from(hash | 1) && self.name(index)? == name {
                return Ok(index);
            }
            if link & 1 != 0 {
                break;
            }
            index += 1;
        }
        Err(format!("{name} is not found through DT_GNU_HASH"))
    }

    /// The address of symbol `index`: a defined global function of the version.
    fn function(&self, index: u64) -> Result<u64> {
        let at = self.symbols + 24 * index;
        let name = self.name(index)?;
        expect(&format!("binding and type of {name}"), self.image.word(at + 4, 1)?, 1 << 4 | 2)?;
        if self.image.u16(at + 6)? == 0 {
            return Err(format!("{name} is undefined"));
        }
        expect(&format!("version of {name}"), self.image.u16(self.versions + 2 * index)?, 2)?;
        self.image.u64(at + 8)
    }
}

/// The hash of DT_HASH and of version definitions.
fn sysv_hash(name: &str) -> u32 {
    name.bytes().fold(0u32, |hash, byte| {
        let hash = (hash << 4).wrapping_add(byte.into());
        let high = hash & 0xf000_0000;
        (hash ^ high >> 24) & !high
    })
}

/// The hash of DT_GNU_HASH.
fn gnu_hash(name: &str) -> u32 {
    name.bytes().fold(5381, |hash, byte| hash.wrapping_mul(33).wrapping_add(byte.into()))
}
