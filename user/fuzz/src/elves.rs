//! Programs with broken headers.

use crate::sandbox::{self, End};
use core::ffi::CStr;
use kit::check::{Must, Outcome};
use kit::random::Random;
use kit::uapi::{Ehdr, Phdr, nr};
use kit::{call, elf, file, registers};
use rt::process;

/// The argument that tells this program that it is the mutant.
pub const EXECUTED: &CStr = c"--executed";
const MUTANT: &CStr = c"/tmp/fuzz/mutant";
const LIMIT: u64 = 200_000_000;
/// Status of a child whose execve(2) failed, as it should with most mutants.
const REFUSED: u8 = 77;

/// Room for this program's own file.
struct Buffers {
    original: [u8; 1 << 20],
    mutant: [u8; 1 << 20],
}

/// Executes `count` mutants.
pub fn run(count: u64, seed: u64) -> Outcome {
    let base = kit::memory::private(size_of::<Buffers>()).must("mmap")?;
    // SAFETY: the mapping is new, large enough and full of zeroes.
    let buffers = unsafe { &mut *(base as *mut Buffers) };
    let (mut refused, mut ran, mut died, mut overdue) = (0, 0, 0, 0);
    for index in 0..count {
        let mut random = Random::new(seed.wrapping_mul(1 << 20).wrapping_add(index));
        let length = if index % 2 == 0 {
            file::read(c"/tests/fuzz", &mut buffers.original).must("read this program")?.len()
        } else {
            let code = registers::entry_program();
            let (header, segment) = elf::headers(code.len());
            elf::assemble(&header, &segment, code, &mut buffers.original).ok_or("the program is too long")?
        };
        let mutant = &mut buffers.mutant[..length];
        mutant.copy_from_slice(&buffers.original[..length]);
        let length = mutate(mutant, &mut random);
        file::write(MUTANT, 0o755, &mutant[..length]).must("write the mutant")?;
        match sandbox::child(LIMIT, execute)? {
            End::Exited(REFUSED) => refused += 1,
            End::Exited(_) => ran += 1,
            End::Died => died += 1,
            End::Overdue => overdue += 1,
        }
    }
    sandbox::kill_rest()?;
    kit::memory::unmap(base, size_of::<Buffers>()).must("munmap")?;
    rt::println!("# {count} mutants: {refused} refused, {ran} ran, {died} died, {overdue} killed");
    Ok(())
}

fn execute() {
    let argv = [MUTANT.as_ptr(), EXECUTED.as_ptr(), core::ptr::null()];
    call!(nr::EXECVE, MUTANT.as_ptr(), argv.as_ptr(), &raw const argv[2]);
    process::exit(REFUSED);
}

/// Numbers at which arithmetic and limits go wrong.
const EDGES: [u64; 20] = [
    0,
    1,
    2,
    7,
    56,
    64,
    0xfff,
    0x1000,
    0x1001,
    0xffff,
    0x10_0000,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 38,
    (1 << 47) - 0x1000,
    1 << 56,
    i64::MAX as u64,
    1 << 63,
    u64::MAX - 0xfff,
    u64::MAX,
];

/// Changes a few bytes or fields; gives the new length.
fn mutate(image: &mut [u8], random: &mut Random) -> usize {
    let headers = (size_of::<Ehdr>() + 6 * size_of::<Phdr>()).min(image.len()) as u64;
    for _ in 0..=random.below(3) {
        match random.below(8) {
            // Bits and bytes of the headers, bytes anywhere.
            0 => image[random.below(headers) as usize] ^= 1 << random.below(8),
            1 => image[random.below(headers) as usize] = random.next() as u8,
            2 => image[random.below(image.len() as u64) as usize] = random.next() as u8,
            // Whole fields: a program header's eight words, the header's addresses and counts.
            3..=5 => {
                let header = size_of::<Ehdr>() as u64 + random.below(5) * size_of::<Phdr>() as u64;
                let field = header + random.below(7) * 8;
                put(image, field as usize, random.pick(&EDGES).wrapping_add(random.below(3)), 8);
            }
            6 => put(image, random.pick(&[24, 32, 40]), random.pick(&EDGES), 8),
            _ => put(image, random.pick(&[16, 18, 52, 54, 56]), random.next() & 0xffff, 2),
        }
    }
    if random.below(10) == 0 { random.below(image.len() as u64) as usize } else { image.len() }
}

fn put(image: &mut [u8], offset: usize, value: u64, count: usize) {
    if let Some(place) = image.get_mut(offset..offset + count) {
        place.copy_from_slice(&value.to_le_bytes()[..count]);
    }
}
