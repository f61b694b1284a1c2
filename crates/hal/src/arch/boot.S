# From the firmware to Rust: turn translation on, find a stack.
#
# The firmware enters with a0 = hart id, a1 = device tree (SBI; the image header is Linux's, so that any loader of Linux
# images starts this one), translation off, interrupts off. The tables below serve Sv39, Sv48 and Sv57 alike: the same
# page is the root in Sv39 and the third level in Sv57. They map the image where it is linked and all of low physical
# memory at the direct map; kernel_map.rs narrows both as soon as it knows what is where.
#
# No identity map: stvec points at the high address before satp is written, so the fetch behind the write faults
# and arrives there. A satp write with an unsupported mode has no effect (privileged specification, satp) and falls
# through to the next mode.

    .section .head.text, "ax", @progbits
    .globl  _start
_start:
    .option push
    .option norvc
    j       .Lboot                      # code0
    .option pop
    .word   0                           # code1
    .dword  0x200000                    # load offset from the start of memory
    .dword  __image_size
    .dword  0                           # flags: little-endian
    .word   2                           # header version 0.2
    .word   0
    .dword  0
    .ascii  "RISCV\0\0\0"
    .ascii  "RSC\x05"
    .word   0

.Lboot:
    csrw    sie, zero
    li      t0, {SSTATUS_OFF}
    csrc    sstatus, t0
    mv      s0, a0
    mv      s1, a1
    csrr    s3, time
    la      t0, __bss_start
    la      t1, __bss_end
1:  sd      zero, 0(t0)                 # both ends are page-aligned
    addi    t0, t0, 8
    bltu    t0, t1, 1b

    la      s2, _start                  # where the image really is
    la      t0, limen_boot_l1           # 2 MiB leaves for the image
    srli    t1, s2, 2                   # PPN field of its first page
    ori     t1, t1, {RWX}
    addi    t0, t0, 8                   # linked at 2 MiB into its GiB
    li      t2, {IMAGE_LEAVES}
    li      t3, 0x80000                 # 2 MiB in the PPN field
2:  sd      t1, 0(t0)
    add     t1, t1, t3
    addi    t0, t0, 8
    addi    t2, t2, -1
    bnez    t2, 2b

    la      t0, limen_boot_l2
    la      t1, limen_boot_l1
    srli    t1, t1, 2
    ori     t1, t1, 1
    li      t2, 510 * 8                 # the GiB at -2 GiB
    add     t2, t2, t0
    sd      t1, 0(t2)
    li      t2, 256 * 8                 # the direct map: 128 GiB in 1 GiB leaves
    add     t2, t2, t0
    li      t1, {RW}
    li      t3, 0x10000000              # 1 GiB in the PPN field
    li      t4, 128
3:  sd      t1, 0(t2)
    add     t1, t1, t3
    addi    t2, t2, 8
    addi    t4, t4, -1
    bnez    t4, 3b

    la      t2, limen_boot_l3           # Sv48: the last entry leads down
    srli    t1, t0, 2
    ori     t1, t1, 1
    li      t5, 511 * 8
    add     t4, t2, t5
    sd      t1, 0(t4)
    la      t3, limen_boot_l4           # Sv57: one more
    srli    t1, t2, 2
    ori     t1, t1, 1
    add     t4, t3, t5
    sd      t1, 0(t4)

    ld      t4, .Lhigh_address
    csrw    stvec, t4
    sfence.vma
    li      t5, 1
    slli    t6, t5, 63                  # mode 8: Sv39
    slli    t5, t5, 60
    srli    t0, t0, 12
    srli    t2, t2, 12
    srli    t3, t3, 12
    or      t0, t0, t6
    add     t6, t6, t5                  # mode 9: Sv48
    or      t2, t2, t6
    add     t6, t6, t5                  # mode 10: Sv57
    or      t3, t3, t6
    csrw    satp, t3
    csrw    satp, t2
    csrw    satp, t0
4:  wfi                                 # no translation at all: nothing can be done
    j       4b

    .balign 8
.Lhigh_address:
    .dword  .Lhigh
.Lsecondary_high_address:
    .dword  .Lsecondary_high

    .balign 4
.Lhigh:
    la      tp, limen_boot_blocks
    li      t0, {HEAD_OFFSET}
    add     tp, tp, t0
    addi    sp, tp, -{FRAME}
    csrw    sscratch, tp
    la      t0, limen_trap_entry
    csrw    stvec, t0
    mv      a0, s0
    mv      a1, s1
    mv      a2, s2
    mv      a3, s3
    call    limen_boot
    unimp

# A secondary hart, by SBI HSM: a0 = hart id, a1 = physical address of its start record (satp, head).
    .balign 4
    .globl  limen_secondary_start
limen_secondary_start:
    csrw    sie, zero
    li      t0, {SSTATUS_OFF}
    csrc    sstatus, t0
    ld      t0, 0(a1)
    ld      s1, 8(a1)
    ld      t4, .Lsecondary_high_address
    csrw    stvec, t4
    sfence.vma
    csrw    satp, t0
    unimp
    .balign 4
.Lsecondary_high:
    mv      tp, s1
    addi    sp, tp, -{FRAME}
    csrw    sscratch, tp
    la      t0, limen_trap_entry
    csrw    stvec, t0
    call    limen_boot_secondary
    unimp

    .section .bss.tables, "aw", @nobits
    .balign 4096
    .globl  limen_boot_l1, limen_boot_l2, limen_boot_l3, limen_boot_l4
limen_boot_l1: .space 4096
limen_boot_l2: .space 4096
limen_boot_l3: .space 4096
limen_boot_l4: .space 4096

# One block for each hart's boot and idle task; not cleared, so that the boot does not pay for it.
    .section .stacks, "aw", @nobits
    .balign 16384
    .globl  limen_boot_blocks
limen_boot_blocks: .space 16384 * {MAX_HARTS}
