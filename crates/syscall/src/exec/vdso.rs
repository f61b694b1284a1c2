//! The vDSO in programs: the kernel's own pages, mapped with two pages of data below the image's text.

use alloc::sync::Arc;
use alloc::vec::Vec;

use hal::addr::PAGE_SIZE;
use hal::boot::image_frame;
use hal::mem::pgtable::Prot;
use hal::sync::Once;
use mm::{AddressSpace, Special};
use uapi::vdso::VVAR_SIZE;
use uapi::{Errno, Result};

/// The data pages and the image.
type Pages = (Arc<Special>, Arc<Special>);

static PAGES: Once<Option<Pages>> = Once::new();

fn make() -> Option<Pages> {
    let text: Option<Vec<_>> = vdso::IMAGE.chunks(PAGE_SIZE).map(image_frame).collect();
    let text = text.filter(|text| !text.is_empty())?;
    let data = alloc::vec![image_frame(&vdso::ANSWERS)?, image_frame(&vdso::VVAR)?];
    let special = |name, frames| Arc::new(Special { name, frames });
    Some((special("[vvar]", data), special("[vdso]", text)))
}

/// Maps the vDSO and gives the address of its ELF header; 0 when the kernel was built without one.
pub fn map(mm: &AddressSpace) -> Result<usize> {
    if PAGES.get().is_none() {
        // Whoever comes second finds the first one's.
        let _ = PAGES.set(make());
    }
    let Some(Some((data, image))) = PAGES.get() else { return Ok(0) };
    let rx = Prot::new(true, false, true);
    let parts = [(data.clone(), Prot::new(true, false, false)), (image.clone(), rx)];
    mm.map_special(&parts)?.checked_add(VVAR_SIZE).ok_or(Errno::ENOMEM)
}

/// Where signal handlers of a space return to: registered with the task crate at boot.
pub fn trampoline(mm: &AddressSpace) -> usize {
    match mm.program().vdso {
        0 => 0,
        at => at + vdso::symbols::RT_SIGRETURN,
    }
}

/// Where a program of a space goes on that faulted at `pc` in the vDSO, on behalf of whoever called it: registered with the
/// task crate at boot.
pub fn resume(mm: &AddressSpace, pc: usize) -> Option<usize> {
    let base = mm.program().vdso;
    let offset = pc.checked_sub(base).filter(|offset| base != 0 && *offset < vdso::IMAGE.len())?;
    vdso::resume(offset).map(|then| base + then)
}
