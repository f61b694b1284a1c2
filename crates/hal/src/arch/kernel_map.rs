//! The kernel's own mappings, made once and never changed: the image with W^X, memory in the direct map.
//!
//! boot.S maps the image with one permission and 128 GiB of whatever is there. Here the image gets 4 KiB pages (text
//! read and execute, constants read, the rest read and write), the direct map is cut down to memory and the devices
//! that are used, and the image's text and constants become read-only there too, so that there is no writable alias.
//! The tables lie in the image: they are needed before there is an allocator.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::addr::{PAGE_SIZE, PhysAddr};
use crate::boot::{BootInfo, Range};
use crate::mem::layout::{self, Mode};
use crate::mem::tlb::Reason;

/// 2 MiB leaves that boot.S maps for the image: the image is smaller than this.
pub(crate) const IMAGE_LEAVES: usize = 8;

const ENTRIES: usize = 512;
const MIB2: usize = 1 << 21;
const GIB: usize = 1 << 30;

#[repr(C, align(4096))]
struct Table(UnsafeCell<[usize; ENTRIES]>);
// SAFETY: written by the boot hart before others start, and only read by the hardware afterwards.
unsafe impl Sync for Table {}

impl Table {
    const fn empty() -> Self {
        Self(UnsafeCell::new([0; ENTRIES]))
    }
}

/// 4 KiB tables for the image's 2 MiB ranges, the same for its range in the direct map.
static IMAGE_PAGES: [Table; IMAGE_LEAVES] = [const { Table::empty() }; IMAGE_LEAVES];
static DIRECT_PAGES: [Table; IMAGE_LEAVES] = [const { Table::empty() }; IMAGE_LEAVES];
/// The GiB of the direct map with the image in it, in 2 MiB leaves.
static DIRECT_IMAGE_GIB: Table = Table::empty();
/// The GiB of the direct map below memory, for device registers, in 2 MiB leaves.
static DIRECT_DEVICES: Table = Table::empty();

unsafe extern "C" {
    static __image_start: u8;
    static __image_end: u8;
    static __text_end: u8;
    static __rodata_end: u8;
    static limen_boot_l1: Table;
    static limen_boot_l2: Table;
    static limen_boot_l3: Table;
    static limen_boot_l4: Table;
}

static IMAGE_PHYS: AtomicUsize = AtomicUsize::new(0);

const V: usize = 1;
const RX: usize = 0b1011 | 0b110_0000;
const RO: usize = 0b0011 | 0b110_0000;
const RW: usize = 0b0111 | 0b1110_0000;

fn leaf(phys: usize, flags: usize) -> usize {
    (phys >> 12) << 10 | flags
}

fn address(symbol: &'static u8) -> usize {
    (&raw const *symbol).addr()
}

pub(crate) fn image_start() -> usize {
    // SAFETY: a linker symbol; only its address is used.
    address(unsafe { &__image_start })
}

/// Bytes of the image in memory.
pub(crate) fn image_size() -> usize {
    // SAFETY: as above.
    address(unsafe { &__image_end }) - image_start()
}

/// The physical address of an address in the image.
pub(crate) fn image_to_phys(virt: usize) -> PhysAddr {
    PhysAddr(virt - image_start() + IMAGE_PHYS.load(Ordering::Relaxed))
}

/// Permission of the image's page at `offset`; its alias in the direct map is never executable.
fn permission(offset: usize, alias: bool) -> usize {
    // SAFETY: linker symbols; only their addresses are used.
    let (text, rodata) = unsafe { (address(&__text_end) - image_start(), address(&__rodata_end) - image_start()) };
    match offset {
        o if o < text => {
            if alias {
                RO
            } else {
                RX
            }
        }
        o if o < rodata => RO,
        _ => RW,
    }
}

fn table_phys(table: &'static Table) -> usize {
    image_to_phys((&raw const *table).addr()).0
}

fn set(table: &'static Table, index: usize, entry: usize) {
    // SAFETY: the boot hart alone writes, with full-width stores, to tables that live for ever.
    unsafe { (&raw mut (*table.0.get())[index]).write_volatile(entry) };
}

/// Narrows the boot tables. Gives the root table that user page tables copy their kernel half from.
pub(crate) fn narrow(info: &BootInfo, image: PhysAddr) -> PhysAddr {
    IMAGE_PHYS.store(image.0, Ordering::Relaxed);
    // SAFETY: the tables of boot.S, which nobody else names.
    let (l1, l2, l3, l4) = unsafe { (&limen_boot_l1, &limen_boot_l2, &limen_boot_l3, &limen_boot_l4) };

    let size = image_size().next_multiple_of(PAGE_SIZE);
    for offset in (0..size).step_by(PAGE_SIZE) {
        let page = offset % MIB2 / PAGE_SIZE;
        set(&IMAGE_PAGES[offset / MIB2], page, leaf(image.0 + offset, permission(offset, false)));
    }
    let first = image_start() / MIB2 % ENTRIES;
    for (i, table) in IMAGE_PAGES.iter().enumerate() {
        let entry = if i * MIB2 < size { leaf(table_phys(table), V) } else { 0 };
        set(l1, first + i, entry);
    }

    for gib in 0..ENTRIES / 4 {
        let range = Range { start: gib * GIB, len: GIB };
        let entry = if range.start == image.0 / GIB * GIB {
            fill_image_gib(info, image.0, size);
            leaf(table_phys(&DIRECT_IMAGE_GIB), V)
        } else if info.memory.as_slice().iter().any(|m| overlap(m, &range)) {
            leaf(range.start, RW)
        } else {
            0
        };
        set(l2, ENTRIES / 2 + gib, entry);
    }
    map_devices(info, l2);
    crate::mem::tlb::flush_all(Reason::Kernel);
    image_to_phys(
        match layout::mode() {
            Mode::Sv39 => &raw const *l2,
            Mode::Sv48 => &raw const *l3,
            Mode::Sv57 => &raw const *l4,
        }
        .addr(),
    )
}

fn overlap(a: &Range, b: &Range) -> bool {
    a.start < b.end() && b.start < a.end()
}

/// The direct map's GiB with the image: 2 MiB leaves, and 4 KiB pages where the image is.
fn fill_image_gib(info: &BootInfo, image: usize, size: usize) {
    let base = image / GIB * GIB;
    for i in 0..ENTRIES {
        let range = Range { start: base + i * MIB2, len: MIB2 };
        let used = info.memory.as_slice().iter().any(|m| overlap(m, &range));
        set(&DIRECT_IMAGE_GIB, i, if used { leaf(range.start, RW) } else { 0 });
    }
    for (n, start) in (image..image + size).step_by(MIB2).enumerate() {
        for page in 0..ENTRIES {
            let offset = n * MIB2 + page * PAGE_SIZE;
            let flags = if offset < size { permission(offset, true) } else { RW };
            set(&DIRECT_PAGES[n], page, leaf(image + offset, flags));
        }
        set(&DIRECT_IMAGE_GIB, (start - base) / MIB2, leaf(table_phys(&DIRECT_PAGES[n]), V));
    }
}

/// Device registers in the first GiB, as 2 MiB leaves; a device elsewhere is not reached.
fn map_devices(info: &BootInfo, l2: &'static Table) {
    let devices = [info.uart.map(|u| u.registers), info.rtc.map(|r| r.registers), info.plic.map(|p| p.registers)];
    let mut any = false;
    for range in devices.into_iter().flatten().filter(|r| r.end() <= GIB && r.len != 0) {
        for at in (range.start / MIB2 * MIB2..range.end()).step_by(MIB2) {
            set(&DIRECT_DEVICES, at / MIB2, leaf(at, RW));
            any = true;
        }
    }
    let low_is_memory = info.memory.as_slice().iter().any(|m| m.start < GIB);
    if any && !low_is_memory {
        set(l2, ENTRIES / 2, leaf(table_phys(&DIRECT_DEVICES), V));
    }
}
