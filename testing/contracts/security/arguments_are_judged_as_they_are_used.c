/*
 * contract: timeout=60
 * Path names, addresses, control messages, vectors and sizes that another thread changes during the call are read
 * once: what was checked is what is used.
 */
#include "security.h"
#include <linux/openat2.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ROUNDS 3000

static volatile int over;
static volatile char path[32] = "allowed";
static struct open_how how = { .flags = O_RDONLY };
static struct iovec vector = { NULL, 8 };
static union { struct cmsghdr head; char bytes[64]; } control;
static struct sockaddr_un address = { AF_UNIX, "allowed.socket" };

static void *flips(void *unused)
{
    while (!over) {
        /* "allowed" and "secret\0" differ in every byte that counts. */
        for (const char **name = (const char *[]){ "allowed", "secret", NULL }; *name; name++)
            for (size_t at = 0; at < 8; at++)
                path[at] = at <= strlen(*name) ? (*name)[at] : 0;
        *(volatile uint64_t *)&how.flags ^= O_WRONLY;
        *(volatile size_t *)&vector.iov_len ^= 8 ^ PAGE;
        *(volatile size_t *)&control.head.cmsg_len = control.head.cmsg_len == 20 ? 4000 : 20;
        *(volatile sa_family_t *)&address.sun_family ^= AF_UNIX ^ AF_INET;
        address.sun_path[0] ^= 'a' ^ 's';
    }
    return unused;
}

static int attempt(void *unused)
{
    pthread_t thread;
    int secrets = 0, writes = 0, beyond = 0, short_ones = 0, passed = 0, pair[2], zero = open("/dev/zero", O_RDONLY);
    char *page = fresh_pages(2), text[16];
    (void)unused;
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && mprotect(page + PAGE, PAGE, PROT_NONE) == 0);
    vector.iov_base = page + PAGE - 8;
    control.head = (struct cmsghdr){ .cmsg_len = 20, .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
    need(pthread_create(&thread, NULL, flips, NULL) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        int fd = open((char *)path, O_RDONLY);
        if (fd != -1 && read(fd, text, 6) == 6)
            secrets += memcmp(text, "secret", 6) == 0;
        close(fd);
        fd = syscall(SYS_openat2, AT_FDCWD, "allowed", &how, sizeof how);
        if (fd != -1)
            writes += write(fd, "x", 1) == 1;
        close(fd);
        ssize_t got = readv(zero, &vector, 1);
        beyond += got > 8;
        short_ones += got != 8 && got != -1;
        char byte = 'x';
        struct iovec data = { &byte, 1 };
        struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = 24 };
        if (sendmsg(pair[0], &message, MSG_DONTWAIT) == 1)
            need(read(pair[1], &byte, 1) == 1);
        fd = socket(AF_UNIX, SOCK_STREAM, 0);
        passed += connect(fd, (void *)&address, sizeof address) == 0;
        close(fd);
    }
    over = 1;
    pthread_join(thread, NULL);
    show("secrets read", secrets);
    show("files written", writes);
    show("bytes stored beyond a vector", beyond);
    show("reads of another length", short_ones);
    show("connections to the secret socket", passed);
    return 0;
}

int main(void)
{
    scratch();
    put_file("allowed", "public", 0644);
    put_file("secret", "secret", 0600);
    /* The allowed address has no listener. */
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un secret = { AF_UNIX, "sllowed.socket" };
    need(bind(server, (void *)&secret, sizeof secret) == 0 && chmod("sllowed.socket", 0700) == 0);
    need(listen(server, 16) == 0);
    as_nobody(attempt, NULL);
    return 0;
}
