//! Walking the kernel stack by `.eh_frame`.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EndianSlice, LittleEndian, Register, RegisterRule, UnwindContext, UnwindSection,
};

use core::arch::asm;

/// Deepest backtrace that is printed.
const MAX_DEPTH: usize = 48;

/// x0 to x31, and 64 for the pc of a trap frame (the column the assembly names).
const REGISTERS: usize = 65;
const SP: usize = 2;
const TP: usize = 4;

unsafe extern "C" {
    static __eh_frame_start: u8;
    static __eh_frame_end: u8;
    static __image_start: u8;
    static __text_end: u8;
}

/// Storage without an allocator: the kernel may be panicking because it has none left.
struct Fixed;
impl gimli::UnwindContextStorage<usize> for Fixed {
    type Rules = [(Register, RegisterRule<usize>); 40];
    type Stack = [gimli::UnwindTableRow<usize, Self>; 4];
}

struct Frame {
    pc: usize,
    registers: [usize; REGISTERS],
    /// The pc is a return address, behind its call.
    after_call: bool,
}

/// Calls `visit` with the depth and pc of each kernel frame from the caller's caller up.
pub(crate) fn backtrace(mut visit: impl FnMut(usize, usize)) {
    // SAFETY: linker symbols around the section, which is mapped read-only for ever.
    let (section, at) = unsafe {
        let start = &raw const __eh_frame_start;
        let len = (&raw const __eh_frame_end).addr() - start.addr();
        (core::slice::from_raw_parts(start, len), start.addr())
    };
    let mut eh_frame = EhFrame::from(EndianSlice::new(section, LittleEndian));
    eh_frame.set_address_size(8);
    let bases = BaseAddresses::default().set_eh_frame(at as u64);
    let mut context = UnwindContext::<usize, Fixed>::new_in();
    let mut frame = here();
    for depth in 0..MAX_DEPTH {
        visit(depth, frame.pc);
        match step(&eh_frame, &bases, &mut context, &frame) {
            Some(next) if in_text(next.pc) => frame = next,
            _ => return,
        }
    }
}

fn in_text(pc: usize) -> bool {
    ((&raw const __image_start).addr()..(&raw const __text_end).addr()).contains(&pc)
}

/// The registers here: the callee-saved ones are all that the rules of a frame between calls refer to.
#[inline(always)]
fn here() -> Frame {
    let mut registers = [0; REGISTERS];
    let pc;
    // SAFETY: stores registers into an array of ours.
    unsafe {
        asm!(
            "auipc {pc}, 0",
            "sd ra, 8({r})", "sd sp, 16({r})", "sd tp, 32({r})", "sd s0, 64({r})", "sd s1, 72({r})",
            "sd s2, 144({r})", "sd s3, 152({r})", "sd s4, 160({r})", "sd s5, 168({r})", "sd s6, 176({r})",
            "sd s7, 184({r})", "sd s8, 192({r})", "sd s9, 200({r})", "sd s10, 208({r})", "sd s11, 216({r})",
            r = in(reg) registers.as_mut_ptr(), pc = out(reg) pc, options(nostack),
        );
    }
    Frame { pc, registers, after_call: false }
}

fn step(
    eh_frame: &EhFrame<EndianSlice<'static, LittleEndian>>,
    bases: &BaseAddresses,
    context: &mut UnwindContext<usize, Fixed>,
    frame: &Frame,
) -> Option<Frame> {
    let look_up = (frame.pc - usize::from(frame.after_call)) as u64;
    let fde = eh_frame.fde_for_address(bases, look_up, EhFrame::cie_from_offset).ok()?;
    let row = fde.unwind_info_for_address(eh_frame, bases, context, look_up).ok()?;
    let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else { return None };
    let cfa = frame.registers.get(register.0 as usize)?.wrapping_add_signed(*offset as isize);
    let mut registers = frame.registers;
    registers[SP] = cfa;
    for (register, rule) in row.registers() {
        let slot = registers.get_mut(register.0 as usize)?;
        match rule {
            RegisterRule::Offset(offset) => *slot = load(cfa.wrapping_add_signed(*offset as isize), frame)?,
            RegisterRule::Undefined => *slot = 0,
            RegisterRule::SameValue => {}
            _ => return None,
        }
    }
    let column = fde.cie().return_address_register().0 as usize;
    let signal = fde.is_signal_trampoline();
    Some(Frame { pc: *registers.get(column)?, registers, after_call: !signal })
}

/// A word of the stack, if the address is one of the block that `tp` names or at least a kernel address.
fn load(at: usize, frame: &Frame) -> Option<usize> {
    let block = frame.registers[TP] & !(crate::task::STACK_SIZE - 1);
    if !at.is_multiple_of(8) || !(block..block + crate::task::STACK_SIZE).contains(&at) {
        return None;
    }
    // SAFETY: an aligned address in the running task's block, which is mapped for ever.
    Some(unsafe { core::ptr::with_exposed_provenance::<usize>(at).read_volatile() })
}
