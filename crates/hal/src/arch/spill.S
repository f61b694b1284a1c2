# Neighbours of entry.S, under its contract: the callee-saved registers, and calls that need them.

# Saves what the fast path left in place: s0-s11 and gp. Changes nothing else; the caller's a and t registers live on.
    .type   limen_spill, @function
limen_spill:
    .cfi_startproc
    sd      gp, {F_GP}(tp)
    sd      s0, {F_S0}(tp)
    sd      s1, {F_S1}(tp)
    sd      s2, {F_S2}(tp)
    sd      s3, {F_S3}(tp)
    sd      s4, {F_S4}(tp)
    sd      s5, {F_S5}(tp)
    sd      s6, {F_S6}(tp)
    sd      s7, {F_S7}(tp)
    sd      s8, {F_S8}(tp)
    sd      s9, {F_S9}(tp)
    sd      s10, {F_S10}(tp)
    sd      s11, {F_S11}(tp)
    ret
    .cfi_endproc
    .size   limen_spill, . - limen_spill

# The table slot of a call that needs all registers: spills them and calls the handler in the second table with the
# frame. t2 = address of the slot, from the fast path.
    .globl  limen_full_call
    .type   limen_full_call, @function
limen_full_call:
    .cfi_startproc
    addi    sp, sp, -16
    .cfi_def_cfa_offset 16
    sd      ra, 8(sp)
    .cfi_offset ra, -8
    call    limen_spill
    ld      t1, {H_FULL}(tp)
    addi    t1, t1, 1
    sd      t1, {H_FULL}(tp)
    li      t1, {FULL_TABLE}            # distance from the first table to the second
    add     t2, t2, t1
    ld      t1, 0(t2)
    addi    a0, tp, -{FRAME}
    jalr    ra, 0(t1)                   # extern "C" fn(&mut UserFrame) -> isize
    ld      ra, 8(sp)
    addi    sp, sp, 16
    ret
    .cfi_endproc
    .size   limen_full_call, . - limen_full_call
