use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::testing::{read, write};

fn pair() -> (Arc<File>, Arc<File>) {
    pipe2(&Credentials::root(), 0).unwrap()
}

#[test]
fn ends() {
    let _memory = hal::mem::host::arena();
    let (r, w) = pair();
    assert_eq!(read(&r, 1).err(), Some(Errno::EAGAIN));
    assert_eq!(write(&r, b"x").err(), Some(Errno::EBADF));
    assert_eq!(r.seek(0, 0).err(), Some(Errno::ESPIPE));
    assert_eq!((r.poll(), w.poll()), (PollEvents::empty(), PollEvents::WRITABLE));
    write(&w, b"last").unwrap();
    assert_eq!(r.poll(), PollEvents::READABLE);
    drop(w);
    assert_eq!(r.poll(), PollEvents::READABLE | PollEvents::HUP);
    assert_eq!(read(&r, 9).unwrap(), b"last");
    assert_eq!(read(&r, 9).unwrap(), b"");
    let (r, w) = pair();
    drop(r);
    assert_eq!(write(&w, b"x").err(), Some(Errno::EPIPE));
    assert_eq!(write(&w, b""), Ok(0));
    assert_eq!(w.poll(), PollEvents::WRITABLE | PollEvents::ERR);
    assert_eq!(pipe2(&Credentials::root(), uapi::open::O_DIRECT).err(), Some(Errno::EINVAL));
}

#[test]
fn small_writes_are_whole_and_large_ones_fill() {
    let _memory = hal::mem::host::arena();
    let (r, w) = pair();
    assert_eq!(write(&w, &vec![1; 65536 - 100]), Ok(65536 - 100));
    assert_eq!(write(&w, &[2; 101]).err(), Some(Errno::EAGAIN), "no part of a small write");
    assert_eq!(write(&w, &vec![3; 5000]), Ok(100), "a large one fills what there is");
    assert_eq!(w.poll(), PollEvents::empty());
    assert_eq!(read(&r, 1).unwrap(), [1]);
    assert_eq!(w.poll(), PollEvents::empty(), "writable means room for PIPE_BUF");
    assert_eq!(read(&r, 4095).unwrap().len(), 4095);
    assert_eq!(w.poll(), PollEvents::WRITABLE);
}

#[test]
fn sizes() {
    let _memory = hal::mem::host::arena();
    let (r, w) = pair();
    let pipe = r.as_pipe().unwrap();
    let user = Credentials::user(1, 1);
    assert_eq!(pipe.size(), 65536);
    write(&w, &vec![7; 10000]).unwrap();
    read(&r, 3000).unwrap();
    assert_eq!(pipe.set_size(&user, 4096), Err(Errno::EBUSY));
    assert_eq!(pipe.set_size(&user, 12000), Ok(16384));
    assert_eq!(pipe.set_size(&user, MAX_SIZE + 1), Err(Errno::EPERM));
    assert_eq!(pipe.set_size(&Credentials::root(), usize::MAX), Err(Errno::EINVAL));
    assert_eq!(pipe.set_size(&Credentials::root(), 2 << 20), Ok(2 << 20));
    assert_eq!(read(&r, 9999).unwrap(), vec![7; 7000]);
    let at = hal::user::host::install(4);
    write(&w, b"abc").unwrap();
    r.ioctl(FIONREAD, at.0).unwrap();
    assert_eq!(hal::user::host::peek(at, 4), [3, 0, 0, 0]);
    assert_eq!(r.ioctl(0x5401, at.0), Err(Errno::ENOTTY));
}

#[test]
fn a_bad_address_loses_nothing() {
    let _memory = hal::mem::host::arena();
    let (r, w) = pair();
    let at = hal::user::host::install(100);
    assert_eq!(w.write(&mut InBuf::User(UserAddr(1), 10)).err(), Some(Errno::EFAULT));
    assert_eq!(w.write(&mut InBuf::User(at.add(90), 20)), Ok(10));
    assert_eq!(r.read(&mut OutBuf::User(UserAddr(1), 10)).err(), Some(Errno::EFAULT));
    assert_eq!(r.read(&mut OutBuf::User(at.add(96), 10)), Ok(4));
    assert_eq!(read(&r, 100).unwrap().len(), 6);
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_read_wakes_only_where_a_writer_can_wait() {
    let _memory = hal::mem::host::arena();
    let (r, w) = pair();
    let count = Arc::new(Count::default());
    let entry = r.wait_queue().unwrap().add(&count.clone().into());
    let woken = || count.0.swap(0, Ordering::Relaxed);
    write(&w, &[0; 10]).unwrap();
    assert_eq!(woken(), 1, "a write always wakes");
    read(&r, 10).unwrap();
    assert_eq!(woken(), 0, "there was room all the time");
    write(&w, &vec![0; 65536 - PIPE_BUF]).unwrap();
    woken();
    read(&r, 1).unwrap();
    assert_eq!(woken(), 0, "the largest whole write had room");
    write(&w, &[0; 2]).unwrap();
    woken();
    assert_eq!(write(&w, &[0; PIPE_BUF]), Err(Errno::EAGAIN));
    read(&r, 1).unwrap();
    assert_eq!((woken(), write(&w, &[0; PIPE_BUF])), (1, Ok(PIPE_BUF)), "a waiting writer is told");
    assert_eq!(write(&w, &[0; 1]), Err(Errno::EAGAIN));
    woken();
    read(&r, 1).unwrap();
    assert_eq!(woken(), 1);
    r.wait_queue().unwrap().remove(entry);
}

#[derive(Clone, Debug)]
enum Step {
    Write(usize),
    Read(usize),
    Resize(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let len = prop_oneof![4 => 1..40usize, 2 => 4000..4200usize, 2 => 0..70000usize];
    prop_oneof![
        5 => len.clone().prop_map(Step::Write),
        5 => len.prop_map(Step::Read),
        1 => (1..200_000usize).prop_map(Step::Resize),
    ]
}

proptest! {
    #[test]
    fn a_pipe_is_a_queue(steps in proptest::collection::vec(step(), 1..100)) {
        let _memory = hal::mem::host::arena();
        let (r, w) = pair();
        let mut queue = VecDeque::new();
        let mut capacity = 65536;
        let mut next = 0u8;
        for step in steps {
            match step {
                Step::Write(len) => {
                    let bytes: Vec<u8> = (0..len).map(|i| next.wrapping_add(i as u8)).collect();
                    let free = capacity - queue.len();
                    let want = if len > free && (len <= PIPE_BUF || free == 0) { Err(Errno::EAGAIN) } else { Ok(len.min(free)) };
                    prop_assert_eq!(write(&w, &bytes), want);
                    let n = want.unwrap_or(0);
                    queue.extend(&bytes[..n]);
                    next = next.wrapping_add(n as u8);
                }
                Step::Read(0) => prop_assert_eq!(read(&r, 0), Ok(vec![])),
                Step::Read(len) => {
                    let n = len.min(queue.len());
                    let want = if n == 0 { Err(Errno::EAGAIN) } else { Ok(queue.drain(..n).collect()) };
                    prop_assert_eq!(read(&r, len), want);
                }
                Step::Resize(bytes) => match r.as_pipe().unwrap().set_size(&Credentials::root(), bytes) {
                    Ok(size) => {
                        prop_assert!(size >= bytes && size.is_power_of_two());
                        capacity = size;
                    }
                    // The first byte may lie within a page, so up to a page more than the content is needed.
                    Err(error) => {
                        prop_assert_eq!(error, Errno::EBUSY);
                        prop_assert!(bytes < queue.len() + PAGE_SIZE);
                    }
                },
            }
            prop_assert_eq!(r.as_pipe().unwrap().len(), queue.len());
        }
    }
}
