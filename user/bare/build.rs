//! The guests lie where the machine starts, by their own linker script.

fn main() {
    println!("cargo:rerun-if-changed=bare.ld");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "none") {
        let directory = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        println!("cargo:rustc-link-arg-bins=-T{directory}/bare.ld");
    }
}
