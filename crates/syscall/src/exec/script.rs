//! Interpreter scripts: `#!` in execve(2).

/// How much of a file is looked at: `BINPRM_BUF_SIZE`.
pub const HEAD: usize = 256;

/// The first line of a script, taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Script<'a> {
    /// The interpreter's path.
    pub interpreter: &'a [u8],
    /// Everything after it, without the blanks around, as one argument.
    pub argument: Option<&'a [u8]>,
}

/// Whether `head` is the beginning of a script at all.
pub fn is_script(head: &[u8]) -> bool {
    head.starts_with(b"#!")
}

const fn blank(byte: &u8) -> bool {
    matches!(*byte, b' ' | b'\t')
}

/// Takes the first line of `head` apart, the first [`HEAD`] bytes of a file or all of it. `None` when it names no interpreter, or when
/// the name could be cut off: no line end, no blank after the name and no end of file in sight.
pub fn parse(head: &[u8]) -> Option<Script<'_>> {
    let text = head.strip_prefix(b"#!")?;
    let end = text.iter().position(|&b| b == b'\n' || b == 0);
    let line = text.get(..end.unwrap_or(text.len()))?;
    let start = line.iter().position(|b| !blank(b))?;
    let line = line.get(start..)?;
    let cut = line.iter().position(blank);
    if end.is_none() && cut.is_none() && head.len() >= HEAD {
        return None;
    }
    let (interpreter, rest) = line.split_at(cut.unwrap_or(line.len()));
    let first = rest.iter().position(|b| !blank(b));
    let argument = first.and_then(|first| {
        let last = rest.iter().rposition(|b| !blank(b))?;
        rest.get(first..=last)
    });
    Some(Script { interpreter, argument })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pair(head: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
        parse(head).map(|s| (s.interpreter, s.argument))
    }

    #[test]
    fn first_lines() {
        assert_eq!(pair(b"#!/bin/sh\nexit"), Some((&b"/bin/sh"[..], None)));
        assert_eq!(pair(b"#! /usr/bin/env  python3 -u \t\n"), Some((&b"/usr/bin/env"[..], Some(&b"python3 -u"[..]))));
        assert_eq!(pair(b"#!/bin/sh"), Some((&b"/bin/sh"[..], None)));
        assert_eq!(pair(b"#! \t\n"), None);
        assert_eq!(pair(b"#!"), None);
        assert_eq!(pair(b"#/bin/sh\n"), None);
        let mut long = [b'x'; HEAD];
        long[..2].copy_from_slice(b"#!");
        assert_eq!(pair(&long), None, "the interpreter's name may be cut off");
        long[20] = b' ';
        assert!(parse(&long).is_some(), "only the argument is");
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(tail in prop::collection::vec(any::<u8>(), 0..HEAD)) {
            let mut head = b"#!".to_vec();
            head.extend(tail);
            if let Some(script) = parse(&head) {
                prop_assert!(!script.interpreter.is_empty());
                prop_assert!(script.argument != Some(b""));
            }
        }
    }
}
