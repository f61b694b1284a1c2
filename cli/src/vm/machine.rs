//! How QEMU is called.

use crate::process;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The machine, but for kernel and root.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Harts.
    pub smp: u32,
    /// Memory as QEMU takes it.
    pub mem: String,
    /// CPU properties, or a model followed by properties.
    pub cpu: Option<String>,
    /// One instruction is one nanosecond, seed and clock are fixed.
    pub icount: bool,
    /// Wait for a debugger.
    pub gdb: bool,
    /// Kernel command line.
    pub command_line: String,
    /// The console is a terminal whose control characters belong to the guest.
    pub raw_terminal: bool,
    /// Further options, given to QEMU as they are.
    pub extra: Vec<String>,
    /// Edits of the device tree (see [`super::tree`]).
    pub tree: Vec<String>,
}

impl Machine {
    /// The command that boots `kernel` with the archive `root`.
    ///
    /// # Errors
    /// The CPU properties are not of the form `name=value`.
    pub fn command(&self, qemu: &Path, kernel: &Path, root: &Path) -> Result<Command> {
        let mut command = match process::find_program("setpriv") {
            // QEMU ends with this command, however that ends.
            Some(setpriv) => {
                let mut command = Command::new(setpriv);
                command.args(["--pdeathsig", "TERM", "--"]).arg(qemu);
                command
            }
            None => Command::new(qemu),
        };
        command.args(["-machine", "virt", "-nodefaults", "-display", "none", "-no-reboot", "-monitor", "none"]);
        command.arg("-cpu").arg(cpu(self.cpu.as_deref())?);
        command.arg("-smp").arg(self.smp.to_string()).arg("-m").arg(&self.mem);
        let terminal = if self.raw_terminal { "mux=on,signal=off" } else { "mux=off,signal=on" };
        command.arg("-chardev").arg(format!("stdio,id=console,{terminal}")).args(["-serial", "chardev:console"]);
        if self.icount {
            command.args(["-icount", "shift=0,sleep=off", "-seed", "1", "-rtc", "base=2026-01-01,clock=vm"]);
        }
        if self.gdb {
            command.args(["-S", "-s"]);
        }
        command.arg("-kernel").arg(kernel).arg("-initrd").arg(root);
        if !self.command_line.is_empty() {
            command.arg("-append").arg(&self.command_line);
        }
        command.args(&self.extra);
        Ok(command)
    }
}

/// `rv64` with the given properties; a first word without `=` is another model.
fn cpu(properties: Option<&str>) -> Result<String> {
    let Some(properties) = properties else {
        return Ok("rv64".into());
    };
    let mut words = properties.split(',').filter(|word| !word.is_empty()).peekable();
    let mut text = match words.next_if(|word| !word.contains('=')) {
        Some(model) => model.to_owned(),
        None => "rv64".into(),
    };
    for word in words {
        if !word.contains('=') {
            bail!("--cpu takes name=value pairs, not {word:?}");
        }
        text = format!("{text},{word}");
    }
    Ok(text)
}

/// A file name for the archive of one run.
pub fn archive_name(dir: &Path) -> PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    dir.join(format!("root-{}-{}.cpio", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
}

#[cfg(test)]
mod tests {
    use super::cpu;

    #[test]
    fn cpu_properties() {
        assert_eq!(cpu(None).unwrap(), "rv64");
        assert_eq!(cpu(Some("v=true,vlen=256")).unwrap(), "rv64,v=true,vlen=256");
        assert_eq!(cpu(Some("max,v=false")).unwrap(), "max,v=false");
        assert!(cpu(Some("v=true,vlen")).is_err());
    }
}
