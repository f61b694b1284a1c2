//! The null call by a program that uses vector registers. Where the kernel keeps the unit off the first of these
//! instructions is illegal, and the workload ends by SIGILL.

use crate::meter::{Meter, Outcome};
use core::arch::asm;

macro_rules! vector_loop {
    ($meter:expr, $($instruction:literal),*) => {{
        let pass = |rounds: u32| {
            // SAFETY: the compiler does not know vector registers, so that nobody misses them; the call changes a0 only.
            unsafe {
                asm!(".option push", ".option arch, +v", "2:", $($instruction,)* "li a7, 173", "ecall", "addi {n}, {n}, -1", "bnez {n}, 2b", ".option pop", n = inout(reg) u64::from(rounds) => _, out("a0") _, out("a7") _, options(nostack));
            }
        };
        pass($meter.rounds / 10);
        $meter.between(|| {
            pass($meter.rounds);
            Ok(())
        })
    }};
}

pub fn after_vsetvli(meter: &mut Meter) -> Outcome {
    vector_loop!(meter, "vsetvli zero, zero, e8, m1, ta, ma")
}

pub fn after_writes(meter: &mut Meter) -> Outcome {
    vector_loop!(meter, "vsetvli a0, zero, e8, m8, ta, ma", "vmv.v.i v0, 1", "vmv.v.i v8, 1")
}
