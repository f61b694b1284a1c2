//! Prints the table of supported system calls, for the book: `cargo run -p limen-syscall --example coverage`.

use limen_syscall::{FAMILIES, Support};
use std::collections::BTreeSet;

fn main() {
    println!("# System calls\n");
    println!("Made from the source by `cargo run -p limen-syscall --example coverage`; not to be edited.\n");
    let all = || FAMILIES.iter().flat_map(|family| family.calls);
    let count = |support| all().filter(|call| call.support == support).count();
    let listed: BTreeSet<usize> = all().map(|call| call.number).collect();
    let other: Vec<&str> =
        (0..uapi::nr::NR_SYSCALLS).filter(|nr| !listed.contains(nr)).filter_map(uapi::nr::name).collect();
    println!(
        "Of the {} calls that riscv64 Linux has, {} work as in Linux 6.12, {} but for what is noted, {} answer on purpose with\n\
         the error that Linux has for a feature that is not there, and {} with ENOSYS.\n",
        listed.len() + other.len(),
        count(Support::Full),
        count(Support::Partial),
        count(Support::Absent),
        other.len()
    );
    for family in FAMILIES {
        println!("## {}\n\n| number | call | supported | what is missing |\n|---:|---|---|---|", family.name);
        let mut calls = family.calls.to_vec();
        calls.sort_by_key(|call| call.number);
        for call in calls {
            let name = uapi::nr::name(call.number).unwrap_or("?");
            println!("| {} | {name} | {} | {} |", call.number, call.support, call.note);
        }
        println!();
    }
    println!("## ENOSYS\n\n{}", other.join(", "));
}
