//! The image that the kernel maps into every program (vdso(7)), found through the auxiliary vector.

use core::ffi::{CStr, c_char};
use rt::uapi::auxv::AT_SYSINFO_EHDR;
use rt::uapi::elf::{PT_DYNAMIC, PT_LOAD};
use rt::uapi::{Ehdr, Phdr};

const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_GNU_HASH: u64 = 0x6fff_fef5;

#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

/// The image.
#[derive(Clone, Copy, Debug)]
pub struct Vdso {
    /// Where it is mapped.
    pub base: usize,
    bias: usize,
    strings: usize,
    symbols: usize,
    hash: usize,
    gnu_hash: usize,
}

fn at<T: Copy>(address: usize) -> T {
    // SAFETY: addresses come from the image's own tables, and the image is mapped and never changes.
    unsafe { (address as *const T).read_unaligned() }
}

impl Vdso {
    /// The image of this process.
    pub fn find(args: rt::Args) -> Option<Self> {
        let base = args.auxv(AT_SYSINFO_EHDR as usize)?;
        let header: Ehdr = at(base);
        let segments = (0..usize::from(header.e_phnum))
            .map(|index| at::<Phdr>(base + header.e_phoff as usize + index * size_of::<Phdr>()));
        let (mut bias, mut dynamic) = (None, None);
        for segment in segments {
            match segment.p_type {
                PT_LOAD if bias.is_none() => bias = Some(base.wrapping_sub(segment.p_vaddr as usize)),
                PT_DYNAMIC => dynamic = Some(segment.p_vaddr as usize),
                _ => {}
            }
        }
        let bias = bias?;
        let mut entry = dynamic?.wrapping_add(bias);
        let mut found = Self { base, bias, strings: 0, symbols: 0, hash: 0, gnu_hash: 0 };
        loop {
            let (tag, value) = (at::<u64>(entry), bias.wrapping_add(at::<u64>(entry + 8) as usize));
            match tag {
                0 => return Some(found),
                DT_HASH => found.hash = value,
                DT_STRTAB => found.strings = value,
                DT_SYMTAB => found.symbols = value,
                DT_GNU_HASH => found.gnu_hash = value,
                _ => {}
            }
            entry += 16;
        }
    }

    /// The address of a function, by the old hash table, or by GNU's where there is no other.
    pub fn function(&self, name: &CStr) -> Option<usize> {
        if self.hash != 0 { self.by_hash(name) } else { self.by_gnu_hash(name) }
    }

    /// As [`Vdso::function`], by the old hash table.
    pub fn by_hash(&self, name: &CStr) -> Option<usize> {
        if self.hash == 0 {
            return None;
        }
        let hash = name.to_bytes().iter().fold(0_u32, |hash, byte| {
            let sum = (hash << 4).wrapping_add(u32::from(*byte));
            let high = sum & 0xf000_0000;
            (sum ^ (high >> 24)) & !high
        });
        let buckets = at::<u32>(self.hash);
        let word = |index: u32| at::<u32>(self.hash + 8 + index as usize * 4);
        let mut index = word(hash % buckets);
        while index != 0 {
            if let Some(address) = self.symbol(index, name) {
                return Some(address);
            }
            index = word(buckets + index);
        }
        None
    }

    /// As [`Vdso::function`], by GNU's hash table.
    pub fn by_gnu_hash(&self, name: &CStr) -> Option<usize> {
        if self.gnu_hash == 0 {
            return None;
        }
        let hash =
            name.to_bytes().iter().fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)));
        let [buckets, first, bloom, _shift] = at::<[u32; 4]>(self.gnu_hash);
        let table = self.gnu_hash + 16 + bloom as usize * 8;
        let mut index = at::<u32>(table + (hash % buckets) as usize * 4);
        if index < first {
            return None;
        }
        loop {
            let chain = at::<u32>(table + (buckets + index - first) as usize * 4);
            if chain | 1 == hash | 1
                && let Some(address) = self.symbol(index, name)
            {
                return Some(address);
            }
            if chain & 1 != 0 {
                return None;
            }
            index += 1;
        }
    }

    /// Whether the image has a table of this kind: the old one, GNU's.
    pub const fn tables(&self) -> (bool, bool) {
        (self.hash != 0, self.gnu_hash != 0)
    }

    fn symbol(&self, index: u32, name: &CStr) -> Option<usize> {
        let address = self.symbols + index as usize * size_of::<Symbol>();
        // SAFETY: the hash tables hold indices of the symbol table; names are strings of the image.
        let (symbol, own) = unsafe {
            let symbol = &*(address as *const Symbol);
            (symbol, CStr::from_ptr((self.strings + symbol.name as usize) as *const c_char))
        };
        (symbol.section != 0 && own == name).then(|| self.bias.wrapping_add(symbol.value as usize))
    }
}

/// `clock_gettime` as the image has it.
pub type ClockGettime = extern "C" fn(i32, *mut rt::uapi::Timespec) -> i32;

/// The image's `clock_gettime`.
pub fn clock_gettime(vdso: &Vdso) -> Option<ClockGettime> {
    // SAFETY: that symbol is a function of this signature.
    vdso.function(c"__vdso_clock_gettime")
        .map(|address| unsafe { core::mem::transmute::<usize, ClockGettime>(address) })
}
