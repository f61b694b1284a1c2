# Misaligned accesses, to be measured: the compiler would never make them.
    .section .text, "ax", @progbits

# limen_misaligned_access(a0 = address) -> 1, or 0 when the hart traps: the trap then continues at the end
    .balign 16
    .globl  limen_misaligned_access
    .type   limen_misaligned_access, @function
limen_misaligned_access:
    .cfi_startproc
    mv      t0, a0
    li      a0, 0
    ld      t1, 0(t0)
    sd      t1, 0(t0)
    li      a0, 1
    .globl  limen_misaligned_out
limen_misaligned_out:
    ret
    .cfi_endproc
    .size   limen_misaligned_access, . - limen_misaligned_access

# limen_misaligned_words(a0 = to, a1 = from, a2 = bytes, a multiple of 64 and not 0)
    .balign 16
    .globl  limen_misaligned_words
    .type   limen_misaligned_words, @function
limen_misaligned_words:
    .cfi_startproc
1:  ld      t0, 0(a1)
    ld      t1, 8(a1)
    ld      t2, 16(a1)
    ld      t3, 24(a1)
    ld      t4, 32(a1)
    ld      t5, 40(a1)
    ld      t6, 48(a1)
    ld      a3, 56(a1)
    sd      t0, 0(a0)
    sd      t1, 8(a0)
    sd      t2, 16(a0)
    sd      t3, 24(a0)
    sd      t4, 32(a0)
    sd      t5, 40(a0)
    sd      t6, 48(a0)
    sd      a3, 56(a0)
    addi    a0, a0, 64
    addi    a1, a1, 64
    addi    a2, a2, -64
    bnez    a2, 1b
    ret
    .cfi_endproc
    .size   limen_misaligned_words, . - limen_misaligned_words

# limen_misaligned_bytes(a0 = to, a1 = from, a2 = bytes, not 0)
    .balign 16
    .globl  limen_misaligned_bytes
    .type   limen_misaligned_bytes, @function
limen_misaligned_bytes:
    .cfi_startproc
1:  lbu     t0, 0(a1)
    sb      t0, 0(a0)
    addi    a0, a0, 1
    addi    a1, a1, 1
    addi    a2, a2, -1
    bnez    a2, 1b
    ret
    .cfi_endproc
    .size   limen_misaligned_bytes, . - limen_misaligned_bytes
