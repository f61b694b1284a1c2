//! The one file with unsafe code: the vDSO's function, found in the program's own memory, and the system call.
#![allow(unsafe_code)]

use super::Errno;
use crate::pair::Pair;
use std::sync::OnceLock;

/// How the kernel is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By the function of the vDSO.
    Vdso,
    /// By system call 258.
    Call,
}

/// `__vdso_riscv_hwprobe`.
type Function = extern "C" fn(*mut Pair, usize, usize, *mut u64, u32) -> i32;

/// The vDSO's function, where the program has one.
fn function() -> Option<Function> {
    static FOUND: OnceLock<Option<Function>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let address = if cfg!(all(target_arch = "riscv64", target_os = "linux")) { find(base()?) } else { None }?;
        // SAFETY: 1. The kernel's image has a function of this signature under this name. 2. It stays mapped for the life of
        // the program.
        Some(unsafe { core::mem::transmute::<usize, Function>(address) })
    })
}

/// Where the vDSO lies, by the auxiliary vector.
fn base() -> Option<usize> {
    const AT_SYSINFO_EHDR: usize = 33;
    let bytes = std::fs::read("/proc/self/auxv").ok()?;
    let word = |bytes: &[u8]| bytes.try_into().map(usize::from_le_bytes).ok();
    let size = size_of::<usize>();
    bytes
        .chunks_exact(2 * size)
        .find(|entry| word(&entry[..size]) == Some(AT_SYSINFO_EHDR))
        .and_then(|e| word(&e[size..]))
}

/// A value in the image.
fn at<T: Copy>(address: usize) -> T {
    // SAFETY: called by `find` only, with addresses that the image's own tables give; the kernel maps the image readable and
    // never changes it.
    unsafe { (address as *const T).read_unaligned() }
}

/// The address of `__vdso_riscv_hwprobe` in the image at `base`, by its symbol table: all symbols of a vDSO are dynamic ones.
fn find(base: usize) -> Option<usize> {
    const NAME: &[u8] = b"__vdso_riscv_hwprobe\0";
    const LOAD: u32 = 1;
    const DYNAMIC: u32 = 2;
    let (table, size, count) = (at::<u64>(base + 32) as usize, at::<u16>(base + 54), at::<u16>(base + 56));
    let headers = (0..usize::from(count)).map(|index| base + table + index * usize::from(size));
    let address = |header: usize| at::<u64>(header + 16) as usize;
    let bias = base.wrapping_sub(headers.clone().find(|header| at::<u32>(*header) == LOAD).map(address)?);
    let mut entry = bias.wrapping_add(headers.clone().find(|header| at::<u32>(*header) == DYNAMIC).map(address)?);
    let (mut strings, mut symbols, mut hash, mut gnu_hash) = (0, 0, 0, 0);
    loop {
        let (tag, value) = (at::<u64>(entry), bias.wrapping_add(at::<u64>(entry + 8) as usize));
        match tag {
            0 => break,
            4 => hash = value,
            5 => strings = value,
            6 => symbols = value,
            0x6fff_fef5 => gnu_hash = value,
            _ => {}
        }
        entry += 16;
    }
    let symbols_in = match (hash, gnu_hash) {
        (0, 0) => return None,
        (0, table) => last_of(table) + 1,
        (table, _) => at::<u32>(table + 4) as usize,
    };
    (0..symbols_in).map(|index| symbols + index * 24).find_map(|symbol| {
        let name = strings + at::<u32>(symbol) as usize;
        let defined = at::<u16>(symbol + 6) != 0;
        let same = defined && NAME.iter().enumerate().all(|(index, byte)| at::<u8>(name + index) == *byte);
        same.then(|| bias.wrapping_add(at::<u64>(symbol + 8) as usize))
    })
}

/// The number of the last symbol in a table of GNU's kind.
fn last_of(table: usize) -> usize {
    let [buckets, first, bloom, _] = at::<[u32; 4]>(table).map(|word| word as usize);
    let start = table + 16 + bloom * 8;
    let highest = (0..buckets).map(|bucket| at::<u32>(start + bucket * 4) as usize).max().unwrap_or(0);
    let mut index = highest;
    while index >= first && at::<u32>(start + (buckets + index - first) * 4) & 1 == 0 {
        index += 1;
    }
    index
}

/// riscv_hwprobe(2). `harts` may be empty without flags: all harts.
///
/// # Errors
/// As the call; ENOSYS elsewhere than on a riscv64 Linux.
pub fn ask(pairs: &mut [Pair], harts: &mut [u64], flags: u32) -> Result<Way, Errno> {
    let size = size_of_val(harts);
    let set = if size == 0 { core::ptr::null_mut() } else { harts.as_mut_ptr() };
    let (result, way) = match function() {
        Some(function) => (function(pairs.as_mut_ptr(), pairs.len(), size, set, flags), Way::Vdso),
        None => (call(pairs, size, set, flags), Way::Call),
    };
    if result == 0 { Ok(way) } else { Err(Errno(-result)) }
}

#[cfg(all(target_arch = "riscv64", target_os = "linux"))]
fn call(pairs: &mut [Pair], size: usize, set: *mut u64, flags: u32) -> i32 {
    let result: isize;
    // SAFETY: 1. The call writes to the pairs and the set only, both the caller's for now, with their lengths. 2. It changes
    // a0 and no other register that the compiler uses: vector registers are declared lost.
    unsafe {
        core::arch::asm!("ecall", in("a7") 258, inlateout("a0") pairs.as_mut_ptr() => result, in("a1") pairs.len(),
            in("a2") size, in("a3") set, in("a4") flags as usize,
            lateout("v0") _, lateout("v1") _, lateout("v2") _, lateout("v3") _, lateout("v4") _, lateout("v5") _,
            lateout("v6") _, lateout("v7") _, lateout("v8") _, lateout("v9") _, lateout("v10") _, lateout("v11") _,
            lateout("v12") _, lateout("v13") _, lateout("v14") _, lateout("v15") _, lateout("v16") _, lateout("v17") _,
            lateout("v18") _, lateout("v19") _, lateout("v20") _, lateout("v21") _, lateout("v22") _, lateout("v23") _,
            lateout("v24") _, lateout("v25") _, lateout("v26") _, lateout("v27") _, lateout("v28") _, lateout("v29") _,
            lateout("v30") _, lateout("v31") _, options(nostack));
    }
    result as i32
}

#[cfg(not(all(target_arch = "riscv64", target_os = "linux")))]
fn call(_: &mut [Pair], _: usize, _: *mut u64, _: u32) -> i32 {
    const ENOSYS: i32 = 38;
    -ENOSYS
}
