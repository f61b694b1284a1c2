# A kernel of one system call, which does nothing, in two styles, called by a function under 0 to 16 more.
# Region 1 + N: 100 times N + 1 user calls and a system call, after 4 times to warm up.
#
# The old style (Linux before 6.11) loads ra by hand and jumps: the handler's `ret` pops what no call pushed, and so does
# the jump through t0, which is a link register.

    .option norvc
    .set    NESTED, 16
    .set    CALLS, 100

machine:
    supervise kernel

kernel:
    la      t0, entry
    csrw    stvec, t0
    la      t0, kernel_stack_top
    csrw    sscratch, t0
    la      t0, user
    csrw    sepc, t0
    li      t0, 0x100                       # sstatus.SPP: to U
    csrc    sstatus, t0
    la      sp, stack_top
    sret

    .balign 4
entry:
    csrrw   sp, sscratch, sp
    addi    sp, sp, -32
    sd      ra, 0(sp)
    sd      t0, 8(sp)
    csrr    t0, sepc
    addi    t0, t0, 4
    csrw    sepc, t0
    li      t0, 2
    beq     a7, t0, stop
    .if {BALANCED}
    la      t1, handler
    jalr    ra, t1
    .else
    la      ra, leave
    la      t0, handler
    jr      t0
    .endif
leave:
    ld      ra, 0(sp)
    ld      t0, 8(sp)
    addi    sp, sp, 32
    csrrw   sp, sscratch, sp
    sret

handler:
    li      a0, 0
    ret

stop:
    power_off

# \count system calls under \n nested calls, a function for each level so that no two return addresses are the same.
    .macro  calls n, count
    li      s1, \count
1:  jal     ra, level\n
    addi    s1, s1, -1
    bnez    s1, 1b
    .endm

    .macro  region n
    calls   \n, 4
    begin   1 + \n
    calls   \n, CALLS
    end     1 + \n
    .endm

    .macro  level n, inner
level\n:
    addi    sp, sp, -16
    sd      ra, 0(sp)
    jal     ra, level\inner
    ld      ra, 0(sp)
    addi    sp, sp, 16
    ret
    .endm

    .altmacro
    .macro  levels from, to
    .set    n, \from
    .rept   \to + 1 - \from
    level   %n, %(n - 1)
    .set    n, n + 1
    .endr
    .endm

user:
    .set    n, 0
    .rept   NESTED + 1
    region  %n
    .set    n, n + 1
    .endr
    li      a7, 2
    ecall

level0:
    li      a7, 1
    ecall
    ret
    levels  1, NESTED

    .section .bss
    .balign 16
    .skip   4096
kernel_stack_top:
