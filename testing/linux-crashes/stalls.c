// SPDX-License-Identifier: GPL-2.0
/* Deaths by waiting: lockups, stalls, sleeping where that is forbidden. */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

#include "crashme.h"

/* How long a stall lasts that ends by itself: long enough for every watchdog as the boots set them. */
#define STALL_MS 12000

static VICTIM crashme_soft_lockup(void)
{
	preempt_disable();
	mdelay(STALL_MS);
	preempt_enable();
}

static VICTIM crashme_irqs_off(void)
{
	unsigned long flags;

	local_irq_save(flags);
	mdelay(STALL_MS);
	local_irq_restore(flags);
}

static VICTIM crashme_rcu_stall(void)
{
	rcu_read_lock();
	mdelay(STALL_MS);
	rcu_read_unlock();
}

static DEFINE_SPINLOCK(lock);

static VICTIM crashme_spin_recursion(void)
{
	spin_lock(&lock);
	spin_lock(&lock);
}

static DEFINE_MUTEX(mutex);

static VICTIM crashme_mutex_recursion(void)
{
	mutex_lock(&mutex);
	mutex_lock(&mutex);
}

static VICTIM crashme_hung_task(void)
{
	DECLARE_COMPLETION_ONSTACK(never);

	wait_for_completion(&never);
}

static VICTIM crashme_sleep_atomic(void)
{
	spin_lock(&lock);
	msleep(20);
	spin_unlock(&lock);
}

static VICTIM crashme_schedule_atomic(void)
{
	preempt_disable();
	schedule();
	preempt_enable();
}

const struct way crashme_stalls[] = {
	{ "soft-lockup", crashme_soft_lockup },
	{ "irqs-off", crashme_irqs_off },
	{ "rcu-stall", crashme_rcu_stall },
	{ "spin-recursion", crashme_spin_recursion },
	{ "mutex-recursion", crashme_mutex_recursion },
	{ "hung-task", crashme_hung_task },
	{ "sleep-atomic", crashme_sleep_atomic },
	{ "schedule-atomic", crashme_schedule_atomic },
	{ }
};
