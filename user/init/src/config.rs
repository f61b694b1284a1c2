//! What the host wrote for us.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char};
use rt::io;
use rt::uapi::open;

/// Words of a command line, and variables of an environment.
const WORDS: usize = 1024;
const VARIABLES: usize = 64;

/// What the two files say.
pub struct Config {
    run: [u8; 1 << 17],
    env: [u8; 1 << 12],
    argv: [*const c_char; WORDS + 1],
    envp: [*const c_char; VARIABLES + 1],
    /// Whether the program is the shell we chose.
    pub is_shell: bool,
}

struct Once(UnsafeCell<Config>);

// SAFETY: init has one thread; the contents are made once, by `read`, and only read afterwards.
unsafe impl Sync for Once {}

static CONFIG: Once = Once(UnsafeCell::new(Config {
    run: [0; _],
    env: [0; _],
    argv: [core::ptr::null(); _],
    envp: [core::ptr::null(); _],
    is_shell: false,
}));

static DEFAULTS: [&CStr; 6] = [
    c"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    c"HOME=/root",
    c"USER=root",
    c"LOGNAME=root",
    c"SHELL=/bin/sh",
    c"TERM=linux",
];

impl Config {
    /// Reads the files; a missing one counts as empty, what does not fit is cut off.
    pub fn read() -> &'static Config {
        // SAFETY: called once, by the only thread, before any reference to the contents exists.
        let config = unsafe { &mut *CONFIG.0.get() };
        let length = load(c"/.limen/run", &mut config.run);
        let mut start = 0;
        let mut count = 0;
        for index in 0..length {
            if config.run[index] == 0 {
                if count < WORDS {
                    config.argv[count] = config.run[start..].as_ptr().cast();
                    count += 1;
                }
                start = index + 1;
            }
        }
        if count == 0 {
            config.is_shell = true;
            config.argv[0] = c"sh".as_ptr();
        }
        load(c"/.limen/env", &mut config.env);
        for byte in &mut config.env {
            if *byte == b'\n' {
                *byte = 0;
            }
        }
        let mut count = 0;
        let mut add = |text: &CStr| {
            if count < VARIABLES {
                config.envp[count] = text.as_ptr();
                count += 1;
            }
        };
        for line in lines(&config.env) {
            if let Some(text) = after(line, b"env=") {
                add(text);
            }
        }
        for default in DEFAULTS {
            let name = default.to_bytes().split_inclusive(|byte| *byte == b'=').next().unwrap_or_default();
            if !lines(&config.env)
                .any(|line| after(line, b"env=").is_some_and(|text| text.to_bytes().starts_with(name)))
            {
                add(default);
            }
        }
        config
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Option<&CStr> {
        lines(&self.env).find_map(|line| after(after(line, key)?, b"="))
    }

    /// The value of a key as a decimal number.
    pub fn number(&self, key: &[u8]) -> Option<usize> {
        self.get(key)?.to_str().ok()?.parse().ok()
    }

    /// The program as it was named.
    pub fn program(&self) -> &CStr {
        // SAFETY: `read` filled the first entry with a string that lives as long as `self`.
        unsafe { CStr::from_ptr(self.argv[0]) }
    }

    /// Arguments, as execve(2) takes them.
    pub fn argv(&self) -> *const *const c_char {
        self.argv.as_ptr()
    }

    /// All arguments but the first.
    pub fn arguments(&self) -> &[*const c_char] {
        let count = self.argv.iter().position(|word| word.is_null()).unwrap_or(WORDS);
        &self.argv[1..count]
    }

    /// Environment, as execve(2) takes it.
    pub fn envp(&self) -> *const *const c_char {
        self.envp.as_ptr()
    }
}

/// Reads a file but for the last byte of the buffer, which stays zero.
fn load(path: &CStr, buffer: &mut [u8]) -> usize {
    let Ok(file) = io::open(path, open::O_RDONLY, 0) else { return 0 };
    let room = buffer.len() - 1;
    let length = io::read_full(file, &mut buffer[..room]).unwrap_or(0);
    let _ = io::close(file);
    length
}

/// The strings of a buffer in which each line's end is a zero byte.
fn lines(buffer: &[u8]) -> impl Iterator<Item = &CStr> {
    buffer
        .split_inclusive(|byte| *byte == 0)
        .filter_map(|line| CStr::from_bytes_with_nul(line).ok())
        .take_while(|line| !line.is_empty())
}

/// What follows `prefix`.
fn after<'a>(line: &'a CStr, prefix: &[u8]) -> Option<&'a CStr> {
    let rest = line.to_bytes_with_nul().strip_prefix(prefix)?;
    CStr::from_bytes_with_nul(rest).ok()
}
