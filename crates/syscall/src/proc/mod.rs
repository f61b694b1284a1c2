//! What `/proc` and `/sys` show of the system as a whole: proc(5), sysfs(5).
//!
//! Each file is a function over plain data that writes the text exactly as Linux prints it, tested on the host, and a
//! few lines that gather the data. What concerns a process is rendered by the process model; what concerns files, by
//! the file system. A line that Linux prints and that nothing here can answer truthfully is left out, as it is on a Linux
//! built without the feature.

mod boundary;
mod cpuinfo;
mod interrupts;
mod loadavg;
mod memory;
mod sysctl;
mod times;

use alloc::string::String;

use fs::Content;
use fs::proc::register;
use hal::hart;
use uapi::Result;

pub use boundary::note_first_user;
pub use loadavg::averages;

/// A file that is made anew at each reading: its path, and what makes it.
type Made = (&'static str, fn() -> String);

/// The processes, for [`fs::proc::set_source`].
static PROCESSES: task::proc::Processes = task::proc::Processes;

/// Registers everything, and starts counting the load. Once at boot, when the harts are known and interrupts are
/// served. `ENOMEM`.
pub fn init() -> Result<()> {
    fs::proc::set_source(&PROCESSES);
    let files: [Made; 10] = [
        ("cpuinfo", cpuinfo::text),
        ("interrupts", interrupts::text),
        ("limen/boundary", boundary::text),
        ("loadavg", loadavg::text),
        ("meminfo", memory::meminfo_text),
        ("stat", times::stat_text),
        ("uptime", times::uptime_text),
        ("version", sysctl::version_text),
        ("cmdline", sysctl::cmdline_text),
        ("vmstat", memory::vmstat_text),
    ];
    for (path, text) in files {
        register(path, 0o444, Content::Made(text))?;
    }
    register("swaps", 0o444, "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n")?;
    // There are neither modules nor block devices.
    for path in ["modules", "partitions", "diskstats"] {
        register(path, 0o444, "")?;
    }
    sysctl::init()?;
    fs::sysfs::register_cpus(hart::count(), || alloc::format!("{}\n", hart::List(hart::online_mask())))?;
    loadavg::start();
    Ok(())
}
