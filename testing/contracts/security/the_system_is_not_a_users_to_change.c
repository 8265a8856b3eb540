/*
 * Names, clocks, mounts, root directory, devices, settings and power belong to who has the capability
 * (capabilities(7)).
 */
#include "security.h"
#include <sys/mount.h>
#include <sys/timex.h>

static int attempt(void *unused)
{
    struct timespec now = { 1, 0 };
    struct timeval day = { 1, 0 };
    struct timex adjust = { .modes = ADJ_FREQUENCY };
    OUTCOME(sethostname("mine", 4));
    OUTCOME(setdomainname("mine", 4));
    OUTCOME(clock_settime(CLOCK_REALTIME, &now));
    OUTCOME(settimeofday(&day, NULL));
    OUTCOME(adjtimex(&adjust));
    OUTCOME(mount("none", "/tmp", "tmpfs", 0, NULL));
    OUTCOME(mount("none", "/tmp", "tmpfs", MS_REMOUNT, NULL));
    OUTCOME(mount("/", "/tmp", NULL, MS_BIND, NULL));
    OUTCOME(umount("/tmp"));
    OUTCOME(umount2("/proc", MNT_DETACH));
    OUTCOME(chroot("/tmp"));
    OUTCOME(mknod("device", S_IFCHR | 0666, 0x101));
    OUTCOME(mknod("device", S_IFBLK | 0666, 0x800));
    OUTCOME(syscall(SYS_reboot, 0xfee1dead, 672274793, 0, NULL));
    OUTCOME(syscall(SYS_reboot, 0, 0, 0, NULL));
    OUTCOME(open("/proc/sys/kernel/hostname", O_WRONLY));
    OUTCOME(open("/proc/sys/kernel/printk", O_WRONLY));
    OUTCOME(open("/proc/sys/kernel/threads-max", O_WRONLY));
    OUTCOME(open("/proc/sysrq-trigger", O_WRONLY));
    OUTCOME(open("/dev/console", O_RDWR));
    OUTCOME(open("/etc/passwd", O_WRONLY));
    OUTCOME(open("/etc/passwd", O_RDONLY | O_TRUNC));
    OUTCOME(truncate("/etc/passwd", 0));
    OUTCOME(unlink("/etc/passwd"));
    OUTCOME(rename("/etc/passwd", "/tmp/passwd"));
    OUTCOME(chmod("/etc/passwd", 0666));
    OUTCOME(chown("/etc/passwd", NOBODY, NOBODY));
    OUTCOME(utimensat(AT_FDCWD, "/etc/passwd", NULL, 0));
    OUTCOME(open("/etc/new", O_WRONLY | O_CREAT, 0644));
    OUTCOME(mkdir("/etc/new", 0755));
    OUTCOME(symlink("x", "/etc/new"));
    OUTCOME(mlockall(MCL_CURRENT) == 0 || errno == ENOMEM ? 0 : -1);
    return unused != NULL;
}

int main(void)
{
    scratch();
    need(chmod(".", 0777) == 0);
    show_status("attempt", as_nobody(attempt, NULL));
    return 0;
}
