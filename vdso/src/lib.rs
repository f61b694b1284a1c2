//! The vDSO: the image that the kernel maps into every program, and the data pages below it.
//!
//! The image lives in the kernel's read-only data, page-aligned and padded with zeroes to whole pages, so that its
//! frames can be mapped into user space as they are. [`ANSWERS`] and [`VVAR`] are pages of their own in the kernel's data.
//! A program sees these two read-only, in this order, and right above them the image readable and executable.
//!
//! The image's code is `image.rs`; `build.rs` says how it is made, `check.rs` what it must be.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

#[cfg(all(test, limen_vdso))]
extern crate std;

#[cfg(all(test, limen_vdso))]
#[allow(dead_code)] // the build script uses the rest
mod check;

use riscv_hwprobe::rules::Answers;
use uapi::vdso::{HARTS, VdsoData};

/// Bytes of a page.
const PAGE: usize = 4096;

/// Puts what it holds on pages of its own.
#[repr(C, align(4096))]
struct Pages<T>(T);

static PAGES: Pages<[u8; include_bytes!(concat!(env!("OUT_DIR"), "/image.bin")).len()]> =
    Pages(*include_bytes!(concat!(env!("OUT_DIR"), "/image.bin")));

/// The image: an ELF shared object from offset 0, a whole number of pages, page-aligned. Empty on a host that cannot
/// build it.
pub static IMAGE: &[u8] = &PAGES.0;

/// Where functions lie in the image.
pub mod symbols {
    include!(concat!(env!("OUT_DIR"), "/symbols.rs"));
}

/// A data page: `T` at its start, zeroes after it.
#[repr(C, align(4096))]
#[derive(Debug)]
pub struct DataPage<T, const REST: usize> {
    data: T,
    rest: [u8; REST],
}

impl<T, const REST: usize> DataPage<T, REST> {
    const fn new(data: T) -> Self {
        const { assert!(size_of::<Self>() == PAGE && size_of::<T>() + REST == PAGE) };
        Self { data, rest: [0; REST] }
    }
}

impl<T, const REST: usize> core::ops::Deref for DataPage<T, REST> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.data
    }
}

/// What a page has left beside a `T`.
const fn rest<T>() -> usize {
    PAGE - size_of::<T>()
}

/// What riscv_hwprobe(2) answers.
pub type HartAnswers = Answers<HARTS>;

/// The page right below the image: the clocks.
pub static VVAR: DataPage<VdsoData, { rest::<VdsoData>() }> = DataPage::new(VdsoData::new());

/// The page below that: what riscv_hwprobe(2) answers. Filled once, before the first program runs.
pub static ANSWERS: DataPage<HartAnswers, { rest::<HartAnswers>() }> = DataPage::new(Answers::new());

/// Where a program goes on whose access at `offset` in the image faults; `None` if that is no access on behalf of its
/// caller.
pub fn resume(offset: usize) -> Option<usize> {
    let at = symbols::EXCEPTIONS.binary_search_by_key(&offset, |entry| entry.0).ok()?;
    symbols::EXCEPTIONS.get(at).map(|entry| entry.1)
}

#[cfg(all(test, limen_vdso))]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn the_image_is_what_c_libraries_and_the_kernel_rely_on() {
        let found = check::check(IMAGE).unwrap();
        assert_eq!(found[0], ("__vdso_rt_sigreturn", symbols::RT_SIGRETURN as u64));
        assert_eq!(found[1].1, symbols::CLOCK_GETTIME as u64);
        assert_eq!(IMAGE.len(), 4096, "more than a page: cheap no longer");
        assert_eq!(IMAGE.as_ptr() as usize % 4096, 0);
    }

    #[test]
    fn faulting_accesses_are_found_by_their_offset() {
        assert!(symbols::EXCEPTIONS.len() > 10);
        for (access, then) in symbols::EXCEPTIONS {
            assert_eq!(resume(access), Some(then));
            assert_eq!(resume(access + 1), None);
        }
        assert_eq!(resume(symbols::CLOCK_GETTIME), None);
    }

    /// Offset of the program header of `kind`.
    fn segment(kind: u32) -> usize {
        (64..).step_by(56).find(|&at| IMAGE[at..at + 4] == kind.to_le_bytes()).unwrap()
    }

    #[test]
    fn a_planted_fault_of_each_kind_is_found() {
        let start = symbols::RT_SIGRETURN;
        let dynamic = u64::from_le_bytes(IMAGE[segment(2) + 8..][..8].try_into().unwrap()) as usize;
        let plant = |at: usize, value: &[u8]| {
            let mut image = Vec::from(IMAGE);
            image[at..at + value.len()].copy_from_slice(value);
            check::check(&image).unwrap_err()
        };
        let faults = [
            (plant(start, &[0x89]), "rt_sigreturn"),
            (plant(segment(1) + 4, &7u32.to_le_bytes()), "flags"),
            (plant(segment(4), &7u32.to_le_bytes()), "segment type"),
            (plant(48, &[5]), "soft float"),
            (plant(dynamic, &7u64.to_le_bytes()), "0x7 is not wanted"),
        ];
        for (found, expected) in faults {
            assert!(found.contains(expected), "{found:?} does not name {expected:?}");
        }
        for len in 0..IMAGE.len() / 2 {
            assert!(check::check(&IMAGE[..len]).is_err(), "cut at {len}");
        }
    }
}
