//! Buffers that are no memory, positions beyond every file, and the terminal as old programs ask for it.

use kit::check::{Must, Outcome};
use kit::uapi::ioctl::{TCGETA, TCGETS, TCSETA, TIOCM_CAR, TIOCM_CTS, TIOCM_DSR, TIOCM_DTR, TIOCM_RTS, TIOCMGET};
use kit::uapi::open::{O_CREAT, O_RDWR, O_TRUNC, SEEK_SET};
use kit::uapi::signal::{SIGTTOU, sigmask};
use kit::uapi::{Errno, Iovec, Termio, Termios, nr};
use kit::{call, ensure, equal, fails, signal};
use rt::{io, tap::Test};

pub const TESTS: &[Test] = &[
    Test::new("files/buffers-beyond-all-memory", buffers),
    Test::new("files/vectors-beyond-all-memory", vectors),
    Test::new("files/positions-beyond-all-files", positions),
    Test::new("files/terminal-in-its-older-form", terminal),
];

/// Addresses that no program can have.
const NOWHERE: &[usize] = &[0xffff_ffc0_0000_0000, usize::MAX, 1 << 63, 1 << 60];

fn scratch() -> Result<i32, &'static str> {
    let file = io::open(c"/tmp/edges", O_RDWR | O_CREAT | O_TRUNC, 0o600).must("open")?;
    io::write(file, b"abc").must("write")?;
    call!(nr::LSEEK, file, 0, SEEK_SET);
    Ok(file)
}

/// A device that looks at no byte of what is written to it still looks where the bytes are said to be.
fn buffers() -> Outcome {
    let null = io::open(c"/dev/null", O_RDWR, 0).must("open")?;
    let zero = io::open(c"/dev/zero", O_RDWR, 0).must("open")?;
    let file = scratch()?;
    for (number, at) in [nr::READ, nr::WRITE, nr::PREAD64, nr::PWRITE64]
        .into_iter()
        .flat_map(|n| NOWHERE.iter().map(move |at| (n, *at)))
    {
        for device in [null, zero, file] {
            fails!(call!(number, device, at, 0, 0), EFAULT, "nothing, from where nothing can be");
            fails!(call!(number, device, at, 10, 0), EFAULT, "bytes from where nothing can be");
        }
    }
    let mut here = [0_u8; 16];
    let good = here.as_mut_ptr();
    for length in [1 << 57, 1 << 63, usize::MAX] {
        fails!(call!(nr::WRITE, null, good, length), EFAULT, "more than there are addresses");
        fails!(call!(nr::READ, null, good, length), EFAULT, "more than there are addresses");
        fails!(call!(nr::READ, file, good, length), EFAULT, "more than there are addresses");
    }
    // Nothing is mapped there, but could be.
    equal!(call!(nr::WRITE, null, 8, 10), 10, "a write that nobody looks at");
    equal!(call!(nr::READ, null, 8, 10), 0, "a read of nothing");
    equal!(call!(nr::WRITE, null, 8, 1_usize << 32), 0x7fff_f000, "the most at a time");
    equal!(call!(nr::READ, file, good, 16), 3, "the file, where it was");
    Ok(())
}

fn vectors() -> Outcome {
    let null = io::open(c"/dev/null", O_RDWR, 0).must("open")?;
    let file = scratch()?;
    let mut here = [0_u8; 16];
    let good = here.as_mut_ptr() as usize;
    let both = |fd: i32, segments: &[(usize, usize)]| {
        let mut vector = [Iovec::default(); 2];
        for (place, (iov_base, iov_len)) in vector.iter_mut().zip(segments) {
            *place = Iovec { iov_base: *iov_base, iov_len: *iov_len };
        }
        [nr::READV, nr::WRITEV].map(|number| call!(number, fd, vector.as_ptr(), segments.len()))
    };
    let (fault, invalid) = (Errno::EFAULT.to_ret(), Errno::EINVAL.to_ret());
    for fd in [null, file] {
        equal!(both(fd, &[(good, 4), (NOWHERE[0], 4)]), [fault; 2], "the second can be nowhere");
        equal!(both(fd, &[(good, 0), (NOWHERE[0], 0)]), [fault; 2], "nothing, from where nothing can be");
        equal!(both(fd, &[(good, 1 << 62), (good, 1 << 62)]), [fault; 2], "more than there are addresses");
        equal!(both(fd, &[(NOWHERE[0], 4), (good, 1 << 63)]), [invalid; 2], "a length below zero counts first");
    }
    equal!(both(null, &[(8, 4), (16, 4)]), [0, 8], "a write that nobody looks at");
    equal!(call!(nr::READ, file, good, 16), 3, "the file, where it was");
    Ok(())
}

fn positions() -> Outcome {
    let file = scratch()?;
    let mut bytes = [7_u8; 16];
    let good = bytes.as_mut_ptr();
    for at in [i64::MAX, i64::MAX - 1, i64::MAX - 9, -1, i64::MIN] {
        fails!(call!(nr::PREAD64, file, good, 10, at), EINVAL, "pread");
        fails!(call!(nr::PWRITE64, file, good, 10, at), EINVAL, "pwrite");
        if at > 0 {
            equal!(call!(nr::LSEEK, file, at, SEEK_SET), at as isize, "lseek");
            fails!(call!(nr::READ, file, good, 10), EINVAL, "read");
            fails!(call!(nr::WRITE, file, good, 10), EINVAL, "write");
            fails!(call!(nr::FALLOCATE, file, 0, at, 10), EFBIG, "fallocate");
        } else {
            fails!(call!(nr::LSEEK, file, at, SEEK_SET), EINVAL, "lseek");
            fails!(call!(nr::FTRUNCATE, file, at), EINVAL, "ftruncate");
            fails!(call!(nr::FALLOCATE, file, 0, at, 10), EINVAL, "fallocate");
        }
    }
    let last = i64::MAX - 10;
    equal!(call!(nr::PREAD64, file, good, 10, last), 0, "a read at the last place");
    equal!(call!(nr::FTRUNCATE, file, i64::MAX), 0, "the largest file");
    equal!(call!(nr::PREAD64, file, good, 10, last - 10), 10, "a read of the largest file");
    equal!(bytes[..10], [0; 10], "what it holds there");
    Ok(())
}

fn terminal() -> Outcome {
    let (mut new, mut old) = (Termios::default(), Termio::default());
    if call!(nr::IOCTL, 0, TCGETS, &raw mut new) != 0 {
        rt::println!("# standard input is no terminal");
        return Ok(());
    }
    equal!(call!(nr::IOCTL, 0, TCGETA, &raw mut old), 0, "TCGETA");
    let flags = [new.c_iflag, new.c_oflag, new.c_cflag, new.c_lflag].map(|flags| flags as u16);
    equal!([old.c_iflag, old.c_oflag, old.c_cflag, old.c_lflag], flags, "the flags' lower halves");
    equal!(old.c_cc[..], new.c_cc[..8], "the first control characters");
    // A test is not in the terminal's foreground.
    signal::block(sigmask(SIGTTOU));
    old.c_cc[2] = 8;
    equal!(call!(nr::IOCTL, 0, TCSETA, &raw const old), 0, "TCSETA");
    let mut changed = Termios::default();
    equal!(call!(nr::IOCTL, 0, TCGETS, &raw mut changed), 0, "TCGETS");
    let erase = core::mem::replace(&mut new.c_cc[2], 8);
    equal!(changed, new, "one character is different");
    old.c_cc[2] = erase;
    equal!(call!(nr::IOCTL, 0, TCSETA, &raw const old), 0, "TCSETA");
    let mut lines = 0_u32;
    equal!(call!(nr::IOCTL, 0, TIOCMGET, &raw mut lines), 0, "TIOCMGET");
    let wanted = TIOCM_DTR | TIOCM_RTS | TIOCM_CTS | TIOCM_DSR | TIOCM_CAR;
    ensure!(lines & wanted == wanted, "lines of the port");
    fails!(call!(nr::IOCTL, 0, TCGETA, 8), EFAULT, "a bad address");
    Ok(())
}
