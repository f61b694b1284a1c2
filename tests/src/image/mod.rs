//! Checks of the built kernel: its machine code holds what the trap path promises.
//!
//! The rules are pure functions over an [`Image`], so that each can be shown to fail: `image/planted-faults` edits the
//! image in memory, one fault of each kind, and expects the rule to name it.

mod budget;
mod decode;
mod planted;
mod rules;

pub use budget::getppid_cost;
pub use decode::{Instruction, Kind, decode};

use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind};
use std::path::Path;

/// A named look at the kernel's ELF file.
#[derive(Clone, Copy, Debug)]
pub struct ImageCheck {
    /// `image/…`
    pub name: &'static str,
    /// Gets the path of the ELF file; the error says what is wrong and where.
    pub check: fn(&Path) -> Result<(), String>,
}

/// All of them.
pub const CHECKS: &[ImageCheck] = &[
    ImageCheck { name: "image/getppid-budget", check: |path| budget::holds(&Image::read(path)?) },
    ImageCheck { name: "image/no-jump-through-x5", check: |path| rules::no_jump_through_x5(&Image::read(path)?) },
    ImageCheck { name: "image/no-fp-or-vector", check: |path| rules::no_float_or_vector(&Image::read(path)?) },
    ImageCheck { name: "image/matched-calls-in-entry", check: |path| rules::matched_calls(&Image::read(path)?) },
    ImageCheck { name: "image/planted-faults", check: |path| planted::all(&Image::read(path)?) },
];

/// A part of the image as it lies in memory.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its first byte's address.
    pub address: u64,
    /// Its contents.
    pub bytes: Vec<u8>,
    /// Whether it holds code.
    pub code: bool,
}

/// A name for a range of the image.
#[derive(Clone, Debug)]
pub struct Symbol {
    /// Its name as the linker has it.
    pub name: String,
    /// Its first byte's address.
    pub address: u64,
    /// Its length in bytes.
    pub size: u64,
}

/// What the rules look at.
#[derive(Clone, Debug, Default)]
pub struct Image {
    /// The sections.
    pub sections: Vec<Section>,
    /// The named ranges.
    pub symbols: Vec<Symbol>,
}

impl Image {
    /// Reads an ELF file.
    ///
    /// # Errors
    /// It cannot be read, or is none.
    pub fn read(path: &Path) -> Result<Self, String> {
        let bytes = std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let file = object::File::parse(&*bytes).map_err(|error| format!("{}: {error}", path.display()))?;
        let sections = file
            .sections()
            .filter_map(|section| {
                let SectionFlags::Elf { sh_flags, .. } = section.flags() else { return None };
                let loaded = sh_flags.0 & object::elf::SHF_ALLOC.0 != 0 && section.file_range().is_some();
                let bytes = if loaded { section.data().ok()?.to_vec() } else { return None };
                let code = sh_flags.0 & object::elf::SHF_EXECINSTR.0 != 0;
                Some(Section { address: section.address(), bytes, code })
            })
            .collect();
        let symbols = file
            .symbols()
            .filter(|symbol| matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Data))
            .filter_map(|symbol| {
                Some(Symbol { name: symbol.name().ok()?.to_owned(), address: symbol.address(), size: symbol.size() })
            })
            .collect();
        Ok(Self { sections, symbols })
    }

    /// The symbol of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn symbol(&self, name: &str) -> Result<&Symbol, String> {
        self.symbols.iter().find(|symbol| symbol.name == name).ok_or_else(|| format!("the image has no symbol {name}"))
    }

    /// Where an address lies, in words.
    pub fn place(&self, address: u64) -> String {
        let around = |symbol: &&Symbol| symbol.address <= address && address - symbol.address < symbol.size.max(1);
        match self.symbols.iter().find(around) {
            Some(symbol) => format!("{address:#x} ({}+{:#x})", symbol.name, address - symbol.address),
            None => format!("{address:#x}"),
        }
    }

    fn bytes(&self, address: u64, count: usize) -> Option<&[u8]> {
        self.sections.iter().find_map(|section| {
            let offset = usize::try_from(address.checked_sub(section.address)?).ok()?;
            section.bytes.get(offset..)?.get(..count)
        })
    }

    /// The eight bytes at an address, as a number.
    pub fn word(&self, address: u64) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes(address, 8)?.try_into().ok()?))
    }

    /// The instruction at an address.
    ///
    /// # Errors
    /// There is no code.
    pub fn instruction(&self, address: u64) -> Result<Instruction, String> {
        let low = self.bytes(address, 2).ok_or_else(|| format!("no code at {address:#x}"))?;
        let low = u32::from(u16::from_le_bytes([low[0], low[1]]));
        let word = match self.bytes(address + 2, 2) {
            Some(high) if low & 3 == 3 => low | u32::from(u16::from_le_bytes([high[0], high[1]])) << 16,
            _ => low,
        };
        Ok(decode(address, word))
    }

    /// All instructions of a range.
    ///
    /// # Errors
    /// Part of it is no code.
    pub fn instructions(&self, start: u64, size: u64) -> Result<Vec<Instruction>, String> {
        let mut found = Vec::new();
        let mut address = start;
        while address < start + size {
            let instruction = self.instruction(address)?;
            address = instruction.next();
            found.push(instruction);
        }
        Ok(found)
    }

    /// All instructions of all code; what lies in the header that boot loaders read (it ends with this magic number)
    /// is data.
    ///
    /// # Errors
    /// A section ends within an instruction.
    pub fn all_instructions(&self) -> Result<Vec<Instruction>, String> {
        let mut found = Vec::new();
        for section in self.sections.iter().filter(|section| section.code) {
            let skip = if section.bytes.get(56..60) == Some(b"RSC\x05") { 64 } else { 0 };
            found.extend(self.instructions(section.address + skip, section.bytes.len() as u64 - skip)?);
        }
        Ok(found)
    }

    /// Replaces bytes, for planting faults.
    ///
    /// # Errors
    /// The address is not in the image.
    pub fn patch(&mut self, address: u64, bytes: &[u8]) -> Result<(), String> {
        for section in &mut self.sections {
            let Some(offset) = address.checked_sub(section.address) else { continue };
            if let Some(place) = section.bytes.get_mut(offset as usize..).and_then(|rest| rest.get_mut(..bytes.len())) {
                place.copy_from_slice(bytes);
                return Ok(());
            }
        }
        Err(format!("{address:#x} is not in the image"))
    }
}
