//! Every register known: what a call, a fault, a signal or a preemption leaves of them.

use crate::random::Random;
use core::arch::global_asm;

global_asm!(include_str!("registers.S"));

/// x0 to x31, word n for xn.
pub type Integers = [u64; 32];
/// f0 to f31, then fcsr.
pub type Floats = [u64; 33];

/// Numbers of registers.
pub const RA: usize = 1;
/// See [`RA`].
pub const SP: usize = 2;
/// See [`RA`].
pub const GP: usize = 3;
/// See [`RA`].
pub const TP: usize = 4;
/// See [`RA`].
pub const A0: usize = 10;
/// See [`RA`].
pub const A1: usize = 11;
/// See [`RA`].
pub const A7: usize = 17;

type Routine = unsafe extern "C" fn(*mut u64, *mut u64);

unsafe extern "C" {
    fn kit_registers_call(given: *mut u64, left: *mut u64);
    fn kit_registers_spin(given: *mut u64, left: *mut u64);
    fn kit_registers_store(given: *mut u64, left: *mut u64);
    fn kit_registers_illegal(given: *mut u64, left: *mut u64);
    fn kit_bad_stack(sp: usize, call: usize, rounds: usize, store: usize, illegal: usize) -> isize;
    static kit_bad_stack_illegal: [u8; 4];
    fn kit_lr_sc(word: *mut u64, call: usize, a0: usize, a1: usize, a2: usize) -> usize;
    fn kit_lr_spin_sc(word: *mut u64, rounds: usize) -> usize;
    static kit_lr_spin_sc_store: [u8; 4];
    fn kit_fp_fill(from: *const u64);
    fn kit_fp_read(to: *mut u64);
    static kit_entry_program: [u8; 0];
    static kit_entry_program_end: [u8; 0];
}

/// Registers with random contents, all different.
pub fn pattern(random: &mut Random) -> Integers {
    core::array::from_fn(|index| if index == 0 { 0 } else { random.next() & !0xff | index as u64 })
}

/// Registers for a system call: its number and arguments, the rest random.
pub fn call_pattern(random: &mut Random, number: usize, arguments: &[usize]) -> Integers {
    let mut given = pattern(random);
    given[A7] = number as u64;
    for (index, argument) in arguments.iter().enumerate() {
        given[A0 + index] = *argument as u64;
    }
    given
}

fn through(routine: Routine, given: &mut Integers) -> Integers {
    let mut left = [0; 32];
    // SAFETY: both arrays have 32 words; the routine keeps the calling convention.
    unsafe { routine(given.as_mut_ptr(), left.as_mut_ptr()) };
    left
}

/// Makes the call in a7; sp is filled in.
pub fn call(given: &mut Integers) -> Integers {
    through(kit_registers_call, given)
}

/// [`call`] with the place of the result given: that of a child without a memory of its own is in its stack's second
/// word.
pub fn call_into(given: &mut Integers, left: *mut Integers) {
    // SAFETY: as in `through`; the caller says where 32 words may go.
    unsafe { kit_registers_call(given.as_mut_ptr(), left.cast()) };
}

/// Counts a7 down to 0.
pub fn spin(given: &mut Integers) -> Integers {
    through(kit_registers_spin, given)
}

/// Stores a zero byte at a1.
pub fn store(given: &mut Integers) -> Integers {
    through(kit_registers_store, given)
}

/// Executes an illegal instruction of 4 bytes.
pub fn illegal(given: &mut Integers) -> Integers {
    through(kit_registers_illegal, given)
}

/// The registers in which the two differ, bit n for xn, but for those in `ignored`.
pub fn difference(given: &Integers, left: &Integers, ignored: &[usize]) -> u32 {
    let mut mask = 0;
    for index in 1..32 {
        if given[index] != left[index] && !ignored.contains(&index) {
            rt::println!("# x{index}: {:#x}, was {:#x}", left[index], given[index]);
            mask |= 1 << index;
        }
    }
    mask
}

/// Makes a call with random registers, of which it may change a0 only; gives the result.
///
/// # Errors
/// Another register changed.
pub fn checked_call(random: &mut Random, number: usize, arguments: &[usize]) -> Result<isize, &'static str> {
    let mut given = call_pattern(random, number, arguments);
    let left = call(&mut given);
    if difference(&given, &left, &[A0]) != 0 {
        return Err("a call changed a register");
    }
    Ok(left[A0].cast_signed() as isize)
}

/// With any stack pointer: the call, `rounds` of nothing, a store to `store`, and if wanted an illegal instruction.
pub fn bad_stack(sp: usize, call: usize, rounds: usize, store: usize, illegal: bool) -> isize {
    // SAFETY: the routine uses the stack pointer for nothing and gives it back.
    unsafe { kit_bad_stack(sp, call, rounds, store, usize::from(illegal)) }
}

/// Where [`bad_stack`]'s illegal instruction is.
pub fn bad_stack_illegal() -> usize {
    (&raw const kit_bad_stack_illegal).addr()
}

/// A load-reserved, a system call, a store-conditional to the same word: whether that stored.
pub fn lr_call_sc(word: &mut u64, call: usize, arguments: [usize; 3]) -> bool {
    // SAFETY: the word is ours; the caller answers for the call.
    unsafe { kit_lr_sc(word, call, arguments[0], arguments[1], arguments[2]) == 0 }
}

/// A load-reserved, `rounds` of nothing, a store-conditional: whether that stored.
pub fn lr_spin_sc(word: &mut u64, rounds: usize) -> bool {
    // SAFETY: the word is ours.
    unsafe { kit_lr_spin_sc(word, rounds) == 0 }
}

/// The addresses between the two in [`lr_spin_sc`].
pub fn lr_spin_sc_between() -> core::ops::Range<usize> {
    let start = kit_lr_spin_sc as *const () as usize;
    start + 4..(&raw const kit_lr_spin_sc_store).addr() + 1
}

/// Sets the floating-point registers. The compiler uses none, so that they stay until the next call of this.
pub fn fill_floats(from: &Floats) {
    // SAFETY: 33 words are read.
    unsafe { kit_fp_fill(from.as_ptr()) };
}

/// The floating-point registers.
pub fn floats() -> Floats {
    let mut found = [0; 33];
    // SAFETY: 33 words are written.
    unsafe { kit_fp_read(found.as_mut_ptr()) };
    found
}

/// Floating-point registers with random contents; of fcsr the flags and the rounding mode.
pub fn float_pattern(random: &mut Random) -> Floats {
    core::array::from_fn(|index| if index == 32 { random.below(5) << 5 | random.below(32) } else { random.next() })
}

/// Code that runs at any address as a program's first: it writes its registers at entry, [`Integers`] and [`Floats`], to
/// standard output.
pub fn entry_program() -> &'static [u8] {
    let start = &raw const kit_entry_program;
    let length = (&raw const kit_entry_program_end).addr() - start.addr();
    // SAFETY: the bytes between the two labels are code of this program.
    unsafe { core::slice::from_raw_parts(start.cast(), length) }
}

unsafe extern "C" {
    fn kit_sigreturn(frame: usize) -> !;
    fn kit_landing() -> !;
}

/// rt_sigreturn(2) with any frame.
pub fn sigreturn(frame: usize) -> ! {
    // SAFETY: whatever the frame says happens to this process only, which its test has made for that.
    unsafe { kit_sigreturn(frame) }
}

/// Where the registers of a frame may point: code that ends the process with 42, whatever the registers hold.
pub fn landing() -> usize {
    kit_landing as *const () as usize
}
