//! What the standard library's own detection finds, and what the crate `riscv-hwprobe` does.
//!
//! Prints those of the named extensions that are there, how misaligned accesses fare, and who told the crate. The status is
//! 1 if the two differ about any extension that both know.
#![feature(stdarch_riscv_feature_detection)]
#![forbid(unsafe_code)]

use std::arch::is_riscv_feature_detected;
use std::process::ExitCode;

macro_rules! found {
    ($($name:tt)*) => { [$(($name, is_riscv_feature_detected!($name))),*] };
}

fn main() -> ExitCode {
    // Not "zbkc", which the standard library takes to be there with "zbc".
    let found = found! {
        "c" "d" "v" "zaamo" "zabha" "zacas" "zalrsc" "zawrs" "zba" "zbb" "zbc" "zbkb" "zbkx" "zbs" "zca" "zcb" "zcd"
        "zcmop" "zfa" "zfh" "zfhmin" "zicbom" "zicboz" "zicntr" "zicond" "zihintntl" "zihintpause" "zihpm" "zimop" "zknd"
        "zkne" "zknh" "zksed" "zksh" "zkt" "ztso" "zvbb" "zve64d" "zvfh"
    };
    let features = riscv_hwprobe::features();
    let mut status = ExitCode::SUCCESS;
    for (name, found) in found.into_iter().filter(|(name, found)| features.has(name) != *found) {
        println!("{name}: {found} by the standard library, {} by the crate", !found);
        status = ExitCode::FAILURE;
    }
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let there = found.iter().filter(|(name, found)| *found && asked.iter().any(|asked| asked == name));
    println!("{}", there.map(|(name, _)| *name).collect::<Vec<_>>().join(" "));
    let fast = is_riscv_feature_detected!("unaligned-scalar-mem");
    println!("misaligned {:?}, {fast}, by {:?}", features.misaligned_scalar(), features.source());
    status
}
