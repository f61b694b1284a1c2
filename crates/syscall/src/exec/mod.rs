//! execve(2).
#[allow(dead_code)]
mod elf;
#[allow(dead_code)]
mod script;
#[allow(dead_code)]
mod stack;
#[allow(dead_code)]
mod strings;
