//! All workloads on all kernels: which boots that takes, and what a boot that goes wrong costs.
//!
//! A machine of one hart runs all workloads that need one; those that need more harts, or more memory, get a machine of
//! their own. Two boots run at a time. When a guest hangs or dies, the first workload without an answer has failed, what
//! was counted before it stays, and the workloads after it get another boot.

use super::boot::{Boot, Setting};
use super::document::{BOOT, Cell, Document, KernelResult, MachineInfo, Outcome};
use super::kernels::Candidate;
use super::progress::Progress;
use anyhow::Result;
use model::Region;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use work::Workload;

/// Boots at a time.
const PARALLEL: usize = 2;

/// The workloads of one machine.
struct Job {
    kernel: usize,
    needs: Needs,
    workloads: Vec<&'static Workload>,
    with_boot: bool,
}

/// The harts of a machine, and its memory in MiB if it needs more than the run's machine has, else 0.
type Needs = (u32, u32);

/// What a job left.
#[derive(Default)]
struct Done {
    cells: Vec<Cell>,
    commands: Vec<String>,
    versions: Vec<(&'static str, String)>,
    failure: Option<String>,
}

/// Measures; `with_boot`: the boot itself as well.
///
/// # Errors
/// QEMU cannot be started, or the root not be made.
pub fn measure(
    setting: &Setting,
    kernels: &[Candidate],
    workloads: &[&'static Workload],
    with_boot: bool,
    command: Vec<String>,
) -> Result<Document> {
    let (smp, memory) = (setting.machine.smp, mebibytes(&setting.machine.mem));
    let most = workloads.iter().map(|workload| workload.harts).max().unwrap_or(smp);
    let mut machines: BTreeMap<Needs, Vec<&Workload>> = BTreeMap::new();
    if with_boot {
        machines.insert((smp, 0), Vec::new());
    }
    for workload in workloads {
        let harts = if workload.harts > smp { most } else { smp };
        let more = if is_too_big(workload, memory) { workload.memory } else { 0 };
        machines.entry((harts, more)).or_default().push(workload);
    }
    let mut jobs = VecDeque::new();
    for (&needs, workloads) in &machines {
        let with_boot = with_boot && needs == (smp, 0);
        jobs.extend((0..kernels.len()).map(|kernel| Job { kernel, needs, workloads: workloads.clone(), with_boot }));
    }
    let queue = Mutex::new(jobs);
    let done: Mutex<Vec<(usize, Needs, Result<Done>)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..PARALLEL {
            scope.spawn(|| {
                while let Some(job) = queue.lock().ok().and_then(|mut queue| queue.pop_front()) {
                    let kernel = &kernels[job.kernel];
                    let result = run_job(&job, &kernel.name, setting.machine.timeout, |words, progress| {
                        setting.boot(kernel, job.needs, words, progress)
                    });
                    if let Ok(mut done) = done.lock() {
                        done.push((job.kernel, job.needs, result));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(kernel, needs, _)| (*kernel, *needs));
    let mut versions = setting.instrument.versions.clone();
    let mut results: Vec<KernelResult> = kernels.iter().map(empty).collect();
    for (kernel, _, result) in done {
        let result = result?;
        let place = &mut results[kernel];
        place.cells.extend(result.cells);
        place.qemu.extend(result.commands);
        place.failure = place.failure.take().or(result.failure);
        versions.extend(result.versions.into_iter().map(|(name, version)| (name.to_owned(), version)));
    }
    // In the order of the table, whichever machine they ran on.
    let place = |cell: &Cell| workloads.iter().position(|workload| workload.name == cell.workload);
    results.iter_mut().for_each(|result| result.cells.sort_by_key(|cell| place(cell).unwrap_or(usize::MAX)));
    Ok(Document {
        format: Document::FORMAT,
        revision: setting.instrument.revision.clone(),
        command,
        machine: MachineInfo {
            cpu: setting.machine.cpu.clone(),
            smp,
            mem: setting.machine.mem.clone(),
            tree: setting.machine.tree.clone(),
            settled: !setting.machine.no_settle,
        },
        versions,
        hashes: setting.instrument.hashes.clone(),
        kernels: results,
    })
}

/// Whether a workload needs more memory than these MiB.
pub fn is_too_big(workload: &Workload, memory: Option<u64>) -> bool {
    memory.is_some_and(|memory| u64::from(workload.memory) > memory)
}

/// MiB of a size as QEMU takes it; `None` for what QEMU itself will refuse.
pub fn mebibytes(size: &str) -> Option<u64> {
    let digits = size.trim_end_matches(|c: char| !c.is_ascii_digit());
    let number: u64 = digits.parse().ok()?;
    match size[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "m" => Some(number),
        "k" => Some(number >> 10),
        "g" => number.checked_mul(1 << 10),
        "t" => number.checked_mul(1 << 20),
        _ => None,
    }
}

fn empty(kernel: &Candidate) -> KernelResult {
    KernelResult {
        name: kernel.name.clone(),
        version: kernel.version.clone(),
        hash: kernel.hash.clone(),
        arguments: kernel.image.command_line.clone(),
        qemu: Vec::new(),
        failure: None,
        cells: Vec::new(),
    }
}

fn run_job(
    job: &Job,
    name: &str,
    timeout: u64,
    mut start: impl FnMut(&[&str], &Progress) -> Result<Boot>,
) -> Result<Done> {
    let mut done = Done::default();
    let mut left = job.workloads.clone();
    let mut wants_boot = job.with_boot;
    let cell = |workload: &Workload, outcome| Cell {
        workload: workload.name.into(),
        operations: u64::from(workload.operations),
        harts: workload.harts,
        outcome,
    };
    while !left.is_empty() || wants_boot {
        let harts = if job.needs.0 == 1 { "1 hart".into() } else { format!("{} harts", job.needs.0) };
        let progress = Progress::start(format!("{name}, {harts}"), left.len());
        let mut words: Vec<&str> = left.iter().map(|workload| workload.name).collect();
        if words.is_empty() {
            words.push("--nothing");
        }
        let boot = start(&words, &progress)?;
        done.commands.push(boot.command.clone());
        done.versions.extend(boot.firmware().map(|version| ("firmware", version)));
        done.versions.extend(boot.counts.iter().map(|counts| ("plugin", counts.plugin.clone())));
        if !boot.reached_program() {
            let reason = format!("does not boot: {}", boot.ending(timeout));
            progress.end(&reason);
            let failed = || Outcome::Failed("does not boot".into());
            done.cells.extend(wants_boot.then(|| boot_cell(failed())));
            done.cells.extend(left.iter().map(|workload| cell(workload, failed())));
            done.failure = Some(reason);
            return Ok(done);
        }
        let culprit = left.iter().find(|workload| boot.answer(workload.name).is_none()).map(|workload| workload.name);
        match boot_outcome(&boot) {
            Some(outcome) if wants_boot => {
                done.cells.push(boot_cell(outcome));
                wants_boot = false;
            }
            None if wants_boot && culprit.is_none() => {
                done.cells.push(boot_cell(Outcome::Failed("the plugin wrote no counts".into())));
                wants_boot = false;
            }
            _ => {}
        }
        let before = left.len();
        left.retain(|workload| {
            let outcome = match (boot.answer(workload.name), counted(&boot, work::region(workload))) {
                (Some(Err(reason)), _) => Outcome::Lacks(reason),
                (Some(Ok(nanoseconds)), Some(region)) if region.complete => {
                    let own = |what| boot.own_count(workload.name, what);
                    let (spurious, lock_waits) = (own("spurious faults"), own("lock waits"));
                    Outcome::Counted { nanoseconds, spurious, lock_waits, region }
                }
                (Some(Ok(_)), _) if boot.counts.is_some() => Outcome::Failed("its markers were not seen".into()),
                (Some(Ok(_)), _) if culprit.is_none() => Outcome::Failed("the plugin wrote no counts".into()),
                (None, _) if culprit == Some(workload.name) => Outcome::Failed(boot.ending(timeout)),
                // Another boot, without the one that hangs, will tell.
                _ => return true,
            };
            done.cells.push(cell(workload, outcome));
            false
        });
        match culprit {
            None => progress.end(&format!("{before} workloads")),
            Some(culprit) => progress.end(&format!("{culprit} failed: {}", boot.ending(timeout))),
        }
    }
    Ok(done)
}

fn counted(boot: &Boot, region: u16) -> Option<Box<Region>> {
    boot.counts.as_ref()?.region(region).cloned().map(Box::new)
}

/// The counts of the boot itself, if it came to user mode and they were written.
fn boot_outcome(boot: &Boot) -> Option<Outcome> {
    let region = counted(boot, model::BOOT).filter(|region| region.complete)?;
    Some(Outcome::Counted {
        nanoseconds: region.total.all().instructions as f64,
        spurious: None,
        lock_waits: None,
        region,
    })
}

fn boot_cell(outcome: Outcome) -> Cell {
    Cell { workload: BOOT.into(), operations: 1, harts: 1, outcome }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::End;
    use model::Report;

    /// A boot in which the program said `lines`, with counts of the named workloads and of the boot.
    fn boot(end: End, lines: &[&str], counted: Option<&[&str]>) -> Boot {
        let region = |id| Region { id, complete: true, ..Region::default() };
        let counts = counted.map(|names| {
            let of = |name: &&str| region(work::find(name).map_or(0, work::region));
            Report { regions: names.iter().map(of).chain([region(model::BOOT)]).collect(), ..Report::default() }
        });
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        Boot { end, lines, around: String::new(), report: String::new(), counts, command: "qemu".into() }
    }

    fn job(names: &[&str]) -> Job {
        let workloads = names.iter().filter_map(|name| work::find(name)).collect();
        Job { kernel: 0, needs: (1, 0), workloads, with_boot: true }
    }

    /// Runs the job through these boots, and shows the cells.
    fn run(names: &[&str], boots: Vec<Boot>) -> (Vec<String>, usize) {
        let mut boots = VecDeque::from(boots);
        let done = run_job(&job(names), "k", 9, |_, _| Ok(boots.pop_front().unwrap())).unwrap();
        let shown = |cell: &Cell| match &cell.outcome {
            Outcome::Counted { .. } => cell.workload.clone(),
            Outcome::Lacks(reason) => format!("{} lacks {reason}", cell.workload),
            Outcome::Failed(reason) => format!("{} failed: {reason}", cell.workload),
        };
        assert!(boots.is_empty());
        (done.cells.iter().map(shown).collect(), done.commands.len())
    }

    #[test]
    fn sizes_are_understood() {
        let sizes = ["1G", "512", "2048k", "1T", "x", "1Q"].map(mebibytes);
        assert_eq!(sizes, [Some(1024), Some(512), Some(2), Some(1 << 20), None, None]);
        let big = work::find("fork_262144").unwrap();
        assert_eq!([Some(1024), Some(2048), None].map(|memory| is_too_big(big, memory)), [true, false, false]);
    }

    const READY: &str = "# this program: 1 pages";

    #[test]
    fn what_a_kernel_lacks_costs_a_cell() {
        let lines = [READY, "getppid 71.00", "# signal: n/a, errno 38"];
        let (cells, boots) = run(&["getppid", "signal"], vec![boot(End::Exit(1), &lines, Some(&["getppid"]))]);
        assert_eq!((cells, boots), (vec!["boot".into(), "getppid".into(), "signal lacks ENOSYS".into()], 1));
    }

    #[test]
    fn a_guest_that_hangs_costs_a_cell_and_a_boot() {
        let first = boot(End::Timeout, &[READY, "getppid 71.00"], Some(&["getppid"]));
        let second = boot(End::Exit(0), &[READY, "access 2.00"], Some(&["access"]));
        let (cells, boots) = run(&["getppid", "signal", "access"], vec![first, second]);
        assert_eq!(cells, ["boot", "getppid", "signal failed: no end within 9 s", "access"]);
        assert_eq!(boots, 2);
    }

    #[test]
    fn counts_that_were_lost_are_taken_again() {
        let first = boot(End::Silent, &[READY, "getppid 71.00"], None);
        let second = boot(End::Exit(0), &[READY, "getppid 71.00", "access 2.00"], Some(&["getppid", "access"]));
        let (cells, _) = run(&["getppid", "signal", "access"], vec![first, second]);
        assert_eq!(cells, ["signal failed: the machine stopped", "boot", "getppid", "access"]);
        let (cells, _) = run(&["getppid"], vec![boot(End::Exit(0), &[READY, "getppid 71.00"], None)]);
        assert_eq!(cells, ["boot failed: the plugin wrote no counts", "getppid failed: the plugin wrote no counts"]);
    }

    #[test]
    fn a_kernel_that_does_not_boot_costs_its_column() {
        let (cells, boots) = run(&["getppid", "access"], vec![boot(End::Timeout, &[], Some(&[]))]);
        assert_eq!(
            cells,
            ["boot failed: does not boot", "getppid failed: does not boot", "access failed: does not boot"]
        );
        assert_eq!(boots, 1);
    }
}
