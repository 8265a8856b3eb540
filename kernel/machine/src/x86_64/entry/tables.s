    /* Unwind tables of the trap stubs: what was interrupted, and where its registers lie (DWARF 5, 6.4). They are written
       by hand, since LLVM leaves out of .debug_frame that a frame is a signal's (augmentation S): without it a debugger
       takes the interrupted instruction for a return address and looks one byte before it. Registers have the numbers of
       the psABI: 0 rax, 1 rdx, 2 rcx, 3 rbx, 4 rsi, 5 rdi, 6 rbp, 7 rsp, 8 to 15, 16 the return address.

       The CFA is the end of what the processor pushed: RIP, CS, RFLAGS, RSP and SS lie 40 to 8 bytes below it. `depth` is
       CFA - RSP, `tabled` whether a table is being written. */
    .set tabled, 0
    .set depth, 0

    .pushsection .debug_frame, "", @progbits
.Ltraps_cie:
    .long .Ltraps_cie_end - .Ltraps_cie - 4
    .long 0xffffffff
    .byte 4                             /* version */
    .asciz "zS"                         /* lldb looks for the S only behind a z: lengths of data, which are 0 */
    .byte 8, 0                          /* bytes of an address, of a segment selector */
    .uleb128 1                          /* code is counted in bytes, */
    .sleb128 -8                         /* the stack in words downwards */
    .uleb128 16
    .uleb128 0
    .byte 0x90, 5                       /* DW_CFA_offset: RIP at CFA - 40, */
    .byte 0x87, 2                       /* RSP at CFA - 16 */
    .balign 8, 0
.Ltraps_cie_end:
    .popsection

    /* The table of the code from here to `table_end`, with this depth and these instructions. Each row behind it lies
       higher than the one before: drgn refuses two of one address. */
    .macro table_begin name, bytes, ops:vararg
        .set tabled, 1
        .set depth, \bytes
        .pushsection .debug_frame, "", @progbits
.L\name\()_table:
        .long .L\name\()_table_end - .L\name\()_table - 4
        .long .Ltraps_cie
        .quad \name
        .quad .L\name\()_end - \name
        .uleb128 0
        .byte 0x0c, 7                   /* DW_CFA_def_cfa rsp */
        .uleb128 depth
        .ifnb \ops
        .byte \ops
        .endif
        .popsection
    .endm
    .macro table_end name
.L\name\()_end:
        .set tabled, 0
        .pushsection .debug_frame, "", @progbits
        .balign 8, 0
.L\name\()_table_end:
        .popsection
    .endm
    /* From here on: this depth, and these instructions. */
    .macro table_row bytes, ops:vararg
        .set depth, \bytes
        .if tabled
.Lrow\@:
        .pushsection .debug_frame, "", @progbits
        .byte 0x01                      /* DW_CFA_set_loc */
        .quad .Lrow\@
        .byte 0x0e                      /* DW_CFA_def_cfa_offset */
        .uleb128 depth
        .ifnb \ops
        .byte \ops
        .endif
        .popsection
        .endif
    .endm

    .macro push_reg name, number
        push \name
        table_row depth + 8, 0x80 + \number, depth / 8
    .endm
    .macro pop_reg name, number
        pop \name
        table_row depth - 8, 0x08, \number
    .endm
    .macro push_word value:vararg
        push \value
        table_row depth + 8
    .endm
    .macro drop bytes
        add rsp, \bytes
        table_row depth - \bytes
    .endm
