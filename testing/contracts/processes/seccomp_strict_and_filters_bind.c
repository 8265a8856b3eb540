/*
 * seccomp(2): strict mode kills on anything but read, write and exit; a filter can return an errno and needs
 * no_new_privs.
 */
#include "../contract.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

static int strict(void *unused)
{
    (void)unused;
    RESULT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
    say("writing is allowed");
    syscall(SYS_getpid);
    return 0;
}

static int strict_exit(void *unused)
{
    (void)unused;
    need(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
    syscall(SYS_exit, 6);
    return 0;
}

static int filtered(void *unused)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { COUNT_OF(rules), rules };
    (void)unused;
    need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    RESULT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
    RESULT(syscall(SYS_getppid));
    show("others pass", syscall(SYS_getpid) > 0);
    syscall(SYS_getsid, 0);
    return 0;
}

int main(void)
{
    RESULT(prctl(PR_GET_SECCOMP));
    show_status("strict", in_child(strict, NULL));
    show_status("strict exit", in_child(strict_exit, NULL));
    show_status("filtered", in_child(filtered, NULL));
    return 0;
}
