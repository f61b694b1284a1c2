# The trap path: every way into the kernel and back.
#
# Contract
#   In user mode    sscratch = the task's head; SPP and SPIE are whatever the last sret left: 0 and 1.
#   In the kernel   tp = sscratch = the task's head; sp is negative (all kernel addresses are, no user address is).
#                   gp is still the user's. SIE is 0 but in windows; SUM is 1 only inside usercopy.S.
#   At -272(tp)     the user frame (task.rs has the drawing). The fast path fills in pc, ra, sp, tp, t0-t6 and a0-a7:
#                   the callee-saved registers and gp are still in place when the handler returns, for it preserves
#                   them; so does a page fault that is resolved. The full path saves all 31. All load what they saved.
#   A kernel trap   saves what a call may change, sepc and sstatus below the interrupted sp, and gives back SPP, SPIE
#                   and SUM only: the other fields are not its business (FS belongs to the task).
#   sepc            is written at the entry of a call and not again, unless a nested trap or a switch has used it: both
#                   leave LOCAL_RELOAD_PC in the head's second word.
#   Return stack    every `jalr ra` has its `ret`, and no jump goes through x5: a return-address stack (unprivileged
#                   specification, hints of jalr) stays in step with the program's own calls.
#   LR/SC           faults, the full path and the switch drop a reservation with a dummy sc; the fast path need not, a
#                   call between lr and sc already makes the loop unconstrained, and nobody else ran.
#
# Touched while an exception would find the user's tp: only the head and the frame, both in the direct map, which is
# never unmapped. Budget of the fast path: 72 instructions with getppid's handler, 5 CSR accesses, grouped.

    .option push
    .option arch, +a
# What both paths save besides sp, t0 and t1, which the entry has stored. sp = the pc to return to, t1 = the user's tp.
    .macro  save_rest
    sd      sp, {F_PC}(tp)
    sd      ra, {F_RA}(tp)
    sd      t1, {F_TP}(tp)
    sd      t2, {F_T2}(tp)
    sd      a0, {F_A0}(tp)
    sd      a1, {F_A1}(tp)
    sd      a2, {F_A2}(tp)
    sd      a3, {F_A3}(tp)
    sd      a4, {F_A4}(tp)
    sd      a5, {F_A5}(tp)
    sd      a6, {F_A6}(tp)
    sd      a7, {F_A7}(tp)
    sd      t3, {F_T3}(tp)
    sd      t4, {F_T4}(tp)
    sd      t5, {F_T5}(tp)
    sd      t6, {F_T6}(tp)
    .endm

    .section .text.entry, "ax", @progbits
    .balign 64
    .globl  limen_trap_entry
    .type   limen_trap_entry, @function
limen_trap_entry:
    .cfi_startproc simple
    .cfi_signal_frame
    .cfi_undefined ra
    bltz    sp, .Lnegative_sp           # the kernel's, or a program's strange one
    csrrw   tp, sscratch, tp            # tp = head, sscratch = the user's tp
.Lfrom_user:
    sd      sp, {F_SP}(tp)
    sd      t0, {F_T0}(tp)
    sd      t1, {F_T1}(tp)
    csrr    t0, scause
    csrrw   t1, sscratch, tp            # t1 = the user's tp, and the contract holds again
    csrr    sp, sepc
    addi    t0, t0, -8                  # 8: environment call from U-mode
    bnez    t0, .Lfull
    addi    sp, sp, 4                   # return behind the ecall, which has no short form
    csrw    sepc, sp
    save_rest
    addi    sp, tp, -{FRAME}
    .cfi_def_cfa sp, {FRAME}
    ld      t3, {H_CALLS}(tp)
    addi    t1, a7, 1                   # slot 0 is ENOSYS; a number out of range selects it by arithmetic,
    sltiu   t2, t1, {SLOTS}             # so that speculation cannot get past the bound either
    neg     t2, t2
    and     t1, t1, t2
    slli    t1, t1, 3
    la      t2, LIMEN_CALLS
    add     t2, t2, t1
    ld      t1, 0(t2)
    addi    t3, t3, 1
    sd      t3, {H_CALLS}(tp)
    jalr    ra, 0(t1)                   # extern "C" fn(a0..a5) -> isize
    ld      t1, {H_WORK}(tp)            # work and local bits together
    bnez    t1, .Lcall_work
.Lcall_return:
    ld      ra, {F_RA}(tp)
    ld      sp, {F_SP}(tp)
    ld      t0, {F_T0}(tp)
    ld      t1, {F_T1}(tp)
    ld      t2, {F_T2}(tp)
    ld      a1, {F_A1}(tp)
    ld      a2, {F_A2}(tp)
    ld      a3, {F_A3}(tp)
    ld      a4, {F_A4}(tp)
    ld      a5, {F_A5}(tp)
    ld      a6, {F_A6}(tp)
    ld      a7, {F_A7}(tp)
    ld      t3, {F_T3}(tp)
    ld      t4, {F_T4}(tp)
    ld      t5, {F_T5}(tp)
    ld      t6, {F_T6}(tp)
    ld      tp, {F_TP}(tp)
    sret

# Something is to be done before a call returns. Only sepc to be written again is the common case.
.Lcall_work:
    li      t2, {LOCAL_RELOAD_PC}
    slli    t2, t2, 32
    bne     t1, t2, .Lcall_work_all
    ld      t1, {F_PC}(tp)
    csrw    sepc, t1
    sw      zero, {H_LOCAL}(tp)
    j       .Lcall_return
.Lcall_work_all:
    srli    t1, t1, 32
    andi    t1, t1, {LOCAL_REPLACED}    # by exec or sigreturn: the frame is whole, and what is in place is stale
    bnez    t1, 1f
    call    limen_spill
1:  mv      a1, a0                      # the result
    mv      a0, sp                      # the frame
    call    limen_call_work
    j       .Lfull_return

# Exceptions and interrupts from user mode. t0 = scause - 8, t1 = the user's tp, sp = sepc.
.Lfull:
    save_rest
    addi    sp, tp, -{FRAME}
    csrr    a0, stval
    addi    a1, t0, 8                   # scause
    li      t1, 1 << 4 | 1 << 5 | 1 << 7
    srl     t1, t1, t0                  # page faults, 12, 13 and 15, are tried as a call is made: with the callee-saved
    andi    t1, t1, 1                   # registers in place. (No other cause has such low six bits.)
    beqz    t1, .Lspill
    call    limen_page_fault            # (address, cause) -> (address, cause, or 0 if the access can be tried again)
    bnez    a1, .Lspill
    ld      t1, {H_WORK}(tp)
    bnez    t1, .Lfault_work
    addi    t1, tp, {H_SCRATCH}
    sc.d    zero, zero, (t1)            # fails, or stores a zero nobody reads: no reservation is left
    ld      a0, {F_A0}(tp)
    j       .Lcall_return
.Lfault_work:
    call    limen_spill
    mv      a0, sp                      # the frame
    call    limen_fault_work
    j       .Lfull_return
.Lspill:
    call    limen_spill
    mv      a2, a0                      # stval
    mv      a0, sp                      # the frame
    call    limen_user_trap             # also does the work that is due on the way out
.Lfull_return:
    addi    t1, tp, {H_SCRATCH}
    sc.d    zero, zero, (t1)
    ld      t1, {F_PC}(tp)
    csrw    sepc, t1
    sw      zero, {H_LOCAL}(tp)
    ld      gp, {F_GP}(tp)
    ld      s0, {F_S0}(tp)
    ld      s1, {F_S1}(tp)
    ld      s2, {F_S2}(tp)
    ld      s3, {F_S3}(tp)
    ld      s4, {F_S4}(tp)
    ld      s5, {F_S5}(tp)
    ld      s6, {F_S6}(tp)
    ld      s7, {F_S7}(tp)
    ld      s8, {F_S8}(tp)
    ld      s9, {F_S9}(tp)
    ld      s10, {F_S10}(tp)
    ld      s11, {F_S11}(tp)
    ld      a0, {F_A0}(tp)
    j       .Lcall_return
    .cfi_endproc
    .size   limen_trap_entry, . - limen_trap_entry
    .option pop
