# Running one thing with every register known, and seeing what it leaves.
#
# kit_registers_NAME(a0 = what x1-x31 are to hold, a1 = where to put what they hold afterwards): both arrays have 32
# words, word n for xn. The stack pointer stays the real one and is written into the first array. The frame:
#   0(sp) a0 after the thing    8(sp) the second array    16(sp) not 0: exit instead of returning
# A clone with a stack of its own finds these three words at its stack pointer.

    .macro  begin name
    .globl  \name
    .type   \name, @function
    .balign 4
\name:
    addi    sp, sp, -144
    sd      a1, 8(sp)
    sd      zero, 16(sp)
    sd      ra, 24(sp)
    sd      gp, 32(sp)
    sd      tp, 40(sp)
    sd      s0, 48(sp)
    sd      s1, 56(sp)
    sd      s2, 64(sp)
    sd      s3, 72(sp)
    sd      s4, 80(sp)
    sd      s5, 88(sp)
    sd      s6, 96(sp)
    sd      s7, 104(sp)
    sd      s8, 112(sp)
    sd      s9, 120(sp)
    sd      s10, 128(sp)
    sd      s11, 136(sp)
    sd      sp, 16(a0)
    ld      x1, 8(a0)
    .irp    n, 3,4,5,6,7,8,9,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    ld      x\n, (8 * \n)(a0)
    .endr
    ld      a0, 80(a0)
    .endm

    .macro  finish name
    sd      a0, 0(sp)
    ld      a0, 8(sp)
    .irp    n, 0,1,2,3,4,5,6,7,8,9,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    sd      x\n, (8 * \n)(a0)
    .endr
    ld      t0, 0(sp)
    sd      t0, 80(a0)
    ld      t0, 16(sp)
    bnez    t0, 9f
    ld      ra, 24(sp)
    ld      gp, 32(sp)
    ld      tp, 40(sp)
    ld      s0, 48(sp)
    ld      s1, 56(sp)
    ld      s2, 64(sp)
    ld      s3, 72(sp)
    ld      s4, 80(sp)
    ld      s5, 88(sp)
    ld      s6, 96(sp)
    ld      s7, 104(sp)
    ld      s8, 112(sp)
    ld      s9, 120(sp)
    ld      s10, 128(sp)
    ld      s11, 136(sp)
    addi    sp, sp, 144
    ret
9:
    li      a0, 0
    li      a7, 93                      # exit
    ecall
    .size   \name, . - \name
    .endm

# The system call in a7.
    begin   kit_registers_call
    ecall
    finish  kit_registers_call

# a7 rounds of nothing.
    begin   kit_registers_spin
1:  addi    a7, a7, -1
    bnez    a7, 1b
    finish  kit_registers_spin

# A store to the address in a1.
    begin   kit_registers_store
    sb      zero, 0(a1)
    finish  kit_registers_store

# An instruction that no hart has, 4 bytes long.
    begin   kit_registers_illegal
    .4byte  0xffffffff
    finish  kit_registers_illegal

# With the stack pointer in a0: the call in a1, then a2 rounds of nothing, then a store to the address in a3, then, if
# a4 is not 0, an instruction that no hart has. Gives the call's result.
    .globl  kit_bad_stack
    .type   kit_bad_stack, @function
kit_bad_stack:
    mv      t0, sp
    mv      sp, a0
    mv      t1, sp
    mv      a7, a1
    ecall
1:  addi    a2, a2, -1
    bgtz    a2, 1b
    sb      zero, 0(a3)
    beqz    a4, 2f
    .globl  kit_bad_stack_illegal
kit_bad_stack_illegal:
    .4byte  0xffffffff
2:  bne     sp, t1, 3f
    mv      sp, t0
    ret
3:  mv      sp, t0
    li      a0, -1
    ret
    .size   kit_bad_stack, . - kit_bad_stack

# One access each; a handler may go on at ra.
    .globl  kit_probe_load
kit_probe_load:
    lb      a0, 0(a0)
    ret
    .globl  kit_probe_store
kit_probe_store:
    sb      zero, 0(a0)
    ret
    .globl  kit_probe_jump
kit_probe_jump:
    jr      a0
    .globl  kit_probe_illegal
kit_probe_illegal:
    .4byte  0xffffffff
    ret
    .globl  kit_probe_break
kit_probe_break:
    .option push
    .option norvc
    ebreak
    .option pop
    ret

    .option push
    .option arch, +a
# a0 = kit_lr_sc(a0 = word, a1 to a4 = system call a1(a2, a3, a4)): a load-reserved, the call, a store-conditional.
# 0 if the store took place.
    .globl  kit_lr_sc
kit_lr_sc:
    mv      t0, a0
    mv      a7, a1
    mv      a0, a2
    mv      a1, a3
    mv      a2, a4
    lr.d    t1, (t0)
    ecall
    sc.d    a0, t1, (t0)
    ret

# As kit_lr_sc, with rounds (a1) of nothing in place of the call.
    .globl  kit_lr_spin_sc
kit_lr_spin_sc:
    lr.d    t1, (a0)
1:  addi    a1, a1, -1
    bgtz    a1, 1b
    .globl  kit_lr_spin_sc_store
kit_lr_spin_sc_store:
    sc.d    a0, t1, (a0)
    ret
    .option pop

    .option push
    .option arch, +f, +d
# f0-f31 and fcsr from, and to, the 33 words at a0.
    .globl  kit_fp_fill
kit_fp_fill:
    .irp    n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    fld     f\n, (8 * \n)(a0)
    .endr
    ld      t0, 256(a0)
    fscsr   t0
    ret
    .globl  kit_fp_read
kit_fp_read:
    .irp    n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    fsd     f\n, (8 * \n)(a0)
    .endr
    frcsr   t0
    sd      t0, 256(a0)
    ret

# A program of its own, at any address: writes its registers at entry, x0-x31 and f0-f31 and fcsr, to standard output.
    .globl  kit_entry_program
kit_entry_program:
    .irp    n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    sd      x\n, (8 * \n - 1024)(sp)
    .endr
    .irp    n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    fsd     f\n, (256 + 8 * \n - 1024)(sp)
    .endr
    frcsr   t0
    sd      t0, (512 - 1024)(sp)
    li      a0, 1
    addi    a1, sp, -1024
    li      a2, 520
    li      a7, 64                      # write
    ecall
    li      a0, 0
    li      a7, 94                      # exit_group
    ecall
    .globl  kit_entry_program_end
kit_entry_program_end:
    .option pop

# rt_sigreturn with the frame at a0.
    .globl  kit_sigreturn
kit_sigreturn:
    mv      sp, a0
    li      a7, 139
    ecall
# Where a frame may go on: ends the process with 42.
    .globl  kit_landing
kit_landing:
    li      a0, 42
    li      a7, 94
    ecall
    unimp
