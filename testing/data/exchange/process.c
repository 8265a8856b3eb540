/* Dies of a list whose last link is no pointer, while a second thread sleeps; without a C library, so that its core is
 * small. */
struct node {
	struct node *next;
	long value;
};

static long call(long number, long a, long b, long c)
{
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
}

static char stack[4096] __attribute__((aligned(16)));
static struct node last = { (struct node *)0x10, 3 };
static struct node first = { &last, 4 };
long done;

__attribute__((noinline)) static long sum(struct node *list)
{
	long all = 0;
	for (; list; list = list->next)
		all += list->value;
	return all;
}

__attribute__((noinline)) static long total(struct node *list)
{
	return sum(list) + 1;
}

/* clone(2) with CLONE_VM|FS|FILES|SIGHAND|THREAD; the new thread waits in pause(2) for ever. */
static void start_thread(void)
{
	long result;
	register long flags __asm__("r10") = 0;
	__asm__ volatile("syscall\n\ttest %%rax, %%rax\n\tjnz 1f\n0:\tmov $34, %%eax\n\tsyscall\n\tjmp 0b\n1:"
			 : "=a"(result)
			 : "a"(56L), "D"(0x10f00L), "S"(stack + sizeof stack), "d"(0L), "r"(flags)
			 : "rcx", "r11", "memory");
}

void start(void)
{
	long wait[2] = { 0, 20000000 };
	start_thread();
	call(35, (long)wait, 0, 0);
	done = total(&first);
	call(231, 0, 0, 0);
}

__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tcall start\n");
