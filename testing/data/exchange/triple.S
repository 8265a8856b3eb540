# A guest that triple-faults in 64-bit mode: its IDT is not mapped, and it reads an address that is not mapped either.
	.text
	.code32
	.align 4
	.long 0x1badb002, 0, -0x1badb002
	.globl _start
_start:
	movl $table2 + 0x03, table3
	movl $0x83, table2
	movl $table3 + 0x03, table4
	movl $table4, %eax
	movl %eax, %cr3
	movl %cr4, %eax
	orl $0x20, %eax
	movl %eax, %cr4
	movl $0xc0000080, %ecx
	rdmsr
	orl $0x100, %eax
	wrmsr
	movl %cr0, %eax
	orl $0x80000000, %eax
	movl %eax, %cr0
	lgdt gdtr
	movw $0xfff, 0x180000
	movl $0x00001000, 0x180002
	movl $0xffff8000, 0x180006
	movl $stack, %esp
	ljmp $8, $long
	.code64
long:
	lidt 0x180000
	call read
	hlt
read:
	movabs $0x0000123456789000, %rbx
	movq (%rbx), %rax
	ret
	.align 8
gdt:	.quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff
gdtr:	.word 23
	.long gdt
	.bss
	.align 4096
table4:	.skip 4096
table3:	.skip 4096
table2:	.skip 4096
	.skip 4096
stack:
