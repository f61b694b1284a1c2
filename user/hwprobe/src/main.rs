//! The command `hwprobe` as a static program, for any riscv64 Linux. See [`riscv_hwprobe::command`].

#![cfg_attr(target_os = "none", no_std, no_main)]

rt::program!(run);

#[cfg(target_os = "none")]
use core::fmt::{self, Write};
#[cfg(target_os = "none")]
use riscv_hwprobe::{command, pair::Pair};
#[cfg(target_os = "none")]
use rt::{io, sys, uapi};

/// The kernel, by system calls.
#[cfg(target_os = "none")]
struct Kernel;

#[cfg(target_os = "none")]
impl command::System for Kernel {
    fn hwprobe(&mut self, pairs: &mut [Pair], harts: &mut [u64], flags: u32) -> Result<(), i32> {
        let (size, set) = match harts.len() {
            0 => (0, 0),
            _ => (size_of_val(harts), harts.as_mut_ptr().expose_provenance()),
        };
        let place = pairs.as_mut_ptr().expose_provenance();
        // SAFETY: the call writes to the pairs and to the set only, both the caller's for now, with their lengths.
        unsafe { sys::try6(uapi::nr::RISCV_HWPROBE, [place, pairs.len(), size, set, flags as usize, 0]) }
            .map(|_| ())
            .map_err(|errno| errno.code())
    }

    fn read(&mut self, path: &str, buffer: &mut [u8]) -> Option<usize> {
        let mut name = [0; 4096];
        name.get_mut(..path.len())?.copy_from_slice(path.as_bytes());
        let name = core::ffi::CStr::from_bytes_until_nul(&name).ok()?;
        let file = io::open(name, uapi::open::O_RDONLY | uapi::open::O_CLOEXEC, 0).ok()?;
        let length = io::read_full(file, buffer).ok();
        let _ = io::close(file);
        length
    }
}

/// A descriptor as text is written to it, a few kilobytes at a time.
#[cfg(target_os = "none")]
struct Output {
    file: i32,
    bytes: [u8; 4096],
    length: usize,
}

#[cfg(target_os = "none")]
impl Output {
    const fn new(file: i32) -> Self {
        Self { file, bytes: [0; 4096], length: 0 }
    }

    fn flush(&mut self) -> fmt::Result {
        let written = io::write_all(self.file, self.bytes.get(..self.length).unwrap_or_default());
        self.length = 0;
        written.map_err(|_| fmt::Error)
    }
}

#[cfg(target_os = "none")]
impl Write for Output {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if self.length == self.bytes.len() {
                self.flush()?;
            }
            self.bytes[self.length] = byte;
            self.length += 1;
        }
        Ok(())
    }
}

#[cfg(target_os = "none")]
fn run(args: rt::Args) -> u8 {
    let (mut out, mut complaints) = (Output::new(io::STDOUT), Output::new(io::STDERR));
    let words = args.iter().skip(1).map(|word| word.to_str().unwrap_or("\u{fffd}"));
    let status = command::run(&mut Kernel, words, &mut out, &mut complaints);
    let complained = complaints.flush();
    if out.flush().and(complained).is_ok() { status } else { 2 }
}
