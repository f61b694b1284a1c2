//! The limen command.
fn main() {}
