//! Mappings: private, shared, of files; moved, split, protected; copy-on-write; heap and stack.

use kit::check::{Must, Outcome};
use kit::memory::{PAGE, map, peek, poke, private, protect, shared, unmap};
use kit::uapi::mman::{
    MADV_DONTNEED, MAP_ANONYMOUS, MAP_FIXED, MAP_FIXED_NOREPLACE, MAP_NORESERVE, MAP_PRIVATE, MAP_SHARED, MREMAP_FIXED,
    MREMAP_MAYMOVE, PROT_EXEC, PROT_NONE, PROT_READ, PROT_WRITE,
};
use kit::uapi::resource::RLIMIT_STACK;
use kit::uapi::signal::SIGSEGV;
use kit::uapi::{Errno, Rlimit64, nr, open};
use kit::{attempt, call, child, ensure, equal, fails, file, memory, probe};
use rt::io;
use rt::process::Ended;
use rt::tap::Test;

pub const TESTS: &[Test] = &[
    Test::new("memory/new-pages-are-zero", zero),
    Test::new("memory/copy-on-write", copy_on_write),
    Test::new("memory/copy-on-write-by-the-kernel", kernel_writes),
    Test::new("memory/shared-between-parent-and-child", shared_pages),
    Test::new("memory/protect-and-unmap-parts", parts),
    Test::new("memory/protect-after-fork", protect_after_fork),
    Test::new("memory/fixed-addresses", fixed),
    Test::new("memory/remap", remap),
    Test::new("memory/private-file", private_file),
    Test::new("memory/shared-file", shared_file),
    Test::new("memory/advise-dontneed", dontneed),
    Test::new("memory/heap", heap),
    Test::new("memory/stack-grows-to-its-limit", stack),
    Test::new("memory/sparse", sparse),
    Test::new("memory/many-mappings", many),
    Test::new("memory/copies-end-at-holes", holes),
    Test::new("memory/wrong-arguments", wrong),
    Test::new("memory/code-is-seen-after-it-is-written", code),
];

const RW: u32 = PROT_READ | PROT_WRITE;

fn zero() -> Outcome {
    for round in 0..4 {
        let base = private(32 * PAGE).must("mmap")?;
        for at in (0..32 * PAGE).step_by(61) {
            equal!(peek(base + at), 0, "a byte of a new page");
            poke(base + at, 0xa5 + round);
        }
        unmap(base, 32 * PAGE).must("munmap")?;
    }
    // Reading first shares a page of zeroes; writing afterwards must not write to that.
    let base = private(2 * PAGE).must("mmap")?;
    equal!((peek(base), peek(base + PAGE)), (0, 0), "untouched pages");
    poke(base, 7);
    equal!((peek(base), peek(base + PAGE)), (7, 0), "one page written");
    Ok(())
}

fn copy_on_write() -> Outcome {
    let base = private(8 * PAGE).must("mmap")?;
    (0..8).for_each(|page| poke(base + page * PAGE, page as u8));
    let (read, write) = io::pipe().must("pipe")?;
    let child = child::start(|| {
        (0..4).for_each(|page| poke(base + page * PAGE, 100));
        let _ = io::read(read, &mut [0]);
        for page in 4..8 {
            equal!(peek(base + page * PAGE), page as u8, "a page that the parent wrote to");
        }
        // A grandchild's writes reach neither.
        child::pass(|| {
            (0..8).for_each(|page| poke(base + page * PAGE, 50));
            Ok(())
        })?;
        equal!((peek(base), peek(base + 7 * PAGE)), (100, 7), "pages that the grandchild wrote to");
        Ok(())
    })?;
    (4..8).for_each(|page| poke(base + page * PAGE, 200));
    io::write(write, b"x").must("write")?;
    child::finish(child)?;
    for page in 0..8 {
        equal!(peek(base + page * PAGE), if page < 4 { page as u8 } else { 200 }, "a page that the child wrote to");
    }
    Ok(())
}

/// The kernel's own writes copy too.
fn kernel_writes() -> Outcome {
    let base = private(PAGE).must("mmap")?;
    poke(base, 1);
    poke(base + 1, 2);
    let zero = io::open(c"/dev/zero", open::O_RDONLY, 0).must("open")?;
    child::pass(|| {
        equal!(call!(nr::READ, zero, base, 1), 1, "read");
        equal!((peek(base), peek(base + 1)), (0, 2), "the child's page");
        Ok(())
    })?;
    equal!((peek(base), peek(base + 1)), (1, 2), "the parent's page");
    Ok(())
}

fn shared_pages() -> Outcome {
    let base = shared(4 * PAGE).must("mmap")?;
    poke(base, 1);
    child::pass(|| {
        equal!(peek(base), 1, "what the parent wrote");
        poke(base + PAGE, 2);
        poke(base + 2 * PAGE, 3);
        Ok(())
    })?;
    equal!((peek(base + PAGE), peek(base + 2 * PAGE), peek(base + 3 * PAGE)), (2, 3, 0), "what the child wrote");
    Ok(())
}

fn parts() -> Outcome {
    let base = private(9 * PAGE).must("mmap")?;
    (0..9).for_each(|page| poke(base + page * PAGE, page as u8 + 1));
    protect(base + 2 * PAGE, 2 * PAGE, PROT_READ).must("mprotect")?;
    protect(base + 4 * PAGE, PAGE, PROT_NONE).must("mprotect")?;
    unmap(base + 6 * PAGE, PAGE).must("munmap")?;
    for page in 0..9 {
        let at = base + page * PAGE;
        equal!(probe::load(at).is_some(), page == 4 || page == 6, "load");
        equal!(probe::store(at + 9).is_some(), (2..5).contains(&page) || page == 6, "store");
    }
    protect(base + PAGE, 4 * PAGE, RW).must("mprotect")?;
    for page in 0..6 {
        equal!(peek(base + page * PAGE), page as u8 + 1, "contents");
        equal!(probe::store(base + page * PAGE), None, "store to a page given back its rights");
    }
    fails!(call!(nr::MPROTECT, base + 5 * PAGE, 3 * PAGE, PROT_READ), ENOMEM, "mprotect over a hole");
    unmap(base, 9 * PAGE).must("munmap over a hole")?;
    ensure!(probe::load(base).is_some(), "unmapped");
    Ok(())
}

fn protect_after_fork() -> Outcome {
    let base = private(2 * PAGE).must("mmap")?;
    poke(base, 1);
    child::pass(|| {
        protect(base, PAGE, PROT_READ).must("mprotect")?;
        ensure!(probe::store(base).is_some(), "store to a page to read");
        protect(base, PAGE, RW).must("mprotect")?;
        poke(base, 2);
        Ok(())
    })?;
    equal!(peek(base), 1, "the parent's page after the child got back its right to write");
    Ok(())
}

fn fixed() -> Outcome {
    let base = private(4 * PAGE).must("mmap")?;
    poke(base + PAGE, 5);
    let flags = MAP_PRIVATE | MAP_ANONYMOUS;
    equal!(map(base + PAGE, PAGE, RW, flags | MAP_FIXED, -1, 0).must("mmap")?, base + PAGE, "a fixed address");
    equal!(peek(base + PAGE), 0, "the old page is gone");
    let taken = map(base, PAGE, RW, flags | MAP_FIXED_NOREPLACE, -1, 0);
    equal!(taken.err(), Some(Errno::EEXIST), "an address that is taken");
    let hinted = map(base, PAGE, RW, flags, -1, 0).must("mmap")?;
    ensure!(hinted != base, "a hint does not replace a mapping");
    unmap(base, 4 * PAGE).must("munmap")?;
    equal!(map(base, PAGE, RW, flags, -1, 0).must("mmap")?, base, "a hint that is free is taken");
    Ok(())
}

fn remap() -> Outcome {
    let base = private(4 * PAGE).must("mmap")?;
    (0..4).for_each(|page| poke(base + page * PAGE, page as u8 + 1));
    // Something behind it, so that it has to move.
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    map(base + 2 * PAGE, PAGE, PROT_READ, flags, -1, 0).must("mmap")?;
    fails!(call!(nr::MREMAP, base, 2 * PAGE, 8 * PAGE, 0, 0), ENOMEM, "growing in place where there is no room");
    let moved = attempt!(nr::MREMAP, base, 2 * PAGE, 8 * PAGE, MREMAP_MAYMOVE, 0).must("mremap")?;
    equal!((peek(moved), peek(moved + PAGE), peek(moved + 2 * PAGE)), (1, 2, 0), "contents of what moved");
    ensure!(probe::load(base).is_some(), "the old place");
    equal!(peek(base + 3 * PAGE), 4, "the rest of the old mapping");
    let smaller = attempt!(nr::MREMAP, moved, 8 * PAGE, PAGE, 0, 0).must("mremap")?;
    equal!(smaller, moved, "shrinking stays in place");
    ensure!(probe::load(moved + PAGE).is_some(), "what was cut off");
    let target = private(4 * PAGE).must("mmap")?;
    let fixed = attempt!(nr::MREMAP, moved, PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target).must("mremap")?;
    equal!(
        (fixed, peek(target), peek(target + PAGE), peek(target + 3 * PAGE)),
        (target, 1, 0, 0),
        "moved to an address"
    );
    unmap(fixed, 2 * PAGE).must("munmap")?;
    fails!(call!(nr::MREMAP, fixed, PAGE, 2 * PAGE, MREMAP_MAYMOVE, 0), EFAULT, "what is not mapped");
    fails!(call!(nr::MREMAP, target + 1, PAGE, PAGE, 0, 0), EINVAL, "an address within a page");
    Ok(())
}

fn scratch(contents: &[u8]) -> Result<i32, &'static str> {
    let name = c"/tmp/mapped";
    file::write(name, 0o600, contents).must("write")?;
    let file = io::open(name, open::O_RDWR, 0).must("open")?;
    call!(nr::UNLINKAT, open::AT_FDCWD, name.as_ptr(), 0);
    Ok(file)
}

fn private_file() -> Outcome {
    let mut contents = [b'a'; PAGE + 100];
    contents[PAGE..].fill(b'b');
    let file = scratch(&contents)?;
    let base = map(0, 2 * PAGE, RW, MAP_PRIVATE, file, 0).must("mmap")?;
    let second = map(0, PAGE, PROT_READ, MAP_PRIVATE, file, PAGE).must("mmap")?;
    equal!((peek(base), peek(base + PAGE), peek(second + 99), peek(second + 100)), (b'a', b'b', b'b', 0), "contents");
    poke(base, b'x');
    let mut byte = 0_u8;
    equal!(call!(nr::PREAD64, file, &raw mut byte, 1, 0), 1, "pread");
    equal!(byte, b'a', "the file does not see a private write");
    equal!(call!(nr::PWRITE64, file, c"q".as_ptr(), 1, 0), 1, "pwrite");
    equal!(peek(base), b'x', "a page written to does not see the file any more");
    io::close(file).must("close")?;
    equal!(peek(second), b'b', "the mapping outlives the descriptor");
    Ok(())
}

fn shared_file() -> Outcome {
    let file = scratch(&[b'a'; 2 * PAGE])?;
    let base = map(0, 2 * PAGE, RW, MAP_SHARED, file, 0).must("mmap")?;
    let other = map(0, 2 * PAGE, RW, MAP_SHARED, file, 0).must("mmap")?;
    poke(base + PAGE, b'x');
    equal!(peek(other + PAGE), b'x', "a second mapping");
    let mut byte = 0_u8;
    call!(nr::PREAD64, file, &raw mut byte, 1, PAGE);
    equal!(byte, b'x', "the file");
    call!(nr::PWRITE64, file, c"q".as_ptr(), 1, 5);
    equal!(peek(base + 5), b'q', "a write to the file");
    child::pass(|| {
        poke(base, b'c');
        Ok(())
    })?;
    equal!(peek(other), b'c', "a child's write");
    equal!(call!(nr::MSYNC, base, 2 * PAGE, 4), 0, "msync");
    // What is cut off the file is cut off the mapping.
    equal!(call!(nr::FTRUNCATE, file, PAGE), 0, "ftruncate");
    ensure!(probe::load(base + PAGE).is_some_and(|fault| fault.signal == 7), "beyond the shortened file: SIGBUS");
    equal!(call!(nr::FTRUNCATE, file, 2 * PAGE), 0, "ftruncate");
    equal!(peek(base + PAGE), 0, "a page that came back");
    let read_only = io::open(c"/tests/tests", open::O_RDONLY, 0).must("open")?;
    let refused = map(0, PAGE, RW, MAP_SHARED, read_only, 0);
    equal!(refused.err(), Some(Errno::EACCES), "shared and writable of a file that is not");
    Ok(())
}

fn dontneed() -> Outcome {
    let base = private(4 * PAGE).must("mmap")?;
    (0..4).for_each(|page| poke(base + page * PAGE, 9));
    memory::advise(base + PAGE, 2 * PAGE, MADV_DONTNEED).must("madvise")?;
    equal!([0, 1, 2, 3].map(|page| peek(base + page * PAGE)), [9, 0, 0, 9], "contents");
    fails!(call!(nr::MADVISE, base + 1, PAGE, MADV_DONTNEED), EINVAL, "an address within a page");
    fails!(call!(nr::MADVISE, base, PAGE, 9_999), EINVAL, "advice that is none");
    Ok(())
}

fn heap() -> Outcome {
    let start = call!(nr::BRK, 0).cast_unsigned();
    equal!(call!(nr::BRK, start + 3 * PAGE + 5).cast_unsigned(), start + 3 * PAGE + 5, "growing");
    for page in 0..4 {
        equal!(peek(start + page * PAGE), 0, "new heap");
        poke(start + page * PAGE, 8);
    }
    equal!(call!(nr::BRK, start).cast_unsigned(), start, "shrinking");
    equal!(call!(nr::BRK, start + 2 * PAGE).cast_unsigned(), start + 2 * PAGE, "growing again");
    equal!(peek(start + PAGE), 0, "heap that was given back and taken again");
    equal!(call!(nr::BRK, 1).cast_unsigned(), start + 2 * PAGE, "an impossible end leaves all as it is");
    equal!(call!(nr::BRK, usize::MAX).cast_unsigned(), start + 2 * PAGE, "another");
    Ok(())
}

fn stack() -> Outcome {
    let here = 0_u8;
    let top = (&raw const here).addr();
    let ended = child::end(|| {
        let limit = Rlimit64 { rlim_cur: 1 << 20, rlim_max: 8 << 20 };
        equal!(call!(nr::PRLIMIT64, 0, RLIMIT_STACK, &raw const limit, 0), 0, "prlimit");
        poke(top - (1 << 19), 1);
        poke(top - (2 << 20), 1);
        Ok(())
    })?;
    equal!(ended, Ended::Killed(SIGSEGV as u8), "beyond the new limit");
    // Anywhere within the limit of 8 MiB, in any order.
    for below in [PAGE, 1 << 20, 4 << 20, 7 << 20, 1 << 16] {
        equal!(probe::store(top - below), None, "store below the stack pointer");
    }
    let mut limit = Rlimit64::default();
    equal!(call!(nr::PRLIMIT64, 0, RLIMIT_STACK, 0, &raw mut limit), 0, "prlimit");
    equal!(limit.rlim_cur, 8 << 20, "the limit");
    Ok(())
}

fn sparse() -> Outcome {
    let length = 64 << 30;
    let base = map(0, length, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0).must("mmap of 64 GiB")?;
    for gigabyte in 0..64 {
        poke(base + (gigabyte << 30) + 12_345, gigabyte as u8);
    }
    child::pass(|| {
        for gigabyte in 0..64 {
            equal!(peek(base + (gigabyte << 30) + 12_345), gigabyte as u8, "contents");
        }
        Ok(())
    })?;
    unmap(base, length).must("munmap")
}

fn many() -> Outcome {
    const COUNT: usize = 2_000;
    let base = private(COUNT * PAGE).must("mmap")?;
    for page in (0..COUNT).step_by(2) {
        poke(base + page * PAGE, 3);
        protect(base + page * PAGE, PAGE, PROT_READ).must("mprotect")?;
    }
    for page in 0..COUNT {
        equal!(probe::store(base + page * PAGE).is_some(), page % 2 == 0, "store");
    }
    child::pass(|| {
        equal!(peek(base + 1_998 * PAGE), 3, "contents in a child");
        unmap(base, COUNT * PAGE).must("munmap")
    })?;
    protect(base, COUNT * PAGE, RW).must("mprotect")?;
    (0..COUNT).for_each(|page| poke(base + page * PAGE, 4));
    unmap(base, COUNT * PAGE).must("munmap")
}

fn holes() -> Outcome {
    let read_only = map(0, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0).must("mmap")?;
    let base = private(3 * PAGE).must("mmap")?;
    unmap(base + PAGE, PAGE).must("munmap")?;
    let zero = io::open(c"/dev/zero", open::O_RDONLY, 0).must("open")?;
    equal!(call!(nr::READ, zero, base + PAGE - 10, 100), 10, "read up to a hole");
    fails!(call!(nr::READ, zero, base + PAGE, 100), EFAULT, "read into a hole");
    let (read, write) = io::pipe().must("pipe")?;
    fails!(call!(nr::WRITE, write, base + PAGE, 10), EFAULT, "write from a hole");
    fails!(call!(nr::PIPE2, base + PAGE, 0), EFAULT, "a result into a hole");
    fails!(call!(nr::OPENAT, open::AT_FDCWD, base + PAGE, 0, 0), EFAULT, "a path in a hole");
    fails!(call!(nr::READ, zero, read_only, 1), EFAULT, "read into a page to read");
    poke(base + PAGE - 1, b'/');
    fails!(call!(nr::CHDIR, base + PAGE - 1), EFAULT, "a path that runs into a hole");
    io::write(write, b"ab").must("write")?;
    fails!(call!(nr::READ, read, base + PAGE, 2), EFAULT, "a pipe read into a hole");
    let mut bytes = [0; 2];
    equal!(io::read(read, &mut bytes).must("read")?, 2, "nothing was lost by that");
    Ok(())
}

fn wrong() -> Outcome {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS;
    let error = |length, flags, file, offset| map(0, length, RW, flags, file, offset).err();
    equal!(error(0, flags, -1, 0), Some(Errno::EINVAL), "no length");
    equal!(error(PAGE, MAP_ANONYMOUS, -1, 0), Some(Errno::EINVAL), "neither private nor shared");
    equal!(error(PAGE, MAP_PRIVATE, -1, 0), Some(Errno::EBADF), "no file");
    equal!(error(PAGE, MAP_PRIVATE, 0, 1), Some(Errno::EINVAL), "an offset within a page");
    equal!(error(usize::MAX - 2 * PAGE, flags, -1, 0), Some(Errno::ENOMEM), "more than there are addresses");
    equal!(error(1 << 60, flags, -1, 0), Some(Errno::ENOMEM), "more than there are addresses");
    fails!(call!(nr::MUNMAP, 4097, PAGE), EINVAL, "munmap within a page");
    fails!(call!(nr::MUNMAP, PAGE, 0), EINVAL, "munmap of nothing");
    fails!(call!(nr::MUNMAP, 0xffff_ffff_8000_0000_usize, PAGE), EINVAL, "munmap of the kernel");
    fails!(call!(nr::MPROTECT, 1, PAGE, 1), EINVAL, "mprotect within a page");
    let (read, _write) = io::pipe().must("pipe")?;
    equal!(error(PAGE, MAP_PRIVATE, read, 0), Some(Errno::ENODEV), "a pipe");
    Ok(())
}

/// Writes a function, runs it, writes another over it, runs that.
fn code() -> Outcome {
    let base = private(PAGE).must("mmap")?;
    for value in [5_u32, 77, 1000] {
        protect(base, PAGE, RW).must("mprotect")?;
        // li a0, value; ret
        let words = [0x0000_0513 | value << 20, 0x0000_8067];
        // SAFETY: the page is mapped and ours.
        unsafe { (base as *mut [u32; 2]).write_volatile(words) };
        protect(base, PAGE, PROT_READ | PROT_EXEC).must("mprotect")?;
        equal!(call!(nr::RISCV_FLUSH_ICACHE, base, base + 8, 0), 0, "riscv_flush_icache");
        // SAFETY: the page holds a function of that type.
        let function = unsafe { core::mem::transmute::<usize, extern "C" fn() -> u64>(base) };
        equal!(function(), u64::from(value), "the function's result");
    }
    fails!(call!(nr::RISCV_FLUSH_ICACHE, base, base + 8, 2), EINVAL, "a flag that is none");
    Ok(())
}
