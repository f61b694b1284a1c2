//! The kernel image.
fn main() {}
