//! What goes to the kernel and back: pairs and sets of harts.

use core::fmt;

/// `struct riscv_hwprobe`: a question and its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Pair {
    /// The key; -1 in an answer if the kernel does not know it.
    pub key: i64,
    /// The value.
    pub value: u64,
}

impl Pair {
    /// The question for a key.
    pub const fn ask(key: u64) -> Self {
        Self { key: key.cast_signed(), value: 0 }
    }

    /// The answer, if the kernel knows the key.
    pub const fn answer(self) -> Option<u64> {
        if self.key < 0 { None } else { Some(self.value) }
    }
}

/// Harts as Linux counts them ("CPUs"), up to 1024: a `cpu_set_t`.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Harts(pub [u64; 16]);

impl Harts {
    /// One hart. Empty for a number beyond 1023.
    pub fn one(hart: usize) -> Self {
        let mut set = Self::default();
        set.add(hart);
        set
    }

    /// Puts a hart in; numbers beyond 1023 are left out.
    pub fn add(&mut self, hart: usize) {
        if let Some(word) = self.0.get_mut(hart / 64) {
            *word |= 1 << (hart % 64);
        }
    }

    /// Whether a hart is in the set.
    pub fn has(&self, hart: usize) -> bool {
        self.0.get(hart / 64).is_some_and(|word| word >> (hart % 64) & 1 != 0)
    }

    /// The harts that are in both sets.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self(core::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 16]
    }

    /// Their numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        (0..1024).filter(|hart| self.has(*hart))
    }

    /// A list such as `0-3,5`, as the kernel writes them. `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let mut set = Self::default();
        for range in text.trim().split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
            if first > last || last >= 1024 {
                return None;
            }
            (first..=last).for_each(|hart| set.add(hart));
        }
        Some(set)
    }
}

/// As [`Harts::parse`] reads it; `none` for the empty set.
impl fmt::Display for Harts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut harts = self.iter().peekable();
        if harts.peek().is_none() {
            return f.write_str("none");
        }
        let mut comma = "";
        while let Some(first) = harts.next() {
            let mut last = first;
            while harts.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            if first == last {
                write!(f, "{comma}{first}")?
            } else {
                write!(f, "{comma}{first}-{last}")?
            }
            comma = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for Harts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn lists_are_read_and_written() {
        for text in ["0", "0-3", "0-3,5", "1,3,64-70,1023"] {
            assert_eq!(Harts::parse(text).map(|set| set.to_string()).as_deref(), Some(text));
        }
        assert_eq!(Harts::parse("0-1\n"), Harts::parse("1,0"));
        for text in ["", "a", "3-1", "0-1024", "0,", "-1"] {
            assert_eq!(Harts::parse(text), None, "{text}");
        }
        assert_eq!(Harts::default().to_string(), "none");
        let both = Harts::parse("0-3,70").zip(Harts::parse("2-5,70,71")).map(|(a, b)| a.and(&b).to_string());
        assert_eq!(both.as_deref(), Some("2-3,70"));
    }
}
