//! The registers a program starts with.

use kit::check::{Must, Outcome};
use kit::random::Random;
use kit::registers::{self, A0, SP};
use kit::uapi::open;
use kit::{child, elf, equal, file};
use rt::process;
use rt::{io, tap::Test};

pub const TESTS: &[Test] = &[Test::new("entry/registers-at-exec", at_exec)];

/// A program that reports its first registers, started by one whose registers are all full.
fn at_exec() -> Outcome {
    let code = registers::entry_program();
    let (header, segment) = elf::headers(code.len());
    let mut image = [0_u8; 4096];
    let length = elf::assemble(&header, &segment, code, &mut image).ok_or("the program is too long")?;
    file::write(c"/tmp/entry", 0o755, &image[..length]).must("write the program")?;
    let (read, write) = io::pipe().must("pipe")?;
    let program = child::start(|| {
        io::duplicate(write, 1).must("dup3")?;
        let mut random = Random::new(1);
        registers::fill_floats(&registers::float_pattern(&mut random));
        let argv = [c"entry".as_ptr(), core::ptr::null()];
        let arguments = [c"/tmp/entry".as_ptr() as usize, argv.as_ptr() as usize, &raw const argv[1] as usize];
        let mut given = registers::call_pattern(&mut random, kit::uapi::nr::EXECVE, &arguments);
        let left = registers::call(&mut given);
        rt::eprintln!("# execve: {}", left[A0].cast_signed());
        Err("execve returned")
    })?;
    let _ = io::close(write);
    let mut bytes = [0_u8; 520];
    let count = io::read_full(read, &mut bytes).must("read")?;
    let ended = process::wait(program).must("wait")?.1;
    equal!(ended, process::Ended::Exited(0), "the program");
    equal!(count, 520, "bytes of the report");
    let word = |index: usize| u64::from_le_bytes(core::array::from_fn(|byte| bytes[index * 8 + byte]));
    equal!(word(A0), 0, "a0 at exec");
    equal!(word(SP) % 16, 0, "alignment of sp at exec");
    for float in 0..33 {
        equal!(word(32 + float), 0, "a floating-point register at exec");
    }
    // Linux leaves the old program's registers in place; Limen clears them.
    for index in (1..32).filter(|index| *index != SP && !is_linux()) {
        if word(index) != 0 {
            rt::println!("# x{index} at exec: {:#x}", word(index));
            return Err("an integer register is not zero at exec");
        }
    }
    kit::call!(kit::uapi::nr::UNLINKAT, open::AT_FDCWD, c"/tmp/entry".as_ptr(), 0);
    Ok(())
}

/// Whether this is a Linux, which has no `/proc/limen`.
pub fn is_linux() -> bool {
    io::open(c"/proc/limen/boundary", open::O_RDONLY, 0).is_err()
}
