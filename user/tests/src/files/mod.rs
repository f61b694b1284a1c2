//! Files, directories, links, rights, in a directory of the tests' own under /tmp.

use core::ffi::CStr;
use kit::check::{Must, Outcome};
use kit::uapi::fs::S_IFREG;
use kit::uapi::open::{
    AT_FDCWD, F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_GETFL, F_SETFD, F_SETFL, O_APPEND, O_CLOEXEC, O_CREAT, O_DIRECTORY,
    O_EXCL, O_NONBLOCK, O_RDONLY, O_RDWR, O_TRUNC, O_WRONLY, SEEK_CUR, SEEK_END, SEEK_SET,
};
use kit::uapi::{Errno, Result, Stat, Statx, Timespec, nr};
use kit::{attempt, call, child, clock, ensure, equal, fails, file};
use rt::io;
use rt::tap::Test;

pub mod edges;
pub mod names;

pub const TESTS: &[Test] = &[
    Test::new("files/read-write-seek", read_write_seek),
    Test::new("files/append-truncate-exclusive", opening),
    Test::new("files/holes", holes),
    Test::new("files/shared-offsets", offsets),
    Test::new("files/rights-of-others", rights),
    Test::new("files/times", times),
    Test::new("files/stat-and-statx", stat),
    Test::new("files/devices", devices),
    Test::new("files/descriptors", descriptors),
    Test::new("files/concurrent-appends", concurrent),
];

/// A directory for one test, which becomes the working directory.
fn home() -> Outcome {
    let mut name = *b"/tmp/files-000000\0";
    let mut number = rt::process::id();
    for digit in name[11..17].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    attempt!(nr::MKDIRAT, AT_FDCWD, name.as_ptr(), 0o777).must("mkdir")?;
    attempt!(nr::CHDIR, name.as_ptr()).must("chdir")?;
    call!(nr::UMASK, 0o22);
    Ok(())
}

fn at(number: usize, path: &CStr, third: usize) -> isize {
    call!(number, AT_FDCWD, path.as_ptr(), third, 0)
}

fn open(path: &CStr, flags: u32) -> Result<i32> {
    io::open(path, flags, 0o666)
}

fn error<T>(result: Result<T>) -> isize {
    result.map_or_else(Errno::to_ret, |_| 0)
}

fn status(path: &CStr, flags: u32) -> Result<Stat> {
    let mut stat = Stat::default();
    attempt!(nr::NEWFSTATAT, AT_FDCWD, path.as_ptr(), &raw mut stat, flags).map(|_| stat)
}

fn contents(path: &CStr, wanted: &[u8]) -> Outcome {
    let mut buffer = [0; 512];
    let found = file::read(path, &mut buffer).must("read")?;
    if found != wanted {
        rt::println!("# {path:?} holds {:?}", core::str::from_utf8(found));
        return Err("the file's contents");
    }
    Ok(())
}

fn read_write_seek() -> Outcome {
    home()?;
    let file = open(c"f", O_RDWR | O_CREAT).must("open")?;
    equal!(io::write(file, b"0123456789").must("write")?, 10, "write");
    let seek = |offset: i64, whence: u32| call!(nr::LSEEK, file, offset, whence);
    equal!((seek(3, SEEK_SET), seek(2, SEEK_CUR), seek(-1, SEEK_END)), (3, 5, 9), "lseek");
    let mut bytes = [0; 8];
    equal!((io::read(file, &mut bytes), bytes[0]), (Ok(1), b'9'), "the last byte");
    equal!(io::read(file, &mut bytes), Ok(0), "the end");
    equal!(call!(nr::PREAD64, file, bytes.as_mut_ptr(), 3, 4), 3, "pread");
    ensure!(&bytes[..3] == b"456", "the bytes");
    equal!(call!(nr::PWRITE64, file, c"xy".as_ptr(), 2, 1), 2, "pwrite");
    equal!(seek(0, SEEK_CUR), 10, "pread and pwrite leave the offset");
    contents(c"f", b"0xy3456789")?;
    equal!((seek(-1, SEEK_SET), seek(0, 9)), (-22, -22), "impossible places");
    equal!(seek(100, SEEK_SET), 100, "beyond the end");
    fails!(call!(nr::PREAD64, file, bytes.as_mut_ptr(), 1, -1_i64), EINVAL, "pread before the beginning");
    fails!(call!(nr::READ, 77, bytes.as_mut_ptr(), 1), EBADF, "no descriptor");
    let read_only = open(c"f", O_RDONLY).must("open")?;
    fails!(call!(nr::WRITE, read_only, c"x".as_ptr(), 1), EBADF, "write to a descriptor for reading");
    Ok(())
}

fn opening() -> Outcome {
    home()?;
    fails!(error(open(c"f", O_RDONLY)), ENOENT, "nothing there");
    fails!(error(open(c"", O_RDONLY)), ENOENT, "no name");
    let file = open(c"f", O_WRONLY | O_CREAT | O_EXCL).must("create")?;
    io::write_all(file, b"abcdef").must("write")?;
    fails!(error(open(c"f", O_WRONLY | O_CREAT | O_EXCL)), EEXIST, "something there");
    let append = open(c"f", O_WRONLY | O_APPEND).must("open")?;
    call!(nr::LSEEK, append, 0, SEEK_SET);
    io::write_all(append, b"gh").must("write")?;
    contents(c"f", b"abcdefgh")?;
    equal!(call!(nr::FTRUNCATE, file, 3), 0, "ftruncate");
    contents(c"f", b"abc")?;
    open(c"f", O_WRONLY | O_TRUNC).must("open")?;
    contents(c"f", b"")?;
    equal!(status(c"f", 0).must("stat")?.st_mode, S_IFREG | 0o644, "the mode, less the mask");
    fails!(error(open(c"f", O_RDONLY | O_DIRECTORY)), ENOTDIR, "a file as a directory");
    fails!(error(open(c"f/x", O_RDONLY)), ENOTDIR, "a file within a file");
    fails!(error(open(c".", O_WRONLY)), EISDIR, "a directory for writing");
    fails!(error(open(c"f/", O_RDONLY)), ENOTDIR, "a file with a slash");
    fails!(error(open(c"no/such", O_WRONLY | O_CREAT)), ENOENT, "in a directory that is none");
    Ok(())
}

fn holes() -> Outcome {
    home()?;
    let file = open(c"f", O_RDWR | O_CREAT).must("open")?;
    equal!(call!(nr::PWRITE64, file, c"end".as_ptr(), 3, 1_000_000), 3, "pwrite far out");
    equal!(status(c"f", 0).must("stat")?.st_size, 1_000_003, "size");
    ensure!(status(c"f", 0).must("stat")?.st_blocks < 100, "blocks");
    let mut bytes = [9_u8; 100];
    equal!(call!(nr::PREAD64, file, bytes.as_mut_ptr(), 100, 500_000), 100, "read of a hole");
    ensure!(bytes.iter().all(|byte| *byte == 0), "a hole is zero");
    equal!(call!(nr::FTRUNCATE, file, 10), 0, "shorter");
    equal!(call!(nr::FTRUNCATE, file, 1_000_003), 0, "longer");
    equal!(call!(nr::PREAD64, file, bytes.as_mut_ptr(), 100, 1_000_000), 3, "read of the end");
    equal!(bytes[..3], [0; 3], "what was cut off is gone");
    Ok(())
}

fn offsets() -> Outcome {
    home()?;
    file::write(c"f", 0o644, b"abcdef").must("write")?;
    let file = open(c"f", O_RDONLY).must("open")?;
    let copy = attempt!(nr::DUP, file).must("dup")? as i32;
    let other = open(c"f", O_RDONLY).must("open")?;
    let mut byte = [0_u8];
    io::read(file, &mut byte).must("read")?;
    io::read(copy, &mut byte).must("read")?;
    equal!(byte[0], b'b', "a copy shares the offset");
    child::pass(|| {
        let mut byte = [0_u8];
        io::read(file, &mut byte).must("read")?;
        equal!(byte[0], b'c', "a child does");
        Ok(())
    })?;
    io::read(copy, &mut byte).must("read")?;
    equal!(byte[0], b'd', "and moves it");
    io::read(other, &mut byte).must("read")?;
    equal!(byte[0], b'a', "a second open does not");
    Ok(())
}

fn as_user() -> Outcome {
    call!(nr::SETGROUPS, 0, 0);
    attempt!(nr::SETRESGID, 1_000, 1_000, 1_000).must("setresgid")?;
    attempt!(nr::SETRESUID, 1_000, 1_000, 1_000).must("setresuid")?;
    Ok(())
}

fn rights() -> Outcome {
    home()?;
    file::write(c"secret", 0o600, b"x").must("write")?;
    file::write(c"public", 0o644, b"x").must("write")?;
    file::write(c"group", 0o640, b"x").must("write")?;
    equal!(call!(nr::FCHOWNAT, AT_FDCWD, c"group".as_ptr(), 0, 1_000, 0), 0, "chown");
    equal!(at(nr::MKDIRAT, c"closed", 0o700), 0, "mkdir");
    equal!((at(nr::MKDIRAT, c"sticky", 0o777), at(nr::FCHMODAT, c"sticky", 0o1777)), (0, 0), "a sticky directory");
    file::write(c"sticky/f", 0o666, b"x").must("write")?;
    child::pass(|| {
        as_user()?;
        fails!(error(open(c"secret", O_RDONLY)), EACCES, "read");
        fails!(error(open(c"public", O_WRONLY)), EACCES, "write");
        open(c"public", O_RDONLY).must("read what all may read")?;
        open(c"group", O_RDONLY).must("read what the group may read")?;
        fails!(error(open(c"group", O_RDWR)), EACCES, "write what the group may read");
        fails!(error(open(c"new", O_WRONLY | O_CREAT)), EACCES, "create");
        fails!(error(status(c"closed/x", 0)), EACCES, "search");
        fails!(at(nr::UNLINKAT, c"public", 0), EACCES, "unlink");
        fails!(at(nr::UNLINKAT, c"sticky/f", 0), EPERM, "unlink another's in a sticky directory");
        fails!(at(nr::FCHMODAT, c"public", 0o777), EPERM, "chmod of another's");
        fails!(call!(nr::FCHOWNAT, AT_FDCWD, c"public".as_ptr(), 1_000, 1_000, 0), EPERM, "chown");
        fails!(call!(nr::FACCESSAT, AT_FDCWD, c"secret".as_ptr(), 4), EACCES, "access");
        equal!(call!(nr::FACCESSAT, AT_FDCWD, c"public".as_ptr(), 4), 0, "access");
        file::write(c"sticky/own", 0o644, b"mine").must("create where all may")?;
        let own = status(c"sticky/own", 0).must("stat")?;
        equal!((own.st_uid, own.st_gid), (1_000, 1_000), "the owner");
        equal!(at(nr::FCHMODAT, c"sticky/own", 0o4755), 0, "chmod of one's own");
        Ok(())
    })?;
    let own = status(c"sticky/own", 0).must("stat")?;
    equal!(own.st_mode, S_IFREG | 0o4755, "the mode");
    equal!(call!(nr::FCHOWNAT, AT_FDCWD, c"sticky/own".as_ptr(), 0, 0, 0), 0, "chown");
    equal!(status(c"sticky/own", 0).must("stat")?.st_mode, S_IFREG | 0o755, "set-id bits go with the owner");
    equal!(call!(nr::FACCESSAT, AT_FDCWD, c"secret".as_ptr(), 1), -13, "even root may not execute that");
    Ok(())
}

fn times() -> Outcome {
    home()?;
    let before = clock::read(0) / 1_000_000_000;
    file::write(c"f", 0o644, b"x").must("write")?;
    let made = status(c"f", 0).must("stat")?;
    ensure!(made.st_mtime as u64 + 1 >= before && made.st_mtime as u64 <= before + 5, "the time of writing");
    clock::sleep(20_000_000);
    let file = open(c"f", O_WRONLY).must("open")?;
    io::write_all(file, b"y").must("write")?;
    let written = status(c"f", 0).must("stat")?;
    let time = |stat: &Stat| (stat.st_mtime, stat.st_mtime_nsec);
    ensure!(time(&written) > time(&made), "writing moves the time");
    let set = [Timespec { tv_sec: 1_000, tv_nsec: 5 }, Timespec { tv_sec: 2_000, tv_nsec: 7 }];
    equal!(call!(nr::UTIMENSAT, AT_FDCWD, c"f".as_ptr(), set.as_ptr(), 0), 0, "utimensat");
    let set = status(c"f", 0).must("stat")?;
    equal!((set.st_atime, set.st_atime_nsec, set.st_mtime, set.st_mtime_nsec), (1_000, 5, 2_000, 7), "times");
    let wrong = [Timespec { tv_sec: 0, tv_nsec: 2_000_000_000 }; 2];
    fails!(call!(nr::UTIMENSAT, AT_FDCWD, c"f".as_ptr(), wrong.as_ptr(), 0), EINVAL, "a time that is none");
    Ok(())
}

fn stat() -> Outcome {
    home()?;
    file::write(c"f", 0o640, &[1; 5_000]).must("write")?;
    let stat = status(c"f", 0).must("stat")?;
    equal!((stat.st_mode, stat.st_size, stat.st_nlink, stat.st_uid), (S_IFREG | 0o640, 5_000, 1, 0), "stat");
    equal!((stat.st_blocks, stat.st_blksize), (16, 4_096), "blocks");
    let mut extended = Statx::default();
    equal!(call!(nr::STATX, AT_FDCWD, c"f".as_ptr(), 0, 0x7ff, &raw mut extended), 0, "statx");
    equal!(
        (extended.stx_size, u32::from(extended.stx_mode), extended.stx_ino),
        (5_000, stat.st_mode, stat.st_ino),
        "statx"
    );
    equal!(extended.stx_mask & 0x7ff, 0x7ff, "what it knows");
    let file = open(c"f", O_RDONLY).must("open")?;
    let mut own = Stat::default();
    equal!(call!(nr::NEWFSTATAT, file, c"".as_ptr(), &raw mut own, 0x1000), 0, "by descriptor");
    equal!((own.st_ino, own.st_dev), (stat.st_ino, stat.st_dev), "the same file");
    fails!(call!(nr::FSTAT, file, 8), EFAULT, "stat to a bad address");
    fails!(call!(nr::NEWFSTATAT, AT_FDCWD, c"f".as_ptr(), &raw mut own, 0x8000), EINVAL, "flags that are none");
    Ok(())
}

fn devices() -> Outcome {
    let mut bytes = [7_u8; 64];
    let zero = open(c"/dev/zero", O_RDWR).must("open")?;
    equal!((io::read(zero, &mut bytes), bytes), (Ok(64), [0; 64]), "zero");
    equal!(io::write(zero, &bytes), Ok(64), "write to zero");
    let null = open(c"/dev/null", O_RDWR).must("open")?;
    equal!((io::read(null, &mut bytes), io::write(null, &bytes)), (Ok(0), Ok(64)), "null");
    let full = open(c"/dev/full", O_RDWR).must("open")?;
    fails!(error(io::write(full, b"x")), ENOSPC, "full");
    for name in [c"/dev/random", c"/dev/urandom"] {
        let random = open(name, O_RDONLY).must("open")?;
        let mut other = [0_u8; 64];
        equal!((io::read(random, &mut bytes), io::read(random, &mut other)), (Ok(64), Ok(64)), "random");
        ensure!(bytes != other && bytes != [0; 64], "random bytes");
    }
    let stat = status(c"/dev/null", 0).must("stat")?;
    equal!((stat.st_mode & 0o170_777, stat.st_rdev), (0o020_666, 0x103), "what null is");
    fails!(call!(nr::IOCTL, null, 0x5401, bytes.as_mut_ptr()), ENOTTY, "terminal settings of null");
    fails!(error(open(c"/dev/null/x", O_RDONLY)), ENOTDIR, "a file in a device");
    Ok(())
}

fn descriptors() -> Outcome {
    let null = open(c"/dev/null", O_RDWR | O_CLOEXEC).must("open")?;
    let control = |command: u32, argument: usize| call!(nr::FCNTL, null, command, argument);
    equal!(control(F_GETFD, 0), 1, "close-on-exec");
    equal!((control(F_SETFD, 0), control(F_GETFD, 0)), (0, 0), "switched off");
    equal!(control(F_DUPFD, 30), 30, "a copy from 30 on");
    equal!(control(F_DUPFD_CLOEXEC, 30), 31, "the next");
    equal!((call!(nr::FCNTL, 30, F_GETFD), call!(nr::FCNTL, 31, F_GETFD)), (0, 1), "their flags");
    equal!(control(F_GETFL, 0) as u32 & 3, O_RDWR, "the mode");
    equal!(control(F_SETFL, (O_NONBLOCK | O_APPEND) as usize), 0, "flags");
    equal!(call!(nr::FCNTL, 30, F_GETFL) as u32 & (O_NONBLOCK | O_APPEND), O_NONBLOCK | O_APPEND, "shared with copies");
    fails!(call!(nr::DUP3, null, null, 0), EINVAL, "dup3 to itself");
    equal!(call!(nr::DUP3, null, 31, 0), 31, "dup3 to one that is open");
    fails!(call!(nr::DUP3, null, 1 << 20, 0), EBADF, "dup3 far away");
    equal!(call!(nr::CLOSE_RANGE, 30, 31, 0), 0, "close_range");
    fails!(call!(nr::FCNTL, 30, F_GETFD), EBADF, "closed");
    equal!(call!(nr::CLOSE, null), 0, "close");
    fails!(call!(nr::CLOSE, null), EBADF, "close again");
    equal!(open(c"/dev/null", O_RDONLY).must("open")?, null, "the lowest number that is free");
    fails!(call!(nr::FCNTL, null, 9_999, 0), EINVAL, "a command that is none");
    Ok(())
}

fn concurrent() -> Outcome {
    home()?;
    let file = open(c"f", O_WRONLY | O_CREAT | O_APPEND).must("open")?;
    let mut children = [0; 4];
    for (index, child) in children.iter_mut().enumerate() {
        *child = child::start(|| {
            for _ in 0..200 {
                io::write_all(file, &[b'0' + index as u8; 20]).must("write")?;
            }
            Ok(())
        })?;
    }
    children.into_iter().try_for_each(child::finish)?;
    let file = open(c"f", O_RDONLY).must("open")?;
    let (mut piece, mut counts) = ([0_u8; 20], [0; 4]);
    while io::read_full(file, &mut piece).must("read")? == 20 {
        ensure!(piece.iter().all(|byte| *byte == piece[0]), "two writes are mixed");
        counts[usize::from(piece[0] - b'0')] += 1;
    }
    equal!(counts, [200; 4], "writes");
    Ok(())
}
