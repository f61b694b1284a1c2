//! Names for the addresses of a panic's backtrace.

use anyhow::{Result, anyhow};
use std::path::Path;

/// The kernel's symbols and lines.
pub struct Symbols {
    loader: addr2line::Loader,
    /// Left out of file names: the repository, if the kernel was built in its `target`.
    root: String,
}

impl Symbols {
    /// Reads the ELF file of the kernel.
    ///
    /// # Errors
    /// It is no ELF file, or its debug information is broken.
    pub fn read(file: &Path) -> Result<Self> {
        let loader =
            addr2line::Loader::new(file).map_err(|error| anyhow!("cannot read the kernel's symbols: {error}"))?;
        let root = file.ancestors().nth(4).map(|dir| format!("{}/", dir.display()));
        Ok(Self { loader, root: root.unwrap_or_default() })
    }

    /// A line of a panic; if it is `#N 0x…`, the names of the functions follow, innermost first.
    pub fn explain(&self, line: &str) -> String {
        let Some((number, address)) = backtrace_entry(line) else {
            return line.into();
        };
        // A return address lies behind its call, which may be the function's last instruction.
        let call = if number == 0 { address } else { address.saturating_sub(1) };
        let frames = self.frames(call);
        format!("{line} {}", frames.join("\n      in ")).trim_end().to_owned()
    }

    /// The function's name in the symbol table; labels inside assembly are passed over.
    fn symbol(&self, address: u64) -> Option<String> {
        let mut symbol = self.loader.find_symbol_info(address)?;
        while symbol.name().starts_with(".L") {
            symbol = self.loader.find_symbol_info(symbol.address().checked_sub(1)?)?;
        }
        Some(addr2line::demangle_auto(symbol.name().into(), None).into_owned())
    }

    fn frames(&self, address: u64) -> Vec<String> {
        let symbol = self.symbol(address);
        let mut found = Vec::new();
        if let Ok(mut frames) = self.loader.find_frames(address) {
            while let Ok(Some(frame)) = frames.next() {
                let name = frame
                    .function
                    .as_ref()
                    .and_then(|function| function.demangle().ok())
                    .map(std::borrow::Cow::into_owned);
                let place = frame.location.and_then(|place| {
                    let file = place.file?;
                    let file = file.strip_prefix(&self.root).unwrap_or(file);
                    Some(format!(" ({file}:{})", place.line?))
                });
                found.push((name, place.unwrap_or_default()));
            }
        }
        if found.is_empty() {
            return symbol.into_iter().collect();
        }
        // Where the debug information has lines only, the outermost function's name is the symbol's.
        let outermost = found.len() - 1;
        let name = |index, name: Option<String>| {
            name.or_else(|| symbol.clone().filter(|_| index == outermost)).unwrap_or_else(|| "(inlined)".into())
        };
        found.into_iter().enumerate().map(|(index, (function, place))| name(index, function) + &place).collect()
    }
}

/// Number and address of a line `#N 0xADDRESS`.
fn backtrace_entry(line: &str) -> Option<(u32, u64)> {
    let mut words = line.split_whitespace();
    let number = words.next()?.strip_prefix('#')?.trim_end_matches(':').parse().ok()?;
    let address = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    Some((number, address))
}

#[cfg(test)]
mod tests {
    use super::backtrace_entry;

    #[test]
    fn only_backtrace_lines_have_addresses() {
        assert_eq!(backtrace_entry("  #12 0xffffffff80001234"), Some((12, 0xffff_ffff_8000_1234)));
        assert_eq!(backtrace_entry("KERNEL PANIC: at 0x10"), None);
        assert_eq!(backtrace_entry("  #x 0x10"), None);
    }
}
