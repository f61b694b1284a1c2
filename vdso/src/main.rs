//! The vDSO image.
fn main() {}
