//! Mappings, the faults that fill them, and changes that other harts must learn of.

use crate::meter::{Lack, Meter, Outcome};
use crate::processes;
use crate::threads::{self, Others, pin};
use kit::memory::{PAGE, advise, map, peek, poke, private, protect, unmap};
use kit::uapi::mman::{MADV_NOHUGEPAGE, MAP_PRIVATE, PROT_READ, PROT_WRITE};
use kit::uapi::open;
use rt::io;

/// A private mapping that gets no huge pages.
fn small(pages: usize) -> Result<usize, Lack> {
    let base = private(pages * PAGE)?;
    // A kernel without huge pages may not know the advice.
    let _ = advise(base, pages * PAGE, MADV_NOHUGEPAGE);
    Ok(base)
}

/// Writes to each of `pages` from `base` on.
fn write(base: usize, pages: usize) {
    (0..pages).for_each(|page| poke(base + page * PAGE, 1));
}

/// As many pages, none of them a part of a huge one, each of which has been written to.
pub fn small_pages(pages: usize) -> Result<(), Lack> {
    write(small(pages)?, pages);
    Ok(())
}

/// The first write to each page of a mapping, without huge pages.
pub fn anonymous_fault(meter: &mut Meter) -> Outcome {
    let pages = meter.rounds as usize;
    let first = small(pages / 10)?;
    write(first, pages / 10);
    unmap(first, pages / 10 * PAGE)?;
    let base = small(pages)?;
    meter.between(|| {
        write(base, pages);
        Ok(())
    })
}

/// The same by as many threads as `harts` says, each on its own hart and in its own part of one mapping. All of them are
/// there and have warmed up before the first begins.
pub fn faults(meter: &mut Meter, harts: usize) -> Outcome {
    let pages = meter.rounds as usize;
    let warm = pages / 10;
    let base = small(pages + warm)?;
    write(base + pages * PAGE, warm);
    let part = pages / harts;
    threads::together(harts, &|index| write(base + index * part * PAGE, part), |all| {
        meter.between(|| {
            all();
            Ok(())
        })
    })
}

/// The first read of each page of a private mapping of a file that is in memory. Linux maps up to 16 pages a fault.
pub fn file_fault(meter: &mut Meter) -> Outcome {
    const NAME: &core::ffi::CStr = c"/tmp/work-file";
    let pages = meter.rounds as usize;
    let file = io::open(NAME, open::O_RDWR | open::O_CREAT | open::O_TRUNC, 0o600)?;
    for _ in 0..pages {
        io::write_all(file, &[1; PAGE])?;
    }
    let read = |base: usize, pages: usize| {
        for page in 0..pages {
            peek(base + page * PAGE);
        }
    };
    let new = || map(0, pages * PAGE, PROT_READ, MAP_PRIVATE, file, 0);
    let first = new()?;
    read(first, pages / 10);
    unmap(first, pages * PAGE)?;
    let base = new()?;
    let outcome = meter.between(|| {
        read(base, pages);
        Ok(())
    });
    let _ = kit::attempt!(kit::uapi::nr::UNLINKAT, open::AT_FDCWD, NAME.as_ptr(), 0);
    outcome
}

/// A mapping that nobody touches.
pub fn map_unmap(meter: &mut Meter) -> Outcome {
    meter.each(|| Ok(unmap(private(16 * PAGE)?, 16 * PAGE)?))
}

fn map_write_unmap_once() -> Result<(), Lack> {
    let base = private(16 * PAGE)?;
    for page in 0..16 {
        poke(base + page * PAGE, 1);
    }
    Ok(unmap(base, 16 * PAGE)?)
}

pub fn map_write_unmap(meter: &mut Meter) -> Outcome {
    meter.each(map_write_unmap_once)
}

/// The same by as many programs as `harts` says, each on its own hart: they share nothing but the kernel.
pub fn map_write_unmap_apart(meter: &mut Meter, harts: usize) -> Outcome {
    let rounds = meter.rounds as usize / harts;
    processes::together(harts, |rounds| (0..rounds).try_for_each(|_| map_write_unmap_once()), rounds, meter)
}

/// Takes a page's write permission and gives it back, `harts - 1` threads running elsewhere with the page in use.
pub fn mprotect(meter: &mut Meter, harts: usize) -> Outcome {
    let page = private(PAGE)?;
    poke(page, 1);
    pin(0)?;
    let others = Others::start(harts - 1, page)?;
    let outcome = ping_pong(meter, page);
    others.stop();
    outcome
}

/// The same by a program of one thread that has run on 4 harts before.
pub fn mprotect_left(meter: &mut Meter) -> Outcome {
    let page = private(PAGE)?;
    for hart in [1, 2, 3, 0] {
        pin(hart)?;
        poke(page, 1);
    }
    ping_pong(meter, page)
}

fn ping_pong(meter: &Meter, page: usize) -> Outcome {
    meter.each(|| {
        protect(page, PAGE, PROT_READ)?;
        protect(page, PAGE, PROT_READ | PROT_WRITE)?;
        poke(page, 1);
        Ok(())
    })
}
