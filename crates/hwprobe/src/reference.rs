//! The rules once more, slowly: a second implementation to hold the first, a kernel and its vDSO against.
//!
//! It shares nothing with [`crate::rules`] but the shape of a request: it is written from the description of the call, step
//! by step, over bytes, one hart and one pair at a time. Memory is an array at some address; all outside it faults.

use crate::rules::Request;

/// Most harts that it handles.
pub const HARTS: usize = 64;

/// The harts of a machine, each by its answers to the 17 keys when asked alone.
#[derive(Clone, Debug)]
pub struct Machine<'a> {
    /// One entry per hart, up to [`HARTS`].
    pub harts: &'a [[u64; 17]],
    /// Whether each is online.
    pub online: &'a [bool],
}

/// Memory: `bytes` at address `base`, nothing elsewhere.
#[derive(Debug)]
pub struct Bytes<'a> {
    /// Address of the first byte.
    pub base: usize,
    /// The bytes.
    pub bytes: &'a mut [u8],
}

/// The error of a call: the number in errno(3).
pub type Errno = i32;
const EFAULT: Errno = 14;
const EINVAL: Errno = 22;

impl Bytes<'_> {
    fn byte(&mut self, address: usize) -> Result<&mut u8, Errno> {
        self.bytes.get_mut(address.wrapping_sub(self.base)).ok_or(EFAULT)
    }

    fn read(&mut self, address: usize) -> Result<u64, Errno> {
        let mut value = 0;
        for index in 0..8 {
            value += u64::from(*self.byte(address.wrapping_add(index))?) << (8 * index);
        }
        Ok(value)
    }

    fn write(&mut self, address: usize, value: u64) -> Result<(), Errno> {
        for index in 0..8 {
            *self.byte(address.wrapping_add(index))? = (value >> (8 * index)) as u8;
        }
        Ok(())
    }
}

/// Which harts a query is about.
type Set = [bool; HARTS];

impl Machine<'_> {
    fn is_online(&self, hart: usize) -> bool {
        self.online.get(hart).copied().unwrap_or(false)
    }

    fn all(&self) -> Set {
        core::array::from_fn(|hart| self.is_online(hart))
    }

    /// The first `size` bytes of a set, at most 8 of them.
    fn read_set(memory: &mut Bytes<'_>, size: usize, cpus: usize) -> Result<Set, Errno> {
        let mut set = [false; HARTS];
        for index in 0..size.min(8) {
            let byte = *memory.byte(cpus.wrapping_add(index))?;
            for bit in 0..8 {
                set[index * 8 + bit] = byte & 1 << bit != 0;
            }
        }
        Ok(set)
    }

    /// The answer for the harts of `set`, which is not empty.
    fn value(&self, key: usize, set: &Set) -> u64 {
        let mut values = (0..self.harts.len()).filter(|&hart| set[hart]).map(|hart| self.harts[hart][key]);
        let first = values.next().unwrap_or(0);
        match key {
            // Bits that every hart has.
            3 | 4 | 11 | 13 | 14 | 16 => values.fold(first, |all, value| all & value),
            // The common value: for identities -1 if there is none, for the others "unknown" or "no block size".
            0..=2 => {
                if values.all(|value| value == first) {
                    first
                } else {
                    u64::MAX
                }
            }
            _ => {
                if values.all(|value| value == first) {
                    first
                } else {
                    0
                }
            }
        }
    }

    /// The call. Gives 0 or the negated error, as the system call does.
    pub fn call(&self, memory: &mut Bytes<'_>, request: Request) -> i32 {
        let result = if request.flags & 1 != 0 { self.which(memory, request) } else { self.plain(memory, request) };
        match result {
            Ok(()) => 0,
            Err(errno) => -errno,
        }
    }

    fn plain(&self, memory: &mut Bytes<'_>, request: Request) -> Result<(), Errno> {
        if request.flags != 0 {
            return Err(EINVAL);
        }
        let mut set = self.all();
        if request.size != 0 || request.cpus != 0 {
            let given = Self::read_set(memory, request.size, request.cpus)?;
            for hart in 0..HARTS {
                set[hart] = set[hart] && given[hart];
            }
            if !set.contains(&true) {
                return Err(EINVAL);
            }
        }
        let mut at = request.pairs;
        for _ in 0..request.count {
            let key = memory.read(at)?;
            let (key, value) = if key <= 16 { (key, self.value(key as usize, &set)) } else { (u64::MAX, 0) };
            memory.write(at, key)?;
            memory.write(at.wrapping_add(8), value)?;
            at = at.wrapping_add(16);
        }
        Ok(())
    }

    fn which(&self, memory: &mut Bytes<'_>, request: Request) -> Result<(), Errno> {
        if request.flags != 1 || request.size == 0 || request.cpus == 0 {
            return Err(EINVAL);
        }
        let mut set = Self::read_set(memory, request.size, request.cpus)?;
        if !set[..self.harts.len()].contains(&true) {
            set = self.all();
        }
        for (hart, chosen) in set.iter_mut().enumerate() {
            *chosen = *chosen && self.is_online(hart);
        }
        let mut at = request.pairs;
        for _ in 0..request.count {
            let (key, wanted) = (memory.read(at)?, memory.read(at.wrapping_add(8))?);
            if key > 16 {
                memory.write(at, u64::MAX)?;
                memory.write(at.wrapping_add(8), 0)?;
                set = [false; HARTS];
            } else {
                for hart in 0..self.harts.len() {
                    let mut alone = [false; HARTS];
                    alone[hart] = true;
                    let value = self.value(key as usize, &alone);
                    let matches = match key {
                        3 | 4 | 5 | 11 | 13 | 14 | 16 => value & wanted == wanted,
                        _ => value == wanted,
                    };
                    set[hart] = set[hart] && matches;
                }
            }
            at = at.wrapping_add(16);
        }
        for index in 0..request.size.min(8) {
            let mut byte = 0;
            for bit in 0..8 {
                byte |= u8::from(set[index * 8 + bit]) << bit;
            }
            *memory.byte(request.cpus.wrapping_add(index))? = byte;
        }
        Ok(())
    }
}
