//! Compiles and links the vDSO image (src/image.rs, image.ld), checks it, and hands it to the library.
//!
//! The image is a shared object for a target without dynamic linking, so cargo cannot link it: the compiler that
//! cargo uses emits one object, and the LLVM linker links it. For the riscv64 target the image must come out; on a
//! host it is built, for the tests, where the compiler has the target's core library (its own, or a sysroot named by
//! `LIMEN_SYSROOT`, of the compiler `LIMEN_RUSTC`), and is empty otherwise. Nothing of the build's place enters it.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "src/check.rs"]
mod check;

const TARGET: &str = "riscv64imac-unknown-none-elf";
const PAGE: usize = 4096;
/// Loops over harts stay loops: unrolled they want more registers than a function may use for nothing.
const LOOPS: &str = "-Cllvm-args=-unroll-full-max-count=1";

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    for file in [
        "build.rs",
        "image.ld",
        "src/image.rs",
        "src/hwprobe.rs",
        "src/check.rs",
        "../crates/uapi/src/vdso.rs",
        "../crates/hwprobe/src/rules.rs",
    ] {
        println!("cargo:rerun-if-changed={file}");
    }
    for name in ["LIMEN_RUSTC", "LIMEN_SYSROOT", "LIMEN_LLD"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    println!("cargo:rustc-check-cfg=cfg(limen_vdso)");
    let out = PathBuf::from(var("OUT_DIR")?);
    let mut image = Vec::new();
    let mut symbols = check::SYMBOLS.map(|name| (name, 0)).to_vec();
    let mut exceptions = Vec::new();
    if let Some(compiler) = Compiler::find()? {
        image = compiler.build(&out)?;
        symbols = check::check(&image).map_err(|why| format!("the linked vDSO image is wrong: {why}"))?;
        exceptions = check::exceptions(&image)?;
        check::strip(&mut image)?;
        image.resize(image.len().next_multiple_of(PAGE), 0);
        println!("cargo:rustc-cfg=limen_vdso");
    }
    fs::write(out.join("image.bin"), &image)?;
    let mut text: String = symbols.iter().map(|(name, offset)| constant(name, *offset)).collect();
    text += &format!(
        "/// Offsets of instructions that may fault, in order, and where to go on then.\npub const EXCEPTIONS: [(usize, usize); {}] = \
         {exceptions:?};\n",
        exceptions.len()
    );
    fs::write(out.join("symbols.rs"), text)?;
    Ok(())
}

/// `__vdso_getcpu` becomes `GETCPU`.
fn constant(symbol: &str, offset: u64) -> String {
    let name = symbol.trim_start_matches("__vdso_");
    format!("/// Offset of `{symbol}` in the image.\npub const {}: usize = {offset:#x};\n", name.to_uppercase())
}

fn var(name: &str) -> Result<String> {
    env::var(name).map_err(|why| format!("{name}: {why}").into())
}

/// A compiler with a core library for [`TARGET`].
struct Compiler {
    rustc: OsString,
    /// What to add to its command line: `--sysroot` if the library is not its own.
    flags: Vec<String>,
    sysroot: PathBuf,
}

impl Compiler {
    /// `None` on a host without the target's library.
    fn find() -> Result<Option<Self>> {
        let rustc = env::var_os("RUSTC").ok_or("RUSTC is not set")?;
        let for_target = var("TARGET")? == TARGET;
        let named = env::var("LIMEN_SYSROOT").ok().filter(|path| !for_target && !path.is_empty());
        let (rustc, flags) = match named {
            Some(sysroot) => (env::var_os("LIMEN_RUSTC").unwrap_or(rustc), vec![format!("--sysroot={sysroot}")]),
            None if for_target => (rustc, sysroot_flags(&env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default())),
            None => (rustc, Vec::new()),
        };
        let printed = run(Command::new(&rustc).args(&flags).args(["--print", "sysroot"]))?;
        let sysroot = PathBuf::from(printed.trim());
        let libraries = sysroot.join("lib/rustlib").join(TARGET).join("lib");
        let has_core = fs::read_dir(&libraries).is_ok_and(|mut entries| {
            entries.any(|entry| entry.is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with("libcore-")))
        });
        match has_core {
            true => Ok(Some(Compiler { rustc, flags, sysroot })),
            false if for_target => Err(format!(
                "no core library for {TARGET} in {}: add the target, or give rustc a sysroot that has it",
                libraries.display()
            )
            .into()),
            false => Ok(None),
        }
    }

    fn build(&self, out: &Path) -> Result<Vec<u8>> {
        let (object, image) = (out.join("vdso.o"), out.join("vdso.so"));
        let mut rustc = Command::new(&self.rustc);
        rustc.args(&self.flags).args(["--edition=2024", "--crate-name=vdso", "--crate-type=lib", "--emit=obj"]);
        rustc.args(["--target", TARGET, "-Copt-level=3", LOOPS, "-Ccodegen-units=1", "-Cpanic=abort", "-Cdebuginfo=0"]);
        rustc.args(["-Crelocation-model=pic", "-Cforce-unwind-tables=yes", "-Coverflow-checks=no", "-Dwarnings"]);
        run(rustc.arg("-o").arg(&object).arg("src/image.rs"))?;
        let mut lld = linker(&self.sysroot, &self.rustc)?;
        lld.args(["-shared", "-soname=linux-vdso.so.1", "-T", "image.ld", "--hash-style=both", "--eh-frame-hdr"]);
        lld.args(["--build-id=sha1", "-s", "--gc-sections", "--fatal-warnings", "-z", "max-page-size=4096"]);
        lld.args(["-z", "rodynamic", "-z", "defs", "-o"]);
        run(lld.arg(&image).arg(&object))?;
        Ok(fs::read(&image)?)
    }
}

/// The `--sysroot` among the flags that cargo passes to rustc.
fn sysroot_flags(encoded: &str) -> Vec<String> {
    let mut flags = encoded.split('\x1f');
    let mut found = Vec::new();
    while let Some(flag) = flags.next() {
        if flag.starts_with("--sysroot=") {
            found = vec![flag.to_owned()];
        } else if flag == "--sysroot" {
            found = flags.next().map(|path| format!("--sysroot={path}")).into_iter().collect();
        }
    }
    found
}

/// The LLVM linker: the one named, cargo's for the target, the compiler's own, or the newest on the path.
fn linker(sysroot: &Path, rustc: &OsString) -> Result<Command> {
    let named = ["LIMEN_LLD", "RUSTC_LINKER"].into_iter().filter_map(env::var_os).map(PathBuf::from);
    let mut own = vec![sysroot.to_path_buf()];
    if let Ok(printed) = run(Command::new(rustc).args(["--print", "sysroot"])) {
        own.push(printed.trim().into());
    }
    let host = var("HOST")?;
    let own = own.into_iter().map(|dir| dir.join("lib/rustlib").join(&host).join("bin/rust-lld"));
    let versions = (15..=30).rev().map(|version| format!("ld.lld-{version}"));
    let on_path = versions.chain(["ld.lld".into(), "rust-lld".into()]).map(PathBuf::from);
    for path in named.chain(own).chain(on_path) {
        if !path.file_name().is_some_and(|name| name.to_string_lossy().contains("lld")) {
            continue;
        }
        let mut command = Command::new(&path);
        command.args(["-flavor", "gnu"]);
        if command.arg("--version").output().is_ok_and(|output| output.status.success()) {
            let mut command = Command::new(&path);
            command.args(["-flavor", "gnu"]);
            return Ok(command);
        }
    }
    Err("no LLVM linker (rust-lld or ld.lld) to link the vDSO with; LIMEN_LLD may name one".into())
}

/// Runs a command and gives what it printed.
fn run(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|why| format!("{command:?}: {why}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}\n{}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
