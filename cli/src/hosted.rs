//! A program of the tests that uses the standard library.
//!
//! No compiler here has that library for riscv64 Linux: it is built from its source with the program, once, for musl, whose
//! start files and archive come from Debian. A host without the library's source goes without.

use crate::apt::{Apt, Release};
use crate::compile::Program;
use crate::process;
use crate::say;
use crate::toolchain::{Compiler, cargo_command};
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

const TARGET: &str = "riscv64gc-unknown-linux-musl";
/// The program's name in `tests/programs` and in the guest.
pub const NAME: &str = "detect";

/// Libraries that the linker is told of and that are not needed: without panics that unwind nothing refers to them, but
/// for two functions of backtraces.
const EMPTY: [&str; 3] = ["libgcc.a", "libgcc_eh.a", "libunwind.a"];
const UNUSED: [&str; 2] = ["_Unwind_Backtrace", "_Unwind_GetIP"];

/// Builds `tests/programs/detect.rs`; `None` where no compiler has the library's source.
///
/// # Errors
/// musl cannot be fetched, or the compiler's.
pub fn detect(workspace: &Workspace) -> Result<Option<Program>> {
    let all = Compiler::all();
    let Some((compiler, source)) = all.iter().find_map(|one| Some((one, one.library_source()?))) else {
        return Ok(None);
    };
    let _lock = workspace.lock()?;
    let musl = Apt::open(workspace, Release::Trixie)?.unpack_one("musl-dev")?.join("usr/lib/riscv64-linux-musl");
    let project = workspace.cache.join("hosted");
    let (empty, output) = (project.join("empty"), project.join("target").join(&compiler.release));
    if !output.exists() {
        say!("building the standard library for {TARGET} from source, once (about two minutes)");
    }
    fs::create_dir_all(&empty)?;
    for name in EMPTY {
        fs::write(empty.join(name), "!<arch>\n")?;
    }
    // A package of its own: the library's dependencies are taken from beside its source, where the workspace's are not.
    let main = workspace.root.join("tests/programs").join(NAME).with_extension("rs");
    let text = format!(
        "[package]\nname = \"{NAME}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[[bin]]\nname = \"{NAME}\"\npath = {main:?}\n\
         [dependencies]\nriscv-hwprobe = {{ path = {:?} }}\n[profile.release]\npanic = \"abort\"\n[workspace]\n",
        workspace.root.join("crates/hwprobe")
    );
    fs::write(project.join("Cargo.toml"), text)?;
    // The lock file of another compiler's library need not fit this one's.
    let _ = fs::remove_file(project.join("Cargo.lock"));
    let mut cargo = cargo_command();
    cargo.current_dir(&project).env("RUSTC", &compiler.rustc).env("RUSTC_BOOTSTRAP", "1");
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags(compiler, &musl, &empty)?.join("\x1f"));
    cargo.args(["build", "--release", "--target", TARGET, "-Zbuild-std=std,panic_abort", "-Zbuild-std-features="]);
    cargo.arg("--target-dir").arg(&output);
    compiler.use_vendored(&source, &mut cargo);
    process::run(&mut cargo).context("cannot build a program with the standard library")?;
    // Another worktree's may take its place at any time.
    let kept = workspace.target().join("limen-run").join(NAME);
    fs::create_dir_all(kept.parent().context("no directory")?)?;
    fs::copy(output.join(TARGET).join("release").join(NAME), &kept)?;
    Ok(Some(Program { name: NAME.into(), file: kept }))
}

/// The compiler's flags: statically linked by LLVM's linker with musl's files.
fn flags(compiler: &Compiler, musl: &Path, empty: &Path) -> Result<Vec<String>> {
    let linker = compiler.linker()?.unwrap_or_else(|| "rust-lld".into());
    let mut flags = vec![
        "-Ctarget-feature=+crt-static".to_owned(),
        "-Crelocation-model=static".into(),
        "-Clink-self-contained=no".into(),
        "-Clinker-flavor=ld.lld".into(),
        format!("-Clinker={}", linker.display()),
    ];
    flags.extend([musl, empty].map(|dir| format!("-Clink-arg=-L{}", dir.display())));
    flags.extend(["crt1.o", "crti.o", "crtn.o"].map(|name| format!("-Clink-arg={}", musl.join(name).display())));
    flags.extend(UNUSED.map(|name| format!("-Clink-arg=--defsym={name}=abort")));
    Ok(flags)
}
