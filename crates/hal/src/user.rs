//! Checked access to the current task's user memory.
//!
//! Every function takes an address that a program named and answers `EFAULT` when it is outside the user half or
//! nothing is mapped there. A fault inside the copy is resolved by the address space's fault handler, like one of the
//! program itself, so demand paging and copy-on-write work through these functions. They may be called with locks
//! held as long as the lock order allows taking an address space's lock after them.
//!
//! On the host user memory is a fake: see [`host`].

use uapi::Errno;

use crate::addr::UserAddr;

#[cfg(target_os = "none")]
use crate::arch::usercopy as raw;
#[cfg(not(target_os = "none"))]
pub mod host;
#[cfg(not(target_os = "none"))]
use host as raw;

/// Whether `len` bytes at `at` are in the user half, mapped or not: what Linux asks of a buffer before it looks whether
/// anything is to be copied.
#[inline]
pub fn in_user_half(at: UserAddr, len: usize) -> bool {
    #[cfg(target_os = "none")]
    {
        let top = crate::mem::layout::user_top();
        len <= top && at.0 <= top - len
    }
    // The memory of a test may be anywhere.
    #[cfg(not(target_os = "none"))]
    {
        at.0.checked_add(len).is_some()
    }
}

/// Copies `dst.len()` bytes in from user memory; `EFAULT` leaves `dst` partly written.
#[inline]
pub fn copy_in(dst: &mut [u8], src: UserAddr) -> Result<(), Errno> {
    if raw::copy_in(dst, src) == 0 { Ok(()) } else { Err(Errno::EFAULT) }
}

/// Copies `src` out to user memory; on `EFAULT` a prefix may have been written.
#[inline]
pub fn copy_out(dst: UserAddr, src: &[u8]) -> Result<(), Errno> {
    if raw::copy_out(dst, src) == 0 { Ok(()) } else { Err(Errno::EFAULT) }
}

/// As [`copy_in`], but says how many bytes arrived before a fault (all of them: no fault).
#[inline]
pub fn copy_in_partial(dst: &mut [u8], src: UserAddr) -> usize {
    dst.len() - raw::copy_in(dst, src)
}

/// As [`copy_out`], but says how many bytes were written before a fault.
#[inline]
pub fn copy_out_partial(dst: UserAddr, src: &[u8]) -> usize {
    src.len() - raw::copy_out(dst, src)
}

/// Writes `len` zero bytes; answers how many were written before a fault.
#[inline]
pub fn zero_partial(dst: UserAddr, len: usize) -> usize {
    len - raw::zero(dst, len)
}

/// Reads a string that ends in NUL into `dst`, without the NUL, and gives its length.
/// `EFAULT` at an unmapped byte, `ENAMETOOLONG` when no NUL comes within `dst`.
pub fn copy_in_str(dst: &mut [u8], src: UserAddr) -> Result<usize, Errno> {
    let mut done = 0;
    // Most names are short, and bytes behind the NUL are copied for nothing.
    let mut step = 32;
    while done < dst.len() {
        // Never reads past the page of the last byte asked for, which may be the last mapped one.
        let at = src.add(done);
        let chunk = (crate::addr::PAGE_SIZE - at.0 % crate::addr::PAGE_SIZE).min(dst.len() - done).min(step);
        let got = copy_in_partial(&mut dst[done..done + chunk], at);
        if let Some(end) = dst[done..done + got].iter().position(|&b| b == 0) {
            return Ok(done + end);
        }
        if got < chunk {
            return Err(Errno::EFAULT);
        }
        done += chunk;
        step = (step * 2).min(256);
    }
    Err(Errno::ENAMETOOLONG)
}

/// Reads an aligned 32-bit word in one access, as a futex needs it. `EINVAL` when not aligned.
#[inline]
pub fn load_u32(src: UserAddr) -> Result<u32, Errno> {
    if !src.0.is_multiple_of(4) {
        return Err(Errno::EINVAL);
    }
    raw::load_u32(src).ok_or(Errno::EFAULT)
}

/// Compare-and-exchange on an aligned user word; gives the value that was there.
#[inline]
pub fn cmpxchg_u32(dst: UserAddr, old: u32, new: u32) -> Result<u32, Errno> {
    if !dst.0.is_multiple_of(4) {
        return Err(Errno::EINVAL);
    }
    raw::cmpxchg_u32(dst, old, new).ok_or(Errno::EFAULT)
}

/// Where a read goes: user memory, or a kernel buffer when the kernel itself reads (exec, sendfile).
pub enum OutBuf<'a> {
    /// A range the program named.
    User(UserAddr, usize),
    /// Kernel memory.
    Kernel(&'a mut [u8]),
}

impl OutBuf<'_> {
    /// Bytes still to be filled.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::User(_, len) => *len,
            Self::Kernel(b) => b.len(),
        }
    }

    /// True when nothing more fits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes as much of `src` as fits and advances. Gives the bytes written; `EFAULT` only if none could be.
    #[inline]
    pub fn write(&mut self, src: &[u8]) -> Result<usize, Errno> {
        let n = src.len().min(self.len());
        match self {
            Self::User(addr, _) => {
                let done = copy_out_partial(*addr, &src[..n]);
                self.advanced(done, n)
            }
            Self::Kernel(b) => {
                let (head, tail) = core::mem::take(b).split_at_mut(n);
                head.copy_from_slice(&src[..n]);
                *b = tail;
                Ok(n)
            }
        }
    }

    /// Writes up to `n` zero bytes and advances; as [`OutBuf::write`].
    #[inline]
    pub fn write_zeroes(&mut self, n: usize) -> Result<usize, Errno> {
        let n = n.min(self.len());
        match self {
            Self::User(addr, _) => {
                let done = zero_partial(*addr, n);
                self.advanced(done, n)
            }
            Self::Kernel(b) => {
                let (head, tail) = core::mem::take(b).split_at_mut(n);
                head.fill(0);
                *b = tail;
                Ok(n)
            }
        }
    }

    #[inline]
    fn advanced(&mut self, done: usize, wanted: usize) -> Result<usize, Errno> {
        if let Self::User(addr, len) = self {
            *addr = addr.add(done);
            *len -= done;
        }
        if done == 0 && wanted != 0 { Err(Errno::EFAULT) } else { Ok(done) }
    }
}

/// Where a write comes from.
pub enum InBuf<'a> {
    /// A range the program named.
    User(UserAddr, usize),
    /// Kernel memory.
    Kernel(&'a [u8]),
}

impl InBuf<'_> {
    /// Bytes still to be taken.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::User(_, len) => *len,
            Self::Kernel(b) => b.len(),
        }
    }

    /// True when nothing is left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same bytes once more, to be taken independently.
    #[inline]
    pub fn same(&self) -> Self {
        match self {
            Self::User(addr, len) => Self::User(*addr, *len),
            Self::Kernel(bytes) => Self::Kernel(bytes),
        }
    }

    /// Fills as much of `dst` as there is and advances. Gives the bytes taken; `EFAULT` only if none could be.
    #[inline]
    pub fn read(&mut self, dst: &mut [u8]) -> Result<usize, Errno> {
        let n = dst.len().min(self.len());
        match self {
            Self::User(addr, len) => {
                let done = copy_in_partial(&mut dst[..n], *addr);
                *addr = addr.add(done);
                *len -= done;
                if done == 0 && n != 0 { Err(Errno::EFAULT) } else { Ok(done) }
            }
            Self::Kernel(b) => {
                let (head, tail) = b.split_at(n);
                dst[..n].copy_from_slice(head);
                *b = tail;
                Ok(n)
            }
        }
    }

    /// Drops up to `n` bytes unread (what `/dev/null` does).
    #[inline]
    pub fn skip(&mut self, n: usize) {
        let n = n.min(self.len());
        match self {
            Self::User(addr, len) => {
                *addr = addr.add(n);
                *len -= n;
            }
            Self::Kernel(b) => *b = &b[n..],
        }
    }
}
