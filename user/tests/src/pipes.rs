//! Pipes and waiting for several descriptors.

use kit::check::{Must, Outcome};
use kit::signal::{self, Handler};
use kit::uapi::open::{F_GETPIPE_SZ, F_SETFL, O_CLOEXEC, O_NONBLOCK, O_RDWR};
use kit::uapi::poll::{POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT};
use kit::uapi::signal::{SIG_IGN, SIGALRM, SIGPIPE, sigmask};
use kit::uapi::{Iovec, Pollfd, Sigaction, Siginfo, Timespec, Ucontext, nr, open};
use kit::{call, child, clock, ensure, equal, fails};
use rt::io;
use rt::process::{self, Ended};
use rt::tap::Test;

pub const TESTS: &[Test] = &[
    Test::new("pipes/order-and-end", order),
    Test::new("pipes/reader-waits-writer-waits", waiting),
    Test::new("pipes/no-reader", no_reader),
    Test::new("pipes/non-blocking", non_blocking),
    Test::new("pipes/small-writes-are-whole", atomic),
    Test::new("pipes/vectors", vectors),
    Test::new("pipes/many-readers-share", many_readers),
    Test::new("pipes/poll", poll),
    Test::new("pipes/poll-waits", poll_waits),
    Test::new("pipes/select", select),
    Test::new("pipes/named", named),
    Test::new("pipes/wrong-arguments", wrong),
];

fn order() -> Outcome {
    let (read, write) = io::pipe().must("pipe")?;
    io::write_all(write, b"first ").must("write")?;
    io::write_all(write, b"second").must("write")?;
    let mut bytes = [0; 20];
    equal!(io::read(read, &mut bytes[..3]).must("read")?, 3, "a part");
    equal!(io::read(read, &mut bytes[3..]).must("read")?, 9, "the rest, both writes at once");
    ensure!(&bytes[..12] == b"first second", "the bytes");
    let other = call!(nr::DUP, write) as i32;
    io::close(write).must("close")?;
    io::write_all(other, b"x").must("write to the copy")?;
    io::close(other).must("close")?;
    equal!(io::read(read, &mut bytes).must("read")?, 1, "what is left");
    equal!(io::read(read, &mut bytes).must("read")?, 0, "the end");
    equal!(io::read(read, &mut bytes).must("read")?, 0, "the end, again");
    Ok(())
}

fn waiting() -> Outcome {
    let (read, write) = io::pipe().must("pipe")?;
    let start = clock::now();
    let writer = child::start(|| {
        clock::sleep(30_000_000);
        // More than the pipe holds: waits for the reader.
        io::write_all(write, &[7; 100_000]).must("write")
    })?;
    io::close(write).must("close")?;
    let mut bytes = [0_u8; 3_000];
    let mut total = 0;
    loop {
        match io::read(read, &mut bytes).must("read")? {
            0 => break,
            count => {
                ensure!(bytes[..count].iter().all(|byte| *byte == 7), "the bytes");
                total += count;
            }
        }
    }
    equal!(total, 100_000, "bytes in all");
    ensure!(clock::now() - start >= 30_000_000, "the reader did not wait");
    child::finish(writer)
}

fn no_reader() -> Outcome {
    let (read, write) = io::pipe().must("pipe")?;
    io::close(read).must("close")?;
    let ended = child::end(|| {
        let _ = io::write(write, b"x");
        Ok(())
    })?;
    equal!(ended, Ended::Killed(SIGPIPE as u8), "SIGPIPE");
    signal::set(SIGPIPE, Sigaction { handler: SIG_IGN, ..Sigaction::default() }).must("sigaction")?;
    fails!(call!(nr::WRITE, write, c"x".as_ptr(), 1), EPIPE, "a write without a reader");
    // A writer that waits learns of the last reader's end.
    let (read, write) = io::pipe().must("pipe")?;
    let reader = child::start(|| {
        clock::sleep(20_000_000);
        Ok(())
    })?;
    io::close(read).must("close")?;
    let result = io::write_all(write, &[1; 200_000]);
    equal!(result.err().map(|error| error.to_ret()), Some(kit::uapi::Errno::EPIPE.to_ret()), "a write that waited");
    child::finish(reader)
}

fn non_blocking() -> Outcome {
    let mut ends = [0_i32; 2];
    equal!(call!(nr::PIPE2, ends.as_mut_ptr(), O_NONBLOCK | O_CLOEXEC), 0, "pipe2");
    let [read, write] = ends;
    let mut bytes = [0_u8; 4096];
    fails!(call!(nr::READ, read, bytes.as_mut_ptr(), 1), EAGAIN, "read of an empty pipe");
    equal!(call!(nr::FCNTL, read, F_GETPIPE_SZ), 65_536, "the pipe's size");
    let mut filled = 0;
    loop {
        match call!(nr::WRITE, write, bytes.as_ptr(), bytes.len()) {
            count if count > 0 => filled += count,
            error => {
                fails!(error, EAGAIN, "write to a full pipe");
                break;
            }
        }
    }
    equal!(filled, 65_536, "what fits");
    fails!(call!(nr::WRITE, write, bytes.as_ptr(), 1), EAGAIN, "one more byte");
    equal!(call!(nr::READ, read, bytes.as_mut_ptr(), 4096), 4096, "read");
    equal!(call!(nr::WRITE, write, bytes.as_ptr(), 4096), 4096, "what fits again");
    equal!(call!(nr::FCNTL, read, F_SETFL, 0), 0, "fcntl");
    equal!(call!(nr::READ, read, bytes.as_mut_ptr(), 10), 10, "read");
    Ok(())
}

/// Writes of up to PIPE_BUF bytes do not mix.
fn atomic() -> Outcome {
    const SIZE: usize = 1_000;
    let (read, write) = io::pipe().must("pipe")?;
    let mut writers = [0; 4];
    for (index, writer) in writers.iter_mut().enumerate() {
        *writer = child::start(|| {
            for _ in 0..200 {
                equal!(io::write(write, &[index as u8 + 1; SIZE]).must("write")?, SIZE, "bytes written");
            }
            Ok(())
        })?;
    }
    io::close(write).must("close")?;
    let mut piece = [0_u8; SIZE];
    let mut pieces = [0; 5];
    while io::read_full(read, &mut piece).must("read")? == SIZE {
        ensure!(piece.iter().all(|byte| *byte == piece[0]), "two writes are mixed");
        pieces[usize::from(piece[0])] += 1;
    }
    equal!(pieces, [0, 200, 200, 200, 200], "pieces");
    writers.into_iter().try_for_each(child::finish)
}

fn vectors() -> Outcome {
    let (read, write) = io::pipe().must("pipe")?;
    let piece = |bytes: &[u8]| Iovec { iov_base: bytes.as_ptr().addr(), iov_len: bytes.len() };
    let out = [piece(b"ab"), piece(b""), piece(b"cde")];
    equal!(call!(nr::WRITEV, write, out.as_ptr(), 3), 5, "writev");
    let (mut first, mut second) = ([0_u8; 3], [0_u8; 9]);
    let into = [
        Iovec { iov_base: first.as_mut_ptr().expose_provenance(), iov_len: 3 },
        Iovec { iov_base: second.as_mut_ptr().expose_provenance(), iov_len: 9 },
    ];
    equal!(call!(nr::READV, read, into.as_ptr(), 2), 5, "readv");
    ensure!(&first == b"abc" && &second[..2] == b"de", "the bytes");
    fails!(call!(nr::WRITEV, write, out.as_ptr(), 1025), EINVAL, "too many pieces");
    fails!(call!(nr::WRITEV, write, 8, 1), EFAULT, "pieces at a bad address");
    Ok(())
}

fn many_readers() -> Outcome {
    let (read, write) = io::pipe().must("pipe")?;
    let (sums_read, sums_write) = io::pipe().must("pipe")?;
    let mut readers = [0; 4];
    for reader in &mut readers {
        *reader = child::start(|| {
            let _ = io::close(write);
            let (mut sum, mut byte) = (0_u32, [0_u8]);
            while io::read(read, &mut byte).must("read")? == 1 {
                sum += u32::from(byte[0]);
            }
            io::write_all(sums_write, &sum.to_le_bytes()).must("write")
        })?;
    }
    for value in 0..2_000_u32 {
        io::write_all(write, &[value as u8]).must("write")?;
    }
    io::close(write).must("close")?;
    let mut total = 0;
    for reader in readers {
        child::finish(reader)?;
        let mut sum = [0; 4];
        equal!(io::read_full(sums_read, &mut sum).must("read")?, 4, "a sum");
        total += u32::from_le_bytes(sum);
    }
    equal!(total, (0..2_000).map(|value| value % 256).sum::<u32>(), "the sum of all");
    Ok(())
}

fn ask(entries: &mut [Pollfd], nanoseconds: u64) -> isize {
    let limit = Timespec::from_ns(nanoseconds);
    call!(nr::PPOLL, entries.as_mut_ptr(), entries.len(), &raw const limit, 0, 8)
}

fn poll() -> Outcome {
    let (read, write) = io::pipe().must("pipe")?;
    let state = |fd, events| {
        let mut entry = [Pollfd { fd, events, revents: 0 }];
        (ask(&mut entry, 0), entry[0].revents)
    };
    equal!(state(read, POLLIN), (0, 0), "an empty pipe");
    equal!(state(write, POLLOUT | POLLIN), (1, POLLOUT), "room to write");
    io::write_all(write, b"x").must("write")?;
    equal!(state(read, POLLIN), (1, POLLIN), "something to read");
    equal!(state(read, 0), (0, 0), "nothing asked");
    io::close(write).must("close")?;
    equal!(state(read, POLLIN), (1, POLLIN | POLLHUP), "something to read, no writer");
    let _ = io::read(read, &mut [0]);
    equal!(state(read, POLLIN), (1, POLLHUP), "no writer");
    equal!(state(90, POLLIN), (1, POLLNVAL), "no descriptor");
    equal!(state(-1, POLLIN), (0, 0), "an entry that does not count");
    let (read, write) = io::pipe().must("pipe")?;
    io::close(read).must("close")?;
    equal!(state(write, POLLOUT), (1, POLLOUT | POLLERR), "no reader");
    let null = io::open(c"/dev/null", O_RDWR, 0).must("open")?;
    equal!(state(null, POLLIN | POLLOUT), (1, POLLIN | POLLOUT), "a device that is always ready");
    Ok(())
}

extern "C" fn nothing(_: i32, _: *const Siginfo, _: *mut Ucontext) {}

fn poll_waits() -> Outcome {
    let (read, write) = io::pipe().must("pipe")?;
    let (other, _keep) = io::pipe().must("pipe")?;
    let entry = |fd| Pollfd { fd, events: POLLIN, revents: 0 };
    let mut entries = [entry(other), entry(read)];
    let start = clock::now();
    equal!(ask(&mut entries, 20_000_000), 0, "nothing comes");
    ensure!(clock::now() - start >= 20_000_000, "the limit was not waited for");
    let writer = child::start(|| {
        clock::sleep(15_000_000);
        io::write_all(write, b"x").must("write")
    })?;
    equal!(ask(&mut entries, 5_000_000_000), 1, "something comes");
    equal!((entries[0].revents, entries[1].revents), (0, POLLIN), "where");
    child::finish(writer)?;
    signal::handle(SIGALRM, nothing as Handler, 0).must("sigaction")?;
    signal::timer(10_000, 0);
    let mut empty = [entry(other)];
    fails!(ask(&mut empty, 5_000_000_000), EINTR, "a signal ends it");
    // With a mask of its own: the signal waits outside, and comes through inside.
    signal::block(sigmask(SIGALRM));
    signal::timer(1_000, 0);
    clock::sleep(5_000_000);
    let (limit, open) = (Timespec::from_ns(5_000_000_000), 0_u64);
    fails!(call!(nr::PPOLL, empty.as_mut_ptr(), 1, &raw const limit, &raw const open, 8), EINTR, "the mask of ppoll");
    equal!(signal::mask(), sigmask(SIGALRM), "the mask afterwards");
    Ok(())
}

fn select() -> Outcome {
    let (read, write) = io::pipe().must("pipe")?;
    let limit = Timespec::from_ns(5_000_000);
    let ask = |reading: &mut u64, writing: &mut u64| {
        call!(nr::PSELECT6, 64, &raw mut *reading, &raw mut *writing, 0, &raw const limit, 0)
    };
    let (mut reading, mut writing) = (1 << read, 0);
    equal!((ask(&mut reading, &mut writing), reading), (0, 0), "an empty pipe");
    (reading, writing) = (1 << read, 1 << write);
    equal!((ask(&mut reading, &mut writing), reading, writing), (1, 0, 1 << write), "room to write");
    io::write_all(write, b"x").must("write")?;
    reading = 1 << read;
    equal!((ask(&mut reading, &mut 0), reading), (1, 1 << read), "something to read");
    reading = 1 << 60;
    fails!(ask(&mut reading, &mut 0), EBADF, "no descriptor");
    Ok(())
}

fn named() -> Outcome {
    const NAME: &core::ffi::CStr = c"/tmp/fifo";
    equal!(call!(nr::MKNODAT, open::AT_FDCWD, NAME.as_ptr(), 0o010_600, 0), 0, "mkfifo");
    let reader = child::start(|| {
        let file = io::open(NAME, open::O_RDONLY, 0).must("open for reading")?;
        let mut bytes = [0; 8];
        equal!(io::read_full(file, &mut bytes).must("read")?, 3, "bytes");
        Ok(())
    })?;
    let file = io::open(NAME, open::O_WRONLY, 0).must("open for writing")?;
    io::write_all(file, b"abc").must("write")?;
    io::close(file).must("close")?;
    child::finish(reader)?;
    let refused = call!(nr::OPENAT, open::AT_FDCWD, NAME.as_ptr(), open::O_WRONLY | O_NONBLOCK, 0);
    fails!(refused, ENXIO, "open for writing without a reader");
    equal!(call!(nr::UNLINKAT, open::AT_FDCWD, NAME.as_ptr(), 0), 0, "unlink");
    Ok(())
}

fn wrong() -> Outcome {
    let mut place = [0_i32; 2];
    let place = place.as_mut_ptr();
    let (read, write) = io::pipe().must("pipe")?;
    fails!(call!(nr::READ, write, place, 1), EBADF, "read from the writing end");
    fails!(call!(nr::WRITE, read, c"x".as_ptr(), 1), EBADF, "write to the reading end");
    fails!(call!(nr::LSEEK, read, 0, 0), ESPIPE, "seek");
    fails!(call!(nr::PREAD64, read, place, 1, 0), ESPIPE, "pread");
    fails!(call!(nr::PIPE2, 8, 0), EFAULT, "a pair at a bad address");
    fails!(call!(nr::PIPE2, place, 0x7), EINVAL, "flags that are none");
    fails!(call!(nr::PPOLL, 8, 1, 0, 0, 8), EFAULT, "poll of a bad address");
    let never = Timespec { tv_sec: 0, tv_nsec: 2_000_000_000 };
    fails!(call!(nr::PPOLL, 0, 0, &raw const never, 0, 8), EINVAL, "a time that is none");
    ensure!(process::id() > 1, "this is not the first process");
    Ok(())
}
