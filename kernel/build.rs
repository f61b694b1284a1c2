//! Links the kernel by its own script.
fn main() {
    let script = std::path::Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("link.ld");
    println!("cargo::rerun-if-changed={}", script.display());
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo::rustc-link-arg-bins=-T{}", script.display());
        println!("cargo::rustc-link-arg-bins=--no-relax-gp");
    }
}
