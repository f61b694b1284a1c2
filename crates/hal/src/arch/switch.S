# Switching from one task to another, and where a new task begins.
#
# A task that is switched out has 14 words on its kernel stack: ra, s0-s11 and the gp of its program, which the kernel
# never loads with anything else. This is the one place that writes sstatus for the task that comes in: SPP = 0 and
# SPIE = 1 for its way to user mode, SIE = 0, SUM = 0, and FS as the task has it.

    .option push
    .option arch, +a
    .section .text.entry, "ax", @progbits

# limen_switch(a0 = head of the running task, a1 = head of the next, a2 = sstatus for the next)
    .balign 16
    .globl  limen_switch
    .type   limen_switch, @function
limen_switch:
    .cfi_startproc
    addi    sp, sp, -{C_SIZE}
    .cfi_def_cfa_offset {C_SIZE}
    sd      ra, 0(sp)
    .cfi_offset ra, -{C_SIZE}
    sd      gp, 8(sp)
    sd      s0, 16(sp)
    .cfi_offset s0, 16 - {C_SIZE}
    sd      s1, 24(sp)
    sd      s2, 32(sp)
    sd      s3, 40(sp)
    sd      s4, 48(sp)
    sd      s5, 56(sp)
    sd      s6, 64(sp)
    sd      s7, 72(sp)
    sd      s8, 80(sp)
    sd      s9, 88(sp)
    sd      s10, 96(sp)
    sd      s11, 104(sp)
    sd      sp, {H_CONTEXT_SP}(a0)
    fence   rw, w                       # saved before anybody may load it
    sw      zero, {H_ON_HART}(a0)
    mv      tp, a1
    csrw    sscratch, tp
    csrw    sstatus, a2
    ld      sp, {H_CONTEXT_SP}(tp)
    lw      t1, {H_LOCAL}(tp)           # sepc is the other task's
    ori     t1, t1, {LOCAL_RELOAD_PC}
    sw      t1, {H_LOCAL}(tp)
    addi    t1, tp, {H_SCRATCH}
    sc.d    zero, zero, (t1)            # a reservation does not outlive its task
    ld      ra, 0(sp)
    ld      gp, 8(sp)
    ld      s0, 16(sp)
    ld      s1, 24(sp)
    ld      s2, 32(sp)
    ld      s3, 40(sp)
    ld      s4, 48(sp)
    ld      s5, 56(sp)
    ld      s6, 64(sp)
    ld      s7, 72(sp)
    ld      s8, 80(sp)
    ld      s9, 88(sp)
    ld      s10, 96(sp)
    ld      s11, 104(sp)
    addi    sp, sp, {C_SIZE}
    .cfi_def_cfa_offset 0
    ret
    .cfi_endproc
    .size   limen_switch, . - limen_switch

# A new user task: s0 = what to call first. The frame is complete, so the full return loads all of it. The `ret` of the
# switch came here without its call: once in a task's life.
    .globl  limen_user_start
    .type   limen_user_start, @function
limen_user_start:
    .cfi_startproc simple
    .cfi_undefined ra
    addi    a0, tp, -{FRAME}
    mv      a1, s0
    call    limen_task_started
    j       .Lfull_return
    .cfi_endproc
    .size   limen_user_start, . - limen_user_start

# A new kernel thread: s0 = its function, which does not return.
    .globl  limen_kernel_start
    .type   limen_kernel_start, @function
limen_kernel_start:
    .cfi_startproc simple
    .cfi_undefined ra
    jalr    ra, 0(s0)
    unimp
    .cfi_endproc
    .size   limen_kernel_start, . - limen_kernel_start
    .option pop
