//! Cache-block instructions: what is promised works, what is not traps, and no more is done than promised.

use crate::entry::{ask, by_call, online, plain};
use core::arch::asm;
use kit::check::{Must, Outcome};
use kit::memory::{self, PAGE};
use kit::uapi::nr;
use kit::uapi::signal::SIGILL;
use kit::{attempt, child, ensure, equal};
use rt::process::Ended;
use rt::tap::Test;

pub const TESTS: &[Test] = &[
    Test::new("blocks/zero", zero),
    Test::new("blocks/clean-and-flush", clean),
    Test::new("blocks/invalidate-is-refused", invalidate),
    Test::new("blocks/prefetch-never-faults", prefetch),
];

/// Goes to a hart that lacks the extension with this bit of IMA_EXT_0, or stays where all have it. Gives whether all do,
/// and the block size that they share.
fn promised(bit: u32, key: i64) -> Result<(bool, usize), &'static str> {
    let has = |set| {
        let mut pairs = [ask(4), ask(key)];
        plain(by_call, &mut pairs, set);
        (pairs[0].value >> bit & 1 != 0, pairs[1].value as usize)
    };
    let lacking = (0..8).filter(|hart| online() >> hart & 1 != 0).find(|hart| !has(Some(1 << hart)).0);
    if let Some(hart) = lacking {
        let set = 1_u64 << hart;
        attempt!(nr::SCHED_SETAFFINITY, 0, 8, &raw const set).must("go to a hart")?;
        equal!(has(Some(set)).1, 0, "a block size without the extension");
    }
    Ok(has(None))
}

macro_rules! block {
    ($number:literal, $address:expr) => {
        // SAFETY: a cache-block instruction on memory of the test's own; it traps where it is not allowed.
        unsafe { asm!(concat!(".insn i 0x0f, 2, x0, {}, ", $number), in(reg) $address, options(nostack)) }
    };
}

fn killed(body: impl FnOnce()) -> Outcome {
    let ended = child::end(|| {
        body();
        Ok(())
    })?;
    equal!(ended, Ended::Killed(SIGILL as u8), "an instruction that is not promised");
    Ok(())
}

fn zero() -> Outcome {
    let (there, size) = promised(6, 6)?;
    let page = memory::private(2 * PAGE).must("mmap")?;
    if !there {
        return killed(|| block!(4, page));
    }
    if size == 0 {
        // All have it, with blocks of different sizes.
        return Ok(());
    }
    ensure!(size.is_power_of_two() && size <= PAGE, "the block size is no power of two");
    for (block, inside) in [(0, 0), (1, size / 2), (PAGE / size - 1, size - 1), (PAGE / size, 1)] {
        (0..2 * PAGE).for_each(|byte| memory::poke(page + byte, 0xa5));
        block!(4, page + block * size + inside);
        for byte in 0..2 * PAGE {
            let wanted = if byte / size == block { 0 } else { 0xa5 };
            equal!((byte, memory::peek(page + byte)), (byte, wanted), "exactly the block is cleared");
        }
    }
    Ok(())
}

fn clean() -> Outcome {
    let (there, size) = promised(55, 12)?;
    let page = memory::private(PAGE).must("mmap")?;
    memory::poke(page, 7);
    if !there {
        killed(|| block!(1, page))?;
        return killed(|| block!(2, page));
    }
    ensure!(size == 0 || size.is_power_of_two(), "the block size is no power of two");
    block!(1, page);
    block!(2, page);
    equal!(memory::peek(page), 7, "memory after clean and flush");
    Ok(())
}

fn invalidate() -> Outcome {
    let page = memory::private(PAGE).must("mmap")?;
    memory::poke(page, 7);
    killed(|| block!(0, page))
}

fn prefetch() -> Outcome {
    let (there, size) = promised(60, 15)?;
    ensure!(there || size == 0, "a block size without the extension");
    let page = memory::private(PAGE).must("mmap")?;
    // Hints are allowed whether promised or not, and never fault.
    for address in [page, 0, 1 << 63, usize::MAX & !31] {
        // SAFETY: prefetch.i, prefetch.r, prefetch.w: hints.
        unsafe {
            asm!(".insn s 0x13, 6, x0, 0({0})", ".insn s 0x13, 6, x1, 0({0})", ".insn s 0x13, 6, x3, 0({0})",
                in(reg) address, options(nostack));
        }
    }
    Ok(())
}
