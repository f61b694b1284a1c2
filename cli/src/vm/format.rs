//! What a kernel file is: told by its first bytes, so that a wrong one is one clear line and not a machine that hangs.

use crate::workspace::{Workspace, appear};
use anyhow::{Context, Result, bail};
use flate2::read::GzDecoder;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Largest kernel that is unpacked.
const LIMIT: u64 = 1 << 30;

/// A file that QEMU can boot: `file` itself, or what it holds, unpacked into the cache.
///
/// # Errors
/// It cannot be read, or is no kernel for riscv64.
pub fn bootable(workspace: &Workspace, file: &Path) -> Result<PathBuf> {
    let shown = file.display();
    let file = fs::canonicalize(file).with_context(|| format!("no kernel image {shown}"))?;
    if !file.is_file() {
        bail!("{shown} is not a file");
    }
    let bytes = fs::read(&file).with_context(|| format!("cannot read {shown}"))?;
    match packed(&bytes) {
        None => {
            identify(&bytes).with_context(|| format!("{shown} cannot be booted"))?;
            Ok(file)
        }
        Some(payload) => {
            let mut image = Vec::new();
            GzDecoder::new(payload)
                .take(LIMIT)
                .read_to_end(&mut image)
                .with_context(|| format!("{shown} cannot be unpacked"))?;
            identify(&image).with_context(|| format!("{shown} cannot be booted"))?;
            let name = format!("{}-{}", super::hash(&bytes), file.file_name().unwrap_or_default().to_string_lossy());
            let unpacked = workspace.cache.join("kernels").join(name);
            if !unpacked.exists() {
                appear(&unpacked, |part| fs::write(part, &image).context("cannot keep the unpacked kernel"))?;
            }
            Ok(unpacked)
        }
    }
}

/// The gzipped data in a gzip file, or in an EFI image that unpacks itself.
fn packed(bytes: &[u8]) -> Option<&[u8]> {
    const GZIP: &[u8] = &[0x1f, 0x8b, 8];
    if bytes.starts_with(GZIP) {
        return Some(bytes);
    }
    if at(bytes, 4, 4) != b"zimg" {
        return None;
    }
    let word = |offset| at(bytes, offset, 4).try_into().map(u32::from_le_bytes).unwrap_or(0) as usize;
    let payload = at(bytes, word(8), word(12));
    payload.starts_with(GZIP).then_some(payload)
}

fn at(bytes: &[u8], offset: usize, length: usize) -> &[u8] {
    offset.checked_add(length).and_then(|end| bytes.get(offset..end)).unwrap_or_default()
}

/// Accepts an ELF file or an Image for riscv64, says what everything else is.
fn identify(bytes: &[u8]) -> Result<()> {
    if bytes.is_empty() {
        bail!("it is empty");
    }
    if bytes.starts_with(b"\x7fELF") {
        let (class, order) = (at(bytes, 4, 1), at(bytes, 5, 1));
        let machine = at(bytes, 18, 2).try_into().map(u16::from_le_bytes).unwrap_or(0);
        let machine = if order == [2] { machine.swap_bytes() } else { machine };
        return match (machine, class) {
            (243, [2]) => Ok(()),
            (243, _) => bail!("it is an ELF file for 32-bit RISC-V, not riscv64"),
            _ => bail!("it is an ELF file for {}, not riscv64", architecture(machine)),
        };
    }
    // Documentation/arch/riscv/boot-image-header.rst: the second magic number; the first one is deprecated.
    if at(bytes, 0x38, 4) == b"RSC\x05" || at(bytes, 0x30, 5) == b"RISCV" {
        return Ok(());
    }
    let known: [(usize, &[u8], &str); 11] = [
        (0x38, b"ARMd", "a kernel for arm64, not riscv64"),
        (0x24, &[0x18, 0x28, 0x6f, 0x01], "a kernel for 32-bit ARM, not riscv64"),
        (0x202, b"HdrS", "a kernel for x86, not riscv64"),
        (0x38, &[0xcd, 0x23, 0x82, 0x81], "a kernel for LoongArch, not riscv64"),
        (4, b"zimg", "an EFI image packed with something else than gzip: unpack it first"),
        (0, &[0xfd, b'7', b'z', b'X', b'Z'], "packed with xz: unpack it first"),
        (0, &[0x28, 0xb5, 0x2f, 0xfd], "packed with zstd: unpack it first"),
        (0, b"BZh", "packed with bzip2: unpack it first"),
        (0, &[0x02, 0x21, 0x4c, 0x18], "packed with lz4: unpack it first"),
        (0, &[0x27, 0x05, 0x19, 0x56], "a U-Boot image: take the kernel out of it"),
        (0, b"!<arch>", "a package or library, not a kernel"),
    ];
    match known.iter().find(|(offset, magic, _)| at(bytes, *offset, magic.len()) == *magic) {
        Some((_, _, what)) => bail!("it is {what}"),
        None => bail!("it is no riscv64 kernel: neither an Image, nor a gzipped one, nor an ELF file"),
    }
}

/// The names of ELF's `e_machine`.
fn architecture(machine: u16) -> String {
    match machine {
        3 => "i386".into(),
        8 => "MIPS".into(),
        20 | 21 => "PowerPC".into(),
        22 => "s390".into(),
        40 => "32-bit ARM".into(),
        62 => "x86-64".into(),
        183 => "arm64".into(),
        258 => "LoongArch".into(),
        other => format!("machine {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(offset: usize, magic: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 0x1000];
        bytes[offset..offset + magic.len()].copy_from_slice(magic);
        bytes
    }

    fn elf(class: u8, machine: u16) -> Vec<u8> {
        let mut bytes = with(0, &[0x7f, b'E', b'L', b'F', class, 1]);
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes
    }

    #[test]
    fn kernels_for_riscv64_are_taken() {
        assert!(identify(&with(0x38, b"RSC\x05")).is_ok());
        assert!(identify(&elf(2, 243)).is_ok());
    }

    #[test]
    fn other_files_are_told_apart() {
        let says = |bytes: &[u8], what: &str| {
            let said = identify(bytes).unwrap_err().to_string();
            assert!(said.contains(what), "{said}");
        };
        says(&elf(1, 243), "32-bit RISC-V");
        says(&elf(2, 62), "x86-64");
        says(&elf(2, 183), "arm64");
        says(&with(0x202, b"HdrS"), "x86");
        says(&with(0x38, b"ARMd"), "arm64");
        says(&with(0, &[0xfd, b'7', b'z', b'X', b'Z']), "xz");
        says(b"#!/bin/sh\n", "no riscv64 kernel");
        says(b"", "empty");
    }

    #[test]
    fn packed_kernels_are_found() {
        assert!(packed(&[0x1f, 0x8b, 8, 0]).is_some());
        let mut bytes = with(4, b"zimg");
        bytes[8..12].copy_from_slice(&0x100_u32.to_le_bytes());
        bytes[12..16].copy_from_slice(&16_u32.to_le_bytes());
        assert!(packed(&bytes).is_none());
        bytes[0x100..0x103].copy_from_slice(&[0x1f, 0x8b, 8]);
        assert_eq!(packed(&bytes).map(<[u8]>::len), Some(16));
        bytes[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(packed(&bytes).is_none());
    }
}
