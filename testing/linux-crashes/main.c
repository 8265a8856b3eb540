// SPDX-License-Identifier: GPL-2.0
/*
 * A module with many ways to die, whose truth is known: `echo NAME CPU > /proc/crashme` moves the writer to that
 * processor and dies there in the function `crashme_NAME` (dashes become underscores). It prints nothing itself, so
 * that a log holds only what Linux says.
 */
#include <linux/cpumask.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

#include "crashme.h"

char __user *crashme_user_buffer;

static const struct way *const tables[] = { crashme_memory, crashme_checks, crashme_stalls };

static const struct way *find(const char *name)
{
	for (size_t table = 0; table < ARRAY_SIZE(tables); table++)
		for (const struct way *way = tables[table]; way->name; way++)
			if (!strcmp(way->name, name))
				return way;
	return NULL;
}

static ssize_t crashme_write(struct file *file, const char __user *buffer, size_t length, loff_t *at)
{
	char text[64], name[48];
	const struct way *way;
	unsigned int cpu;
	int error;

	if (length >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, buffer, length))
		return -EFAULT;
	text[length] = 0;
	if (sscanf(text, "%47s %u", name, &cpu) != 2)
		return -EINVAL;
	way = find(name);
	if (!way)
		return -ENOENT;
	if (cpu >= nr_cpu_ids || !cpu_online(cpu))
		return -ENXIO;
	error = set_cpus_allowed_ptr(current, cpumask_of(cpu));
	if (error)
		return error;
	crashme_user_buffer = (char __user *)buffer;
	way->die();
	return length;
}

static const struct proc_ops operations = { .proc_write = crashme_write };

static int __init crashme_init(void)
{
	return proc_create("crashme", 0200, NULL, &operations) ? 0 : -ENOMEM;
}

module_init(crashme_init);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Ways to die for a judge of crash logs");
