// SPDX-License-Identifier: GPL-2.0
/* Deaths by an access: pointers, stacks, allocators, pages. */
#include <linux/delay.h>
#include <linux/kfence.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "crashme.h"

static VICTIM crashme_null_read(void)
{
	(void)READ_ONCE(*HIDDEN((int *)0x28));
}

static VICTIM crashme_null_write(void)
{
	WRITE_ONCE(*HIDDEN((int *)0), 1);
}

static VICTIM crashme_null_call(void)
{
	void (*function)(void) = HIDDEN((void (*)(void))NULL);

	function();
	barrier();
}

static VICTIM crashme_wild_read(void)
{
	/* Between two areas of the kernel's half that nothing maps. */
	(void)READ_ONCE(*HIDDEN((long *)0xffffffff00001230ul));
}

static VICTIM crashme_noncanonical(void)
{
	WRITE_ONCE(*HIDDEN((long *)0x5a5ade4d00000018ul), 7);
}

static VICTIM crashme_unchecked_access(void)
{
	/* Without copy_from_user: SMAP and PAN forbid it. */
	(void)READ_ONCE(*(long __force *)crashme_user_buffer);
}

static VICTIM crashme_rodata_write(void)
{
	static const int constant = 77;

	WRITE_ONCE(*HIDDEN((int *)&constant), 78);
}

static unsigned char not_code[64] = { 0xc3 };

static VICTIM crashme_exec_data(void)
{
	void (*function)(void) = HIDDEN((void (*)(void))(void *)not_code);

	function();
	barrier();
}

static noinline int crashme_recurse(volatile char *before)
{
	volatile char frame[512];

	frame[0] = before[0] + 1;
	return HIDDEN(1) ? crashme_recurse(frame) + frame[0] : 0;
}

static VICTIM crashme_stack_overflow(void)
{
	volatile char start[16] = { 1 };

	crashme_recurse(start);
}

static VICTIM crashme_stack_smash(void)
{
	char buffer[32];
	char *at = HIDDEN((char *)buffer);

	/* Past the array and over the canary, but not as far as the caller's frame. */
	memset(at, 0x41, HIDDEN(sizeof(buffer) + 16));
	barrier_data(buffer);
}

static VICTIM crashme_stack_end(void)
{
	/* The scheduler looks at the mark at the end of the stack of the task that it leaves. */
	*end_of_stack(current) = 0;
	msleep(1);
}

static VICTIM crashme_vmalloc_overflow(void)
{
	char *area = vmalloc(PAGE_SIZE);

	WRITE_ONCE(HIDDEN(area)[PAGE_SIZE + 3], 1);
}

/* An object of KFENCE's pool; with a short interval a few hundred tries suffice. */
static noinline char *guarded(size_t size)
{
	for (int tries = 0; tries < 2000; tries++) {
		char *object = kmalloc(size, GFP_KERNEL);

		if (is_kfence_address(object))
			return object;
		kfree(object);
		usleep_range(500, 1500);
	}
	return NULL;
}

static VICTIM crashme_kfence_uaf(void)
{
	char *object = guarded(96);

	if (!object)
		return;
	kfree(object);
	(void)READ_ONCE(HIDDEN(object)[5]);
}

static VICTIM crashme_kfence_overflow(void)
{
	char *object = guarded(128);

	if (!object)
		return;
	/* An object lies at either end of its page. */
	if (offset_in_page(object) == 0)
		WRITE_ONCE(HIDDEN(object)[-1], 1);
	else
		WRITE_ONCE(HIDDEN(object)[128], 1);
}

static VICTIM crashme_kfence_corruption(void)
{
	char *object = guarded(72);

	if (!object)
		return;
	/* Within the page, so that only the free sees it. */
	if (offset_in_page(object) == 0)
		WRITE_ONCE(HIDDEN(object)[73], 1);
	else
		WRITE_ONCE(HIDDEN(object)[-2], 1);
	kfree(object);
}

static VICTIM crashme_kfence_double_free(void)
{
	char *object = guarded(48);

	if (!object)
		return;
	kfree(object);
	kfree(HIDDEN(object));
}

static VICTIM crashme_slab_redzone(void)
{
	char *object = kmalloc(96, GFP_KERNEL);

	memset(HIDDEN(object), 0x33, HIDDEN(100));
	kfree(object);
}

static VICTIM crashme_slab_poison(void)
{
	char *object = kmalloc(192, GFP_KERNEL);
	char *again[64];

	kfree(object);
	WRITE_ONCE(HIDDEN(object)[100], 0x12);
	for (int at = 0; at < 64; at++)
		again[at] = kmalloc(192, GFP_KERNEL);
	for (int at = 0; at < 64; at++)
		kfree(again[at]);
}

static VICTIM crashme_slab_double_free(void)
{
	char *object = kmalloc(64, GFP_KERNEL);

	kfree(object);
	kfree(HIDDEN(object));
}

static VICTIM crashme_bad_page(void)
{
	struct page *page = alloc_pages(GFP_KERNEL, 1);

	page[1].mapping = (void *)0xbad0bad0ul;
	__free_pages(page, 1);
}

static VICTIM crashme_vfree_wild(void)
{
	vfree(HIDDEN((void *)((unsigned long)VMALLOC_START + 0x12345000ul)));
}

static VICTIM crashme_usercopy(void)
{
	char *object = kzalloc(64, GFP_KERNEL);

	if (copy_to_user(crashme_user_buffer, HIDDEN(object), HIDDEN(200ul)))
		return;
	kfree(object);
}

static VICTIM crashme_copy_overflow(void)
{
	/* Here the compiler knows the object's size, and its check comes before that of the slab. */
	char object[64] = "";

	if (copy_to_user(crashme_user_buffer, object, HIDDEN(200ul)))
		return;
}

static VICTIM crashme_kthread_body(void)
{
	WRITE_ONCE(*HIDDEN((int *)0x10), 1);
}

static int dying_thread(void *nothing)
{
	crashme_kthread_body();
	return 0;
}

static VICTIM crashme_kthread(void)
{
	struct task_struct *thread = kthread_create(dying_thread, NULL, "crash/me:%d", 0);

	kthread_bind(thread, raw_smp_processor_id());
	wake_up_process(thread);
	msleep(300);
}

const struct way crashme_memory[] = {
	{ "null-read", crashme_null_read },
	{ "null-write", crashme_null_write },
	{ "null-call", crashme_null_call },
	{ "wild-read", crashme_wild_read },
	{ "noncanonical", crashme_noncanonical },
	{ "unchecked-access", crashme_unchecked_access },
	{ "rodata-write", crashme_rodata_write },
	{ "exec-data", crashme_exec_data },
	{ "stack-overflow", crashme_stack_overflow },
	{ "stack-smash", crashme_stack_smash },
	{ "stack-end", crashme_stack_end },
	{ "vmalloc-overflow", crashme_vmalloc_overflow },
	{ "kfence-uaf", crashme_kfence_uaf },
	{ "kfence-overflow", crashme_kfence_overflow },
	{ "kfence-corruption", crashme_kfence_corruption },
	{ "kfence-double-free", crashme_kfence_double_free },
	{ "slab-redzone", crashme_slab_redzone },
	{ "slab-poison", crashme_slab_poison },
	{ "slab-double-free", crashme_slab_double_free },
	{ "bad-page", crashme_bad_page },
	{ "vfree-wild", crashme_vfree_wild },
	{ "usercopy", crashme_usercopy },
	{ "copy-overflow", crashme_copy_overflow },
	{ "kthread", crashme_kthread },
	{ }
};
