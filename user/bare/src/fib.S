# fib(20), 1 for 0 and 1, in region 1: calls from two places, nested 20 deep.

    .option norvc
machine:
    li      a0, 20
    begin   1
    jal     ra, fib
    end     1
    power_off

fib:
    sltiu   t0, a0, 2
    bnez    t0, 1f
    addi    sp, sp, -32
    sd      ra, 0(sp)
    sd      a0, 8(sp)
    addi    a0, a0, -1
    jal     ra, fib
    sd      a0, 16(sp)
    ld      a0, 8(sp)
    addi    a0, a0, -2
    jal     ra, fib
    ld      t0, 16(sp)
    add     a0, a0, t0
    ld      ra, 0(sp)
    addi    sp, sp, 32
    ret
1:  li      a0, 1
    ret
