# Every class of instruction and trap, in numbers that tests/src/lab.rs states again. A region for each theme.
#
# The handlers keep only t5 and t6 for themselves, so that no state needs saving and every path is a few instructions.
# Registers with a fixed meaning: s1 where S mode goes on after user mode, s2 page faults still to be refused, s3 the
# table of user pages, s4 the entry that a faulting page gets.

    .option norvc
    .set    USER, 0x40000000                # where user pages lie; the first holds the section .user
    .set    UART, 0x10000000

# What can be done in any mode; a0 points to 64 bytes on a line. 61 instructions.
    .macro classes
    lb      t1, 0(a0)                       # 6 loads
    lh      t1, 0(a0)
    lw      t1, 0(a0)
    ld      t1, 0(a0)
    lbu     t1, 1(a0)
    .option push
    .option rvc
    c.ld    a1, 0(a0)
    sb      t1, 0(a0)                       # 5 stores
    sh      t1, 0(a0)
    sw      t1, 0(a0)
    sd      t1, 0(a0)
    c.sd    a1, 0(a0)
    .option pop
    amoadd.w t2, t1, (a0)                   # 4 amo
    amoswap.d t2, t1, (a0)
    amomax.w t2, t1, (a0)
    amoand.d t2, t1, (a0)
    lr.w    t1, (a0)                        # 2 lr
    lr.d    t1, (a0)
    sc.w    t2, t1, (a0)                    # 3 sc, two of them in vain
    sc.w    t2, t1, (a0)
    sc.d    t2, t1, (a0)
    fence                                   # 3 fence, and a pause
    fence   rw, w
    fence.tso
    pause
    fence.i                                 # 2 fence.i
    fence.i
    fadd.d  ft0, ft0, ft0                   # 7 fp, of them 2 loads and 1 store
    fmadd.d ft0, ft0, ft0, ft0
    fcvt.d.l ft1, t1
    fmv.x.d t1, ft1
    fld     ft2, 0(a0)
    .option push
    .option rvc
    c.fld   fa0, 0(a0)
    .option pop
    fsd     ft2, 0(a0)
    vsetvli t1, zero, e8, m1, ta, ma        # 4 vector, of them 1 load and 1 store
    vadd.vv v1, v1, v1
    vle8.v  v2, (a0)
    vse8.v  v2, (a0)
    cbo.zero (a0)                           # 2 and 3 on cache lines
    cbo.zero (a0)
    cbo.clean (a0)
    cbo.flush (a0)
    cbo.inval (a0)
    .rept   10
    addi    t1, t1, 1
    .endr
    jal     ra, 3f                          # 3 calls, 3 returns
2:  auipc   t2, %pcrel_hi(3f)
    addi    t2, t2, %pcrel_lo(2b)
    jalr    ra, t2
    jal     t0, 4f
    j       5f
3:  ret
4:  jr      t0
5:
    .endm

machine:
    la      t0, machine_trap
    csrw    mtvec, t0
    li      t0, 0xf0                        # cbo.* in lower modes
    csrw    menvcfg, t0
    la      a0, line

    begin   1                               # M mode: classes, 6 accesses to 2 registers
    classes
    csrr    t1, mstatus
    csrr    t1, mstatus
    csrw    mscratch, t1
    csrw    mscratch, t1
    csrsi   mscratch, 1
    csrrw   t1, mscratch, t1
    end     1
    supervise kernel

    .balign 4
machine_trap:
    csrr    t6, mcause
    li      t5, 9
    bne     t6, t5, 1f
    csrr    t5, mepc                        # ecall from S: nothing. 7 instructions
    addi    t5, t5, 4
    csrw    mepc, t5
    mret
1:  csrr    t5, mepc                        # all else from U is handed on to S. 16 instructions
    csrw    sepc, t5
    csrw    scause, t6
    csrr    t5, mtval
    csrw    stval, t5
    csrr    t5, stvec
    csrw    mepc, t5
    li      t5, 0x100
    csrc    mstatus, t5
    li      t5, 1
    slli    t5, t5, 11
    csrs    mstatus, t5
    mret

    .balign 4
trap:
    csrr    t6, scause
    bltz    t6, 7f
    li      t5, 8
    bne     t6, t5, 1f
    csrr    t5, sepc                        # ecall: 100 does nothing in 12 instructions,
    addi    t5, t5, 4
    csrw    sepc, t5
    li      t5, 101                         # 101 raises an interrupt in 11,
    beq     a7, t5, 2f
    li      t5, 102                         # 102 ends user mode
    beq     a7, t5, 3f
    sret
2:  csrsi   sip, 2
    sret
3:  jr      s1
1:  li      t5, 3
    beq     t6, t5, 6f
    li      t5, 2
    bne     t6, t5, 4f
6:  csrr    t5, sepc                        # breakpoint (10), illegal instruction (12): skipped
    addi    t5, t5, 4
    csrw    sepc, t5
    sret
4:  beqz    s2, 5f                          # page fault: refused in 11 instructions,
    addi    s2, s2, -1
    sret
5:  csrr    t5, stval                       # or the page is mapped in 18
    srli    t5, t5, 12
    andi    t5, t5, 511
    slli    t5, t5, 3
    add     t5, t5, s3
    sd      s4, 0(t5)
    csrr    t5, stval
    sfence.vma t5, zero
    sret
7:  csrci   sip, 2                          # interrupt: taken back in 4
    sret

kernel:
    la      t0, trap
    csrw    stvec, t0
    li      t0, 0xf0
    csrw    senvcfg, t0
    csrsi   sie, 2
    la      a0, line
    li      a1, 7

    begin   2                               # S mode: classes, fences by form, 8 accesses to 2 registers
    classes
    sfence.vma zero, zero
    .rept   2
    sfence.vma zero, a1
    .endr
    .rept   3
    sfence.vma a0, zero
    .endr
    .rept   4
    sfence.vma a0, a1
    .endr
    .rept   5
    sinval.vma zero, zero
    .endr
    .rept   6
    sinval.vma zero, a1
    .endr
    .rept   7
    sinval.vma a0, zero
    .endr
    .rept   8
    sinval.vma a0, a1
    .endr
    .rept   2
    sfence.w.inval
    .endr
    .rept   3
    sfence.inval.ir
    .endr
    csrr    t1, sstatus
    csrs    sstatus, zero
    csrw    sscratch, t1
    csrrw   zero, sscratch, t1
    csrsi   sscratch, 4
    csrrc   t1, sscratch, t1
    csrrwi  t1, sscratch, 3
    csrrsi  t1, sscratch, 0
    end     2

    la      t0, root                        # Sv39: the first and the third gigabyte for S, user pages between
    li      t1, 0xc7                        # 0: R W A D
    sd      t1, 0(t0)
    la      t1, middle
    srli    t1, t1, 2
    ori     t1, t1, 1
    sd      t1, 8(t0)
    li      t1, 0x200000cf                  # 2 GiB: R W X A D
    sd      t1, 16(t0)
    la      t1, middle
    la      s3, leaves
    srli    t2, s3, 2
    ori     t2, t2, 1
    sd      t2, 0(t1)
    la      s4, user
    srli    s4, s4, 2
    ori     s4, s4, 0xdf                    # U R W X A D
    sd      s4, 0(s3)
    srli    t0, t0, 12
    li      t1, 8
    slli    t1, t1, 60
    or      t0, t0, t1
    csrw    satp, t0
    sfence.vma

    li      s2, 0
    la      s1, after
    li      t0, USER
    csrw    sepc, t0
    li      t0, 0x100
    csrc    sstatus, t0
    sret

after:
    li      a1, UART
    li      t3, 5
    begin   7                               # device accesses inside a block, a loop that begins right behind one
1:  li      t1, 3
    lb      t2, 5(a1)
2:  addi    t1, t1, -1
    bnez    t1, 2b
    addi    t3, t3, -1
    bnez    t3, 1b
    lb      t2, 5(a1)
    addi    t1, t1, 1
    lb      t2, 5(a1)
    addi    t1, t1, 1
    end     7

    begin   8                               # an interrupt in the kernel; wfi with one pending and not enabled
    csrsi   sip, 2
    csrsi   sstatus, 2
    csrci   sstatus, 2
    csrsi   sip, 2
    wfi
    addi    t1, t1, 1
    wfi
    addi    t1, t1, 1
    csrci   sip, 2
    end     8

    begin   9                               # calls of the firmware
    ecall
    ecall
    end     9
    power_off

    .section .user, "ax", @progbits
    .balign 4096
user:
1:  auipc   a0, %pcrel_hi(user_line)
    addi    a0, a0, %pcrel_lo(1b)

    begin   3                               # U mode: classes, 7 calls
    classes
    li      a7, 100
    .rept   7
    ecall
    .endr
    end     3

    li      a2, USER + 0x10000              # the same page at four more addresses, not mapped yet
    li      t1, 0x11000
    add     a3, a0, t1
    li      t1, 0x13000
    add     a5, a0, t1
1:  auipc   a4, %pcrel_hi(user_leaf)
    addi    a4, a4, %pcrel_lo(1b)
    li      t1, 0x12000
    add     a4, a4, t1
    begin   4                               # page faults: load, store, fetch, an AMO refused twice
    addi    t1, t1, 1
    addi    t1, t1, 1
    addi    t1, t1, 1
    ld      t1, 0(a2)
    addi    t1, t1, 1
    addi    t1, t1, 1
    sd      t1, 0(a3)
    addi    t1, t1, 1
    jalr    ra, a4
    li      s2, 2
    amoadd.w t1, t1, (a5)
    addi    t1, t1, 1
    end     4

    begin   5                               # an interrupt that is pending on the return to user mode
    li      a7, 101
    ecall
    addi    t1, t1, 1
    addi    t1, t1, 1
    end     5

    begin   6                               # breakpoints, and an instruction that is illegal here
    ebreak
    csrr    t1, mstatus
    ebreak
    end     6
    li      a7, 102
    ecall

# Called through another page: comes back to this one.
user_leaf:
    ret

    .balign 64
user_line:
    .skip   64

    .section .bss
    .balign 4096
root:
    .skip   4096
middle:
    .skip   4096
leaves:
    .skip   4096
line:
    .skip   64
