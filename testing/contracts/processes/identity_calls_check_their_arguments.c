/*
 * setpgid(2), setsid(2), setgroups(2), prlimit(2), sethostname(2), getrandom(2), getcpu(2), capget(2): ids, sizes
 * and pointers that are refused, as root and as an ordinary user.
 */
#include "contract.h"
#include <grp.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/resource.h>

#define NONE 0x3fffffff

static long prlimit64_(pid_t pid, unsigned which, const struct rlimit *to, struct rlimit *old)
{
    return syscall(SYS_prlimit64, pid, which, to, old);
}

static int user(void *unused)
{
    (void)unused;
    need(setgroups(0, NULL) == 0 && setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    struct rlimit limit, up = { RLIM_INFINITY, RLIM_INFINITY }, crossed = { 5, 4 };
    gid_t group = 5;
    RESULT(setuid(0));
    RESULT(setreuid(0, -1));
    RESULT(setresuid(-1, -1, 0));
    RESULT(setresuid(-1, -1, -1));
    RESULT(setgid(0));
    RESULT(setregid(-1, 0));
    RESULT(setgroups(1, &group));
    RESULT(setfsuid(0));
    RESULT(setfsuid(-1));
    RESULT(prlimit64_(1, RLIMIT_NOFILE, NULL, &limit));
    RESULT(prlimit64_(1, RLIMIT_NOFILE, &crossed, NULL));
    RESULT(prlimit64_(0, RLIMIT_NOFILE, &up, NULL));
    RESULT(sethostname("x", 1));
    RESULT(syscall(SYS_setdomainname, "x", 1));
    RESULT(chroot("/"));
    RESULT(syscall(SYS_reboot, 1, 2, 3, NULL));
    RESULT(syscall(SYS_settimeofday, NULL, NULL));
    return 0;
}

int main(void)
{
    section("groups and sessions");
    RESULT(setpgid(-1, 0));
    RESULT(setpgid(0, -1));
    RESULT(setpgid(NONE, 0));
    RESULT(setpgid(0, NONE));
    RESULT(setpgid(1, 0));
    RESULT(getpgid(NONE));
    RESULT(getpgid(-1));
    RESULT(getsid(NONE));
    RESULT(getsid(-1));
    setpgid(0, 0);
    RESULT(setsid());
    section("users");
    gid_t groups[4] = { 1, 2, 3, 4 };
    RESULT(setgroups(65537, groups));
    RESULT(syscall(SYS_setgroups, -1, groups));
    RESULT(setgroups(2, BAD_POINTER));
    RESULT(setgroups(4, groups));
    RESULT(getgroups(1, groups));
    RESULT(getgroups(-1, groups));
    RESULT(getgroups(0, NULL));
    RESULT(getgroups(4, BAD_POINTER));
    RESULT(setuid(-1));
    RESULT(setgid(-1));
    RESULT(setreuid(-1, -1));
    RESULT(syscall(SYS_getresuid, BAD_POINTER, BAD_POINTER, BAD_POINTER));
    section("limits");
    struct rlimit limit = { 5, 4 };
    RESULT(prlimit64_(0, 16, NULL, &limit));
    RESULT(prlimit64_(0, 77, BAD_POINTER, NULL));
    RESULT(prlimit64_(NONE, RLIMIT_NOFILE, NULL, &limit));
    RESULT(prlimit64_(NONE, 77, NULL, &limit));
    RESULT(prlimit64_(-1, RLIMIT_NOFILE, NULL, &limit));
    limit = (struct rlimit){ 5, 4 };
    RESULT(prlimit64_(0, RLIMIT_NOFILE, &limit, NULL));
    RESULT(prlimit64_(0, RLIMIT_NOFILE, BAD_POINTER, NULL));
    RESULT(prlimit64_(0, RLIMIT_NOFILE, NULL, BAD_POINTER));
    limit = (struct rlimit){ 1 << 30, 1 << 30 };
    RESULT(prlimit64_(0, RLIMIT_NOFILE, &limit, NULL));
    section("system");
    char text[400];
    RESULT(sethostname(text, 65));
    RESULT(sethostname(text, -1));
    RESULT(syscall(SYS_sethostname, BAD_POINTER, 4));
    RESULT(syscall(SYS_uname, BAD_POINTER));
    RESULT(syscall(SYS_sysinfo, BAD_POINTER));
    RESULT(syscall(SYS_getrandom, text, 8, 8));
    RESULT(syscall(SYS_getrandom, text, 8, 6));
    RESULT(syscall(SYS_getrandom, BAD_POINTER, 8, 0));
    RESULT(syscall(SYS_getcpu, BAD_POINTER, NULL, NULL));
    RESULT(syscall(SYS_membarrier, 77, 0, 0));
    RESULT(syscall(SYS_membarrier, 0, 1, 0));
    RESULT(syscall(SYS_personality, 0xffffffff));
    RESULT(syscall(SYS_umask, 0177777) == 022);
    RESULT(syscall(SYS_set_robust_list, text, 23));
    RESULT(syscall(SYS_get_robust_list, NONE, text, text));
    section("capabilities");
    struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 }, old = { 1, 0 };
    struct __user_cap_header_struct gone = { _LINUX_CAPABILITY_VERSION_3, NONE },
        minus = { _LINUX_CAPABILITY_VERSION_3, -1 }, first = { _LINUX_CAPABILITY_VERSION_3, 1 };
    struct __user_cap_data_struct data[2];
    RESULT(syscall(SYS_capget, &head, data));
    RESULT(syscall(SYS_capget, &old, data));
    show("version now", old.version == _LINUX_CAPABILITY_VERSION_3);
    old.version = 1;
    RESULT(syscall(SYS_capget, &old, NULL));
    RESULT(syscall(SYS_capget, &gone, data));
    RESULT(syscall(SYS_capget, &minus, data));
    RESULT(syscall(SYS_capset, &first, data));
    RESULT(syscall(SYS_capset, &head, BAD_POINTER));
    RESULT(syscall(SYS_capget, BAD_POINTER, data));
    section("an ordinary user");
    show_status("user", in_child(user, NULL));
    return 0;
}
