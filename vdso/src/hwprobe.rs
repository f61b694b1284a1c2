//! riscv_hwprobe(2) without a trap: the rules of the `riscv-hwprobe` crate, over the program's own memory.
//!
//! The call answers a bad pointer with EFAULT, so here a fault must not kill the program. Each access has an entry in the
//! section `.exceptions`: the offset of the instruction and where to go on if it faults, both relative to their own place.
//! The kernel looks there before it sends a signal. A load that faults goes on with a flag set, a store at the
//! error path; either way the function returns what the call would.

use core::arch::asm;

use crate::rules::{self, Answers, Error, Fault, Memory, Request};

/// Harts that the table has room for.
pub const HARTS: usize = crate::data::HARTS;

const NR_RISCV_HWPROBE: usize = 258;

/// The kernel's table, in a page of its own.
#[inline(always)]
fn answers() -> &'static Answers<HARTS> {
    let page: *const Answers<HARTS>;
    // SAFETY: materialises an address; touches no memory.
    unsafe { asm!("lla {}, answers", out(reg) page, options(pure, nomem, nostack, preserves_flags)) };
    // SAFETY: the kernel maps the page below the image for the life of the program, page-aligned and readable, filled
    // before the first program ran.
    unsafe { &*page }
}

/// The program's memory; words in it are aligned. The flag is raised by the first load that faults.
struct Own(usize);

impl Own {
    #[inline(always)]
    fn check(&mut self) -> Result<(), Fault> {
        // In assembly, so that the compiler does not learn that the flag is 0 and make the 0 anew for each load.
        // SAFETY: a branch, to where the function returns.
        unsafe {
            asm!("bnez {flag}, {fault}", flag = in(reg) self.0, fault = label { return Err(Fault) },
                options(nomem, nostack, preserves_flags));
        }
        Ok(())
    }
}

macro_rules! load {
    ($own:expr, $instruction:literal, $at:expr) => {
        load!($own, $instruction, $at, 0)
    };
    ($own:expr, $instruction:literal, $at:expr, $offset:literal) => {{
        let value: u64;
        // SAFETY: one load on the caller's behalf, which may fault: then the flag is set and the value, which is no key, has
        // all bits. No Rust object is touched.
        unsafe {
            asm!(
                concat!("2: ", $instruction, " {value}, ", $offset, "({at})"),
                "3:",
                ".pushsection .text.fixup, \"ax\", @progbits",
                "4: li {flag}, 1",
                "li {value}, -1",
                "j 3b",
                ".popsection",
                ".pushsection .exceptions, \"a\", @progbits",
                ".balign 4",
                ".word 2b - .",
                ".word 4b - .",
                ".popsection",
                value = lateout(reg) value,
                flag = inout(reg) $own.0,
                at = in(reg) $at,
                options(nostack, readonly, preserves_flags),
            );
        }
        value
    }};
}

macro_rules! store {
    ($instruction:literal, $at:expr, $value:expr) => {
        store!($instruction, $at, 0, $value)
    };
    ($instruction:literal, $at:expr, $offset:literal, $value:expr) => {{
        // SAFETY: one store on the caller's behalf, which may fault: then the function returns. It changes what the caller
        // asked to have changed.
        unsafe {
            asm!(
                concat!("2: ", $instruction, " {value}, ", $offset, "({at})"),
                ".pushsection .exceptions, \"a\", @progbits",
                ".balign 4",
                ".word 2b - .",
                ".word {fault} - .",
                ".popsection",
                value = in(reg) $value,
                at = in(reg) $at,
                fault = label { return Err(Fault) },
                options(nostack, preserves_flags),
            );
        }
    }};
}

impl Memory for Own {
    #[inline(always)]
    fn key(&mut self, at: usize) -> Result<u64, Fault> {
        Ok(load!(self, "ld", at))
    }

    #[inline(always)]
    fn was_read(&mut self) -> Result<(), Fault> {
        self.check()
    }

    #[inline(always)]
    fn pair(&mut self, at: usize) -> Result<(u64, u64), Fault> {
        let pair = (load!(self, "ld", at), load!(self, "ld", at, 8));
        self.check().map(|()| pair)
    }

    #[inline(always)]
    fn put_pair(&mut self, at: usize, key: u64, value: u64) -> Result<(), Fault> {
        store!("sd", at, key);
        store!("sd", at, 8, value);
        Ok(())
    }

    #[inline(always)]
    fn set(&mut self, at: usize, size: usize) -> Result<u64, Fault> {
        let mut set = 0;
        for index in 0..size.min(rules::SET) {
            set |= load!(self, "lbu", at.wrapping_add(index)) << (8 * index);
            self.check()?;
        }
        Ok(set)
    }

    #[inline(always)]
    fn put_set(&mut self, at: usize, size: usize, set: u64) -> Result<(), Fault> {
        for index in 0..size.min(rules::SET) {
            store!("sb", at.wrapping_add(index), set >> (8 * index));
        }
        Ok(())
    }
}

/// The same where the set is a word, too.
struct Words(Own);

impl Memory for Words {
    #[inline(always)]
    fn key(&mut self, at: usize) -> Result<u64, Fault> {
        self.0.key(at)
    }

    #[inline(always)]
    fn was_read(&mut self) -> Result<(), Fault> {
        self.0.was_read()
    }

    #[inline(always)]
    fn pair(&mut self, at: usize) -> Result<(u64, u64), Fault> {
        self.0.pair(at)
    }

    #[inline(always)]
    fn put_pair(&mut self, at: usize, key: u64, value: u64) -> Result<(), Fault> {
        self.0.put_pair(at, key, value)
    }

    #[inline(always)]
    fn set(&mut self, at: usize, _: usize) -> Result<u64, Fault> {
        let set = load!(self.0, "ld", at);
        self.0.check().map(|()| set)
    }

    #[inline(always)]
    fn put_set(&mut self, at: usize, _: usize, set: u64) -> Result<(), Fault> {
        store!("sd", at, set);
        Ok(())
    }
}

/// The function's result.
#[inline(always)]
fn finish(result: Result<(), Error>) -> isize {
    const EINVAL: isize = 22;
    match result {
        Ok(()) => 0,
        Err(Error::Invalid) => -EINVAL,
        Err(Error::Fault) => fault(),
    }
}

/// -EFAULT, made where it is needed: a constant would be put into a register in every round of a loop.
#[cold]
#[inline(always)]
fn fault() -> isize {
    let errno;
    // SAFETY: a number is put into a register.
    unsafe { asm!("li {}, -14", out(reg) errno, options(nomem, nostack, preserves_flags)) };
    errno
}

/// riscv_hwprobe(2): as the call for any arguments, and without one for good pointers to pairs that are aligned. The result is an `int`.
#[unsafe(no_mangle)]
pub extern "C" fn __vdso_riscv_hwprobe(pairs: usize, count: usize, size: usize, cpus: usize, flags: usize) -> isize {
    // One test tells the shortest way: all harts, no flags (an `unsigned int`: the upper half of the register says nothing).
    if size | cpus | flags << 32 != 0 {
        return longer(pairs, count, size, cpus, flags as u32);
    }
    let mut request = Request { pairs, count, size, cpus, flags: 0 };
    match rules::all(answers(), &mut Own(0), &mut request) {
        Ok(()) => 0,
        // A bad pointer, or pairs that are not aligned on a hart that cannot access such: the call tells which.
        Err(Fault) => call(request),
    }
}

// The longer ways are functions of their own, so that the shortest needs no stack, and those over words no more registers
// than there are. Arguments stay where they are.

#[inline(never)]
extern "C" fn longer(pairs: usize, count: usize, size: usize, cpus: usize, flags: u32) -> isize {
    let words = (pairs | cpus).is_multiple_of(8) && size >= rules::SET;
    match flags {
        0 if words => some(pairs, count, cpus),
        rules::WHICH_CPUS if words => which(pairs, count, cpus),
        _ => bytes(pairs, count, size, cpus, flags),
    }
}

/// Without flags, the set a word.
#[inline(never)]
extern "C" fn some(pairs: usize, count: usize, cpus: usize) -> isize {
    finish(rules::some(answers(), &mut Words(Own(0)), Request { pairs, count, size: rules::SET, cpus, flags: 0 }))
}

/// Which harts, the set a word.
#[inline(never)]
extern "C" fn which(pairs: usize, count: usize, cpus: usize) -> isize {
    let flags = rules::WHICH_CPUS;
    finish(rules::which(answers(), &mut Words(Own(0)), Request { pairs, count, size: rules::SET, cpus, flags }))
}

/// Any other set, or none, or other flags: the functions above do the work with a copy of the set.
#[inline(never)]
extern "C" fn bytes(pairs: usize, count: usize, size: usize, cpus: usize, flags: u32) -> isize {
    if !pairs.is_multiple_of(8) {
        return call(Request { pairs, count, size, cpus, flags });
    }
    let harts = flags == rules::WHICH_CPUS;
    if flags != 0 && !harts || size == 0 || harts && cpus == 0 {
        return finish(Err(Error::Invalid));
    }
    let mut own = Own(0);
    let mut set = match own.set(cpus, size) {
        Ok(set) => set,
        Err(fault) => return finish(Err(fault.into())),
    };
    let copy = (&raw mut set).expose_provenance();
    if !harts {
        return some(pairs, count, copy);
    }
    match which(pairs, count, copy) {
        0 => finish(own.put_set(cpus, size, set).map_err(Error::from)),
        error => error,
    }
}

/// Pairs that are not aligned: the hart may not be able to access them at once.
#[cold]
#[inline(always)]
fn call(request: Request) -> isize {
    let result;
    // SAFETY: the caller's own call, made on its behalf with its own arguments.
    unsafe {
        asm!("ecall", in("a7") NR_RISCV_HWPROBE, inlateout("a0") request.pairs => result, in("a1") request.count,
            in("a2") request.size, in("a3") request.cpus, in("a4") request.flags, options(nostack));
    }
    result
}
