//! Names as the walk reads them.

/// A name for look-up: its first sixteen bytes as two numbers, a hash of what comes after, and its length. Names of up
/// to sixteen bytes, nearly all, are equal when their keys are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NameKey {
    head: [u64; 2],
    tail: u32,
    len: u32,
}

/// Bytes that the numbers hold.
const EXACT: usize = 16;

impl NameKey {
    pub const EMPTY: Self = Self { head: [0; 2], tail: 0, len: 0 };

    /// Reads a name up to a slash or the end of `text`; its length in bytes is [`NameKey::len`].
    #[inline]
    pub fn scan(text: &[u8]) -> Self {
        let mut bytes = text.iter();
        let mut head = [0; 2];
        for (n, word) in head.iter_mut().enumerate() {
            let mut shift = 0;
            while shift < u64::BITS {
                match bytes.next() {
                    Some(byte) if *byte != b'/' => *word |= u64::from(*byte) << shift,
                    _ => return Self { head, tail: 0, len: n as u32 * 8 + shift / 8 },
                }
                shift += 8;
            }
        }
        let mut tail = 0u32;
        let mut len = EXACT as u32;
        for byte in bytes.take_while(|byte| **byte != b'/') {
            tail = (tail ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
            len += 1;
        }
        Self { head, tail, len }
    }

    /// The key of a name.
    pub fn of(name: &[u8]) -> Self {
        Self::scan(name)
    }

    /// The name's length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether equal keys mean equal names.
    #[inline]
    pub fn decides(&self) -> bool {
        self.len() <= EXACT
    }

    /// Where to look in a hash table of a power of two of places.
    #[inline]
    pub fn index(&self) -> usize {
        let [low, high] = self.head;
        let mixed = low ^ high.wrapping_mul(0xd6e8_feb8_6659_fd93) ^ u64::from(self.tail);
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_names_apart() {
        assert_eq!(NameKey::scan(b"kernel/cpu"), NameKey::of(b"kernel"));
        assert_eq!(NameKey::scan(b"/x"), NameKey::EMPTY);
        for len in [0, 1, 7, 8, 9, 15, 16, 17, 255] {
            let name = std::vec![b'n'; len];
            let key = NameKey::of(&name);
            assert_eq!((key.len(), key.decides()), (len, len <= 16));
            for at in 0..len {
                let mut other = name.clone();
                other[at] = b'm';
                assert_ne!(NameKey::of(&other), key);
            }
        }
    }
}
