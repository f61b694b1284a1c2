//! The order in which the parts come up.

use hal::addr::PhysAddr;
use hal::boot::BootInfo;
use uapi::Result;

/// The boot hart, from the HAL's hands to its idle loop.
pub fn main(info: &'static BootInfo) -> ! {
    devices(info);
    task::clone::adopt_idle();
    // All harts come up before the first program: what it is told of them is complete and never changes.
    hal::hart::start_others();
    vdso::VVAR.set_harts(hal::hart::online_mask().count_ones());
    syscall::hwprobe::publish();
    if let Err(error) = files(info).and_then(|root| start(info, root)) {
        panic!("boot: {error}");
    }
    // From here on it may run, here or elsewhere.
    syscall::proc::note_first_user(hal::time::now());
    task::sched::idle()
}

/// Every other hart.
pub fn secondary() -> ! {
    task::clone::adopt_idle();
    task::sched::idle()
}

fn devices(info: &'static BootInfo) {
    crate::devices::init(info);
    crate::clock::init(info);
    let (vendor, architecture, implementation) = hal::machine::ids();
    fs::random::seed(info.seed);
    for word in [hal::time::now() as usize, vendor, architecture, implementation] {
        fs::random::seed(&word.to_le_bytes());
    }
}

/// The root file system, with everything that can be mounted in it known.
fn files(info: &'static BootInfo) -> Result<fs::Path> {
    fs::tmpfs::init();
    fs::dev::init()?;
    fs::proc::init()?;
    fs::sysfs::init()?;
    crate::devices::register()?;
    fs::tty::set_signals(&task::JobControl);
    syscall::proc::init()?;
    syscall::init();
    let root = fs::vfs::root_mount((fs::tmpfs::TMPFS.open)(&fs::tmpfs::TMPFS, b"mode=0755")?)?;
    let phys = (info.initrd.len != 0).then_some(PhysAddr(info.initrd.start));
    hal::boot::with_initrd(|archive| fs::tmpfs::populate_from_cpio(&root, archive, phys))?;
    Ok(root)
}

/// The first process: `rdinit=` or `init=` of the command line, or `/init`, with what stands behind `--` as arguments.
fn start(info: &'static BootInfo, root: fs::Path) -> Result<()> {
    let path = info.argument("rdinit").or(info.argument("init")).unwrap_or("/init");
    let arguments = info.command_line.split_once(" -- ").map_or("", |(_, after)| after);
    let mut argv = alloc::vec![path.as_bytes()];
    argv.extend(arguments.split_ascii_whitespace().map(str::as_bytes));
    syscall::spawn_init(fs::FsContext::new(root), path.as_bytes(), &argv, &[b"HOME=/", b"TERM=linux"])
}
