//! Boot tests: each of the list in its own machine, two at a time.

use super::tally::Tally;
use crate::compile::{self, Program};
use crate::hosted;
use crate::root::Settings;
use crate::run::{Guest, command_line};
use crate::say;
use crate::setup::Tools;
use crate::vm::{self, End, Image, Input, Kernel, Machine, Output};
use crate::workspace::Workspace;
use anyhow::Result;
use limen_tests::{BootTest, Expect, Outcome};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Machines at a time; counted runs have the host to themselves.
const PARALLEL: usize = 2;

/// Runs `tests` on `kernel`.
///
/// # Errors
/// Nothing could be built to boot.
pub fn run(workspace: &Workspace, tools: &Tools, kernel: &Kernel, tests: &[BootTest], tally: &Tally) -> Result<()> {
    let image = match vm::prepare(workspace, &tools.toolchain, kernel) {
        Ok(image) => image,
        Err(error) => {
            tally.result("boot/build", Some(&format!("{error:#}")));
            return Ok(());
        }
    };
    let uses_programs = tests
        .iter()
        .any(|test| test.program.iter().any(|word| word.contains("/tests/") || word.contains(compile::COMMAND)));
    let mut runner = Runner {
        workspace,
        tools,
        image,
        init: compile::init(workspace, &tools.toolchain)?,
        programs: if uses_programs { compile::programs(workspace, &tools.toolchain)? } else { Vec::new() },
        linux: Mutex::default(),
        tally,
    };
    let mut tests: Vec<&BootTest> = tests.iter().collect();
    if tests.iter().any(|test| is_hosted(test)) {
        match hosted::detect(workspace) {
            Ok(Some(program)) => runner.programs.push(program),
            Ok(None) => {
                say!("no test of Rust's own detection: no compiler here has the source of its library (rust-src)");
                tests.retain(|test| !is_hosted(test));
            }
            Err(error) => {
                tally.result("boot/build-hosted", Some(&format!("{error:#}")));
                tests.retain(|test| !is_hosted(test));
            }
        }
    }
    say!("boot tests: {}", tests.len());
    let (counted, free): (Vec<&BootTest>, Vec<&BootTest>) = tests.into_iter().partition(|test| test.icount);
    let runner = runner;
    for (queue, workers) in [(free, PARALLEL), (counted, 1)] {
        let queue = Mutex::new(VecDeque::from(queue));
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    while let Some(test) = queue.lock().ok().and_then(|mut queue| queue.pop_front()) {
                        runner.test(test);
                    }
                });
            }
        });
    }
    Ok(())
}

/// Whether the test runs the program that uses the standard library.
fn is_hosted(test: &BootTest) -> bool {
    test.program.first().is_some_and(|word| word.strip_prefix("/tests/") == Some(hosted::NAME))
}

struct Runner<'a> {
    workspace: &'a Workspace,
    tools: &'a Tools,
    image: Image,
    init: PathBuf,
    programs: Vec<Program>,
    linux: Mutex<BTreeMap<&'static str, Result<Image, String>>>,
    tally: &'a Tally,
}

/// One boot's console, kept.
#[derive(Debug, Default)]
struct Kept {
    program: Vec<u8>,
    around: Vec<u8>,
    report: String,
}

impl Output for Kept {
    fn program(&mut self, bytes: &[u8]) {
        self.program.extend_from_slice(bytes);
    }

    fn around(&mut self, bytes: &[u8]) {
        self.around.extend_from_slice(bytes);
    }

    fn report(&mut self, line: &str) {
        self.report += &format!("{line}\n");
    }
}

impl Runner<'_> {
    fn test(&self, test: &BootTest) {
        let started = Instant::now();
        let mut result = Ok(());
        for _ in 0..test.repeat {
            result = result.and_then(|()| self.once(test));
        }
        let seconds = started.elapsed().as_secs_f32();
        match (test.expect, result) {
            (Expect::Tap, Ok(())) => {}
            (_, result) => self.tally.timed(test.name, seconds, result.err().as_deref()),
        }
    }

    fn once(&self, test: &BootTest) -> Result<(), String> {
        let (outcome, kept) = self.boot(test, &self.image)?;
        let shown =
            || format!("status {}\n{}{}", outcome.status, String::from_utf8_lossy(&outcome.stdout), kept.report);
        match test.expect {
            Expect::Exactly(status, text) if outcome.status == status && outcome.stdout == text.as_bytes() => Ok(()),
            Expect::Exactly(status, text) => Err(format!("expected status {status} and\n{text}\ngot {}", shown())),
            Expect::Status(status) if outcome.status == status => Ok(()),
            Expect::Status(status) => Err(format!("expected status {status}, got {}", shown())),
            Expect::Holds(holds) => holds(&outcome).map_err(|reason| format!("{reason}\n{}", shown())),
            Expect::Tap => self.tap(test, &outcome, &shown()),
            Expect::SameAsLinux => {
                let linux = self.linux(test.linux)?;
                let (reference, _) = self.boot(test, &linux)?;
                if reference.status != 0 {
                    return Err(format!(
                        "Linux itself gives status {}:\n{}",
                        reference.status,
                        String::from_utf8_lossy(&reference.stdout)
                    ));
                }
                if outcome == reference { Ok(()) } else { Err(difference(&reference, &outcome)) }
            }
        }
    }

    /// Debian's Linux of this version.
    fn linux(&self, version: &'static str) -> Result<Image, String> {
        let mut known = self.linux.lock().map_err(|error| error.to_string())?;
        let prepare = || {
            let kernel = Kernel::Linux { version: version.into(), lean: false };
            vm::prepare(self.workspace, &self.tools.toolchain, &kernel).map_err(|error| format!("{error:#}"))
        };
        known.entry(version).or_insert_with(prepare).clone()
    }

    fn boot(&self, test: &BootTest, image: &Image) -> Result<(Outcome, Kept), String> {
        let files = scratch(self.workspace, test).map_err(|error| format!("{error:#}"))?;
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        let guest = Guest {
            image: image.clone(),
            init: self.init.clone(),
            machine: Machine {
                smp: test.smp,
                mem: test.mem.into(),
                cpu: test.cpu.map(str::to_owned),
                icount: test.icount,
                gdb: false,
                command_line: command_line(image, Some(test.append)),
                raw_terminal: false,
                extra: Vec::new(),
                tree: owned(test.tree),
            },
            settings: Settings {
                packages: owned(test.packages),
                parts: owned(test.parts),
                copies: files,
                programs: self
                    .programs
                    .iter()
                    .filter(|one| one.name != hosted::NAME || is_hosted(test))
                    .cloned()
                    .collect(),
                argv: owned(test.program),
                settings: vec!["echo=off".into()],
                ..Settings::default()
            },
        };
        let input = match test.answer {
            b"" => Input::Bytes(test.input.to_vec()),
            answer => Input::Answers(answer.to_vec()),
        };
        let mut kept = Kept::default();
        let limit = Duration::from_secs(test.timeout);
        let end = guest
            .boot(self.workspace, self.tools, input, Some(limit), &mut kept)
            .map_err(|error| format!("{error:#}"))?;
        let End::Exit(status) = end else {
            let tail = String::from_utf8_lossy(&kept.around[kept.around.len().saturating_sub(2000)..]).into_owned();
            return Err(format!(
                "{}\nprogram:\n{}\nfirmware and kernel:\n{tail}\n{}",
                describe(&end, test.timeout),
                String::from_utf8_lossy(&kept.program),
                kept.report
            ));
        };
        Ok((Outcome { status, stdout: kept.program.clone() }, kept))
    }

    /// Counts the lines of a program's test report.
    fn tap(&self, test: &BootTest, outcome: &Outcome, shown: &str) -> Result<(), String> {
        let text = String::from_utf8_lossy(&outcome.stdout);
        let mut count = 0_u64;
        let mut failures = 0_u64;
        // What the program says of a test stands before its result.
        let mut said = String::new();
        for line in text.lines() {
            let (passed, rest) = match (line.strip_prefix("ok "), line.strip_prefix("not ok ")) {
                (Some(rest), _) => (true, rest),
                (_, Some(rest)) => (false, rest),
                _ => {
                    said += &format!("{line}\n");
                    continue;
                }
            };
            count += 1;
            failures += u64::from(!passed);
            let name = rest.split_once(" - ").map_or(rest, |(_, name)| name);
            self.tally.result(&format!("{}/{name}", test.name), (!passed).then_some(&format!("{said}{line}")));
            said.clear();
        }
        let plan =
            text.lines().find_map(|line| line.strip_prefix("1..")?.split_whitespace().next()?.parse::<u64>().ok());
        if plan != Some(count) {
            return Err(format!("the report's plan is {plan:?}, but it has {count} results: {shown}"));
        }
        // A failed result is already counted; the status only matters if it says something else.
        if outcome.status != 0 && failures == 0 { Err(format!("all results are ok, but {shown}")) } else { Ok(()) }
    }
}

fn describe(end: &End, timeout: u64) -> String {
    match end {
        End::Panic => "the kernel panicked".into(),
        End::Timeout => format!("no end within {timeout} s"),
        _ => "the machine stopped before the program ended".into(),
    }
}

/// The test's own files, written where they can be copied from.
fn scratch(workspace: &Workspace, test: &BootTest) -> Result<Vec<(PathBuf, String)>> {
    use std::os::unix::fs::PermissionsExt;
    let dir = workspace.target().join("limen-run").join(test.name.replace('/', "-"));
    std::fs::create_dir_all(&dir)?;
    let mut copies = Vec::new();
    for (index, (path, mode, bytes)) in test.files.iter().enumerate() {
        let file = dir.join(index.to_string());
        std::fs::write(&file, bytes)?;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(*mode))?;
        copies.push((file, (*path).to_owned()));
    }
    Ok(copies)
}

/// The first line in which two outcomes differ.
fn difference(reference: &Outcome, ours: &Outcome) -> String {
    let (theirs, own) =
        (String::from_utf8_lossy(&reference.stdout).into_owned(), String::from_utf8_lossy(&ours.stdout).into_owned());
    let mut text = format!("status {} on Linux, {} here\n", reference.status, ours.status);
    let mut lines = (theirs.lines().chain(std::iter::repeat("<end>")))
        .zip(own.lines().chain(std::iter::repeat("<end>")))
        .take(theirs.lines().count().max(own.lines().count()));
    if let Some((linux, limen)) = lines.find(|(linux, limen)| linux != limen) {
        text += &format!("first difference\nlinux: {linux}\nlimen: {limen}\n");
    }
    text + &format!("our output:\n{own}")
}
