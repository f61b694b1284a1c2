//! Chooses a copy by what the harts can do, and measures whether that was right.
//!
//! ```sh
//! cargo run --release --example memcpy
//! ```
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::time::{Duration, Instant};

/// A copy of `from` to `to`, of the same length.
type Copy = fn(&mut [u8], &[u8]);

/// Byte by byte: right everywhere.
fn bytes(to: &mut [u8], from: &[u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = black_box(*from);
    }
}

/// By words, wherever they lie.
fn words(to: &mut [u8], from: &[u8]) {
    let (to_words, to_rest) = to.as_chunks_mut::<8>();
    let (from_words, from_rest) = from.as_chunks::<8>();
    for (to, from) in to_words.iter_mut().zip(from_words) {
        *to = black_box(u64::from_ne_bytes(*from)).to_ne_bytes();
    }
    bytes(to_rest, from_rest);
}

/// The one for these harts.
fn choose() -> (&'static str, Copy) {
    if riscv_hwprobe::features().misaligned_scalar().is_fast() { ("words", words) } else { ("bytes", bytes) }
}

/// The shortest time of a copy from one misaligned place to another.
fn measure(copy: Copy) -> Duration {
    const LENGTH: usize = 1 << 16;
    let (mut to, from) = (vec![0; LENGTH + 1], vec![7; LENGTH + 3]);
    let once = || {
        let start = Instant::now();
        copy(black_box(&mut to[1..]), black_box(&from[3..]));
        start.elapsed()
    };
    std::iter::repeat_with(once).take(50).min().unwrap_or_default()
}

fn main() {
    let features = riscv_hwprobe::features();
    println!("misaligned accesses: {:?}, as told by {:?}", features.misaligned_scalar(), features.source());
    let (chosen, _) = choose();
    for (name, copy) in [("bytes", bytes as Copy), ("words", words)] {
        println!("{name}: {:?} for 64 KiB{}", measure(copy), if name == chosen { " (chosen)" } else { "" });
    }
}
