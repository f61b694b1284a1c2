//! Where things lie: the repository, and the cache of what was fetched or built once.

use anyhow::{Context, Result};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The repository and its cache.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// Top directory of the repository.
    pub root: PathBuf,
    /// Downloads, unpacked packages, the target's library. `target/limen`, or `$LIMEN_CACHE`.
    pub cache: PathBuf,
}

impl Workspace {
    /// Finds the repository this command was built from and makes its cache directory.
    ///
    /// # Errors
    /// The cache directory cannot be made.
    pub fn open() -> Result<Self> {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest.parent().context("the command's package has no parent directory")?.to_path_buf();
        let cache = std::env::var_os("LIMEN_CACHE").map_or_else(|| root.join("target/limen"), PathBuf::from);
        fs::create_dir_all(&cache).with_context(|| format!("cannot make {}", cache.display()))?;
        Ok(Self { cache: fs::canonicalize(cache)?, root })
    }

    /// Cargo's output directory.
    pub fn target(&self) -> PathBuf {
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| self.root.join("target"), PathBuf::from)
    }

    /// Waits until no other `limen` changes the cache; the lock ends with the returned value.
    ///
    /// # Errors
    /// The lock file cannot be made.
    pub fn lock(&self) -> Result<CacheLock> {
        let file = File::create(self.cache.join("lock")).context("cannot make the cache's lock file")?;
        file.lock().context("cannot lock the cache")?;
        Ok(CacheLock { _file: file })
    }
}

/// The right to change the cache.
pub struct CacheLock {
    _file: File,
}

/// Makes `target` appear all at once: `fill` writes a temporary neighbour, which is renamed when complete.
///
/// # Errors
/// `fill` failed, or the directory could not be written.
pub fn appear(target: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let name = target.file_name().context("no file name")?.to_string_lossy();
    let part = target.with_file_name(format!(".{name}.{}", std::process::id()));
    remove(&part)?;
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent)?;
    }
    if let Err(error) = fill(&part) {
        remove(&part)?;
        return Err(error);
    }
    remove(target)?;
    fs::rename(&part, target).with_context(|| format!("cannot rename to {}", target.display()))
}

fn remove(path: &Path) -> Result<()> {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path)?,
        Ok(_) => fs::remove_file(path)?,
        Err(_) => {}
    }
    Ok(())
}
