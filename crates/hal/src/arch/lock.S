# The slow path of a spin lock.
#
# In: t6 = the lock's word, t5 = where to go on. Keeps every register but those two, so that the code around a lock, which
# hardly ever gets here, saves nothing for it, ra included: hence no call in the sense of the ABI, and no entry in a
# return-address stack. The waiting is done in Rust (sync/spin.rs).

    .text
    .balign 4
    .globl  limen_lock_contended
    .type   limen_lock_contended, @function
limen_lock_contended:
    .cfi_startproc
    .cfi_return_column t5
    addi    sp, sp, -128
    .cfi_def_cfa_offset 128
    sd      ra, 0(sp)
    .cfi_offset ra, -128
    sd      t0, 8(sp)
    sd      t1, 16(sp)
    sd      t2, 24(sp)
    sd      t3, 32(sp)
    sd      t4, 40(sp)
    sd      t5, 48(sp)
    .cfi_offset t5, -80
    sd      t6, 56(sp)
    sd      a0, 64(sp)
    sd      a1, 72(sp)
    sd      a2, 80(sp)
    sd      a3, 88(sp)
    sd      a4, 96(sp)
    sd      a5, 104(sp)
    sd      a6, 112(sp)
    sd      a7, 120(sp)
    mv      a0, t6
    call    limen_lock_wait
    ld      ra, 0(sp)
    ld      t0, 8(sp)
    ld      t1, 16(sp)
    ld      t2, 24(sp)
    ld      t3, 32(sp)
    ld      t4, 40(sp)
    ld      t5, 48(sp)
    ld      t6, 56(sp)
    ld      a0, 64(sp)
    ld      a1, 72(sp)
    ld      a2, 80(sp)
    ld      a3, 88(sp)
    ld      a4, 96(sp)
    ld      a5, 104(sp)
    ld      a6, 112(sp)
    ld      a7, 120(sp)
    addi    sp, sp, 128
    .cfi_restore ra
    .cfi_restore t5
    .cfi_def_cfa_offset 0
    jr      t5
    .cfi_endproc
    .size   limen_lock_contended, . - limen_lock_contended
