//! `cargo limen run`: set-up, build, boot, run a program, end with its status.

use crate::args::RunArgs;
use crate::compile;
use crate::report;
use crate::root::{self, Settings};
use crate::setup::{self, Tools};
use crate::vm::{self, End, Image, Input, Kernel, Machine, Output};
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::fs;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

/// Does it all and gives the status to end with.
///
/// # Errors
/// Whatever came in the way before the program could run.
pub fn run(workspace: &Workspace, args: &RunArgs) -> Result<u8> {
    let tools = setup::tools(workspace)?;
    let image = vm::prepare(workspace, &tools.toolchain, &Kernel::parse(args.kernel.as_deref()))?;
    let terminal = std::io::stdin().is_terminal();
    let mut settings = Settings {
        rootfs: args.rootfs.clone(),
        packages: args.packages.clone(),
        copies: args.copies.iter().map(|text| parse_copy(text)).collect::<Result<_>>()?,
        argv: args.program.clone(),
        ..Settings::default()
    };
    if args.program.first().is_some_and(|program| program.starts_with("/tests/")) {
        settings.programs = compile::programs(workspace, &tools.toolchain)?;
    } else if args.rootfs.is_none() {
        settings.programs = vec![compile::command(workspace, &tools.toolchain)?];
    }
    settings.settings.push(format!("echo={}", if terminal { "on" } else { "off" }));
    if let Ok(size) = rustix::termios::tcgetwinsize(std::io::stdin()) {
        settings.settings.push(format!("winsize={},{}", size.ws_row, size.ws_col));
    }
    if terminal && let Ok(name) = std::env::var("TERM") {
        settings.settings.push(format!("env=TERM={name}"));
    }
    let machine = Machine {
        smp: args.smp.unwrap_or(if args.icount { 1 } else { 2 }),
        mem: args.mem.clone(),
        cpu: args.cpu.clone(),
        icount: args.icount,
        gdb: args.gdb,
        command_line: command_line(&image, args.append.as_deref()),
        raw_terminal: terminal && args.program.is_empty(),
        extra: Vec::new(),
        tree: args.tree.clone(),
    };
    if args.gdb {
        eprintln!("limen: waiting for a debugger: gdb {} -ex 'target remote :1234'", image.file.display());
    }
    let input = if terminal { Input::Terminal } else { Input::Standard };
    let mut output = Streams { quiet: args.quiet };
    let guest = Guest { init: compile::init(workspace, &tools.toolchain)?, image, machine, settings };
    let end = guest.boot(workspace, &tools, input, args.timeout.map(Duration::from_secs), &mut output)?;
    match end {
        End::Exit(_) | End::Emulator => {}
        End::Panic => eprintln!("limen: the kernel panicked"),
        End::Silent => eprintln!("limen: the machine stopped before the program ended"),
        End::Timeout => eprintln!("limen: time is up"),
    }
    Ok(end.status())
}

/// The kernel's own words and the user's.
pub fn command_line(image: &Image, append: Option<&str>) -> String {
    [image.command_line.as_str(), append.unwrap_or_default()]
        .iter()
        .filter(|part| !part.is_empty())
        .copied()
        .collect::<Vec<_>>()
        .join(" ")
}

/// Everything that makes one boot.
#[derive(Clone, Debug)]
pub struct Guest {
    /// The kernel.
    pub image: Image,
    /// Our init, built.
    pub init: PathBuf,
    /// The machine.
    pub machine: Machine,
    /// The root and the program.
    pub settings: Settings,
}

impl Guest {
    /// Packs the root and boots.
    ///
    /// # Errors
    /// The root cannot be made or QEMU not started.
    pub fn boot(
        &self,
        workspace: &Workspace,
        tools: &Tools,
        input: Input,
        timeout: Option<Duration>,
        output: &mut dyn Output,
    ) -> Result<End> {
        let dir = workspace.target().join("limen-run");
        fs::create_dir_all(&dir)?;
        let archive = vm::archive_name(&dir);
        let packed = root::assemble(workspace, &self.init, &self.settings, &archive);
        let mut machine = self.machine.clone();
        let result = packed.and_then(|()| {
            let tree = vm::tree::make(&tools.qemu, &machine, &dir)?;
            machine.extra.extend(tree.iter().flat_map(|file| ["-dtb".into(), file.display().to_string()]));
            let result = vm::run(&tools.qemu, &machine, &self.image, &archive, input, timeout, output);
            tree.into_iter().for_each(|file| drop(fs::remove_file(file)));
            result
        });
        let _ = fs::remove_file(&archive);
        result
    }
}

/// `HOST:GUEST`, the value of `--copy`.
///
/// # Errors
/// It has no colon.
pub fn parse_copy(text: &str) -> Result<(PathBuf, String)> {
    let (host, guest) = text.rsplit_once(':').with_context(|| format!("--copy takes HOST:GUEST, not {text:?}"))?;
    Ok((host.into(), guest.into()))
}

/// The command's own streams.
struct Streams {
    quiet: bool,
}

impl Output for Streams {
    fn program(&mut self, bytes: &[u8]) {
        let mut stdout = std::io::stdout().lock();
        let _ = stdout.write_all(bytes).and_then(|()| stdout.flush());
    }

    fn around(&mut self, bytes: &[u8]) {
        if !self.quiet {
            let _ = std::io::stderr().write_all(bytes);
        }
    }

    fn report(&mut self, line: &str) {
        eprintln!("{line}");
    }
}

/// Sets how much is said for a run.
pub fn set_level(args: &RunArgs, verbose: bool) {
    report::set_level(if verbose { 2 } else { u8::from(!args.quiet) });
}
