/*
 * clone3(2): the size says which version of the structure it is (64, 80, 88 bytes, more if the rest is zero, E2BIG
 * above a page); every field is checked before a process is made.
 */
#include "contract.h"
#include <linux/sched.h>

static long call(struct clone_args *args, size_t size)
{
    long pid = syscall(SYS_clone3, args, size);
    if (pid == 0)
        _exit(0);
    if (pid > 0) {
        reap(pid);
        return 0;
    }
    return pid;
}

/* A call with a good exit signal, unless the fields say otherwise. */
#pragma GCC diagnostic ignored "-Woverride-init"
#define TRY(...) RESULT(call(&(struct clone_args){ .exit_signal = SIGCHLD, __VA_ARGS__ }, sizeof(struct clone_args)))

int main(void)
{
    static union { struct clone_args args; char bytes[3 * PAGE]; } large;
    section("sizes");
    large.args.exit_signal = SIGCHLD;
    RESULT(call(&large.args, 0));
    RESULT(call(&large.args, 63));
    RESULT(call(&large.args, 64));
    RESULT(call(&large.args, 65));
    RESULT(call(&large.args, 80));
    RESULT(call(&large.args, 88));
    RESULT(call(&large.args, 96));
    RESULT(call(&large.args, PAGE));
    RESULT(call(&large.args, PAGE + 1));
    large.bytes[100] = 1;
    RESULT(call(&large.args, 96));
    RESULT(call(&large.args, 104));
    RESULT(call(NULL, 64));
    RESULT(call(BAD_POINTER, 64));
    RESULT(call(BAD_POINTER, 8));
    section("stack");
    TRY(.stack = 0x100000);
    TRY(.stack_size = 4096);
    TRY(.stack = 8, .stack_size = ~0ULL);
    section("exit signal");
    TRY(.exit_signal = 65);
    TRY(.exit_signal = 0x100);
    TRY(.exit_signal = 1ULL << 32);
    TRY(.exit_signal = SIGCHLD, .flags = CLONE_THREAD | CLONE_SIGHAND | CLONE_VM);
    TRY(.exit_signal = SIGCHLD, .flags = CLONE_PARENT);
    section("flags");
    TRY(.flags = CLONE_DETACHED);
    TRY(.flags = CSIGNAL & SIGCHLD);
    TRY(.flags = 1ULL << 40);
    TRY(.flags = CLONE_THREAD);
    TRY(.flags = CLONE_SIGHAND);
    TRY(.flags = CLONE_PIDFD, .pidfd = 8);
    section("clone");
    RESULT(syscall(SYS_clone, CLONE_SIGHAND | SIGCHLD, 0, 0, 0, 0));
    RESULT(syscall(SYS_clone, CLONE_THREAD | CLONE_VM | SIGCHLD, 0, 0, 0, 0));
    RESULT(syscall(SYS_clone, CLONE_NEWNS | CLONE_FS | SIGCHLD, 0, 0, 0, 0));
    RESULT(syscall(SYS_clone, CLONE_PIDFD | CLONE_PARENT_SETTID | SIGCHLD, 0, NULL, 0, 0));
    return 0;
}
