//! Random calls on the arena, one after the other: what each gives, and what is there afterwards.

use core::sync::atomic::AtomicU8;

use crate::arena::{Arena, BASE, SHOWN, Shown};
use kit::check::Outcome;
use kit::memory::PAGE;
use kit::random::Random;
use kit::uapi::mman::*;
use kit::uapi::nr;
use kit::{call, probe};
use rt::println;

const RIGHTS: &[u32] =
    &[PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE, PROT_READ | PROT_EXEC, PROT_WRITE];

/// Makes `steps` calls and prints each with its result; the state and the contents after each tenth.
pub fn run(arena: &Arena, steps: u64, seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    let bytes = [const { AtomicU8::new(0) }; SHOWN + 1];
    arena.reset()?;
    for step in 0..steps {
        let page = random.below(SHOWN as u64) as usize;
        let count = random.below((SHOWN - page) as u64 + 1) as usize;
        let (at, mut length) = (BASE + page * PAGE, count * PAGE);
        if random.below(8) == 0 {
            length += 1 + random.below(PAGE as u64 - 1) as usize;
        }
        let prot = random.pick(RIGHTS);
        let (name, result) = match random.below(12) {
            0 => ("munmap", call!(nr::MUNMAP, at, length)),
            1 | 2 => ("mprotect", call!(nr::MPROTECT, at, length, prot)),
            3 => {
                let flags = random.pick(&[MAP_PRIVATE, MAP_SHARED]) | MAP_ANONYMOUS | MAP_FIXED;
                ("mmap", call!(nr::MMAP, at, length, prot, flags, -1_isize, 0))
            }
            4 => {
                let flags = random.pick(&[MAP_PRIVATE, MAP_SHARED]) | random.pick(&[MAP_FIXED, MAP_FIXED_NOREPLACE]);
                // Of two mistakes at once, which one is told does not matter.
                let read_only = flags & MAP_FIXED_NOREPLACE == 0 && random.below(2) == 0;
                let file = if read_only { arena.read_only } else { arena.file };
                ("mmap of a file", call!(nr::MMAP, at, length, prot, flags, file, random.below(3) as usize * PAGE))
            }
            5 => {
                let advice = random.pick(&[MADV_DONTNEED, MADV_FREE, MADV_WILLNEED, MADV_DONTFORK, MADV_REMOVE]);
                ("madvise", call!(nr::MADVISE, at, length, advice))
            }
            6 => ("mincore", call!(nr::MINCORE, at, length, bytes.as_ptr())),
            7 => ("msync", call!(nr::MSYNC, at, length, MS_SYNC)),
            8 => {
                // One page, so that it does not matter which neighbours are one mapping to the kernel.
                let to = BASE + random.below(SHOWN as u64) as usize * PAGE;
                let fixed = MREMAP_MAYMOVE | MREMAP_FIXED;
                let flags = random.pick(&[0, fixed, fixed, fixed | MREMAP_DONTUNMAP]);
                ("mremap", call!(nr::MREMAP, at, PAGE, random.pick(&[PAGE, PAGE, 2 * PAGE]), flags, to))
            }
            kind => {
                let fault = if kind < 10 { probe::load(at) } else { probe::store(at) };
                let shown = fault.map_or(0, |fault| {
                    let right = fault.address == at;
                    fault.signal as isize * 10 + fault.code as isize + if right { 0 } else { 900 }
                });
                ("access", shown)
            }
        };
        println!("{step} {name} {page} {length:#x} {prot}: {}", Shown(result));
        if step % 10 == 9 {
            let state = arena.state()?;
            println!("{}", core::str::from_utf8(&state).unwrap_or("?"));
            contents();
        }
    }
    Ok(())
}

/// A sum over each page that can be read.
fn contents() {
    rt::print!("contents");
    for page in 0..SHOWN {
        let at = BASE + page * PAGE;
        match probe::load(at) {
            None => {
                rt::print!(" {}", (0..8).fold(0_u32, |sum, n| sum * 3 + u32::from(kit::memory::peek(at + n * 500))))
            }
            Some(fault) => rt::print!(" s{}", fault.signal),
        }
    }
    println!("");
}
