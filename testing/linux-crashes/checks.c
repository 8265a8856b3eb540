// SPDX-License-Identifier: GPL-2.0
/* Deaths that the kernel asks for itself: failed checks, traps, panics. */
#include <linux/bug.h>
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/panic.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

#include "crashme.h"

static VICTIM crashme_bug(void)
{
	BUG();
}

static VICTIM crashme_warn(void)
{
	WARN(HIDDEN(1), "crashme: %d frames lost\n", 17);
}

static VICTIM crashme_warn_bare(void)
{
	WARN_ON_ONCE(HIDDEN(1));
}

static VICTIM crashme_panic(void)
{
	panic("crashme: no way on with %d of %d", 3, 4);
}

static VICTIM crashme_illegal(void)
{
#ifdef CONFIG_X86
	/* UD2 would be taken for a BUG. */
	asm volatile(".byte 0x0f, 0xff, 0xc0");
#else
	asm volatile(".inst 0x00000000");
#endif
}

#ifdef CONFIG_X86
static VICTIM crashme_divide(void)
{
	asm volatile("xorl %%edx, %%edx; xorl %%ecx, %%ecx; movl $1, %%eax; idivl %%ecx" : : : "eax", "ecx", "edx");
}

static VICTIM crashme_double_fault(void)
{
	/* No exception can be delivered on this stack pointer. */
	asm volatile("movq $0x1230, %%rsp; pushq $0" : : : "memory");
}
#endif

static VICTIM crashme_list_add(void)
{
	struct list_head head, other, first, second;

	INIT_LIST_HEAD(&head);
	INIT_LIST_HEAD(&other);
	list_add(&first, &head);
	WRITE_ONCE(head.next->prev, &other);
	list_add(&second, &head);
}

static VICTIM crashme_list_del(void)
{
	struct list_head head, entry;

	INIT_LIST_HEAD(&head);
	list_add(&entry, &head);
	list_del(&entry);
	list_del(&entry);
}

static refcount_t count;

static VICTIM crashme_refcount_underflow(void)
{
	refcount_set(&count, 0);
	if (refcount_dec_and_test(&count))
		barrier();
}

static VICTIM crashme_refcount_zero(void)
{
	refcount_set(&count, 0);
	refcount_inc(&count);
}

static VICTIM crashme_refcount_saturated(void)
{
	refcount_set(&count, REFCOUNT_SATURATED);
	refcount_inc(&count);
}

static VICTIM crashme_fortify(void)
{
	struct { char name[16]; char rest[16]; } *object = kzalloc(sizeof(*object), GFP_KERNEL);

	memcpy(object->name, crashme_checks, HIDDEN(40ul));
	kfree(object);
}

static VICTIM crashme_timer_body(struct timer_list *timer)
{
	BUG_ON(HIDDEN(timer) != NULL);
}

static DEFINE_TIMER(timer, crashme_timer_body);

static VICTIM crashme_timer(void)
{
	timer.expires = jiffies + HZ / 10;
	add_timer_on(&timer, raw_smp_processor_id());
	msleep(500);
}

static VICTIM crashme_irq_body(struct irq_work *work)
{
	WRITE_ONCE(*HIDDEN((int *)0x40), 1);
}

static struct irq_work irq_work;

static VICTIM crashme_irq(void)
{
	init_irq_work(&irq_work, crashme_irq_body);
	irq_work_queue(&irq_work);
	msleep(500);
}

static VICTIM crashme_work_body(struct work_struct *work)
{
	WRITE_ONCE(*HIDDEN((int *)0x18), 1);
}

static DECLARE_WORK(work, crashme_work_body);

static VICTIM crashme_work(void)
{
	schedule_work_on(raw_smp_processor_id(), &work);
	msleep(500);
}

const struct way crashme_checks[] = {
	{ "bug", crashme_bug },
	{ "warn", crashme_warn },
	{ "warn-bare", crashme_warn_bare },
	{ "panic", crashme_panic },
	{ "illegal", crashme_illegal },
#ifdef CONFIG_X86
	{ "divide", crashme_divide },
	{ "double-fault", crashme_double_fault },
#endif
	{ "list-add", crashme_list_add },
	{ "list-del", crashme_list_del },
	{ "refcount-underflow", crashme_refcount_underflow },
	{ "refcount-zero", crashme_refcount_zero },
	{ "refcount-saturated", crashme_refcount_saturated },
	{ "fortify", crashme_fortify },
	{ "timer", crashme_timer },
	{ "irq", crashme_irq },
	{ "work", crashme_work },
	{ }
};
