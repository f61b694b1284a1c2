# memset and memcmp for the kernel, by aligned accesses only, like memory_copy.S.

    .section .text.memory, "ax", @progbits

# memset(a0 = destination, a1 = byte, a2 = bytes) -> a0
    .balign 16
    .globl  memset
    .type   memset, @function
memset:
    .cfi_startproc
    mv      a3, a0
    sltiu   t0, a2, 16
    bnez    t0, .Lset_bytes
    andi    a1, a1, 0xff
    slli    t0, a1, 8
    or      a1, a1, t0
    slli    t0, a1, 16
    or      a1, a1, t0
    slli    t0, a1, 32
    or      a1, a1, t0
.Lset_align:
    andi    t0, a3, 7
    beqz    t0, .Lset_blocks
    sb      a1, 0(a3)
    addi    a3, a3, 1
    addi    a2, a2, -1
    j       .Lset_align
.Lset_blocks:
    andi    t0, a2, -64
    beqz    t0, .Lset_words
    add     t0, t0, a3
    andi    a2, a2, 63
11: sd      a1, 0(a3)
    sd      a1, 8(a3)
    sd      a1, 16(a3)
    sd      a1, 24(a3)
    sd      a1, 32(a3)
    sd      a1, 40(a3)
    sd      a1, 48(a3)
    sd      a1, 56(a3)
    addi    a3, a3, 64
    bltu    a3, t0, 11b
.Lset_words:
    andi    t0, a2, -8
    beqz    t0, .Lset_bytes
    add     t0, t0, a3
    andi    a2, a2, 7
12: sd      a1, 0(a3)
    addi    a3, a3, 8
    bltu    a3, t0, 12b
.Lset_bytes:
    beqz    a2, 14f
    add     a2, a2, a3
13: sb      a1, 0(a3)
    addi    a3, a3, 1
    bltu    a3, a2, 13b
14: ret
    .cfi_endproc
    .size   memset, . - memset

# memcmp(a0, a1, a2 = bytes) -> a0: the difference of the first bytes that differ, or 0. bcmp is the same.
    .balign 16
    .globl  memcmp
    .type   memcmp, @function
    .globl  bcmp
    .type   bcmp, @function
memcmp:
bcmp:
    .cfi_startproc
    or      t0, a0, a1
    andi    t0, t0, 7
    bnez    t0, 16f
15: sltiu   t0, a2, 8
    bnez    t0, 16f
    ld      t1, 0(a0)
    ld      t2, 0(a1)
    bne     t1, t2, 16f                 # the bytes tell which is less
    addi    a0, a0, 8
    addi    a1, a1, 8
    addi    a2, a2, -8
    j       15b
16: beqz    a2, 18f
    add     a2, a2, a0
17: lbu     t1, 0(a0)
    lbu     t2, 0(a1)
    bne     t1, t2, 19f
    addi    a0, a0, 1
    addi    a1, a1, 1
    bltu    a0, a2, 17b
18: li      a0, 0
    ret
19: sub     a0, t1, t2
    ret
    .cfi_endproc
    .size   memcmp, . - memcmp
    .size   bcmp, . - bcmp
