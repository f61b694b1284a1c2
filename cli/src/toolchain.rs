//! Choosing the compiler for the riscv64 side.
//!
//! Two kinds of machine must be served. Where rustup has the target, its compiler is used as it is. Debian's compiler
//! has no libraries for the target but their source: `core`, `alloc` and `compiler_builtins` are built from it once and
//! given back as a sysroot, after which an ordinary `cargo build --target` works, link-time optimisation included.

use crate::process;
use crate::say;
use crate::workspace::{Workspace, appear};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What everything that runs in the guest is built for: the compiler never touches FP or vector registers.
pub const TARGET: &str = "riscv64imac-unknown-none-elf";
/// Oldest compiler that builds the workspace.
const MINIMUM: (u32, u32) = (1, 95);
/// How the target's library is built: usable for link-time optimisation, and unwindable.
const LIBRARY_FLAGS: &str = "-Cembed-bitcode=yes -Cforce-unwind-tables=yes";

/// A Rust compiler on this host.
#[derive(Clone, Debug)]
pub struct Compiler {
    /// The executable.
    pub rustc: PathBuf,
    /// As `1.96.0`.
    pub release: String,
    sysroot: PathBuf,
    host: String,
}

/// A compiler with everything it needs for [`TARGET`].
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// The compiler.
    pub compiler: Compiler,
    /// A sysroot made by us, if the compiler's own lacks the target.
    pub sysroot: Option<PathBuf>,
    /// The linker, if the compiler brings none.
    pub linker: Option<PathBuf>,
}

impl Compiler {
    fn probe(rustc: &Path) -> Option<Self> {
        let text = process::capture(Command::new(rustc).arg("-vV")).ok()?;
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        let release = field("release: ")?;
        let mut parts = release.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
        let version = (parts.next()?, parts.next()?);
        let sysroot = process::capture(Command::new(rustc).args(["--print", "sysroot"])).ok()?;
        (version >= MINIMUM).then(|| Self {
            rustc: rustc.to_path_buf(),
            release,
            sysroot: sysroot.trim().into(),
            host: field("host: ").unwrap_or_default(),
        })
    }

    /// The compilers on this host that are new enough, in order of preference; `$LIMEN_RUSTC` alone if set.
    pub fn all() -> Vec<Self> {
        if let Some(forced) = std::env::var_os("LIMEN_RUSTC") {
            return Self::probe(Path::new(&forced)).into_iter().collect();
        }
        let mut paths: Vec<PathBuf> = process::find_program("rustc").into_iter().collect();
        if paths.iter().all(|path| path != Path::new("/usr/bin/rustc")) {
            paths.push("/usr/bin/rustc".into());
        }
        paths.iter().filter(|path| path.exists()).filter_map(|path| Self::probe(path)).collect()
    }

    fn has_target(&self) -> bool {
        let dir = self.sysroot.join("lib/rustlib").join(TARGET).join("lib");
        fs::read_dir(dir).is_ok_and(|mut entries| {
            entries.any(|entry| entry.is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with("libcore-")))
        })
    }

    /// Where the source of the compiler's library lies, if it is there.
    pub fn library_source(&self) -> Option<PathBuf> {
        let dir = self.sysroot.join("lib/rustlib/src/rust/library");
        dir.join("core/src/lib.rs").exists().then_some(dir)
    }

    /// Has `cargo` take what the library at `source` depends on from beside it, where it comes with that.
    pub fn use_vendored(&self, source: &Path, cargo: &mut Command) {
        let vendor = source.join("vendor");
        if vendor.exists() {
            cargo.arg("--config").arg("source.crates-io.replace-with=\"library\"");
            cargo.arg("--config").arg(format!("source.library.directory={:?}", vendor.display().to_string()));
        }
    }

    /// The linker, `Ok(None)` if the compiler brings its own.
    ///
    /// # Errors
    /// There is none.
    pub fn linker(&self) -> Result<Option<PathBuf>> {
        if self.sysroot.join("lib/rustlib").join(&self.host).join("bin/rust-lld").exists() {
            return Ok(None);
        }
        let names =
            (18..=30).rev().map(|version| format!("ld.lld-{version}")).chain(["ld.lld".into(), "rust-lld".into()]);
        let found = names.filter_map(|name| process::find_program(&name)).next();
        found.map(Some).context("no LLVM linker (ld.lld) for the riscv64 side")
    }
}

impl Toolchain {
    /// The toolchain to use, without installing or building anything.
    ///
    /// # Errors
    /// What is missing.
    pub fn find(workspace: &Workspace) -> Result<Self> {
        let all = Compiler::all();
        if let Some(compiler) = all.iter().find(|compiler| compiler.has_target()) {
            return Ok(Self { linker: compiler.linker()?, sysroot: None, compiler: compiler.clone() });
        }
        let compiler = all.iter().find(|compiler| compiler.library_source().is_some());
        let compiler = compiler.with_context(|| {
            format!("no Rust compiler {}.{} or newer with {TARGET} or the library's source", MINIMUM.0, MINIMUM.1)
        })?;
        let sysroot = workspace.cache.join("sysroot").join(sysroot_key(compiler));
        Ok(Self { linker: compiler.linker()?, sysroot: Some(sysroot), compiler: compiler.clone() })
    }

    /// Whether the target's library still has to be built.
    pub fn wants_library(&self) -> bool {
        self.sysroot.as_ref().is_some_and(|dir| !dir.exists())
    }

    /// Builds the target's library, if that was not done for this compiler. The caller holds the cache's lock.
    ///
    /// # Errors
    /// The build fails.
    pub fn make_library(&self, workspace: &Workspace) -> Result<()> {
        let Some(sysroot) = self.sysroot.as_ref().filter(|dir| !dir.exists()) else {
            return Ok(());
        };
        let source = self.compiler.library_source().context("the library's source is gone")?;
        say!("building the library for {TARGET} from source, once (about a minute)");
        let project = workspace.cache.join("sysroot-build");
        fs::create_dir_all(project.join("src"))?;
        fs::write(
            project.join("Cargo.toml"),
            "[package]\nname = \"library\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[profile.release]\npanic = \"abort\"\ncodegen-units = 1\n[workspace]\n",
        )?;
        fs::write(project.join("src/lib.rs"), "#![no_std]\n")?;
        // The lock file of another compiler's library need not fit this one's.
        let _ = fs::remove_file(project.join("Cargo.lock"));
        let output = project.join("target").join(&self.compiler.release);
        let mut cargo = cargo_command();
        cargo
            .current_dir(&project)
            .env("RUSTC", &self.compiler.rustc)
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTFLAGS", LIBRARY_FLAGS);
        cargo
            .args([
                "build",
                "--release",
                "--target",
                TARGET,
                "-Zbuild-std=core,alloc,compiler_builtins",
                "--target-dir",
            ])
            .arg(&output);
        self.compiler.use_vendored(&source, &mut cargo);
        process::run(&mut cargo).context("cannot build the target's library")?;
        let built = output.join(TARGET).join("release/deps");
        appear(sysroot, |part| {
            let libraries = part.join("lib/rustlib").join(TARGET).join("lib");
            fs::create_dir_all(&libraries)?;
            for name in ["core", "alloc", "compiler_builtins"] {
                let prefix = format!("lib{name}-");
                let file = newest(&built, &prefix, ".rlib").with_context(|| format!("{name} was not built"))?;
                fs::copy(&file, libraries.join(file.file_name().unwrap_or_default()))?;
            }
            Ok(())
        })?;
        let _ = fs::remove_dir_all(&output);
        Ok(())
    }

    /// `cargo` with this compiler, for the target: a verb and packages are to be added.
    pub fn cargo(&self, workspace: &Workspace, verb: &str) -> Command {
        let mut cargo = cargo_command();
        cargo.current_dir(&workspace.root).env("RUSTC", &self.compiler.rustc);
        cargo.args([verb, "--release", "--target", TARGET]);
        if let Some(sysroot) = &self.sysroot {
            let flag = format!("--sysroot={}", sysroot.display());
            cargo.arg("--config").arg(format!("target.{TARGET}.rustflags=[{flag:?}]"));
        }
        if let Some(linker) = &self.linker {
            cargo.arg("--config").arg(format!("target.{TARGET}.linker={:?}", linker.display().to_string()));
        }
        cargo
    }

    /// Tells the build script of the vDSO, in a build for the host, what compiles its image.
    pub fn announce(&self, cargo: &mut Command) {
        if let Some(sysroot) = &self.sysroot {
            cargo.env("LIMEN_RUSTC", &self.compiler.rustc).env("LIMEN_SYSROOT", sysroot);
        }
        if let Some(linker) = &self.linker {
            cargo.env("LIMEN_LLD", linker);
        }
    }
}

/// Cargo, free of what the cargo that started us left in the environment.
pub fn cargo_command() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_")
            || text.starts_with("CARGO_MANIFEST")
            || text.starts_with("CARGO_BIN_")
            || text.ends_with("RUSTFLAGS")
        {
            cargo.env_remove(&name);
        }
    }
    cargo
}

fn sysroot_key(compiler: &Compiler) -> String {
    let flags: String = LIBRARY_FLAGS.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("{}-{}-{flags}", compiler.release, compiler.rustc.display().to_string().replace('/', "_"))
}

fn newest(dir: &Path, prefix: &str, suffix: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path());
    let fits = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(prefix) && name.to_string_lossy().ends_with(suffix))
    };
    entries.filter(fits).max_by_key(|path| path.metadata().and_then(|meta| meta.modified()).ok())
}
