//! `cargo limen lab`: exact counts of the boundary, for any riscv64 kernel, side by side.

mod boot;
mod compare;
mod count;
mod document;
mod instrument;
mod kernels;
mod measure;
mod profile;
mod progress;
mod readme;
mod table;

use crate::args::{LabMachineArgs, LabRunArgs, LabVerb};
use crate::root::Settings;
use crate::say;
use crate::setup;
use crate::workspace::Workspace;
use anyhow::{Result, bail};
use boot::Setting;
use count::Count;
pub use document::Document;
use document::{BOOT, Outcome};
use work::{WORKLOADS, Workload};

/// Does what `verb` says and gives the status to end with.
///
/// # Errors
/// Whatever kept it from doing that, in one line.
pub fn lab(workspace: &Workspace, verb: &LabVerb) -> Result<u8> {
    match verb {
        LabVerb::Run(args) => run(workspace, args),
        LabVerb::Compare(args) => compare::compare(args),
        LabVerb::List => {
            list();
            Ok(0)
        }
        LabVerb::Profile(args) => profile::profile(workspace, args),
        LabVerb::Readme(args) => readme::readme(workspace, args),
    }
}

fn run(workspace: &Workspace, args: &LabRunArgs) -> Result<u8> {
    let counts = Count::parse_all(&args.count)?;
    if counts.is_empty() {
        bail!("--count names no count");
    }
    let document = count_all(workspace, &args.machine, &args.workloads)?;
    if let Some(file) = &args.json {
        document.write(file)?;
        say!("all counts are in {}", file.display());
    }
    print!("{}", table::render(&document, &counts, table::columns()));
    Ok(status(&document))
}

/// Boots and counts what is named, everything if nothing is.
///
/// # Errors
/// Something named does not exist, or QEMU does not start.
pub fn count_all(workspace: &Workspace, machine: &LabMachineArgs, names: &[String]) -> Result<Document> {
    let (workloads, with_boot) = chosen(names, measure::mebibytes(&machine.mem))?;
    let tools = setup::tools(workspace)?;
    let kernels = kernels::prepare(workspace, &tools, &machine.kernels)?;
    let instrument = instrument::prepare(workspace, &tools)?;
    let setting = Setting { workspace, tools: &tools, instrument: &instrument, machine, root: Settings::default() };
    let command = std::iter::once("cargo limen".to_owned()).chain(std::env::args().skip(1)).collect();
    measure::measure(&setting, &kernels, &workloads, with_boot, command)
}

/// A count for one operation of a workload, on the document's first kernel.
pub fn figure(document: &Document, workload: &str, count: &str) -> Option<f64> {
    let cell = document.kernels.first()?.cells.iter().find(|cell| cell.workload == workload)?;
    Count::parse(count).ok()?.per_operation(cell)
}

/// The rows in which two documents differ, in instructions; if there is none, says so.
pub fn what_differs(first: &Document, second: &Document) -> String {
    let counts: Vec<Count> = Count::parse("instructions").into_iter().collect();
    match compare::difference(first, second, &counts, false) {
        Ok((text, _)) => text,
        Err(error) => format!("{error:#}"),
    }
}

/// 0 if each kernel booted and nothing failed; what a kernel lacks is no failure.
fn status(document: &Document) -> u8 {
    let failed = |kernel: &document::KernelResult| {
        kernel.failure.is_some() || kernel.cells.iter().any(|cell| matches!(cell.outcome, Outcome::Failed(_)))
    };
    u8::from(document.kernels.iter().any(failed))
}

/// The workloads of these names, and whether the boot is one of them. Without names all but those that need more than so
/// many MiB of memory.
fn chosen(names: &[String], memory: Option<u64>) -> Result<(Vec<&'static Workload>, bool)> {
    if names.is_empty() {
        return Ok((WORKLOADS.iter().filter(|workload| !measure::is_too_big(workload, memory)).collect(), true));
    }
    for name in names {
        if name != BOOT && work::find(name).is_none() {
            bail!("no workload {name:?}: see `cargo limen lab list`");
        }
    }
    let named = |workload: &&Workload| names.iter().any(|name| name == workload.name);
    Ok((WORKLOADS.iter().filter(named).collect(), names.iter().any(|name| name == BOOT)))
}

fn list() {
    println!("Workloads");
    println!("  {:18} {:>10}  the kernel's own work from its start to the first user instruction", BOOT, 1);
    for workload in WORKLOADS {
        println!("  {:18} {:>10}  {}", workload.name, workload.operations, workload.about);
    }
    println!("\nKernels\n  {} and any Image, gzipped Image or ELF file", kernels::DEFAULT.join(", "));
    println!("\nCounts (user.NAME, kernel.NAME, firmware.NAME for one mode)");
    for (name, about) in count::NAMES {
        println!("  {name:18} {about}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_are_chosen_by_name() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let all = |memory| chosen(&[], memory).unwrap().0.len();
        assert_eq!([all(None), all(Some(1_024))], [WORKLOADS.len(), WORKLOADS.len() - 1]);
        let (workloads, boot) = chosen(&names(&["signal", "boot", "getppid"]), None).unwrap();
        assert_eq!(workloads.iter().map(|workload| workload.name).collect::<Vec<_>>(), ["getppid", "signal"]);
        assert!(boot);
        let error = chosen(&names(&["getpid"]), None).unwrap_err().to_string();
        assert_eq!(error, "no workload \"getpid\": see `cargo limen lab list`");
    }
}
