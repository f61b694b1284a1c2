//! Processes made, replaced, joined by pipes, killed.

use core::ffi::c_char;
use kit::check::{Must, Outcome};
use kit::random::Random;
use kit::registers::checked_call;
use kit::uapi::clone::{CLONE_VFORK, CLONE_VM};
use kit::uapi::nr;
use kit::uapi::signal::{SIGCHLD, SIGKILL};
use kit::{child, clock, ensure, equal, memory, thread};
use rt::io;
use rt::process::{self, Ended, Fork};

pub fn fork_and_wait(random: &mut Random) -> Outcome {
    let mut children = [(0, 0); 8];
    for slot in &mut children {
        let status = random.next() as u8;
        match process::fork().must("fork")? {
            Fork::Child => process::exit(status),
            Fork::Parent(child) => *slot = (child, status),
        }
    }
    // Not in the order in which they were made.
    while let Some(index) = (random.below(2) == 0).then(|| random.below(8) as usize).filter(|i| children[*i].0 != 0) {
        let (child, status) = core::mem::take(&mut children[index]);
        equal!(process::wait(child).must("wait")?, (child, Ended::Exited(status)), "a child's end");
    }
    for (child, status) in children.into_iter().filter(|(child, _)| *child != 0) {
        equal!(process::wait(child).must("wait")?, (child, Ended::Exited(status)), "a child's end");
    }
    Ok(())
}

/// Children that have children: each sums up what its own report.
pub fn tree(random: &mut Random) -> Outcome {
    fn grow(depth: u32, width: u64) -> u8 {
        if depth == 0 {
            return 1;
        }
        let mut sum = 0_u8;
        for _ in 0..width {
            match process::fork() {
                Ok(Fork::Child) => process::exit(grow(depth - 1, width)),
                Ok(Fork::Parent(_)) => {}
                Err(_) => return 0,
            }
        }
        for _ in 0..width {
            if let Ok((_, Ended::Exited(count))) = process::wait(-1) {
                sum = sum.wrapping_add(count);
            }
        }
        sum
    }
    let width = 2 + random.below(2);
    equal!(u64::from(grow(3, width)), width.pow(3), "leaves of the tree");
    Ok(())
}

/// What this program does when it is the one that was executed.
pub fn executed(args: rt::Args) -> Option<u8> {
    let mut words = args.iter().skip(1).filter_map(|word| word.to_str().ok());
    (words.next()? == "--exit").then(|| words.next().and_then(|word| word.parse().ok()).unwrap_or(255))
}

extern "C" fn execute(argv: usize) -> usize {
    // SAFETY: the array of `exec`, whose memory this child shares while its parent waits.
    unsafe { process::execute(c"/tests/stress", argv as *const *const c_char, [core::ptr::null()].as_ptr()) };
    99
}

/// A program executed by a child of fork or vfork.
pub fn exec(random: &mut Random) -> Outcome {
    let number = random.below(90) as u8 + 10;
    let digits = [b'0' + number / 10, b'0' + number % 10, 0];
    let argv: [*const c_char; 4] = [c"stress".as_ptr(), c"--exit".as_ptr(), digits.as_ptr().cast(), core::ptr::null()];
    let argv = argv.as_ptr() as usize;
    let child = if random.below(2) == 0 {
        match process::fork().must("fork")? {
            Fork::Child => process::exit(execute(argv) as u8),
            Fork::Parent(child) => child,
        }
    } else {
        let stack = memory::private(8 * memory::PAGE).must("mmap")?;
        let flags = CLONE_VM | CLONE_VFORK | u64::from(SIGCHLD);
        // SAFETY: the stack is the child's own, and stays until it has executed the program.
        let child = unsafe { thread::clone(flags, stack + 8 * memory::PAGE, [0, 0], 0, execute, argv) };
        let child = child.must("vfork")? as i32;
        memory::unmap(stack, 8 * memory::PAGE).must("munmap")?;
        child
    };
    equal!(process::wait(child).must("wait")?.1, Ended::Exited(number), "the program's status");
    Ok(())
}

/// Bytes through a pipe to a child and back, in pieces of any size, registers checked.
pub fn pipe(random: &mut Random) -> Outcome {
    let (request_read, request_write) = io::pipe().must("pipe")?;
    let (answer_read, answer_write) = io::pipe().must("pipe")?;
    let seed = random.next();
    let echo = child::start(|| {
        io::close(request_write).must("close")?;
        let mut random = Random::new(seed);
        let mut buffer = [0_u8; 3_000];
        loop {
            let length = 1 + random.below(buffer.len() as u64) as usize;
            let arguments = [request_read as usize, buffer.as_mut_ptr() as usize, length];
            let count = checked_call(&mut random, nr::READ, &arguments)?;
            ensure!(count >= 0, "read from the pipe");
            if count == 0 {
                return Ok(());
            }
            io::write_all(answer_write, &buffer[..count as usize]).must("write")?;
        }
    })?;
    io::close(answer_write).must("close")?;
    let mut sent = [0_u8; 9_000];
    let mut got = [0_u8; 9_000];
    for _ in 0..20 {
        let length = 1 + random.below(9_000) as usize;
        sent[..length].iter_mut().for_each(|byte| *byte = random.next() as u8);
        let arguments = [request_write as usize, sent.as_ptr() as usize, length];
        equal!(checked_call(random, nr::WRITE, &arguments)?, length as isize, "bytes written");
        equal!(io::read_full(answer_read, &mut got[..length]).must("read")?, length, "bytes back");
        ensure!(sent[..length] == got[..length], "the bytes that came back");
    }
    for file in [request_read, request_write, answer_read] {
        io::close(file).must("close")?;
    }
    child::finish(echo)
}

/// Children that wait in all kinds of calls, or run, are killed.
pub fn kill_blocked(random: &mut Random) -> Outcome {
    let (read, write) = io::pipe().must("pipe")?;
    let kind = random.below(5);
    let child = child::start(|| {
        match kind {
            0 => drop(io::read(read, &mut [0])),
            1 => drop(clock::sleep(1_000_000_000_000)),
            2 => drop(thread::wait(&core::sync::atomic::AtomicU32::new(0), 0, None)),
            3 => drop(process::wait(child::start(|| {
                clock::sleep(5_000_000);
                Ok(())
            })?)),
            _ => loop {
                core::hint::spin_loop();
            },
        }
        loop {
            clock::sleep(1_000_000_000);
        }
    })?;
    clock::sleep(random.below(3_000_000));
    process::kill(child, SIGKILL as i32).must("kill")?;
    equal!(process::wait(child).must("wait")?.1, Ended::Killed(SIGKILL as u8), "the killed child");
    io::close(read).must("close")?;
    io::close(write).must("close")
}
