//! Small programs made on the spot.

use rt::uapi::elf::{ELFCLASS64, ELFDATA2LSB, ELFMAG, EM_RISCV, ET_EXEC, EV_CURRENT, PF_R, PF_X, PT_LOAD};
use rt::uapi::{Ehdr, Phdr};

/// Bytes before the code.
pub const HEADERS: usize = size_of::<Ehdr>() + size_of::<Phdr>();
/// Where an `ET_EXEC` image is mapped.
pub const BASE: u64 = 0x1_0000;

/// The headers of a program of one segment that holds them and `code` bytes of code behind them; execution starts with
/// the code.
pub fn headers(code: usize) -> (Ehdr, Phdr) {
    let mut ident = [0; 16];
    ident[..4].copy_from_slice(&ELFMAG);
    ident[4..7].copy_from_slice(&[ELFCLASS64, ELFDATA2LSB, EV_CURRENT]);
    let size = (HEADERS + code) as u64;
    let file = Ehdr {
        e_ident: ident,
        e_type: ET_EXEC,
        e_machine: EM_RISCV,
        e_version: 1,
        e_entry: BASE + HEADERS as u64,
        e_phoff: size_of::<Ehdr>() as u64,
        e_flags: 5, // compressed instructions, double floats in registers
        e_ehsize: size_of::<Ehdr>() as u16,
        e_phentsize: size_of::<Phdr>() as u16,
        e_phnum: 1,
        ..Ehdr::default()
    };
    let segment = Phdr {
        p_type: PT_LOAD,
        p_flags: PF_R | PF_X,
        p_offset: 0,
        p_vaddr: BASE,
        p_paddr: BASE,
        p_filesz: size,
        p_memsz: size,
        p_align: 4096,
    };
    (file, segment)
}

/// The program as a file's contents; gives their length. `None` if the buffer is too small.
pub fn assemble(file: &Ehdr, segment: &Phdr, code: &[u8], buffer: &mut [u8]) -> Option<usize> {
    let length = HEADERS + code.len();
    let buffer = buffer.get_mut(..length)?;
    buffer[..size_of::<Ehdr>()].copy_from_slice(bytes(file));
    buffer[size_of::<Ehdr>()..HEADERS].copy_from_slice(bytes(segment));
    buffer[HEADERS..].copy_from_slice(code);
    Some(length)
}

fn bytes<T: Copy>(value: &T) -> &[u8] {
    // SAFETY: the headers are plain integers without padding.
    unsafe { core::slice::from_raw_parts(core::ptr::from_ref(value).cast(), size_of::<T>()) }
}
