/* What the exam's programs share. */
#ifndef EXAM_H
#define EXAM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096

/* The dump of the running system, with this program's memory in it. */
static inline void ask_for_dump(void) {
    int fd = open("/proc/sysrq-trigger", O_WRONLY);
    if (fd == -1 || write(fd, "c", 1) != 1) _exit(3);
}

/* Whether an access gives a signal. */
extern sigjmp_buf exam_back;
extern volatile sig_atomic_t exam_watched;
void exam_watch(void);
#define SURVIVES(access) (exam_watched = 1, sigsetjmp(exam_back, 1) == 0 ? ((access), exam_watched = 0, 1) : 0)

void boundary(void);
void children(void);
void constants(void);
void huge(void);
void jit(void);
void names(void);
void pieces(void);
void pipes(void);
void once(void);
void reload(void);
void renew(void);
int renewed(const char *wanted);
void runs(void);
void spawn(void);
void statistics(void);
void threads(void);
void wild_argument(void);

#endif
