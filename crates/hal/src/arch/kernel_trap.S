# Traps that find a negative stack pointer: from the kernel, or from a program that has set its own so.
#
# The head is reached through sscratch in both cases; SPP decides before sp is trusted. A trap from the kernel is a
# fault inside usercopy.S, an interrupt in a window, or a fault of the kernel itself, which ends in a panic.

    .section .text.entry, "ax", @progbits
    .type   limen_kernel_trap_entry, @function
limen_kernel_trap_entry:
    .cfi_startproc simple
    .cfi_signal_frame
    .cfi_return_column 64
    .cfi_def_cfa sp, 0
.Lnegative_sp:
    csrrw   tp, sscratch, tp            # from the kernel: no change, both hold the head
    sd      t0, {H_SCRATCH}(tp)
    csrr    t0, sstatus
    andi    t0, t0, 0x100               # SPP
    bnez    t0, .Lfrom_kernel
    ld      t0, {H_SCRATCH}(tp)
    j       .Lfrom_user

.Lfrom_kernel:
    addi    t0, sp, -{K_ROOM}           # the stack must have room for this frame and its handler
    xor     t0, t0, tp
    srli    t0, t0, {STACK_SHIFT}       # same block as the head?
    bnez    t0, .Lstack_overflow
    addi    sp, sp, -{K_FRAME}
    .cfi_def_cfa_offset {K_FRAME}
    sd      ra, {K_RA}(sp)
    .cfi_offset ra, {K_RA} - {K_FRAME}
    sd      t1, {K_T1}(sp)
    csrr    t1, sepc
    sd      t1, {K_PC}(sp)
    .cfi_offset 64, {K_PC} - {K_FRAME}
    ld      t0, {H_SCRATCH}(tp)
    sd      t0, {K_T0}(sp)
    sd      t2, {K_T2}(sp)
    sd      a0, {K_A0}(sp)
    sd      a1, {K_A1}(sp)
    sd      a2, {K_A2}(sp)
    sd      a3, {K_A3}(sp)
    sd      a4, {K_A4}(sp)
    sd      a5, {K_A5}(sp)
    sd      a6, {K_A6}(sp)
    sd      a7, {K_A7}(sp)
    sd      t3, {K_T3}(sp)
    sd      t4, {K_T4}(sp)
    sd      t5, {K_T5}(sp)
    sd      t6, {K_T6}(sp)
    csrr    a1, scause
    csrr    a2, stval
    li      t2, {SUM}
    csrrc   t2, sstatus, t2             # no access to user memory outside usercopy.S
    sd      t2, {K_STATUS}(sp)
    mv      a0, sp
    call    limen_kernel_trap
    ld      t1, {K_PC}(sp)
    csrw    sepc, t1
    ld      t2, {K_STATUS}(sp)
    li      t3, {SPP_SPIE_SUM}
    and     t2, t2, t3
    csrc    sstatus, t3
    csrs    sstatus, t2
    lw      t1, {H_LOCAL}(tp)           # the user's sepc is gone
    ori     t1, t1, {LOCAL_RELOAD_PC}
    sw      t1, {H_LOCAL}(tp)
    ld      ra, {K_RA}(sp)
    ld      t0, {K_T0}(sp)
    ld      t1, {K_T1}(sp)
    ld      t2, {K_T2}(sp)
    ld      a0, {K_A0}(sp)
    ld      a1, {K_A1}(sp)
    ld      a2, {K_A2}(sp)
    ld      a3, {K_A3}(sp)
    ld      a4, {K_A4}(sp)
    ld      a5, {K_A5}(sp)
    ld      a6, {K_A6}(sp)
    ld      a7, {K_A7}(sp)
    ld      t3, {K_T3}(sp)
    ld      t4, {K_T4}(sp)
    ld      t5, {K_T5}(sp)
    ld      t6, {K_T6}(sp)
    addi    sp, sp, {K_FRAME}
    sret

# The kernel ran out of its stack, or sp is garbage: report on the hart's emergency stack. There is no way back.
.Lstack_overflow:
    mv      a0, sp
    csrr    a1, sepc
    csrr    a2, scause
    csrr    a3, stval
    ld      t1, {H_HART}(tp)
    ld      sp, {HART_EMERGENCY_SP}(t1)
    call    limen_stack_overflow
    unimp
    .cfi_endproc
    .size   limen_kernel_trap_entry, . - limen_kernel_trap_entry
