/*
 * syslog(2), proc(5) /proc/sys/kernel/dmesg_restrict: with it set, as it is by default, every action needs CAP_SYSLOG,
 * and so does reading /dev/kmsg.
 */
#include "security.h"
#include <linux/capability.h>

static char bytes[1024];

static void actions(void)
{
    for (int action = 0; action <= 11; action++) {
        /* 2 waits for something new, and what 3, 4, 9 and 10 give is chance. */
        if (action == 2)
            continue;
        long got = syscall(SYS_syslog, action, bytes, action == 8 ? 1 : 64);
        say("action %d: %s", action, got == -1 ? errno_name(errno) : "ok");
    }
    OUTCOME(syscall(SYS_syslog, 3, NULL, 64));
    OUTCOME(syscall(SYS_syslog, 3, bytes, -1));
    RESULT(syscall(SYS_syslog, 3, bytes, 0));
    OUTCOME(syscall(SYS_syslog, 3, BAD_POINTER, 64));
    OUTCOME(syscall(SYS_syslog, 8, NULL, 0));
    OUTCOME(syscall(SYS_syslog, 8, NULL, 9));
    OUTCOME(syscall(SYS_syslog, -1, NULL, 0));
    OUTCOME(open("/dev/kmsg", O_RDONLY));
    OUTCOME(open("/dev/kmsg", O_RDONLY | O_NONBLOCK));
    OUTCOME(open("/dev/kmsg", O_RDWR));
    OUTCOME(open("/dev/kmsg", O_WRONLY));
}

static int attempt(void *unused)
{
    (void)unused;
    actions();
    return 0;
}

static int only_the_log(void *capability)
{
    int number = *(int *)capability;
    struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct sets[2] = { { 0 } };
    need(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0);
    become_nobody();
    sets[number / 32].permitted = sets[number / 32].effective = 1u << number % 32;
    need(syscall(SYS_capset, &header, sets) == 0);
    OUTCOME(syscall(SYS_syslog, 10, NULL, 0));
    OUTCOME(open("/dev/kmsg", O_RDONLY));
    return 0;
}

int main(void)
{
    int log = CAP_SYSLOG, kill = CAP_KILL;
    get_file("/proc/sys/kernel/dmesg_restrict", bytes, sizeof bytes);
    bytes[strcspn(bytes, "\n")] = 0;
    show_text("dmesg_restrict", bytes);
    section("user");
    as_nobody(attempt, NULL);
    section("CAP_SYSLOG");
    in_child(only_the_log, &log);
    section("CAP_KILL");
    in_child(only_the_log, &kill);
    section("root");
    actions();
    return 0;
}
