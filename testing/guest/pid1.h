/*
 * What every init of ours shares: the mounts a program expects, and the way out of the machine.
 *
 * The host reads the serial console and believes one line: "KWAB-EXIT <status>". After it the machine powers off; the
 * host does not wait for that.
 */
#ifndef PID1_H
#define PID1_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static inline void pid1_mount(const char *kind, const char *where, const char *options) {
    mkdir(where, 0755);
    /* A kernel without this file system does not end the boot: programs that need it will say so. */
    if (mount(kind, where, kind, 0, options) == -1 && errno != EBUSY) return;
}

static inline void pid1_loopback_up(void) {
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s == -1) return;
    struct ifreq request;
    memset(&request, 0, sizeof request);
    strcpy(request.ifr_name, "lo");
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    ioctl(s, SIOCSIFFLAGS, &request);
    close(s);
}

/* Mounts, environment and open descriptors for programs that run below this init. */
static inline void pid1_prepare(void) {
    pid1_mount("proc", "/proc", 0);
    pid1_mount("sysfs", "/sys", 0);
    pid1_mount("devtmpfs", "/dev", 0);
    pid1_mount("devpts", "/dev/pts", "mode=620,ptmxmode=666");
    pid1_mount("tmpfs", "/dev/shm", "mode=1777");
    pid1_mount("tmpfs", "/tmp", "mode=1777");
    pid1_mount("tmpfs", "/run", "mode=755");
    symlink("/proc/self/fd", "/dev/fd");
    sethostname("kwab", 4);
    pid1_loopback_up();
    clearenv();
    setenv("PATH", "/bin:/sbin:/usr/bin:/usr/sbin", 1);
    setenv("HOME", "/", 1);
    umask(022);
}

/* Says the status and ends the machine. */
__attribute__((noreturn)) static inline void pid1_finish(int status) {
    char line[32];
    int length = snprintf(line, sizeof line, "\nKWAB-EXIT %d\n", status);
    if (write(1, line, (size_t)length) != length) sync();
    reboot(RB_POWER_OFF);
    for (;;) pause();
}

/* Reads a whole small file; the caller frees it. Returns 0 when it cannot. */
static inline char *pid1_read(const char *path, size_t *size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd == -1) return 0;
    size_t room = 4096, used = 0;
    char *text = malloc(room + 1);
    for (ssize_t got; text && (got = read(fd, text + used, room - used)) > 0;) {
        used += (size_t)got;
        if (used == room) text = realloc(text, (room *= 2) + 1);
    }
    close(fd);
    if (text) text[used] = 0;
    *size = used;
    return text;
}

#endif
