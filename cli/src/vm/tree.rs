//! Device trees that differ from the one QEMU makes: its own, with some properties set otherwise.
//!
//! QEMU says what it would hand to the firmware (`dumpdtb`), the edits are applied, and QEMU takes the result (`-dtb`).
//! An edit is a line `PATH PROPERTY = VALUE`, the value as in device tree sources: strings in quotes or cells of 32 bits in
//! angle brackets, several of them separated by commas; without `= VALUE` the property is taken out. The format is that of
//! the Devicetree Specification, version 0.4, chapter 5.

use super::Machine;
use crate::process;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

const MAGIC: u32 = 0xd00d_feed;
const BEGIN_NODE: u32 = 1;
const END_NODE: u32 = 2;
const PROPERTY: u32 = 3;
const NOP: u32 = 4;
const END: u32 = 9;
/// Bytes of the header.
const HEADER: usize = 40;

/// Makes the tree of `machine` with its edits in a file in `dir`; `None` where there are none.
///
/// # Errors
/// QEMU gives no tree, or an edit is wrong.
pub fn make(qemu: &Path, machine: &Machine, dir: &Path) -> Result<Option<PathBuf>> {
    if machine.tree.is_empty() {
        return Ok(None);
    }
    let file = super::archive_name(dir).with_extension("dtb");
    let mut command = machine.command(qemu, Path::new("none"), Path::new("none"))?;
    // Kernel and archive are QEMU's to add when it boots.
    let words: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    let program = command.get_program().to_owned();
    command = std::process::Command::new(program);
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("-kernel" | "-initrd" | "-append") => drop(words.next()),
            Some("-machine") => {
                let name = words.next().unwrap_or_default();
                command.arg("-machine").arg(format!("{},dumpdtb={}", name.to_string_lossy(), file.display()));
            }
            _ => drop(command.arg(word)),
        }
    }
    process::capture(&mut command).context("QEMU gives no device tree")?;
    let mut tree = Tree::read(&fs::read(&file)?).context("QEMU's device tree is malformed")?;
    for edit in &machine.tree {
        tree.apply(edit).with_context(|| format!("--tree {edit:?}"))?;
    }
    fs::write(&file, tree.write())?;
    Ok(Some(file))
}

#[derive(Debug, Default, PartialEq)]
struct Node {
    name: String,
    properties: Vec<(String, Vec<u8>)>,
    children: Vec<Node>,
}

#[derive(Debug, Default, PartialEq)]
struct Tree {
    /// Memory reservations, as they are.
    reserved: Vec<u8>,
    boot_hart: u32,
    root: Node,
}

/// The tokens of a tree, one after the other.
struct Tokens<'a> {
    bytes: &'a [u8],
    strings: &'a [u8],
}

fn string(bytes: &[u8]) -> Option<(String, &[u8])> {
    let end = bytes.iter().position(|&byte| byte == 0)?;
    Some((String::from_utf8_lossy(&bytes[..end]).into_owned(), &bytes[end + 1..]))
}

impl<'a> Tokens<'a> {
    fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.bytes.split_first_chunk::<4>()?;
        self.bytes = rest;
        Some(u32::from_be_bytes(*word))
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, _) = self.bytes.split_at_checked(length)?;
        self.bytes = self.bytes.get(length.next_multiple_of(4)..)?;
        Some(taken)
    }

    /// A node, whose BEGIN_NODE has been read.
    fn node(&mut self) -> Option<Node> {
        let (name, _) = string(self.bytes)?;
        self.take(name.len() + 1)?;
        let mut node = Node { name, ..Node::default() };
        loop {
            match self.word()? {
                BEGIN_NODE => node.children.push(self.node()?),
                PROPERTY => {
                    let (length, name) = (self.word()? as usize, self.word()? as usize);
                    node.properties.push((string(self.strings.get(name..)?)?.0, self.take(length)?.to_vec()));
                }
                NOP => {}
                END_NODE => return Some(node),
                _ => return None,
            }
        }
    }
}

impl Tree {
    fn read(bytes: &[u8]) -> Option<Self> {
        let field = |index: usize| -> Option<u32> {
            bytes.get(index * 4..)?.first_chunk::<4>().map(|word| u32::from_be_bytes(*word))
        };
        let part = |start: usize, end: usize| bytes.get(start..end);
        if field(0)? != MAGIC {
            return None;
        }
        let (structure, strings, reserved) = (field(2)? as usize, field(3)? as usize, field(4)? as usize);
        let entries = part(reserved, bytes.len())?.chunks_exact(16);
        let length = 16 * (1 + entries.take_while(|entry| entry.iter().any(|&byte| byte != 0)).count());
        let mut tokens = Tokens { bytes: part(structure, bytes.len())?, strings: part(strings, bytes.len())? };
        let root = (tokens.word()? == BEGIN_NODE).then(|| tokens.node())??;
        Some(Self { reserved: part(reserved, reserved + length)?.to_vec(), boot_hart: field(7)?, root })
    }

    fn write(&self) -> Vec<u8> {
        let (mut structure, mut strings) = (Vec::new(), Vec::new());
        self.root.write(&mut structure, &mut strings);
        structure.extend(END.to_be_bytes());
        let reserved = HEADER;
        let at = reserved + self.reserved.len();
        let total = at + structure.len() + strings.len();
        let places = [
            total,
            at,
            at + structure.len(),
            reserved,
            17,
            16,
            self.boot_hart as usize,
            strings.len(),
            structure.len(),
        ];
        let mut bytes = MAGIC.to_be_bytes().to_vec();
        bytes.extend(places.iter().flat_map(|&word| (word as u32).to_be_bytes()));
        [bytes, self.reserved.clone(), structure, strings].concat()
    }

    fn apply(&mut self, edit: &str) -> Result<()> {
        let (place, value) = match edit.split_once('=') {
            Some((place, value)) => (place, Some(parse(value)?)),
            None => (edit, None),
        };
        let mut words = place.split_whitespace();
        let (Some(path), Some(property), None) = (words.next(), words.next(), words.next()) else {
            bail!("not of the form PATH PROPERTY = VALUE, or PATH PROPERTY");
        };
        let mut node = &mut self.root;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let found = node.children.iter_mut().find(|child| child.name == name);
            node = found.with_context(|| format!("there is no node {name}"))?;
        }
        let place = node.properties.iter().position(|(name, _)| name == property);
        match (place, value) {
            (Some(at), Some(value)) => node.properties[at].1 = value,
            (None, Some(value)) => node.properties.push((property.to_owned(), value)),
            (Some(at), None) => drop(node.properties.remove(at)),
            (None, None) => bail!("there is no such property"),
        }
        Ok(())
    }
}

impl Node {
    fn write(&self, structure: &mut Vec<u8>, strings: &mut Vec<u8>) {
        let pad = |bytes: &mut Vec<u8>| bytes.resize(bytes.len().next_multiple_of(4), 0);
        structure.extend(BEGIN_NODE.to_be_bytes());
        structure.extend(self.name.bytes().chain([0]));
        pad(structure);
        for (name, value) in &self.properties {
            let wanted: Vec<u8> = name.bytes().chain([0]).collect();
            let known = strings.windows(wanted.len()).position(|window| window == wanted);
            let at = known.unwrap_or_else(|| {
                strings.extend(&wanted);
                strings.len() - wanted.len()
            });
            for word in [PROPERTY, value.len() as u32, at as u32] {
                structure.extend(word.to_be_bytes());
            }
            structure.extend(value);
            pad(structure);
        }
        self.children.iter().for_each(|child| child.write(structure, strings));
        structure.extend(END_NODE.to_be_bytes());
    }
}

/// A value as in device tree sources.
fn parse(text: &str) -> Result<Vec<u8>> {
    let mut value = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (part, after) = if let Some(quoted) = rest.strip_prefix('"') {
            let (part, after) = quoted.split_once('"').context("a quote is missing")?;
            (part.bytes().chain([0]).collect(), after)
        } else if let Some(cells) = rest.strip_prefix('<') {
            let (part, after) = cells.split_once('>').context("a bracket is missing")?;
            let cell = |word: &str| {
                let number =
                    word.strip_prefix("0x").map_or_else(|| word.parse(), |digits| u32::from_str_radix(digits, 16));
                number.with_context(|| format!("{word:?} is no number"))
            };
            let cells: Vec<u32> = part.split_whitespace().map(cell).collect::<Result<_>>()?;
            (cells.iter().flat_map(|cell| cell.to_be_bytes()).collect::<Vec<u8>>(), after)
        } else {
            bail!("{rest:?} is neither a string nor cells");
        };
        value.extend(part);
        rest = after.trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        let hart = |index: u32| Node {
            name: format!("cpu@{index}"),
            properties: vec![("reg".into(), index.to_be_bytes().to_vec()), ("riscv,isa".into(), b"rv64i\0".to_vec())],
            children: Vec::new(),
        };
        let harts = Node { name: "cpus".into(), properties: Vec::new(), children: vec![hart(0), hart(1)] };
        let root = Node { name: String::new(), properties: vec![("empty".into(), Vec::new())], children: vec![harts] };
        Tree { reserved: [vec![1; 16], vec![0; 16]].concat(), boot_hart: 7, root }
    }

    #[test]
    fn what_is_written_can_be_read() {
        let bytes = tree().write();
        assert_eq!(Tree::read(&bytes), Some(tree()));
        for length in 0..bytes.len() - 20 {
            assert_ne!(Tree::read(&bytes[..length]), Some(tree()), "{length}");
        }
    }

    #[test]
    fn edits_set_and_take_out_properties() {
        let mut edited = tree();
        edited.apply(r#"/cpus/cpu@1 riscv,isa-extensions = "i", "m""#).unwrap();
        edited.apply("/cpus/cpu@1 riscv,isa").unwrap();
        edited.apply("/cpus/cpu@0 reg=<0x10 2>").unwrap();
        let harts = &edited.root.children[0].children;
        assert_eq!(harts[1].properties[1], ("riscv,isa-extensions".into(), b"i\0m\0".to_vec()));
        assert_eq!(harts[1].properties.len(), 2);
        assert_eq!(harts[0].properties[0].1, [0, 0, 0, 16, 0, 0, 0, 2]);
        for wrong in ["/cpus/cpu@2 reg = <1>", "/cpus", "/cpus nothing", "/cpus/cpu@0 reg = 1", "/cpus a = <x>"] {
            assert!(edited.apply(wrong).is_err(), "{wrong}");
        }
    }
}
