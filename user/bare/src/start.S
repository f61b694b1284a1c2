# The start common to all guests: one hart in M mode, memory open to all modes, what a kernel handles delegated to S.
# Goes on at `machine`, with sp set and no trap vector yet.

    .option norelax
    .option arch, +f, +d, +v, +zifencei, +zicsr, +zicbom, +zicboz, +svinval, +zihintpause

# Regions for the plugin: `slti x0, x0, N`, even N begins, odd N ends.
    .macro begin id
    slti    x0, x0, 2 * (\id)
    .endm
    .macro end id
    slti    x0, x0, 2 * (\id) + 1
    .endm

    .macro power_off
    li      t0, 0x100000                    # the test device of the virt machine
    li      t1, 0x5555
    sw      t1, 0(t0)
    j       .
    .endm

    .section .text.start, "ax", @progbits
    .globl _start
_start:
    csrr    t0, mhartid
    bnez    t0, .Lpark
    la      sp, stack_top
    li      t0, -1                          # PMP: everything, for everybody
    csrw    pmpaddr0, t0
    li      t0, 0x1f
    csrw    pmpcfg0, t0
    li      t0, 0xb108                      # breakpoint, ecall from U, page faults
    csrw    medeleg, t0
    li      t0, 0x222
    csrw    mideleg, t0
    li      t0, 0x6600                      # mstatus: FS and VS dirty
    csrs    mstatus, t0
    j       machine
.Lpark:
    wfi
    j       .Lpark

# To S mode at \address.
    .macro supervise address
    la      t0, \address
    csrw    mepc, t0
    li      t0, 0x1800
    csrc    mstatus, t0
    li      t0, 0x0800
    csrs    mstatus, t0
    mret
    .endm

    .section .bss
    .balign 4096
stack:
    .skip   65536
stack_top:

    .text
