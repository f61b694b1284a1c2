//! The vectors of readv(2) and its family.

use alloc::vec::Vec;

use hal::addr::UserAddr;
use hal::user;
use uapi::fs::{MAX_RW_COUNT, UIO_MAXIOV};
use uapi::{Errno, Iovec, Result};
use zerocopy::IntoBytes;

/// Vectors up to this long lie on the stack; nearly all are.
const SHORT: usize = 8;

/// A vector, checked: its lengths add up to at most [`MAX_RW_COUNT`]; what is beyond is cut off, as Linux does.
pub(crate) struct Segments {
    short: [Iovec; SHORT],
    long: Vec<Iovec>,
    count: usize,
}

impl Segments {
    /// Reads `count` elements at `vector`. `EINVAL` when there are too many or one has a negative length, `EFAULT` (also for a
    /// segment outside the user half, even if it is empty).
    pub fn read(vector: UserAddr, count: usize) -> Result<Self> {
        if count > UIO_MAXIOV {
            return Err(Errno::EINVAL);
        }
        let mut new = Self { short: [Iovec::default(); SHORT], long: Vec::new(), count };
        if count > SHORT {
            new.long.try_reserve_exact(count).map_err(|_| Errno::ENOMEM)?;
            new.long.resize(count, Iovec::default());
        }
        let elements = new.elements_mut();
        user::copy_in(elements.as_mut_bytes(), vector)?;
        if elements.iter().any(|element| (element.iov_len as isize) < 0) {
            return Err(Errno::EINVAL);
        }
        let mut room = MAX_RW_COUNT;
        for element in elements {
            if !user::in_user_half(UserAddr(element.iov_base), element.iov_len) {
                return Err(Errno::EFAULT);
            }
            element.iov_len = element.iov_len.min(room);
            room -= element.iov_len;
        }
        Ok(new)
    }

    fn elements_mut(&mut self) -> &mut [Iovec] {
        let all = if self.count > SHORT { &mut self.long[..] } else { &mut self.short[..] };
        all.get_mut(..self.count).unwrap_or_default()
    }

    fn elements(&self) -> &[Iovec] {
        let all = if self.count > SHORT { &self.long[..] } else { &self.short[..] };
        all.get(..self.count).unwrap_or_default()
    }

    /// How many elements.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Sum of the lengths.
    pub fn total(&self) -> usize {
        self.elements().iter().map(|e| e.iov_len).sum()
    }

    /// Address and length of each segment that is not empty.
    pub fn iter(&self) -> impl Iterator<Item = (UserAddr, usize)> {
        self.elements().iter().filter(|e| e.iov_len != 0).map(|e| (UserAddr(e.iov_base), e.iov_len))
    }

    /// Copies the segments into `to`, which has room for all; gives the bytes that arrived before a fault.
    pub fn gather(&self, to: &mut [u8]) -> usize {
        let mut done = 0;
        for (base, len) in self.iter() {
            let part = to.get_mut(done..done + len).unwrap_or_default();
            let arrived = user::copy_in_partial(part, base);
            done += arrived;
            if arrived < len {
                break;
            }
        }
        done
    }
}
