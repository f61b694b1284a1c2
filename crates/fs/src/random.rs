//! Random numbers: random(7), getrandom(2), `AT_RANDOM`.
//!
//! ChaCha20 with fast key erasure: each refill of the buffer makes 32 bytes of the next key first, and bytes are wiped
//! as they are handed out, so what has been given cannot be computed from what is left. A seed is mixed into the key;
//! the boot code calls [`seed`] with what the device tree, the hardware and the timer have to give before the first
//! program runs, and nothing waits after that.

use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher};
use hal::sync::SpinLock;
use hal::user::OutBuf;
use uapi::{Errno, Result};

/// What `RNDGETENTCNT` and `entropy_avail` say: the key's size in bits.
pub const ENTROPY_BITS: i32 = 256;
const KEY: usize = 32;
/// Bytes made at a time: the next key and 15 keys' worth of output, eight blocks.
const BUFFER: usize = 512 - KEY;

struct Generator {
    key: [u8; KEY],
    buffer: [u8; BUFFER],
    /// Bytes of the buffer handed out.
    used: usize,
}

static GENERATOR: SpinLock<Generator> = SpinLock::new(Generator { key: [0; KEY], buffer: [0; BUFFER], used: BUFFER });

impl Generator {
    fn refill(&mut self) {
        let mut cipher = ChaCha20::new(&self.key.into(), &[0; 12].into());
        self.key = [0; KEY];
        cipher.apply_keystream(&mut self.key);
        self.buffer = [0; BUFFER];
        cipher.apply_keystream(&mut self.buffer);
        self.used = 0;
    }

    fn fill(&mut self, mut out: &mut [u8]) {
        while !out.is_empty() {
            if self.used >= BUFFER {
                self.refill();
            }
            let fresh = self.buffer.get_mut(self.used..).unwrap_or_default();
            let n = fresh.len().min(out.len());
            let (now, later) = out.split_at_mut(n);
            let fresh = fresh.get_mut(..n).unwrap_or_default();
            now.copy_from_slice(fresh);
            fresh.fill(0);
            self.used += n;
            out = later;
        }
    }
}

/// Mixes `bytes` into the state. Any quality and length: it cannot make the state worse.
pub fn seed(bytes: &[u8]) {
    let mut generator = GENERATOR.lock();
    for chunk in bytes.chunks(KEY) {
        for (key, byte) in generator.key.iter_mut().zip(chunk) {
            *key ^= byte;
        }
        generator.refill();
    }
}

/// Fills `out` with random bytes.
pub fn fill(out: &mut [u8]) {
    GENERATOR.lock().fill(out);
}

/// A random number.
pub fn next_u64() -> u64 {
    let mut bytes = [0; 8];
    fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

/// Fills a program's buffer: getrandom(2) and the devices. `EFAULT`.
pub fn read(out: &mut OutBuf<'_>) -> Result<usize> {
    let mut done = 0;
    let mut chunk = [0; 256];
    while !out.is_empty() {
        if done % 1024 == 1024 - chunk.len() {
            hal::hart::window();
        }
        let n = out.len().min(chunk.len());
        let bytes = chunk.get_mut(..n).ok_or(Errno::EIO)?;
        fill(bytes);
        match out.write(bytes) {
            Ok(copied) => done += copied,
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    chunk.fill(0);
    Ok(done)
}

/// A random (version 4) UUID in text: RFC 9562.
pub(crate) fn uuid() -> [u8; 36] {
    let mut bytes = [0; 16];
    fill(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = [b'-'; 36];
    let mut digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    for (at, place) in text.iter_mut().enumerate() {
        if !matches!(at, 8 | 13 | 18 | 23) {
            *place = digits.next().map_or(b'0', |digit| b"0123456789abcdef"[digit as usize & 15]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_differs_and_depends_on_the_seed() {
        let (mut a, mut b) = ([0; 1000], [0; 1000]);
        fill(&mut a);
        fill(&mut b);
        assert_ne!(a, b);
        let mut one = Generator { key: [1; KEY], buffer: [0; BUFFER], used: BUFFER };
        let mut two = Generator { key: [2; KEY], buffer: [0; BUFFER], used: BUFFER };
        let (mut x, mut y) = ([0; 40], [0; 40]);
        one.fill(&mut x);
        two.fill(&mut y);
        assert_ne!(x, y);
        assert!(one.buffer[..40].iter().all(|byte| *byte == 0), "handed out bytes are wiped");
        let ones: u32 = a.iter().map(|byte| byte.count_ones()).sum();
        assert!((3700..4300).contains(&ones), "half of 8000 bits: {ones}");
    }

    #[test]
    fn the_uuid_has_its_shape() {
        let text = uuid();
        assert_eq!([text[8], text[13], text[14], text[18], text[23]], *b"--4--");
        assert!(b"89ab".contains(&text[19]));
    }
}
