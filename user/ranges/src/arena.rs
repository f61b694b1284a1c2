//! The mappings that the calls are made on: a few pages of each kind at a fixed address, holes between them, and nothing
//! else for a long way.

use kit::call;
use kit::check::Must;
use kit::memory::{PAGE, map, poke, unmap};
use kit::uapi::mman::{MAP_ANONYMOUS, MAP_FIXED, MAP_PRIVATE, MAP_SHARED, PROT_NONE, PROT_READ, PROT_WRITE};
use kit::uapi::{nr, open};
use rt::io;

/// Where the arena begins; it fits into the smallest address space, Sv39's.
pub const BASE: usize = 0x20_0000_0000;
/// Pages that calls may change.
pub const PAGES: usize = 64;
/// Below this nothing of the program's lies.
const LOW: usize = 0x1_0000;
/// Pages whose state is shown.
pub const SHOWN: usize = 32;

/// A file of three pages, the last of them only begun, and the buffer for `/proc/self/maps`.
pub struct Arena {
    /// The file.
    pub file: i32,
    /// The same, opened to read.
    pub read_only: i32,
}

const RW: u32 = PROT_READ | PROT_WRITE;

/// First page, pages, rights, flags; `None` for the offset: no file.
type Piece = (usize, usize, u32, u32, Option<usize>);
const PIECES: &[Piece] = &[
    (0, 4, RW, MAP_PRIVATE | MAP_ANONYMOUS, None),
    (6, 2, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, None),
    (8, 2, RW, MAP_SHARED | MAP_ANONYMOUS, None),
    (10, 2, RW, MAP_PRIVATE, Some(0)),
    (12, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, None),
    (14, 4, RW, MAP_SHARED, Some(1)),
];

impl Arena {
    /// Makes the file and the mappings.
    pub fn new() -> Result<Self, &'static str> {
        let name = c"/tmp/ranges";
        let file = io::open(name, open::O_RDWR | open::O_CREAT | open::O_TRUNC, 0o600).must("open")?;
        for page in [b"a", b"b"] {
            for _ in 0..PAGE {
                io::write(file, page).must("write")?;
            }
        }
        io::write(file, b"cccc").must("write")?;
        let read_only = io::open(name, open::O_RDONLY, 0).must("open")?;
        let arena = Self { file, read_only };
        arena.reset()?;
        Ok(arena)
    }

    /// Makes the mappings anew.
    pub fn reset(&self) -> Result<(), &'static str> {
        call!(nr::MUNLOCKALL);
        unmap(BASE, PAGES * PAGE).must("munmap")?;
        unmap(0, LOW).must("munmap")?;
        for &(page, pages, prot, flags, offset) in PIECES {
            let (file, offset) = offset.map_or((-1, 0), |offset| (self.file, offset * PAGE));
            map(BASE + page * PAGE, pages * PAGE, prot, flags | MAP_FIXED, file, offset).must("mmap")?;
        }
        (0..3).for_each(|page| poke(BASE + page * PAGE, page as u8 + 1));
        poke(BASE + 8 * PAGE, 9);
        Ok(())
    }

    /// Whether a call that takes effect up to `bound` would change what the program itself lives in.
    pub fn reaches_out(start: usize, length: usize, bound: u128) -> bool {
        let end = start as u128 + (length as u128).next_multiple_of(PAGE as u128);
        end > LOW as u128 && end <= bound && !(start >= BASE && end <= (BASE + PAGES * PAGE) as u128)
    }

    /// A character for each page: what it allows, from `-` (nothing) to `x`; capital where it is shared; `.` where nothing is
    /// mapped.
    pub fn state(&self) -> Result<[u8; SHOWN], &'static str> {
        static mut TEXT: [u8; 32_768] = [0; 32_768];
        let mut state = [b'.'; SHOWN];
        // SAFETY: one thread, and no reference lives on.
        #[allow(clippy::deref_addrof)]
        let buffer = unsafe { &mut *(&raw mut TEXT) };
        let text = kit::file::text(c"/proc/self/maps", buffer).must("maps")?;
        for line in text.lines() {
            let Some((range, rest)) = line.split_once(' ') else { continue };
            let Some((start, end)) = range.split_once('-') else { continue };
            let number = |text| usize::from_str_radix(text, 16).unwrap_or(0);
            let (start, end) = (number(start), number(end));
            let rights = rest.as_bytes();
            let kind = match &rights[..3] {
                b"---" => b'n',
                b"r--" => b'r',
                // What can be written can be read, whether that was asked for or not; not all say so.
                b"rw-" | b"-w-" => b'w',
                b"r-x" => b'x',
                b"rwx" => b'a',
                b"--x" => b'e',
                _ => b'?',
            };
            let kind = if rights[3] == b's' { kind.to_ascii_uppercase() } else { kind };
            for (page, slot) in state.iter_mut().enumerate() {
                if (start..end).contains(&(BASE + page * PAGE)) {
                    *slot = kind;
                }
            }
        }
        Ok(state)
    }

    /// [`Arena::state`] after a call with this result, as a word: `=` if nothing has changed.
    pub fn report(&self, line: &mut Line, result: isize) -> Result<(), &'static str> {
        const FIRST: &[u8; SHOWN] = b"wwww..rrWWwwn.WWWW..............";
        let state = self.state()?;
        let text = if state == *FIRST { "=" } else { core::str::from_utf8(&state).unwrap_or("?") };
        line.add(format_args!("{}{text}", Shown(result)));
        Ok(())
    }
}

/// A line of words, in which one that comes again and again is a word and a count.
pub struct Line {
    word: [u8; 80],
    length: usize,
    count: usize,
}

impl Line {
    /// Begins a line.
    pub fn new(title: core::fmt::Arguments<'_>) -> Self {
        rt::print!("{title}:");
        Self { word: [0; 80], length: 0, count: 0 }
    }

    /// Adds a word.
    pub fn add(&mut self, word: core::fmt::Arguments<'_>) {
        let mut next = Self { word: [0; 80], length: 0, count: 1 };
        // What is too long is cut.
        let _ = core::fmt::Write::write_fmt(&mut next, word);
        if self.count != 0 && self.word[..self.length] == next.word[..next.length] {
            self.count += 1;
            return;
        }
        self.flush();
        *self = next;
    }

    fn flush(&self) {
        let word = core::str::from_utf8(&self.word[..self.length]).unwrap_or("?");
        match self.count {
            0 => {}
            1 => rt::print!(" {word}"),
            count => rt::print!(" {word}*{count}"),
        }
    }

    /// Ends the line.
    pub fn end(self) {
        self.flush();
        rt::println!("");
    }
}

impl core::fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let room = self.word.get_mut(self.length..self.length + text.len()).ok_or(core::fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length += text.len();
        Ok(())
    }
}

/// A result to print: an error number, an address of the arena as `@` and its page, any other address as `elsewhere`, else the
/// value.
pub struct Shown(pub isize);

impl core::fmt::Display for Shown {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let value = self.0.cast_unsigned();
        match self.0 {
            -4095..=-1 => write!(f, "e{}", -self.0),
            _ if (BASE..BASE + PAGES * PAGE).contains(&value) => {
                let (page, within) = ((value - BASE) / PAGE, value % PAGE);
                if within == 0 { write!(f, "@{page}") } else { write!(f, "@{page}+{within}") }
            }
            0x1000.. => f.write_str("elsewhere"),
            small => write!(f, "{small}"),
        }
    }
}

/// An address of [`ADDRESSES`] and the like to print.
pub struct At(pub usize);

impl core::fmt::Display for At {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if (BASE..BASE + PAGES * PAGE).contains(&self.0) {
            return Shown(self.0.cast_signed()).fmt(f);
        }
        write!(f, "{:#x}", self.0)
    }
}
