//! What this kernel says, to be compared with what another says on the same machine.

use crate::entry::{by_call, words};
use crate::random::{Area, EMPTY, Maker, PAIRS};
use kit::random::Random;
use riscv_hwprobe::isa::EXTENSIONS;
use riscv_hwprobe::keys::KEYS;

/// Bits that Limen does not show because it does not do its part: landing pads and pointer masking, shadow stacks; and,
/// as long as it keeps no vector state, all that needs vector registers.
fn hidden(key: usize) -> u64 {
    let vector = EXTENSIONS.iter().filter(|extension| extension.vector).filter_map(|extension| extension.word);
    let bits = vector.filter(|word| word.0 as usize == key).fold(0, |bits, word| bits | 1 << word.1);
    match key {
        4 => bits | 1 << 63 | 1 << 49,
        16 => 1,
        _ => bits,
    }
}

/// Takes them out of pairs, and the speed of misaligned vector accesses.
fn hide(area: &mut [u8]) {
    for pair in area.chunks_exact_mut(16) {
        let (key, value) = pair.split_at_mut(8);
        if key[1..].iter().any(|byte| *byte != 0) {
            continue;
        }
        if key[0] == 10 {
            key[0] = 9;
        }
        let hidden = hidden(key[0].into());
        value.iter_mut().zip(hidden.to_le_bytes()).for_each(|(byte, hidden)| *byte &= !hidden);
    }
}

/// Prints each hart's words, and a sum over the results of random legal queries.
pub fn print(queries: u64, seed: u64) -> u8 {
    let (mut words, count) = words();
    words.iter_mut().for_each(|words| words.iter_mut().enumerate().for_each(|(key, word)| *word &= !hidden(key)));
    // Key 10 is asked for as key 9.
    words.iter_mut().for_each(|words| words[10] = words[9]);
    for (key, about) in KEYS.iter().enumerate().filter(|(key, _)| *key != 10) {
        rt::print!("{:<24}", about.name);
        words[..count].iter().for_each(|words| rt::print!(" {:#x}", words[key]));
        rt::println!("");
    }
    let Some(area) = Area::new() else { return 1 };
    let mut maker = Maker { random: Random::new(seed), words: &words[..count], base: area.0, long_sets: false };
    let (mut bytes, mut sum, mut failed) = (EMPTY, 0xcbf2_9ce4_8422_2325_u64, 0_u64);
    for _ in 0..queries {
        let request = maker.legal(&mut bytes);
        hide(&mut bytes[..PAIRS]);
        let (result, mut after) = area.ask(by_call, &bytes, request);
        failed += u64::from(result != 0);
        hide(&mut after[..PAIRS]);
        // FNV-1a over words.
        for word in after.chunks_exact(8) {
            let word = word.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            sum = (sum ^ word).wrapping_mul(0x0100_0000_01b3);
        }
    }
    rt::println!("{queries} queries, {failed} failed, sum {sum:016x}");
    0
}
