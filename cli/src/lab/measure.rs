//! All workloads on all kernels: which boots that takes, and what a boot that goes wrong costs.
//!
//! A machine of one hart runs all workloads that need one; those that need more get a machine of their own. Two boots run
//! at a time. When a guest hangs or dies, the first workload without an answer has failed, what was counted before it
//! stays, and the workloads after it get another boot.

use super::boot::{Boot, Setting};
use super::document::{BOOT, Cell, Document, KernelResult, MachineInfo, Outcome};
use super::kernels::Candidate;
use super::progress::Progress;
use anyhow::Result;
use model::Region;
use std::collections::VecDeque;
use std::sync::Mutex;
use work::Workload;

/// Boots at a time.
const PARALLEL: usize = 2;

/// The workloads of one machine.
struct Job {
    kernel: usize,
    harts: u32,
    workloads: Vec<&'static Workload>,
    with_boot: bool,
}

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
    let smp = setting.machine.smp;
    let (few, many): (Vec<&Workload>, Vec<&Workload>) = workloads.iter().partition(|workload| workload.harts <= smp);
    let most = many.iter().map(|workload| workload.harts).max().unwrap_or(0);
    let mut jobs = VecDeque::new();
    for kernel in 0..kernels.len() {
        if !few.is_empty() || with_boot {
            jobs.push_back(Job { kernel, harts: smp, workloads: few.clone(), with_boot });
        }
    }
    for kernel in (0..kernels.len()).filter(|_| !many.is_empty()) {
        jobs.push_back(Job { kernel, harts: most, workloads: many.clone(), with_boot: false });
    }
    let queue = Mutex::new(jobs);
    let done: Mutex<Vec<(usize, u32, Result<Done>)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..PARALLEL {
            scope.spawn(|| {
                while let Some(job) = queue.lock().ok().and_then(|mut queue| queue.pop_front()) {
                    let result = run_job(setting, &kernels[job.kernel], &job);
                    if let Ok(mut done) = done.lock() {
                        done.push((job.kernel, job.harts, result));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(kernel, harts, _)| (*kernel, *harts));
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
            settled: !setting.machine.no_settle,
        },
        versions,
        hashes: setting.instrument.hashes.clone(),
        kernels: results,
    })
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

fn run_job(setting: &Setting, kernel: &Candidate, job: &Job) -> Result<Done> {
    let timeout = setting.machine.timeout;
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
        let harts = if job.harts == 1 { "1 hart".into() } else { format!("{} harts", job.harts) };
        let progress = Progress::start(format!("{}, {harts}", kernel.name), left.len());
        let mut words: Vec<&str> = left.iter().map(|workload| workload.name).collect();
        if words.is_empty() {
            words.push("--nothing");
        }
        let boot = setting.boot(kernel, job.harts, &words, &progress)?;
        done.commands.push(boot.command.clone());
        done.versions.extend(boot.firmware().map(|version| ("firmware", version)));
        done.versions.extend(boot.counts.iter().map(|counts| ("plugin", counts.plugin.clone())));
        if std::mem::take(&mut wants_boot) {
            done.cells.push(boot_cell(&boot, timeout));
        }
        if !boot.reached_program() {
            let reason = format!("does not boot: {}", boot.ending(timeout));
            progress.end(&reason);
            done.cells.extend(left.iter().map(|workload| cell(workload, Outcome::Failed("does not boot".into()))));
            done.failure = Some(reason);
            return Ok(done);
        }
        let before = left.len();
        left.retain(|workload| match outcome(&boot, workload) {
            Some(outcome) => {
                done.cells.push(cell(workload, outcome));
                false
            }
            None => true,
        });
        if left.is_empty() {
            progress.end(&format!("{before} workloads"));
        } else {
            let culprit = left.remove(0);
            progress.end(&format!("{} failed: {}", culprit.name, boot.ending(timeout)));
            done.cells.push(cell(culprit, Outcome::Failed(boot.ending(timeout))));
        }
    }
    Ok(done)
}

/// `None` if the program never came to it.
fn outcome(boot: &Boot, workload: &Workload) -> Option<Outcome> {
    Some(match (boot.answer(workload.name)?, counted(boot, work::region(workload))) {
        (Err(reason), _) => Outcome::Lacks(reason),
        (Ok(nanoseconds), Some(region)) if region.complete => Outcome::Counted { nanoseconds, region },
        (Ok(_), _) if boot.counts.is_some() => Outcome::Failed("the plugin did not see its markers".into()),
        // QEMU was killed before the plugin could write: another boot, without the one that hangs, will tell.
        (Ok(_), _) => return None,
    })
}

fn counted(boot: &Boot, region: u16) -> Option<Box<Region>> {
    boot.counts.as_ref()?.region(region).cloned().map(Box::new)
}

fn boot_cell(boot: &Boot, timeout: u64) -> Cell {
    let outcome = match counted(boot, model::BOOT) {
        Some(region) if region.complete => {
            Outcome::Counted { nanoseconds: region.total.all().instructions as f64, region }
        }
        _ => Outcome::Failed(boot.ending(timeout)),
    };
    Cell { workload: BOOT.into(), operations: 1, harts: 1, outcome }
}
