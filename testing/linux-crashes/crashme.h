/* The ways to die of the module `crashme`, by the file that holds them. */
#ifndef CRASHME_H
#define CRASHME_H

#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/types.h>

/* A function that dies keeps its own frame and its own name. */
#define VICTIM noinline void __used

struct way {
	const char *name;
	void (*die)(void);
};

extern const struct way crashme_memory[];
extern const struct way crashme_checks[];
extern const struct way crashme_stalls[];

/* The user buffer of the write that asked for this death. */
extern char __user *crashme_user_buffer;

/* What a compiler must not see through. */
#define HIDDEN(value) ({ typeof(value) hidden_ = (value); OPTIMIZER_HIDE_VAR(hidden_); hidden_; })

#endif
