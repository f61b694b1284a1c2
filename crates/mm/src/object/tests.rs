use std::vec;
use std::vec::Vec;

use hal::mem::frame::stats;
use hal::mem::host;
use hal::user::{InBuf, OutBuf};

use super::*;

fn read(object: &Object, offset: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![0xee; len];
    let n = object.read(offset, &mut OutBuf::Kernel(&mut bytes)).unwrap();
    bytes.truncate(n);
    bytes
}

fn write(object: &Object, offset: usize, bytes: &[u8]) {
    assert_eq!(object.write(offset, &mut InBuf::Kernel(bytes)), Ok(bytes.len()));
}

#[test]
fn written_bytes_are_read_back_and_holes_are_zero() {
    let _turn = host::arena();
    let before = stats();
    let object = Object::new().unwrap();
    write(&object, 10_000, b"hello");
    assert_eq!(object.size(), 10_005);
    assert_eq!(object.resident_pages(), 1);
    assert_eq!(read(&object, 9_998, 100), b"\0\0hello");
    assert_eq!(read(&object, 0, 5000), [0; 5000]);
    assert_eq!(read(&object, 20_000, 5), b"");
    write(&object, 4090, &[7; 12]);
    assert_eq!(read(&object, 4089, 14), [0, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0]);
    object.truncate(4092);
    object.truncate(5000);
    assert_eq!(read(&object, 4089, 14), [0, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(object.write(usize::MAX - 3, &mut InBuf::Kernel(b"x")), Err(Errno::EFBIG));
    drop(object);
    assert_eq!(stats().free + stats().heap, before.free + before.heap);
}

#[test]
fn archive_pages_are_used_in_place_when_aligned() {
    let _turn = host::arena();
    let bytes = (0..3 * PAGE_SIZE + 100).map(|i| (i * 7 / 3) as u8).collect::<Vec<_>>();
    for shift in [0, 52] {
        let start = host::boot_memory(8 * PAGE_SIZE + shift, &bytes);
        let before = stats();
        let object = Object::from_boot_memory(start, bytes.len()).unwrap();
        assert_eq!(read(&object, 5, 100_000), &bytes[5..]);
        let copied = before.free + before.heap - stats().free - stats().heap;
        assert_eq!(copied, if shift == 0 { 1 } else { 4 });
        // Growing shows zeroes and not what follows in the archive; shrinking does not bring old contents back.
        object.truncate(4 * PAGE_SIZE);
        assert_eq!(read(&object, bytes.len(), 10), [0; 10]);
        object.truncate(PAGE_SIZE + 1);
        object.truncate(3 * PAGE_SIZE);
        assert_eq!(read(&object, PAGE_SIZE, 3), [bytes[PAGE_SIZE], 0, 0]);
        assert_eq!(read(&object, 2 * PAGE_SIZE, 3), [0; 3]);
        write(&object, 0, b"new");
        assert_eq!(read(&object, 0, 4), [b'n', b'e', b'w', bytes[3]]);
        drop(object);
        assert_eq!(stats().free + stats().heap, before.free + before.heap);
    }
}

#[test]
fn truncation_before_first_use_forgets_the_archive() {
    let _turn = host::arena();
    let start = host::boot_memory(64 * PAGE_SIZE, &[5; 2 * PAGE_SIZE]);
    let object = Object::from_boot_memory(start, 2 * PAGE_SIZE).unwrap();
    object.truncate(100);
    object.truncate(2 * PAGE_SIZE);
    assert_eq!(read(&object, 98, 4), [5, 5, 0, 0]);
    assert_eq!(read(&object, PAGE_SIZE, 4), [0; 4]);
}

#[test]
fn holes_are_punched_and_sought() {
    let _turn = host::arena();
    let object = Object::new().unwrap();
    write(&object, 0, &[3; 5 * PAGE_SIZE]);
    object.punch(100, 3 * PAGE_SIZE + 7).unwrap();
    assert_eq!(read(&object, 99, 2), [3, 0]);
    assert_eq!(read(&object, 3 * PAGE_SIZE + 6, 2), [0, 3]);
    assert_eq!(object.resident_pages(), 3);
    assert_eq!(object.seek(0, false), Some(PAGE_SIZE));
    assert_eq!(object.seek(PAGE_SIZE, true), Some(3 * PAGE_SIZE));
    assert_eq!(object.seek(3 * PAGE_SIZE, false), Some(5 * PAGE_SIZE));
    assert_eq!(object.seek(5 * PAGE_SIZE, true), None);
    let start = host::boot_memory(96 * PAGE_SIZE, &[5; 3 * PAGE_SIZE]);
    let object = Object::from_boot_memory(start, 3 * PAGE_SIZE).unwrap();
    object.punch(0, 2 * PAGE_SIZE).unwrap();
    assert_eq!(read(&object, 2 * PAGE_SIZE - 1, 2), [0, 5]);
    assert_eq!(read(&object, 0, 2), [0, 0]);
}

#[test]
fn a_fault_in_the_middle_of_a_write_keeps_what_arrived() {
    let _turn = host::arena();
    let object = Object::new().unwrap();
    let at = hal::user::host::install(PAGE_SIZE + 50);
    hal::user::host::poke(at, &[9; PAGE_SIZE + 50]);
    assert_eq!(object.write(10, &mut InBuf::User(at, 2 * PAGE_SIZE)), Ok(PAGE_SIZE + 50));
    assert_eq!(object.size(), PAGE_SIZE + 60);
    assert_eq!(object.write(10, &mut InBuf::User(hal::addr::UserAddr(0), 5)), Err(Errno::EFAULT));
    assert_eq!(read(&object, PAGE_SIZE + 55, 20), [9; 5]);
}

#[test]
fn what_is_found_in_a_large_sparse_file_is_found_at_once() {
    let _turn = host::arena();
    let object = Object::new().unwrap();
    let size = 1 << 60;
    object.truncate(size);
    assert_eq!(object.seek(0, true), None);
    assert_eq!(object.seek(0, false), Some(0));
    write(&object, size - 1, b"x");
    assert_eq!(object.seek(7, true), Some(size - PAGE_SIZE));
    assert_eq!(object.seek(size - 7, true), Some(size - 7));
    assert_eq!(object.seek(size - 7, false), Some(size));
    object.truncate(0);
    assert_eq!(object.resident_pages(), 0);
}
