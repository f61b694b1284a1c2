# Saving and loading the floating-point registers: with vector.S to come, the only code that names them.

    .section .text, "ax", @progbits
    .option push
    .option arch, +f, +d

# limen_fp_save(a0 = FpState): f0-f31 and fcsr. FS must not be Off.
    .globl  limen_fp_save
    .type   limen_fp_save, @function
limen_fp_save:
    .cfi_startproc
    .irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    fsd     f\n, (8 * \n)(a0)
    .endr
    frcsr   t1
    sd      t1, 256(a0)
    ret
    .cfi_endproc
    .size   limen_fp_save, . - limen_fp_save

# limen_fp_load(a0 = FpState). FS must not be Off; it is Dirty afterwards.
    .globl  limen_fp_load
    .type   limen_fp_load, @function
limen_fp_load:
    .cfi_startproc
    .irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    fld     f\n, (8 * \n)(a0)
    .endr
    ld      t1, 256(a0)
    fscsr   t1
    ret
    .cfi_endproc
    .size   limen_fp_load, . - limen_fp_load
    .option pop
