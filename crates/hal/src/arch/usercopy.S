# Copies between kernel and user memory: the only code that runs with SUM set.
#
# Each returns in a0 the number of bytes it did not copy. A fault here that the address space cannot resolve continues
# at a fixup: in the word loops at .Lbytes, which finds the exact byte; in the byte loop where it counts what is left; at
# a single word at .Lout, with what is left in a2. The Rust side has cut the range to the user half before.

    .option push
    .option arch, +a
    .section .text.entry, "ax", @progbits
    .globl  limen_usercopy_start
limen_usercopy_start:

# limen_copy(a0 = destination, a1 = source, a2 = bytes)
#
# Structures are aligned on both sides, whatever their size. Strings are not: then the destination is aligned and each
# of its words is put together from the two aligned words of the source that it straddles. Both of them hold a byte
# that is to be copied, so that none lies in a page of its own; misaligned accesses may be emulated, these never are.
    .balign 16
    .globl  limen_copy
    .type   limen_copy, @function
limen_copy:
    .cfi_startproc
    li      t2, {SUM}
    csrs    sstatus, t2
    or      t1, a0, a1
    andi    t1, t1, 7
    beqz    t1, .Lwords
    li      t1, 16
    bltu    a2, t1, .Lbytes             # short ones are not worth aligning
.Lalign:
    andi    t1, a0, 7
    beqz    t1, .Laligned
    lb      t3, 0(a1)
    sb      t3, 0(a0)
    addi    a0, a0, 1
    addi    a1, a1, 1
    addi    a2, a2, -1
    j       .Lalign
.Laligned:
    andi    t1, a1, 7
    beqz    t1, .Lwords
    slli    t1, t1, 3                   # bits of the first word that lie before the source
    neg     t4, t1                      # shifts take it modulo 64
    andi    a3, a1, -8
    li      a4, 8
    ld      t5, 0(a3)
0:  bltu    a2, a4, .Lbytes
    ld      t6, 8(a3)
    srl     t5, t5, t1
    sll     a5, t6, t4
    or      t5, t5, a5
    sd      t5, 0(a0)
    mv      t5, t6
    addi    a3, a3, 8
    addi    a0, a0, 8
    addi    a1, a1, 8
    addi    a2, a2, -8
    j       0b
.Lwords:
    li      t1, 64
.Lcopy_block:
    bltu    a2, t1, .Lcopy_words
    ld      t3, 0(a1)
    ld      t4, 8(a1)
    ld      t5, 16(a1)
    ld      t6, 24(a1)
    ld      a3, 32(a1)
    ld      a4, 40(a1)
    ld      a5, 48(a1)
    ld      a6, 56(a1)
    sd      t3, 0(a0)
    sd      t4, 8(a0)
    sd      t5, 16(a0)
    sd      t6, 24(a0)
    sd      a3, 32(a0)
    sd      a4, 40(a0)
    sd      a5, 48(a0)
    sd      a6, 56(a0)
    addi    a0, a0, 64
    addi    a1, a1, 64
    addi    a2, a2, -64
    j       .Lcopy_block
.Lcopy_words:
    li      t1, 8
1:  bltu    a2, t1, .Lbytes
    ld      t3, 0(a1)
    sd      t3, 0(a0)
    addi    a0, a0, 8
    addi    a1, a1, 8
    addi    a2, a2, -8
    j       1b
    .globl  limen_copy_bytes
limen_copy_bytes:
.Lbytes:
    beqz    a2, .Lout
    add     t5, a0, a2
1:  lb      t3, 0(a1)
    sb      t3, 0(a0)
    addi    a0, a0, 1
    addi    a1, a1, 1
    bne     a0, t5, 1b
    .globl  limen_copy_bytes_out
limen_copy_bytes_out:                   # all copied, or no further
    sub     a2, t5, a0
    j       .Lout
    .cfi_endproc
    .size   limen_copy, . - limen_copy

# limen_zero(a0 = destination, a1 unused, a2 = bytes)
    .balign 16
    .globl  limen_zero
    .type   limen_zero, @function
limen_zero:
    .cfi_startproc
    li      t2, {SUM}
    csrs    sstatus, t2
2:  beqz    a2, .Lout
    andi    t1, a0, 7
    bnez    t1, 3f
    sltiu   t1, a2, 8
    bnez    t1, 3f
    sd      zero, 0(a0)
    addi    a0, a0, 8
    addi    a2, a2, -8
    j       2b
3:  sb      zero, 0(a0)
    addi    a0, a0, 1
    addi    a2, a2, -1
    j       2b
    .cfi_endproc
    .size   limen_zero, . - limen_zero

# limen_load_word(a0 = where to put it, a1 = user address) -> 0, or 4 when the word cannot be read
    .balign 16
    .globl  limen_load_word
    .type   limen_load_word, @function
limen_load_word:
    .cfi_startproc
    li      t2, {SUM}
    li      a2, 4
    csrs    sstatus, t2
    lw      t1, 0(a1)
    li      a2, 0
    sw      t1, 0(a0)
    j       .Lout
    .cfi_endproc
    .size   limen_load_word, . - limen_load_word

# limen_cmpxchg_word(a0 = user address, a1 = where to put the old value, a2 unused, a3 = expected, a4 = new)
    .balign 16
    .globl  limen_cmpxchg_word
    .type   limen_cmpxchg_word, @function
limen_cmpxchg_word:
    .cfi_startproc
    li      t2, {SUM}
    li      a2, 4
    csrs    sstatus, t2
4:  lr.w.aqrl t1, (a0)
    bne     t1, a3, 5f
    sc.w.rl t3, a4, (a0)
    bnez    t3, 4b
5:  li      a2, 0
    sw      t1, 0(a1)
    j       .Lout
    .cfi_endproc
    .size   limen_cmpxchg_word, . - limen_cmpxchg_word

    .globl  limen_usercopy_out
    .type   limen_usercopy_out, @function
limen_usercopy_out:
    .cfi_startproc
.Lout:
    li      t2, {SUM}
    csrc    sstatus, t2
    mv      a0, a2
    ret
    .cfi_endproc
    .size   limen_usercopy_out, . - limen_usercopy_out
    .globl  limen_usercopy_end
limen_usercopy_end:
    .option pop
