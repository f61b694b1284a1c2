//! Signal frames that no kernel made.

use crate::sandbox::{self, End};
use kit::check::{Must, Outcome};
use kit::equal;
use kit::memory::{self, PAGE};
use kit::random::Random;
use kit::registers::{self, RA, SP};
use kit::uapi::SigFrame;

const LIMIT: u64 = 100_000_000;
const LANDED: u8 = 42;

/// Returns from `count` signals that never came.
pub fn run(count: u64, seed: u64) -> Outcome {
    let stack = memory::private(2 * PAGE).must("mmap")?;
    let (mut landed, mut died, mut overdue) = (0, 0, 0);
    // First one in order, so that what follows is known to reach the kernel's reader.
    equal!(sandbox::child(LIMIT, || registers::sigreturn(proper(stack)))?, End::Exited(LANDED), "a proper frame");
    for index in 0..count {
        let mut random = Random::new(seed.wrapping_mul(1 << 24).wrapping_add(index));
        match sandbox::child(LIMIT, || registers::sigreturn(broken(stack, &mut random)))? {
            End::Exited(_) => landed += 1,
            End::Died => died += 1,
            End::Overdue => overdue += 1,
        }
    }
    sandbox::kill_rest()?;
    memory::unmap(stack, 2 * PAGE).must("munmap")?;
    rt::println!("# {count} frames: {landed} taken, {died} died, {overdue} killed");
    Ok(())
}

/// A frame that goes on at the landing.
fn proper(stack: usize) -> usize {
    let mut frame = SigFrame::default();
    frame.uc.uc_mcontext.gregs[0] = registers::landing() as u64;
    frame.uc.uc_mcontext.gregs[RA] = registers::landing() as u64;
    frame.uc.uc_mcontext.gregs[SP] = (stack + PAGE) as u64;
    frame.uc.uc_stack.ss_flags = kit::uapi::signal::SS_DISABLE;
    // SAFETY: the mapping has two pages.
    unsafe { (stack as *mut SigFrame).write(frame) };
    stack
}

/// A frame with something wrong.
fn broken(stack: usize, random: &mut Random) -> usize {
    proper(stack);
    let words = size_of::<SigFrame>() / 8;
    let word = |index: usize, value: u64| {
        // SAFETY: within the frame that `proper` wrote.
        unsafe { ((stack + index * 8) as *mut u64).write(value) }
    };
    match random.below(6) {
        // Everything, or the registers, or a few words, or the words at the end, which say what follows.
        0 => (0..words).for_each(|index| word(index, random.next())),
        1 => (38..70).for_each(|index| word(index, random.next())),
        2 => (0..4).for_each(|_| word(random.below(words as u64) as usize, random.next())),
        3 => (words - 4..words).for_each(|index| word(index, random.next())),
        4 => word(words - 1, random.pick(&[0x5346_5457, 0x40_5346_5457, 0x9487, 0x10_0000_9487, 1 << 32, u64::MAX])),
        // The frame itself lies where none can.
        _ => {
            return random.pick(&[
                0,
                8,
                stack + 8,
                stack + 3,
                stack + 2 * PAGE - 64,
                stack + 2 * PAGE,
                usize::MAX - 15,
                0xffff_ffff_8000_0000,
                1 << 62,
            ]);
        }
    }
    stack
}
