use super::*;
use proptest::prelude::*;

fn events(word: u32) -> Vec<Event> {
    let set = decode(word).events;
    Event::ALL.iter().copied().filter(|event| set & event.bit() != 0 && *event != Event::Instructions).collect()
}

/// Words from the GNU assembler (`-march=rv64gcv_zicbom_zicboz_svinval_zihintpause`).
#[test]
fn classes() {
    use Event::*;
    let table: &[(u32, &[Event])] = &[
        (0x0000_0013, &[]),               // nop
        (0x0005_3503, &[Loads]),          // ld a0, 0(a0)
        (0x00a5_3023, &[Stores]),         // sd a0, 0(a0)
        (0x0005_3507, &[Loads, Fp]),      // fld fa0, 0(a0)
        (0x00a5_3027, &[Stores, Fp]),     // fsd fa0, 0(a0)
        (0x0205_7007, &[Loads, Vector]),  // vle64.v v0, (a0)
        (0x0205_7027, &[Stores, Vector]), // vse64.v v0, (a0)
        (0x0d80_72d7, &[Vector]),         // vsetvli t0, zero, e64, m1
        (0x0220_8057, &[Vector]),         // vadd.vv v0, v2, v1
        (0x02b5_7553, &[Fp]),             // fadd.d fa0, fa0, fa1
        (0x62b5_7543, &[Fp]),             // fmadd.d fa0, fa0, fa1, fa2
        (0x1005_252f, &[Lr]),             // lr.w a0, (a0)
        (0x18b5_252f, &[Sc]),             // sc.w a0, a1, (a0)
        (0x00b5_352f, &[Amo]),            // amoadd.d a0, a1, (a0)
        (0x0ff0_000f, &[Fence]),          // fence
        (0x8330_000f, &[Fence]),          // fence.tso
        (0x0100_000f, &[Pause]),          // pause
        (0x0000_100f, &[FenceI]),         // fence.i
        (0x0005_200f, &[CboManage]),      // cbo.inval (a0)
        (0x0045_200f, &[CboZero]),        // cbo.zero (a0)
        (0x1200_0073, &[SfenceAll]),      // sfence.vma
        (0x12b0_0073, &[SfenceAsid]),     // sfence.vma zero, a1
        (0x1205_0073, &[SfencePage]),     // sfence.vma a0
        (0x12b5_0073, &[SfencePageAsid]), // sfence.vma a0, a1
        (0x1600_0073, &[SinvalAll]),      // sinval.vma zero, zero
        (0x16b5_0073, &[SinvalPageAsid]), // sinval.vma a0, a1
        (0x1800_0073, &[SfenceWInval]),   // sfence.w.inval
        (0x1810_0073, &[SfenceInvalIr]),  // sfence.inval.ir
        (0x0000_0073, &[Ecall]),          // ecall
        (0x0010_0073, &[Ebreak]),         // ebreak
        (0x1020_0073, &[Sret]),           // sret
        (0x3020_0073, &[Mret]),           // mret
        (0x1050_0073, &[Wfi]),            // wfi
        (0x1000_2573, &[Csr]),            // csrr a0, sstatus
        (0x0005_8067, &[]),               // jr a1
        (0x0000_8067, &[Returns]),        // ret
        (0x0002_8067, &[Returns]),        // jr t0
        (0x0005_80e7, &[Calls]),          // jalr a1
        (0x0000_82e7, &[Calls, Returns]), // jalr t0, ra
        (0x0002_82e7, &[Calls]),          // jalr t0, t0
        (0x0000_00ef, &[Calls]),          // jal .
        (0x0000_006f, &[]),               // j .
        (0x4108, &[Loads]),               // c.lw a0, 0(a0)
        (0x2108, &[Loads, Fp]),           // c.fld fa0, 0(a0)
        (0xe108, &[Stores]),              // c.sd a0, 0(a0)
        (0x60a2, &[Loads]),               // c.ldsp ra, 8(sp)
        (0xe406, &[Stores]),              // c.sdsp ra, 8(sp)
        (0xa422, &[Stores, Fp]),          // c.fsdsp fs0, 8(sp)
        (0x8082, &[Returns]),             // ret
        (0x9582, &[Calls]),               // c.jalr a1
        (0x9282, &[Calls, Returns]),      // c.jalr t0: rd is x1
        (0x9082, &[Calls]),               // c.jalr ra
        (0x8582, &[]),                    // c.jr a1
        (0x9002, &[Ebreak]),              // c.ebreak
        (0x852e, &[]),                    // c.mv a0, a1
        (0x952e, &[]),                    // c.add a0, a1
        (0xa001, &[]),                    // c.j .
    ];
    for (word, expected) in table {
        assert_eq!(&events(*word), expected, "{word:#010x}");
    }
}

#[test]
fn accesses_to_registers() {
    let access = |word| decode(word).csr.map(|access| (access.csr, access.reads, access.writes));
    assert_eq!(access(0x1000_2573), Some((0x100, true, false))); // csrr a0, sstatus
    assert_eq!(access(0x1000_2073), Some((0x100, true, false))); // csrrs x0, sstatus, x0
    assert_eq!(access(0x1805_1073), Some((0x180, false, true))); // csrw satp, a0
    assert_eq!(access(0x1001_6073), Some((0x100, false, true))); // csrsi sstatus, 2
    assert_eq!(access(0x1401_1173), Some((0x140, true, true))); // csrrw sp, sscratch, sp
    assert_eq!(access(0x1000_7573), Some((0x100, true, false))); // csrrci a0, sstatus, 0
}

#[test]
fn markers() {
    assert_eq!(decode(0x0020_2013).flow, Flow::Marker(2));
    assert_eq!(decode(0x7ff0_2013).flow, Flow::Marker(2047));
    assert_eq!(decode(0xfff0_2013).flow, Flow::Next); // negative
    assert_eq!(decode(0x0020_2513).flow, Flow::Next); // slti a0, zero, 2
}

pub(crate) fn jal(rd: u32, distance: i32) -> u32 {
    let bits = distance as u32;
    (bits >> 20 & 1) << 31
        | (bits >> 1 & 0x3ff) << 21
        | (bits >> 11 & 1) << 20
        | (bits >> 12 & 0xff) << 12
        | rd << 7
        | 0x6f
}

pub(crate) fn branch(distance: i32) -> u32 {
    let bits = distance as u32;
    (bits >> 12 & 1) << 31 | (bits >> 5 & 0x3f) << 25 | (bits >> 1 & 0xf) << 8 | (bits >> 11 & 1) << 7 | 0x63
}

fn compressed_jump(distance: i32) -> u32 {
    let bit = |from: u32, to: u32| (distance as u32 >> from & 1) << to;
    0xa001
        | bit(11, 12)
        | bit(4, 11)
        | bit(9, 10)
        | bit(8, 9)
        | bit(10, 8)
        | bit(6, 7)
        | bit(7, 6)
        | bit(3, 5)
        | bit(2, 4)
        | bit(1, 3)
        | bit(5, 2)
}

fn compressed_branch(distance: i32) -> u32 {
    let bit = |from: u32, to: u32| (distance as u32 >> from & 1) << to;
    0xc001 | bit(8, 12) | bit(4, 11) | bit(3, 10) | bit(7, 6) | bit(6, 5) | bit(2, 4) | bit(1, 3) | bit(5, 2)
}

proptest! {
    #[test]
    fn distances(far in -(1 << 19)..1 << 19, middle in -(1 << 11)..1 << 11, near in -(1 << 10)..1 << 10, close in -(1 << 7)..1 << 7, rd in 0_u32..32) {
        prop_assert_eq!(decode(jal(rd, far * 2)).flow, Flow::Jump(i64::from(far) * 2, rd == 1 || rd == 5));
        prop_assert_eq!(decode(branch(middle * 2)).flow, Flow::Branch(i64::from(middle) * 2));
        prop_assert_eq!(decode(compressed_jump(near * 2)).flow, Flow::Jump(i64::from(near) * 2, false));
        prop_assert_eq!(decode(compressed_branch(close * 2)).flow, Flow::Branch(i64::from(close) * 2));
    }

    #[test]
    fn hints_follow_the_table(rd in 0_u32..32, rs1 in 0_u32..32) {
        let link = |register| register == 1 || register == 5;
        let (pops, pushes) = match (link(rd), link(rs1)) {
            (false, false) => (false, false),
            (false, true) => (true, false),
            (true, false) => (false, true),
            (true, true) => (rd != rs1, true),
        };
        let found = decode(rd << 7 | rs1 << 15 | 0x67);
        prop_assert_eq!(found.events & Event::Returns.bit() != 0, pops);
        prop_assert_eq!(found.events & Event::Calls.bit() != 0, pushes);
        if rs1 != 0 {
            let short = decode(0x8002 | rs1 << 7);
            prop_assert_eq!(short.flow, Flow::Indirect(Hint::of(0, rs1)));
        }
    }

    #[test]
    fn every_word_is_one_instruction(word: u32) {
        let found = decode(word);
        prop_assert_eq!(found.length, if word & 3 == 3 { 4 } else { 2 });
        prop_assert!(found.events & Event::Instructions.bit() != 0);
        prop_assert_eq!(found.csr.is_some(), found.events & Event::Csr.bit() != 0);
        if found.length == 2 {
            prop_assert_eq!(decode(word & 0xffff), found);
        }
    }
}
