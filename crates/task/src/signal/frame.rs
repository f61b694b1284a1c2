//! The signal frame: building it, and reading it back.
//!
//! A pure translation between the registers of a program and the bytes on its stack that the riscv64 ABI prescribes
//! (`uapi::sigframe` has the layout). No vector record is written: vector state is Off. The stack pointer goes to the
//! alternate stack when the handler asks for it and is not on it already (sigaltstack(2)).

use hal::task::{FpState, UserFrame};
use uapi::sigframe::{END_MAGIC, FRAME_ALIGN};
use uapi::signal::*;
use uapi::{Errno, SigFrame, SigSet, Sigaction, Siginfo, StackT};
use zerocopy::IntoBytes;

/// True when `sp` is on the alternate stack. One that disarms itself is never "on" (SS_AUTODISARM).
pub fn on_altstack(alt: &StackT, sp: usize) -> bool {
    alt.ss_flags & SS_AUTODISARM == 0 && alt.ss_flags & SS_DISABLE == 0 && within(alt, sp)
}

fn within(alt: &StackT, sp: usize) -> bool {
    sp > alt.ss_sp && sp - alt.ss_sp <= alt.ss_size
}

/// The state that sigaltstack(2) reports in `ss_flags` for a thread whose stack pointer is `sp`.
pub fn altstack_flags(alt: &StackT, sp: usize) -> u32 {
    let disarm = alt.ss_flags & SS_AUTODISARM;
    if alt.ss_size == 0 || alt.ss_flags & SS_DISABLE != 0 {
        SS_DISABLE | disarm
    } else if on_altstack(alt, sp) {
        SS_ONSTACK | disarm
    } else {
        disarm
    }
}

/// No alternate stack.
pub const NO_ALTSTACK: StackT = StackT { ss_sp: 0, ss_flags: SS_DISABLE, pad: 0, ss_size: 0 };

/// Checks a new alternate stack (sigaltstack(2)): `EPERM` while on the old one, `EINVAL` for unknown flags, `ENOMEM`
/// when too small.
pub fn new_altstack(old: &StackT, sp: usize, new: &StackT) -> Result<StackT, Errno> {
    if on_altstack(old, sp) {
        return Err(Errno::EPERM);
    }
    let mode = new.ss_flags & !SS_AUTODISARM;
    if mode != 0 && mode != SS_ONSTACK && mode != SS_DISABLE {
        return Err(Errno::EINVAL);
    }
    if mode == SS_DISABLE {
        return Ok(StackT { ss_flags: new.ss_flags, ..NO_ALTSTACK });
    }
    if new.ss_size < MINSIGSTKSZ {
        return Err(Errno::ENOMEM);
    }
    Ok(StackT { ss_sp: new.ss_sp, ss_flags: new.ss_flags & SS_AUTODISARM, pad: 0, ss_size: new.ss_size })
}

/// Where the frame goes. None when it would leave the alternate stack that the program is already on.
pub fn frame_address(sp: usize, action: &Sigaction, alt: &StackT) -> Option<usize> {
    let usable = alt.ss_flags & SS_DISABLE == 0 && alt.ss_size != 0;
    let on = on_altstack(alt, sp);
    let top = if action.flags & SA_ONSTACK != 0 && usable && !on { alt.ss_sp.checked_add(alt.ss_size)? } else { sp };
    let address = top.checked_sub(size_of::<SigFrame>())? & !(FRAME_ALIGN - 1);
    if on && !within(alt, address) {
        return None;
    }
    Some(address)
}

/// Where the parts of a frame lie that carry something, in bytes from its start. What lies between them (padding, and
/// the room for a larger mask and wider FP registers) is left as the program has it.
mod part {
    use core::mem::offset_of;
    use uapi::SigFrame;
    use uapi::sigframe::{Mcontext, Ucontext};

    const UC: usize = offset_of!(SigFrame, uc);
    const CONTEXT: usize = UC + offset_of!(Ucontext, uc_mcontext);
    /// Siginfo.
    pub const INFO: usize = offset_of!(SigFrame, info);
    /// uc_flags, uc_link, uc_stack, uc_sigmask: six words.
    pub const HEAD: usize = UC;
    /// pc, x1 to x31.
    pub const REGS: usize = CONTEXT + offset_of!(Mcontext, gregs);
    /// f0 to f31, fcsr.
    pub const FP: usize = CONTEXT + offset_of!(Mcontext, fpregs);
    /// The reserved word and the first extension record's header.
    pub const EXT: usize = CONTEXT + offset_of!(Mcontext, reserved);
    const _: () = assert!(offset_of!(Ucontext, uc_sigmask) == 5 * 8 && offset_of!(Mcontext, ext) == 768 + 8);
}

/// Writes a frame through `put` (offset, bytes): what was interrupted, and what is restored when the handler returns.
pub fn write(
    info: &Siginfo,
    regs: &UserFrame,
    fp: &FpState,
    mask: SigSet,
    alt: &StackT,
    mut put: impl FnMut(usize, &[u8]) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let flags = u64::from(altstack_flags(alt, regs.sp));
    put(part::INFO, info.as_bytes())?;
    put(part::HEAD, [0, 0, alt.ss_sp as u64, flags, alt.ss_size as u64, mask].as_bytes())?;
    put(part::REGS, regs.words().as_bytes())?;
    put(part::FP, fp.f.as_bytes())?;
    put(part::FP + size_of_val(&fp.f), (fp.fcsr as u32).as_bytes())?;
    put(part::EXT, [0u32, END_MAGIC, 0].as_bytes())
}

/// The registers at the handler's first instruction (LINUX: pc, sp, ra, a0 to a2; all others as they were).
pub fn enter(regs: &mut UserFrame, action: &Sigaction, signal: u32, at: usize, trampoline: usize) {
    regs.pc = action.handler;
    regs.sp = at;
    regs.ra = trampoline;
    regs.a0 = signal as usize;
    regs.a1 = at + core::mem::offset_of!(SigFrame, info);
    regs.a2 = at + core::mem::offset_of!(SigFrame, uc);
}

/// What a frame that a program returns through asks for.
pub struct Restored {
    /// All registers.
    pub regs: UserFrame,
    /// FP registers.
    pub fp: FpState,
    /// The mask, without what cannot be blocked.
    pub mask: SigSet,
    /// The alternate stack; to be checked like one given to sigaltstack(2).
    pub altstack: StackT,
}

impl Default for Restored {
    fn default() -> Self {
        Self { regs: UserFrame::default(), fp: FpState::ZERO, mask: 0, altstack: NO_ALTSTACK }
    }
}

/// Reads a frame back through `get` (offset, bytes). False when it is malformed or cannot be read: the program gets
/// SIGSEGV.
pub fn read(into: &mut Restored, mut get: impl FnMut(usize, &mut [u8]) -> Result<(), Errno>) -> bool {
    let mut head = [0u64; 6];
    let mut regs = [0usize; 32];
    let mut fcsr = 0u32;
    let mut ext = [0u32; 3];
    let f = &mut into.fp.f;
    let read = get(part::HEAD, head.as_mut_bytes())
        .and_then(|()| get(part::REGS, regs.as_mut_bytes()))
        .and_then(|()| get(part::FP, f.as_mut_bytes()))
        .and_then(|()| get(part::FP + size_of_val(f), fcsr.as_mut_bytes()))
        .and_then(|()| get(part::EXT, ext.as_mut_bytes()));
    // An extension record would be vector or shadow-stack state, which no program has here.
    if read.is_err() || ext != [0, END_MAGIC, 0] {
        return false;
    }
    into.regs = UserFrame::from_words(&regs);
    into.fp.fcsr = u64::from(fcsr & 0xff);
    let [_, _, sp, flags, size, mask] = head;
    into.mask = mask & !UNBLOCKABLE;
    into.altstack = StackT { ss_sp: sp as usize, ss_flags: flags as u32, pad: 0, ss_size: size as usize };
    true
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;

    const ALT: StackT = StackT { ss_sp: 0x10000, ss_flags: 0, pad: 0, ss_size: 0x4000 };

    fn action(flags: u64) -> Sigaction {
        Sigaction { handler: 0x1234, flags, mask: 0 }
    }

    #[test]
    fn frames_go_where_sigaltstack_says() {
        let size = size_of::<SigFrame>();
        assert_eq!(size, 1088);
        assert_eq!(frame_address(0x8008, &action(0), &ALT), Some((0x8008 - size) & !15));
        assert_eq!(frame_address(0x8008, &action(SA_ONSTACK), &NO_ALTSTACK), Some((0x8008 - size) & !15));
        assert_eq!(frame_address(0x8008, &action(SA_ONSTACK), &ALT), Some(0x14000 - size));
        // Nested on the alternate stack: below the running handler, until it is full.
        assert_eq!(frame_address(0x13000, &action(SA_ONSTACK), &ALT), Some(0x13000 - size));
        assert_eq!(frame_address(0x10400, &action(SA_ONSTACK), &ALT), None);
        assert_eq!(frame_address(0x10400, &action(0), &ALT), None);
        // A stack that disarms itself is fresh each time.
        let disarm = StackT { ss_flags: SS_AUTODISARM, ..ALT };
        assert_eq!(frame_address(0x13000, &action(SA_ONSTACK), &disarm), Some(0x14000 - size));
        assert_eq!(frame_address(8, &action(0), &NO_ALTSTACK), None);
    }

    #[test]
    fn altstack_rules() {
        let new = StackT { ss_sp: 0x2000, ss_flags: 0, pad: 0, ss_size: 8192 };
        assert_eq!(new_altstack(&ALT, 0x12000, &new), Err(Errno::EPERM));
        assert_eq!(new_altstack(&ALT, 0x8000, &new), Ok(new));
        assert_eq!(new_altstack(&ALT, 0x8000, &StackT { ss_size: 2047, ..new }), Err(Errno::ENOMEM));
        assert_eq!(new_altstack(&ALT, 0x8000, &StackT { ss_flags: 4, ..new }), Err(Errno::EINVAL));
        let off = new_altstack(&ALT, 0x8000, &StackT { ss_flags: SS_DISABLE, ..new }).unwrap();
        assert_eq!((off.ss_size, altstack_flags(&off, 0x2100)), (0, SS_DISABLE));
        assert_eq!(altstack_flags(&ALT, 0x12000), SS_ONSTACK);
        assert_eq!(altstack_flags(&ALT, 0x10000), 0, "the lowest byte is below any pushed word");
    }

    fn build(info: &Siginfo, regs: &UserFrame, fp: &FpState, mask: SigSet, alt: &StackT) -> SigFrame {
        let mut frame = SigFrame::default();
        write(info, regs, fp, mask, alt, |at, bytes| {
            frame.as_mut_bytes()[at..at + bytes.len()].copy_from_slice(bytes);
            Ok(())
        })
        .unwrap();
        frame
    }

    fn parse(frame: &SigFrame) -> Option<Restored> {
        let mut restored = Restored::default();
        let good = read(&mut restored, |at, bytes| {
            bytes.copy_from_slice(&frame.as_bytes()[at..at + bytes.len()]);
            Ok(())
        });
        good.then_some(restored)
    }

    #[test]
    fn parts_lie_where_the_structure_has_them() {
        let mut words = [0; 32];
        words.iter_mut().enumerate().for_each(|(i, w)| *w = 100 + i);
        let fp = FpState { f: core::array::from_fn(|i| 200 + i as u64), fcsr: 0x81 };
        let frame = build(&Siginfo::kill(SIGINT, 7, 8), &UserFrame::from_words(&words), &fp, 5, &ALT);
        assert_eq!((frame.info.si_signo, frame.info.pid(), frame.uc.uc_sigmask), (2, 7, 5));
        assert_eq!(frame.uc.uc_stack, ALT);
        assert_eq!(frame.uc.uc_mcontext.gregs, words.map(|w| w as u64));
        assert_eq!((frame.uc.uc_mcontext.fpregs, frame.uc.uc_mcontext.fcsr), (fp.f, 0x81));
        let fails = |at, _: &mut [u8]| if at == part::EXT { Err(Errno::EFAULT) } else { Ok(()) };
        assert!(!read(&mut Restored::default(), fails));
    }

    #[test]
    fn extension_records_and_reserved_words_are_refused() {
        let good = build(&Siginfo::default(), &UserFrame::default(), &FpState::ZERO, !0, &NO_ALTSTACK);
        assert_eq!(parse(&good).unwrap().mask, !UNBLOCKABLE);
        let mut bad = good;
        bad.uc.uc_mcontext.reserved = 1;
        assert!(parse(&bad).is_none());
        let mut bad = good;
        bad.uc.uc_mcontext.ext.size = 8;
        assert!(parse(&bad).is_none());
        let mut bad = good;
        bad.uc.uc_mcontext.ext.magic = uapi::sigframe::RISCV_V_MAGIC;
        assert!(parse(&bad).is_none());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(words in prop::array::uniform32(any::<usize>()),
            f in prop::array::uniform32(any::<u64>()), fcsr in 0u64..256, mask in any::<u64>()) {
            let fp = FpState { f, fcsr };
            let back = parse(&build(&Siginfo::default(), &UserFrame::from_words(&words), &fp, mask, &ALT)).unwrap();
            prop_assert_eq!(back.regs.words(), words);
            prop_assert_eq!(back.fp, fp);
            prop_assert_eq!(back.mask, mask & !UNBLOCKABLE);
        }

        /// Wherever the program's stack is, the frame lies below what it may use, aligned, and never wraps.
        #[test]
        fn frames_never_wrap(sp in any::<usize>(), base in any::<usize>(), size in any::<usize>(), flags in any::<bool>()) {
            let alt = StackT { ss_sp: base, ss_flags: 0, pad: 0, ss_size: size };
            if let Some(at) = frame_address(sp, &action(if flags { SA_ONSTACK } else { 0 }), &alt) {
                prop_assert_eq!(at % 16, 0);
                prop_assert!(at.checked_add(size_of::<SigFrame>()).is_some());
            }
        }
    }
}
