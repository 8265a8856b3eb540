/*
 * sched_setscheduler(2), sched_setattr(2), sched_setaffinity(2), sched_rr_get_interval(2), setpriority(2): what
 * each refuses, and which mistake is reported when a call makes two.
 */
#include "contract.h"
#include <sys/resource.h>

#define NONE 0x3fffffff
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
    uint32_t least, most;
};

static int set(pid_t pid, int policy, const struct sched_param *param)
{
    return syscall(SYS_sched_setscheduler, pid, policy, param);
}
static int attr(pid_t pid, struct attributes *what, unsigned flags)
{
    return syscall(SYS_sched_setattr, pid, what, flags);
}
static int get_attr(pid_t pid, void *what, unsigned size, unsigned flags)
{
    return syscall(SYS_sched_getattr, pid, what, size, flags);
}

static void refusals(void)
{
    struct sched_param zero = { .sched_priority = 0 }, one = { .sched_priority = 1 }, many = { .sched_priority = 100 };
    section("sched_setscheduler");
    RESULT(set(-1, SCHED_OTHER, &zero));
    RESULT(set(NONE, SCHED_OTHER, &zero));
    RESULT(set(NONE, SCHED_OTHER, NULL));
    RESULT(set(NONE, SCHED_OTHER, BAD_POINTER));
    RESULT(set(NONE, 77, &zero));
    RESULT(set(0, -1, &zero));
    RESULT(set(0, 77, &zero));
    RESULT(set(0, 4, &zero));
    RESULT(set(0, 6, &zero));
    RESULT(set(0, SCHED_OTHER, &one));
    RESULT(set(0, SCHED_FIFO, &zero));
    RESULT(set(0, SCHED_FIFO, &many));
    RESULT(set(0, SCHED_FIFO, &one));
    RESULT(set(0, SCHED_OTHER, &zero));
    section("sched_getscheduler and parameters");
    RESULT(syscall(SYS_sched_getscheduler, -1));
    RESULT(syscall(SYS_sched_getscheduler, NONE));
    RESULT(syscall(SYS_sched_getparam, 0, NULL));
    RESULT(syscall(SYS_sched_getparam, -1, &one));
    RESULT(syscall(SYS_sched_getparam, NONE, NULL));
    RESULT(syscall(SYS_sched_getparam, NONE, BAD_POINTER));
    RESULT(syscall(SYS_sched_getparam, 0, BAD_POINTER));
    RESULT(syscall(SYS_sched_setparam, 0, &one));
    RESULT(syscall(SYS_sched_setparam, 0, NULL));
    RESULT(syscall(SYS_sched_setparam, -1, &zero));
    RESULT(syscall(SYS_sched_setparam, NONE, &zero));
    struct timespec time;
    RESULT(syscall(SYS_sched_rr_get_interval, -1, &time));
    RESULT(syscall(SYS_sched_rr_get_interval, NONE, &time));
    RESULT(syscall(SYS_sched_rr_get_interval, 0, BAD_POINTER));
    RESULT(sched_get_priority_max(77));
    RESULT(sched_get_priority_min(-1));
    section("sched_setattr");
    struct attributes good = { .size = 48 }, small = { .size = 47 }, none = { .size = 0 };
    struct attributes strange = { .size = 48, .policy = 9 }, unknown = { .size = 48, .flags = 1 << 20 };
    struct attributes reset = { .size = 48, .flags = 1 }, low = { .size = 48, .nice = -99 };
    RESULT(attr(0, &good, 1));
    RESULT(attr(-1, &good, 0));
    RESULT(attr(NONE, &good, 0));
    RESULT(attr(0, NULL, 0));
    RESULT(attr(0, BAD_POINTER, 0));
    RESULT(attr(0, &small, 0));
    show("size now", small.size);
    RESULT(attr(0, &none, 0));
    RESULT(attr(0, &strange, 0));
    RESULT(attr(0, &unknown, 0));
    RESULT(attr(0, &reset, 0));
    char room[200];
    RESULT(get_attr(0, room, 47, 0));
    RESULT(get_attr(0, room, 48, 1));
    RESULT(get_attr(-1, room, 48, 0));
    RESULT(get_attr(NONE, room, 48, 0));
    RESULT(get_attr(0, NULL, 48, 0));
    RESULT(get_attr(0, room, PAGE + 1, 0));
    RESULT(get_attr(0, room, 100, 0));
    RESULT(get_attr(0, BAD_POINTER, 100, 0));
    RESULT(attr(0, &good, 0));
    RESULT(attr(0, &low, 0));
    RESULT(getpriority(PRIO_PROCESS, 0));
    section("sched_setaffinity");
    unsigned long mask[16] = { 1 }, empty[16] = { 0 }, far[16] = { 1UL << 60 };
    RESULT(syscall(SYS_sched_setaffinity, 0, 0, mask));
    RESULT(syscall(SYS_sched_setaffinity, 0, sizeof empty, empty));
    RESULT(syscall(SYS_sched_setaffinity, 0, sizeof far, far));
    RESULT(syscall(SYS_sched_setaffinity, NONE, sizeof mask, mask));
    RESULT(syscall(SYS_sched_setaffinity, NONE, sizeof mask, BAD_POINTER));
    RESULT(syscall(SYS_sched_setaffinity, -1, sizeof mask, mask));
    RESULT(syscall(SYS_sched_getaffinity, 0, 0, mask));
    RESULT(syscall(SYS_sched_getaffinity, 0, 7, mask));
    RESULT(syscall(SYS_sched_getaffinity, 0, 12, mask));
    RESULT(syscall(SYS_sched_getaffinity, NONE, 8, mask));
    RESULT(syscall(SYS_sched_getaffinity, NONE, 7, mask));
    RESULT(syscall(SYS_sched_getaffinity, -1, 128, mask));
    RESULT(syscall(SYS_sched_getaffinity, 0, 128, BAD_POINTER));
    section("priorities");
    RESULT(getpriority(7, 0));
    RESULT(getpriority(PRIO_PROCESS, NONE));
    RESULT(setpriority(7, 0, 0));
    RESULT(setpriority(PRIO_PROCESS, NONE, 0));
    RESULT(setpriority(PRIO_PGRP, NONE, 0));
    RESULT(setpriority(PRIO_USER, NONE, 0));
    RESULT(setpriority(PRIO_PROCESS, -1, 0));
}

static int user(void *unused)
{
    (void)unused;
    struct sched_param one = { .sched_priority = 1 }, zero = { .sched_priority = 0 };
    struct attributes low = { .size = 48, .nice = -5 };
    unsigned long mask[16] = { 1 };
    need(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    RESULT(set(0, SCHED_FIFO, &one));
    RESULT(set(1, SCHED_OTHER, &zero));
    RESULT(set(0, SCHED_IDLE, &zero));
    RESULT(set(0, SCHED_OTHER, &zero));
    RESULT(attr(0, &low, 0));
    RESULT(setpriority(PRIO_PROCESS, 0, -5));
    RESULT(setpriority(PRIO_PROCESS, 1, 5));
    RESULT(setpriority(PRIO_PROCESS, 0, 5));
    RESULT(setpriority(PRIO_PROCESS, 0, 4));
    RESULT(nice(-1));
    RESULT(syscall(SYS_sched_setaffinity, 1, sizeof mask, mask));
    return 0;
}

int main(void)
{
    refusals();
    section("an ordinary user");
    show_status("user", in_child(user, NULL));
    return 0;
}
