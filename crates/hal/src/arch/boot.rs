//! From the assembly's first call to the kernel's main function, and the start of the other harts.

use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use fdt_raw::Fdt;

use super::{csr, kernel_map};
use crate::addr::PhysAddr;
use crate::boot::{self, BootInfo, Range};
use crate::calls::upcalls;
use crate::hart;
use crate::mem::layout::{self, Mode};
use crate::mem::{frame, pgtable, tlb};
use crate::probe;

unsafe extern "C" {
    fn limen_secondary_start();
}

/// Runs on the boot hart in its boot block, translation on, interrupts off.
#[unsafe(no_mangle)]
extern "C" fn limen_boot(hart_id: usize, tree: usize, image: usize, entry_ticks: u64) -> ! {
    // SAFETY: the first thing on this hart; the block is only this call's stack.
    unsafe { hart::init(0, hart_id) };
    let mode = match csr::satp() >> 60 {
        8 => Mode::Sv39,
        9 => Mode::Sv48,
        _ => Mode::Sv57,
    };
    layout::set_mode(mode);
    let info = boot::publish(BootInfo { entry_ticks, ..read_tree(tree, hart_id, image) });
    crate::time::set_frequency(info.timebase);
    hart::set_count(info.hart_count);
    memory(info, kernel_map::narrow(info, PhysAddr(image)));
    enable();
    probe::look();
    (upcalls().main)(info)
}

fn read_tree(tree: usize, hart_id: usize, image: usize) -> BootInfo {
    let at = layout::phys_to_virt(PhysAddr(tree));
    // SAFETY: the firmware passes the tree's address; the boot tables map it; its header gives its size.
    let tree_bytes: &'static [u8] = unsafe {
        let header = ptr::with_exposed_provenance::<[u32; 2]>(at).read();
        assert!(u32::from_be(header[0]) == 0xd00d_feed, "no device tree at {tree:#x}");
        core::slice::from_raw_parts(ptr::with_exposed_provenance(at), u32::from_be(header[1]) as usize)
    };
    let parsed = Fdt::from_bytes(tree_bytes).map_err(|_| "it is malformed").and_then(|t| boot::parse(&t, hart_id));
    let mut info = match parsed {
        Ok(info) => info,
        Err(reason) => panic!("device tree: {reason}"),
    };
    info.reserved.push(Range { start: tree, len: tree_bytes.len() });
    info.reserved.push(Range { start: image, len: kernel_map::image_size() });
    info
}

/// Hands the free memory to the allocator and tells the page tables what the harts can do.
fn memory(info: &BootInfo, root: PhysAddr) {
    let (free, free_len) = pairs(&info.memory.without(&info.reserved));
    let mut kept = boot::Ranges::default();
    kept.push(info.initrd);
    kept.push(Range { start: kernel_map::image_to_phys(kernel_map::image_start()).0, len: kernel_map::image_size() });
    let (kept, kept_len) = pairs(&kept);
    // SAFETY: 1. The device tree says that the ranges are RAM, and the direct map now has all of it. 2. They are free of
    // everything that the tree and this kernel know of. 3. One hart runs, and this is the first use of `mem`. 4. The
    // root is the one in satp, in the image.
    unsafe {
        frame::init(&free[..free_len], &kept[..kept_len]);
        pgtable::set_kernel_root(root);
    }
    tlb::configure(tlb_config(info));
    let blocks = info.harts().iter().map(|h| if h.isa.has("zicboz") { h.blocks[1] as usize } else { 0 });
    let block = blocks.reduce(|a, b| if a == b { a } else { 0 }).unwrap_or(0);
    crate::mem::page::set_zero_block(block);
}

/// Ranges as the allocator takes them, and their number.
fn pairs(ranges: &boot::Ranges) -> ([(PhysAddr, usize); boot::MAX_RANGES], usize) {
    let mut pairs = [(PhysAddr(0), 0); boot::MAX_RANGES];
    for (to, from) in pairs.iter_mut().zip(ranges.as_slice()) {
        *to = (PhysAddr(from.start), from.len);
    }
    (pairs, ranges.as_slice().len())
}

/// How many bits of satp.ASID the hart keeps (privileged specification: write ones, read back).
fn asid_bits() -> usize {
    const ASID: usize = 0xffff << 44;
    let satp = csr::satp();
    // SAFETY: only the ASID differs for a moment, and the kernel's entries are found under any ASID.
    unsafe {
        csr::write_satp(satp | ASID);
        let kept = csr::satp() & ASID;
        csr::write_satp(satp);
        kept.count_ones() as usize
    }
}

/// How translations are fenced: what the harts can do, and what the command line says of it. What it says that makes
/// no sense is ignored, with a word.
fn tlb_config(info: &BootInfo) -> tlb::Config {
    let all = |name| info.harts().iter().all(|hart| hart.isa.has(name));
    let features = tlb::Features {
        svvptc: all("svvptc"),
        svinval: all("svinval"),
        svadu: all("svadu") && !all("svade"),
        asids: false,
    };
    let mut config = tlb::Config { features, asid_bits: asid_bits(), by_ipi: true, ..tlb::Config::default() };
    let mut read = |name, apply: &mut dyn FnMut(&str, &mut tlb::Config) -> Option<()>| {
        if let Some(text) = info.argument(name)
            && apply(text, &mut config).is_none()
        {
            crate::log!("{name}={text} is not understood");
        }
    };
    read("limen.tlb", &mut |text, config| {
        config.mode = tlb::Mode::parse(text)?;
        Some(())
    });
    read("limen.asid_bits", &mut |text, config| {
        config.asid_bits = config.asid_bits.min(text.parse().ok()?);
        Some(())
    });
    read("limen.rfence", &mut |text, config| {
        config.by_ipi = match text {
            "ipi" => true,
            "sbi" => false,
            _ => return None,
        };
        Some(())
    });
    config
}

/// What every hart sets up for itself: interrupts it takes, counters a program may read, cache-block zeroing.
fn enable() {
    // SAFETY: the trap path is in place, and handles the three kinds. A program may read time, cycle and instret.
    unsafe {
        csr::write_sie(csr::SOFTWARE | csr::TIMER | csr::EXTERNAL);
        csr::write_scounteren(7);
    }
    crate::time::set_timer(None);
    // What the loader has put into memory may be executed from here on.
    tlb::synchronize(1 << hart::id());
}

/// What a starting hart reads with translation off.
#[repr(C)]
struct StartRecord {
    satp: AtomicUsize,
    head: AtomicUsize,
}

static START: StartRecord = StartRecord { satp: AtomicUsize::new(0), head: AtomicUsize::new(0) };

/// Starts the other harts one after the other; each is online before the next starts.
pub(crate) fn start_others() {
    START.satp.store(csr::satp(), Ordering::Relaxed);
    let record = kernel_map::image_to_phys(&raw const START as usize);
    let entry = kernel_map::image_to_phys(limen_secondary_start as *const () as usize);
    for (index, info) in boot::info().harts().iter().enumerate().skip(1) {
        // SAFETY: that hart does not run yet, and its block is only its own.
        unsafe { hart::init(index, info.id) };
        START.head.store(super::boot_head(index).expose_provenance(), Ordering::Release);
        if !crate::sbi::start_hart(info.id, entry.0, record.0) {
            crate::log!("hart {} does not start", info.id);
            continue;
        }
        while hart::online_mask() & 1 << index == 0 {
            // It will interrupt this one. To turn round here would take an emulator's host, which has the other to run.
            hart::idle();
        }
    }
}

/// Runs on each other hart in its boot block.
#[unsafe(no_mangle)]
extern "C" fn limen_boot_secondary() -> ! {
    enable();
    probe::look();
    hart::set_online(hart::id());
    hart::send_reschedule(0);
    (upcalls().secondary)()
}
