use std::vec::Vec;

use super::*;
use crate::mem::host;
use crate::mem::pgtable::PageTable;

#[test]
fn a_space_that_changed_elsewhere_is_flushed_on_return() {
    let _turn = host::arena();
    asid::set_bits(16);
    let (a, b) = (PageTable::new().unwrap(), PageTable::new().unwrap());
    let hart = hart::id();
    a.space().activate();
    assert_eq!(a.space().running(), 1 << hart);
    let pages = fences(hart, Reason::Unmap, Form::Page);
    a.space().shoot(0x1000, 0x3000, false, Reason::Unmap);
    assert_eq!(fences(hart, Reason::Unmap, Form::Page), pages + 2);
    b.space().activate();
    assert_eq!((a.space().running(), b.space().running()), (0, 1 << hart));
    let flushes = fences(hart, Reason::Switch, Form::Asid);
    a.space().activate();
    assert_eq!(fences(hart, Reason::Switch, Form::Asid), flushes);
    b.space().activate();
    a.space().shoot(0, 0, true, Reason::Unmap);
    a.space().activate();
    assert_eq!(fences(hart, Reason::Switch, Form::Asid), flushes + 1);
    deactivate();
    assert_eq!(a.space().running(), 0);
}

#[test]
fn asids_roll_over_without_two_spaces_of_one_number() {
    let _turn = host::arena();
    asid::set_bits(16);
    let running = PageTable::new().unwrap();
    running.space().activate();
    asid::leave_only(3);
    let hart = hart::id();
    let flushes = fences(hart, Reason::Rollover, Form::All);
    let tables = (0..6).map(|_| PageTable::new().unwrap()).collect::<Vec<_>>();
    for pt in &tables {
        pt.space().activate();
    }
    assert_eq!(fences(hart, Reason::Rollover, Form::All), flushes + 1);
    running.space().activate();
    for pt in &tables[3..] {
        assert_ne!(pt.space().asid(), running.space().asid());
    }
    deactivate();
}

#[test]
fn without_asids_each_switch_flushes() {
    let _turn = host::arena();
    asid::set_bits(0);
    let (a, b) = (PageTable::new().unwrap(), PageTable::new().unwrap());
    let hart = hart::id();
    let flushes = fences(hart, Reason::Switch, Form::Asid);
    a.space().activate();
    a.space().activate();
    b.space().activate();
    assert_eq!((a.space().asid(), b.space().asid()), (0, 0));
    assert_eq!(fences(hart, Reason::Switch, Form::Asid), flushes + 2);
    deactivate();
    asid::set_bits(16);
}

#[test]
fn a_spurious_fault_that_comes_again_escalates() {
    let _turn = host::arena();
    let pt = PageTable::new().unwrap();
    let hart = hart::id();
    let count = |form| fences(hart, Reason::Spurious, form);
    let before = [Form::Page, Form::Asid, Form::All].map(count);
    for _ in 0..3 {
        pt.space().spurious(0x5000);
    }
    pt.space().spurious(0x6000);
    let after = [Form::Page, Form::Asid, Form::All].map(count);
    assert_eq!([0, 1, 2].map(|i| after[i] - before[i]), [2, 1, 1]);
}
