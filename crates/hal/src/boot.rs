//! What the device tree says about the machine.
//!
//! One pass over the tree, into plain data of fixed size: the boot hart has no allocator yet. Nothing that the tree
//! tells is assumed anywhere else.

use fdt_raw::{Fdt, Node};

use crate::hart::MAX_HARTS;
use crate::isa::{self, Blocks, Isa};
use crate::sync::Once;
use crate::time;

/// Most separate ranges of memory, and of reserved memory, that are looked at.
pub const MAX_RANGES: usize = 16;

/// A range of physical addresses, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// First byte.
    pub start: usize,
    /// Number of bytes.
    pub len: usize,
}

impl Range {
    /// One past the last byte.
    pub const fn end(&self) -> usize {
        self.start.saturating_add(self.len)
    }
}

/// A short list of ranges.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ranges {
    list: [Range; MAX_RANGES],
    len: usize,
}

impl Ranges {
    /// The ranges.
    pub fn as_slice(&self) -> &[Range] {
        &self.list[..self.len]
    }

    /// Adds a range; empty ones, and those beyond [`MAX_RANGES`], are dropped.
    pub fn push(&mut self, range: Range) {
        if range.len != 0 && self.len < MAX_RANGES {
            self.list[self.len] = range;
            self.len += 1;
        }
    }

    /// `self` without `holes`, cut to whole pages.
    pub fn without(&self, holes: &Self) -> Self {
        let mut result = Self::default();
        for range in self.as_slice() {
            let mut at = range.start;
            while at < range.end() {
                // The nearest hole from here on.
                let next =
                    holes.as_slice().iter().filter(|h| h.end() > at && h.start < range.end()).min_by_key(|h| h.start);
                let (stop, resume) = next.map_or((range.end(), range.end()), |h| (h.start.max(at), h.end()));
                let start = at.next_multiple_of(crate::addr::PAGE_SIZE);
                let end = crate::addr::page_down(stop);
                if start < end {
                    result.push(Range { start, len: end - start });
                }
                at = resume;
            }
        }
        result
    }
}

/// A hart of the device tree.
#[derive(Clone, Copy, Debug, Default)]
pub struct HartInfo {
    /// The firmware's id.
    pub id: usize,
    /// The extensions that programs may rely on.
    pub isa: Isa,
    /// `mmu-type`, such as `riscv,sv57`.
    pub mmu: &'static str,
    /// First `compatible` string.
    pub compatible: &'static str,
    /// Cache-block sizes.
    pub blocks: Blocks,
    /// phandle of the hart's interrupt controller.
    pub intc: u32,
    /// Clock ticks that reading all this took.
    pub ticks: u64,
}

/// A device with registers and an interrupt.
#[derive(Clone, Copy, Debug, Default)]
pub struct Device {
    /// Its registers.
    pub registers: Range,
    /// Interrupt number at its controller, 0 if none.
    pub interrupt: u32,
    /// log2 of the distance of two registers (`reg-shift`).
    pub shift: usize,
    /// Bytes of one register access (`reg-io-width`).
    pub width: usize,
}

/// The interrupt controller of devices (PLIC).
#[derive(Clone, Copy, Debug, Default)]
pub struct Plic {
    /// Its registers.
    pub registers: Range,
    /// Number of interrupt sources (`riscv,ndev`).
    pub sources: u32,
    /// `interrupts-extended`: pairs of a hart's interrupt controller and a cause, big-endian words; the position of a
    /// pair is its context.
    pub contexts: &'static [u8],
}

impl Plic {
    /// The context that raises S-mode external interrupts on the hart with this interrupt controller.
    pub fn context(&self, intc: u32) -> Option<usize> {
        const S_EXTERNAL: u32 = 9;
        self.contexts.chunks_exact(8).position(|pair| {
            let word = |at: usize| u32::from_be_bytes([pair[at], pair[at + 1], pair[at + 2], pair[at + 3]]);
            word(0) == intc && word(4) == S_EXTERNAL
        })
    }
}

/// The machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct BootInfo {
    /// All RAM.
    pub memory: Ranges,
    /// RAM that is not to be used: firmware, kernel, device tree, initial ramdisk.
    pub reserved: Ranges,
    /// The initial ramdisk; empty when there is none.
    pub initrd: Range,
    /// The command line.
    pub command_line: &'static str,
    /// `rng-seed`: random bytes from the firmware, empty when there are none.
    pub seed: &'static [u8],
    /// The clock when the kernel was entered, in ticks.
    pub entry_ticks: u64,
    /// Clock frequency in Hz.
    pub timebase: u64,
    /// The harts, the boot hart first.
    pub harts: [HartInfo; MAX_HARTS],
    /// Number of entries of `harts` in use.
    pub hart_count: usize,
    /// The console, if it is an 8250-compatible UART.
    pub uart: Option<Device>,
    /// The clock of day, if it is a Goldfish one.
    pub rtc: Option<Device>,
    /// The interrupt controller.
    pub plic: Option<Plic>,
    /// All harts have Sstc.
    pub sstc: bool,
}

impl BootInfo {
    /// The harts in use, the boot hart first.
    pub fn harts(&self) -> &[HartInfo] {
        &self.harts[..self.hart_count]
    }

    /// The extensions that all harts have.
    pub fn common_isa(&self) -> Isa {
        self.harts().iter().map(|hart| hart.isa).reduce(Isa::and).unwrap_or_default()
    }

    /// Value of `name=value` on the command line, or `Some("")` for a bare `name`.
    pub fn argument(&self, name: &str) -> Option<&'static str> {
        self.command_line.split_ascii_whitespace().find_map(|word| match word.split_once('=') {
            Some((n, v)) => (n == name).then_some(v),
            None => (word == name).then_some(""),
        })
    }
}

static INFO: Once<BootInfo> = Once::new();

/// What the device tree said. Panics before it was read.
pub fn info() -> &'static BootInfo {
    INFO.get().expect("the device tree is read first")
}

/// Publishes what was read, for [`info`].
pub fn publish(info: BootInfo) -> &'static BootInfo {
    INFO.set(info).unwrap_or_else(|_| panic!("the device tree is read once"))
}

/// A handle to the page of the kernel's image that starts with `page`, for mapping it into programs (the vDSO).
/// `None` when it is not page-aligned or not in the image.
pub fn image_frame<T: ?Sized>(page: &'static T) -> Option<crate::mem::frame::Frame> {
    #[cfg(target_os = "none")]
    {
        let at = (&raw const *page).cast::<u8>().addr();
        let image = crate::arch::kernel_map::image_start();
        if !(image..image + crate::arch::kernel_map::image_size()).contains(&at) {
            return None;
        }
        crate::mem::frame::adopt(crate::arch::kernel_map::image_to_phys(at))
    }
    #[cfg(not(target_os = "none"))]
    {
        let _ = page;
        None
    }
}

/// Calls `f` with the initial ramdisk, empty when there is none. Once, before its pages become anybody else's.
pub fn with_initrd<R>(f: impl FnOnce(&[u8]) -> R) -> R {
    #[cfg(target_os = "none")]
    {
        let range = info().initrd;
        if range.len == 0 {
            return f(&[]);
        }
        let start = crate::mem::layout::phys_to_virt(crate::addr::PhysAddr(range.start));
        // SAFETY: the loader put the ramdisk there; it is in the direct map and in no free range, and nobody has been
        // given one of its pages yet.
        f(unsafe { core::slice::from_raw_parts(core::ptr::with_exposed_provenance(start), range.len) })
    }
    #[cfg(not(target_os = "none"))]
    f(&[])
}

/// Reads a device tree. `boot_hart` is the id of the hart that runs. `Err` says what is missing.
pub fn parse(tree: &Fdt<'static>, boot_hart: usize) -> Result<BootInfo, &'static str> {
    let mut info = BootInfo::default();
    for reservation in tree.memory_reservations() {
        info.reserved.push(Range { start: reservation.address as usize, len: reservation.size as usize });
    }
    let mut in_reserved = None;
    let mut cpu: Option<HartInfo> = None;
    let mut stdout = "";
    for node in tree.all_nodes() {
        let level = node.level();
        if in_reserved.is_some_and(|at| level <= at) {
            in_reserved = None;
        }
        let name = node.name();
        if level <= 2
            && let Some(hart) = cpu.take()
        {
            push_hart(&mut info, hart, boot_hart);
        }
        match name.split('@').next().unwrap_or("") {
            "chosen" if level == 1 => {
                stdout = text(&node, "stdout-path");
                chosen(&node, &mut info);
            }
            "memory" if level == 1 => ranges(&node, &mut info.memory),
            "reserved-memory" if level == 1 => in_reserved = Some(level),
            "cpus" if level == 1 => info.timebase = u64::from(word(&node, "timebase-frequency").unwrap_or(0)),
            "cpu" if level == 2 && text(&node, "status") != "disabled" => cpu = Some(hart(&node)),
            "interrupt-controller" if level == 3 => {
                if let Some(hart) = &mut cpu {
                    hart.intc = word(&node, "phandle").unwrap_or(0);
                }
            }
            _ if in_reserved.is_some() => ranges(&node, &mut info.reserved),
            _ => device(&node, stdout, &mut info),
        }
    }
    if let Some(hart) = cpu {
        push_hart(&mut info, hart, boot_hart);
    }
    if info.memory.as_slice().is_empty() {
        return Err("no memory node");
    }
    if info.hart_count == 0 || info.harts[0].id != boot_hart {
        return Err("the boot hart is not in /cpus");
    }
    if info.timebase == 0 {
        return Err("no timebase-frequency");
    }
    info.sstc = info.harts().iter().all(|h| h.isa.has("sstc"));
    info.reserved.push(info.initrd);
    Ok(info)
}

/// The boot hart goes first, whatever its place in the tree.
fn push_hart(info: &mut BootInfo, hart: HartInfo, boot_hart: usize) {
    let has_boot = info.hart_count > 0 && info.harts[0].id == boot_hart;
    if hart.id == boot_hart {
        let count = (info.hart_count + 1).min(MAX_HARTS);
        info.harts[..count].rotate_right(1);
        info.harts[0] = hart;
        info.hart_count = count;
    } else if info.hart_count < if has_boot { MAX_HARTS } else { MAX_HARTS - 1 } {
        info.harts[info.hart_count] = hart;
        info.hart_count += 1;
    }
}

fn data(node: &Node<'static>, property: &str) -> &'static [u8] {
    node.find_property(property).map_or(&[], |p| p.data().as_slice())
}

fn text(node: &Node<'static>, property: &str) -> &'static str {
    let bytes = data(node, property).split(|&b| b == 0).next().unwrap_or(&[]);
    core::str::from_utf8(bytes).unwrap_or("")
}

fn word(node: &Node<'static>, property: &str) -> Option<u32> {
    data(node, property).first_chunk::<4>().map(|b| u32::from_be_bytes(*b))
}

/// A number of one or two cells.
fn number(bytes: &[u8]) -> usize {
    bytes.iter().take(8).fold(0, |n, &b| n << 8 | b as usize)
}

fn ranges(node: &Node<'static>, to: &mut Ranges) {
    for reg in node.reg().into_iter().flatten() {
        to.push(Range { start: reg.address as usize, len: reg.size.unwrap_or(0) as usize });
    }
}

fn chosen(node: &Node<'static>, info: &mut BootInfo) {
    info.command_line = text(node, "bootargs");
    info.seed = data(node, "rng-seed");
    let start = number(data(node, "linux,initrd-start"));
    let end = number(data(node, "linux,initrd-end"));
    info.initrd = Range { start, len: end.saturating_sub(start) };
}

fn hart(node: &Node<'static>) -> HartInfo {
    let start = time::now();
    let blocks = ["riscv,cbom-block-size", "riscv,cboz-block-size", "riscv,cbop-block-size"];
    let blocks = blocks.map(|name| word(node, name).unwrap_or(0));
    HartInfo {
        id: number(data(node, "reg")),
        isa: isa::find(
            text(node, "riscv,isa-base"),
            data(node, "riscv,isa-extensions"),
            text(node, "riscv,isa"),
            blocks,
        ),
        mmu: text(node, "mmu-type"),
        compatible: text(node, "compatible"),
        blocks,
        intc: 0,
        ticks: time::now() - start,
    }
}

fn device(node: &Node<'static>, stdout: &str, info: &mut BootInfo) {
    let compatible = data(node, "compatible");
    if compatible.is_empty() {
        return;
    }
    let is = |name: &str| compatible.split(|&b| b == 0).any(|c| c == name.as_bytes());
    let mut registers = Ranges::default();
    let found = |registers: &mut Ranges| {
        ranges(node, registers);
        Device {
            registers: registers.list[0],
            interrupt: word(node, "interrupts").unwrap_or(0),
            shift: word(node, "reg-shift").unwrap_or(0) as usize,
            width: word(node, "reg-io-width").unwrap_or(1) as usize,
        }
    };
    if is("ns16550a") || is("ns16550") || is("snps,dw-apb-uart") {
        let path = stdout.split(':').next().unwrap_or("");
        if info.uart.is_none() || path.ends_with(node.name()) {
            info.uart = Some(found(&mut registers));
        }
    } else if is("google,goldfish-rtc") {
        info.rtc = Some(found(&mut registers));
    } else if is("riscv,plic0") || is("sifive,plic-1.0.0") {
        info.plic = Some(Plic {
            registers: found(&mut registers).registers,
            sources: word(node, "riscv,ndev").unwrap_or(0),
            contexts: data(node, "interrupts-extended"),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{Range, Ranges};

    fn list(ranges: &[(usize, usize)]) -> Ranges {
        let mut list = Ranges::default();
        for &(start, len) in ranges {
            list.push(Range { start, len });
        }
        list
    }

    #[test]
    fn holes_are_cut_out_to_whole_pages() {
        let memory = list(&[(0x8000_0000, 0x10_0000)]);
        let holes = list(&[(0x8000_0000, 0x2000), (0x8000_8100, 0x10), (0x800f_f001, 0x10_0000)]);
        let free = memory.without(&holes);
        let expected = [Range { start: 0x8000_2000, len: 0x6000 }, Range { start: 0x8000_9000, len: 0xf6000 }];
        assert_eq!(free.as_slice(), expected);
    }

    #[test]
    fn overlapping_holes_leave_nothing_twice() {
        let memory = list(&[(0x1000, 0x4000)]);
        let holes = list(&[(0x1000, 0x2000), (0x1800, 0x1000), (0x4000, 0x9000)]);
        assert_eq!(memory.without(&holes).as_slice(), [Range { start: 0x3000, len: 0x1000 }]);
    }
}
