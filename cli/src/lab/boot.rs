//! One boot of the lab: a kernel with the plugin, and what the program in the guest said.

use super::instrument::Instrument;
use super::kernels::Candidate;
use super::progress::Progress;
use crate::args::LabMachineArgs;
use crate::root::Settings;
use crate::run::{Guest, command_line};
use crate::setup::Tools;
use crate::vm::{End, Input, Machine, Output};
use crate::workspace::Workspace;
use anyhow::Result;
use model::Report;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use uapi::Errno;

/// Makes several harts take turns. Where instructions are counted, QEMU runs one hart at a time, for its share of the time
/// up to the next event of any device; that can be 50 milliseconds, in which the others cannot answer it. A filter of a
/// network without a card, which looks after its packets every 97 microseconds, is such an event and nothing else: a turn
/// is at most 97 000 instructions through the number of harts. A prime, so that turns do not fall into step with what the
/// kernel does every so often.
const TURNS: [&str; 4] =
    ["-netdev", "hubport,id=turns,hubid=0", "-object", "filter-buffer,id=turn,netdev=turns,interval=97"];

/// What is the same for all boots of a run.
pub struct Setting<'a> {
    /// Where things lie.
    pub workspace: &'a Workspace,
    /// QEMU.
    pub tools: &'a Tools,
    /// The plugin and the program.
    pub instrument: &'a Instrument,
    /// The machine.
    pub machine: &'a LabMachineArgs,
    /// What else is in the root.
    pub root: Settings,
}

/// What a boot left.
pub struct Boot {
    /// How it ended.
    pub end: End,
    /// The program's lines.
    pub lines: Vec<String>,
    /// The last that firmware and kernel said.
    pub around: String,
    /// What QEMU said, and a panic's report.
    pub report: String,
    /// The counts; none if QEMU had to be killed.
    pub counts: Option<Report>,
    /// How QEMU was called.
    pub command: String,
}

impl Setting<'_> {
    /// Boots `kernel` with so many harts and, if that is not 0, MiB of memory, and runs `/tests/work` with these words.
    ///
    /// # Errors
    /// The root cannot be made or QEMU not started.
    pub fn boot(
        &self,
        kernel: &Candidate,
        (harts, memory): (u32, u32),
        words: &[&str],
        progress: &Progress,
    ) -> Result<Boot> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let dir = self.workspace.target().join("limen-run");
        fs::create_dir_all(&dir)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let counts = dir.join(format!("counts-{}-{number}.json", std::process::id()));
        let extra = |out: &str| {
            let mut words = vec!["-plugin".into(), format!("{},out={out}", self.instrument.plugin.display())];
            if harts > 1 {
                words.extend(TURNS.map(str::to_owned));
            }
            words
        };
        let mut argv = vec!["/tests/work".to_owned()];
        argv.extend(self.machine.no_settle.then(|| "--no-settle".to_owned()));
        argv.extend(words.iter().map(|word| (*word).to_owned()));
        let mut machine = Machine {
            smp: harts,
            mem: if memory == 0 { self.machine.mem.clone() } else { format!("{memory}M") },
            cpu: Some(self.machine.cpu.clone()),
            icount: true,
            gdb: false,
            command_line: command_line(&kernel.image, None),
            raw_terminal: false,
            extra: extra("COUNTS"),
            tree: self.machine.tree.clone(),
        };
        let command = shell(&machine.command(&self.tools.qemu, &kernel.image.file, Path::new("ROOT"))?);
        machine.extra = extra(&counts.display().to_string());
        let guest = Guest {
            image: kernel.image.clone(),
            init: self.instrument.init.clone(),
            machine,
            settings: Settings {
                programs: vec![self.instrument.program.clone()],
                argv,
                // A Linux would call it while it boots, long before init: the boot ends with the first user instruction.
                without: &["modprobe"],
                settings: vec!["echo=off".into()],
                ..self.root.clone()
            },
        };
        let mut heard =
            Heard { lines: Vec::new(), line: Vec::new(), around: Vec::new(), report: String::new(), progress };
        let limit = Some(Duration::from_secs(self.machine.timeout));
        let end = guest.boot(self.workspace, self.tools, Input::Nothing, limit, &mut heard);
        let written = fs::read_to_string(&counts).ok();
        let _ = fs::remove_file(&counts);
        let Heard { mut lines, line, around, report, .. } = heard;
        if !line.is_empty() {
            lines.push(String::from_utf8_lossy(&line).into_owned());
        }
        Ok(Boot {
            end: end?,
            lines,
            around: String::from_utf8_lossy(&around).into_owned(),
            report,
            counts: written.and_then(|text| serde_json::from_str(&text).ok()),
            command,
        })
    }
}

impl Boot {
    /// Why the program did not come to its end, in a few words.
    pub fn ending(&self, timeout: u64) -> String {
        let last = |text: &str| text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned);
        match self.end {
            End::Panic => {
                let line = self.report.lines().find(|line| line.contains("PANIC"));
                format!("the kernel panicked{}", line.map_or(String::new(), |line| format!(": {line}")))
            }
            End::Timeout => format!("no end within {timeout} s"),
            End::Silent | End::Emulator => match last(&self.report) {
                Some(line) => format!("the machine stopped: {line}"),
                None => "the machine stopped".into(),
            },
            End::Exit(status) => format!("the program ended with status {status}"),
        }
    }

    /// Whether the program in the guest began.
    pub fn reached_program(&self) -> bool {
        self.lines.iter().any(|line| line.starts_with("# this program"))
    }

    /// What the program said of a workload: nanoseconds for one operation, or what was lacking.
    pub fn answer(&self, name: &str) -> Option<Result<f64, String>> {
        self.lines.iter().find_map(|line| {
            if let Some(rest) = line.strip_prefix(name).and_then(|rest| rest.strip_prefix(' ')) {
                return rest.trim().parse().ok().map(Ok);
            }
            let reason = line.strip_prefix("# ")?.strip_prefix(name)?.strip_prefix(": n/a, ")?;
            Some(Err(named(reason.trim())))
        })
    }

    /// What the kernel itself counted over a workload: `spurious faults` or `lock waits`.
    pub fn own_count(&self, name: &str, what: &str) -> Option<u64> {
        self.lines.iter().find_map(|line| {
            let rest = line.strip_prefix("# ")?.strip_prefix(name)?.strip_prefix(": ")?;
            rest.strip_prefix(what)?.trim().parse().ok()
        })
    }

    /// The firmware's version, as its banner says.
    pub fn firmware(&self) -> Option<String> {
        self.around.lines().find(|line| line.starts_with("OpenSBI ")).map(|line| line.trim().to_owned())
    }
}

/// `errno 38` and `signal 4` by name.
fn named(reason: &str) -> String {
    let number = |word: &str| reason.strip_prefix(word)?.trim().parse::<isize>().ok();
    const SIGNALS: [&str; 12] = [
        "0", "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGUSR1",
        "SIGSEGV",
    ];
    if let Some(error) = number("errno ").and_then(|number| Errno::from_ret(-number)) {
        return error.to_string();
    }
    match number("signal ").and_then(|number| SIGNALS.get(usize::try_from(number).ok()?)) {
        Some(name) => (*name).to_owned(),
        None => reason.to_owned(),
    }
}

/// A command as a shell would take it.
fn shell(command: &std::process::Command) -> String {
    let quoted = |word: std::borrow::Cow<'_, str>| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+%@".contains(c);
        if !word.is_empty() && word.chars().all(plain) { word.into_owned() } else { format!("'{word}'") }
    };
    let words = command.get_args().map(|word| word.to_string_lossy());
    std::iter::once(command.get_program().to_string_lossy())
        .chain(words)
        // The guard that ends QEMU with this command is no part of the measurement.
        .skip_while(|word| !word.contains("qemu-system"))
        .map(quoted)
        .collect::<Vec<_>>()
        .join(" ")
}

struct Heard<'a> {
    lines: Vec<String>,
    line: Vec<u8>,
    around: Vec<u8>,
    report: String,
    progress: &'a Progress,
}

impl Output for Heard<'_> {
    fn program(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte == b'\n' {
                let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
                self.progress.line(&line);
                self.lines.push(line);
            } else {
                self.line.push(byte);
            }
        }
    }

    fn around(&mut self, bytes: &[u8]) {
        // A kernel that talks without end is not kept whole.
        if self.around.len() < 1 << 20 {
            self.around.extend_from_slice(bytes);
        }
    }

    fn report(&mut self, line: &str) {
        self.report += &format!("{line}\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot(lines: &[&str]) -> Boot {
        Boot {
            end: End::Exit(0),
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
            around: "\nOpenSBI v1.6\n".into(),
            report: String::new(),
            counts: None,
            command: String::new(),
        }
    }

    #[test]
    fn answers_are_told_apart() {
        let boot = boot(&[
            "# this program: 1 pages",
            "nested_1 2.50",
            "nested_12 4.00",
            "# a: n/a, errno 38",
            "# b: n/a, signal 4",
            "# nested_12: spurious faults 3",
            "# nested_12: lock waits 5",
        ]);
        let counts = |name| (boot.own_count(name, "spurious faults"), boot.own_count(name, "lock waits"));
        assert_eq!((counts("nested_12"), counts("nested_1")), ((Some(3), Some(5)), (None, None)));
        assert!(boot.reached_program());
        assert_eq!(boot.answer("nested_1"), Some(Ok(2.5)));
        assert_eq!(boot.answer("nested_12"), Some(Ok(4.0)));
        assert_eq!(boot.answer("a"), Some(Err("ENOSYS".into())));
        assert_eq!(boot.answer("b"), Some(Err("SIGILL".into())));
        assert_eq!(boot.answer("nested"), None);
        assert_eq!(boot.firmware().as_deref(), Some("OpenSBI v1.6"));
    }

    #[test]
    fn commands_can_be_pasted() {
        let mut command = std::process::Command::new("setpriv");
        command.args(["--", "/usr/bin/qemu-system-riscv64", "-append", "a b"]);
        assert_eq!(shell(&command), "/usr/bin/qemu-system-riscv64 -append 'a b'");
    }
}
