# memcpy and memmove for the kernel: the compiler calls them for every structure it moves.
#
# Only aligned accesses: a misaligned one may be emulated by firmware. Where source and destination are not aligned
# alike, each destination word is put together from two source words; a word that is read holds at least one byte that
# is wanted, so nothing outside the source's own words is touched.

    .section .text.memory, "ax", @progbits

# memcpy(a0 = destination, a1 = source, a2 = bytes) -> a0. Also right for overlapping ranges if the destination begins
# first: every byte is read before anything is written at or behind it.
    .balign 16
    .globl  memcpy
    .type   memcpy, @function
memcpy:
    .cfi_startproc
    mv      a3, a0
    sltiu   t0, a2, 16
    bnez    t0, .Lforward_bytes
    xor     t0, a0, a1
    andi    t0, t0, 7
    bnez    t0, .Lforward_shifted
.Lforward_align:
    andi    t0, a3, 7
    beqz    t0, .Lforward_blocks
    lb      t1, 0(a1)
    sb      t1, 0(a3)
    addi    a1, a1, 1
    addi    a3, a3, 1
    addi    a2, a2, -1
    j       .Lforward_align
.Lforward_blocks:
    andi    t0, a2, -64
    beqz    t0, .Lforward_words
    add     t0, t0, a3                  # where the blocks end
    andi    a2, a2, 63
1:  ld      t1, 0(a1)
    ld      t2, 8(a1)
    ld      t3, 16(a1)
    ld      t4, 24(a1)
    ld      t5, 32(a1)
    ld      t6, 40(a1)
    ld      a4, 48(a1)
    ld      a5, 56(a1)
    sd      t1, 0(a3)
    sd      t2, 8(a3)
    sd      t3, 16(a3)
    sd      t4, 24(a3)
    sd      t5, 32(a3)
    sd      t6, 40(a3)
    sd      a4, 48(a3)
    sd      a5, 56(a3)
    addi    a1, a1, 64
    addi    a3, a3, 64
    bltu    a3, t0, 1b
.Lforward_words:
    andi    t0, a2, -8
    beqz    t0, .Lforward_bytes
    add     t0, t0, a3
    andi    a2, a2, 7
2:  ld      t1, 0(a1)
    sd      t1, 0(a3)
    addi    a1, a1, 8
    addi    a3, a3, 8
    bltu    a3, t0, 2b
.Lforward_bytes:
    beqz    a2, 4f
    add     a2, a2, a3
3:  lb      t1, 0(a1)
    sb      t1, 0(a3)
    addi    a1, a1, 1
    addi    a3, a3, 1
    bltu    a3, a2, 3b
4:  ret

.Lforward_shifted:
    andi    t0, a3, 7
    beqz    t0, 5f
    lb      t1, 0(a1)
    sb      t1, 0(a3)
    addi    a1, a1, 1
    addi    a3, a3, 1
    addi    a2, a2, -1
    j       .Lforward_shifted
5:  andi    a4, a1, 7                   # not 0
    andi    a1, a1, -8
    slli    t5, a4, 3                   # bits of the first word that are before the source
    neg     t6, t5                      # 64 - t5, as shifts take it
    andi    t0, a2, -8
    add     t0, t0, a3
    andi    a2, a2, 7
    ld      t1, 0(a1)
6:  ld      t2, 8(a1)
    srl     t3, t1, t5
    sll     t4, t2, t6
    or      t3, t3, t4
    sd      t3, 0(a3)
    mv      t1, t2
    addi    a1, a1, 8
    addi    a3, a3, 8
    bltu    a3, t0, 6b
    add     a1, a1, a4
    j       .Lforward_bytes
    .cfi_endproc
    .size   memcpy, . - memcpy

# memmove(a0 = destination, a1 = source, a2 = bytes) -> a0
    .balign 16
    .globl  memmove
    .type   memmove, @function
memmove:
    .cfi_startproc
    sub     t0, a0, a1
    bgeu    t0, a2, memcpy              # not into the source from behind its begin: a branch, for memcpy is above
    add     a1, a1, a2
    add     a3, a0, a2
    xor     t0, a1, a3
    andi    t0, t0, 7
    bnez    t0, 9f
7:  beq     a3, a0, 10f
    andi    t0, a3, 7
    beqz    t0, 8f
    addi    a1, a1, -1
    addi    a3, a3, -1
    lb      t1, 0(a1)
    sb      t1, 0(a3)
    j       7b
8:  sub     t0, a3, a0
    andi    t0, t0, -64
    beqz    t0, .Lbackward_words
    sub     t0, a3, t0                  # where the blocks end
.Lbackward_blocks:
    ld      t1, -8(a1)
    ld      t2, -16(a1)
    ld      t3, -24(a1)
    ld      t4, -32(a1)
    ld      t5, -40(a1)
    ld      t6, -48(a1)
    ld      a4, -56(a1)
    ld      a5, -64(a1)
    sd      t1, -8(a3)
    sd      t2, -16(a3)
    sd      t3, -24(a3)
    sd      t4, -32(a3)
    sd      t5, -40(a3)
    sd      t6, -48(a3)
    sd      a4, -56(a3)
    sd      a5, -64(a3)
    addi    a1, a1, -64
    addi    a3, a3, -64
    bltu    t0, a3, .Lbackward_blocks
.Lbackward_words:
    sub     t0, a3, a0
    sltiu   t0, t0, 8
    bnez    t0, 9f
    addi    a1, a1, -8
    addi    a3, a3, -8
    ld      t1, 0(a1)
    sd      t1, 0(a3)
    j       .Lbackward_words
9:  beq     a3, a0, 10f
    addi    a1, a1, -1
    addi    a3, a3, -1
    lb      t1, 0(a1)
    sb      t1, 0(a3)
    j       9b
10: ret
    .cfi_endproc
    .size   memmove, . - memmove
