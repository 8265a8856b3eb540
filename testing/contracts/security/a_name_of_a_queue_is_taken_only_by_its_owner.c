/*
 * contract: timeout=60
 * mq_unlink(3): the queues' directory belongs to root and is sticky. Who unlinks his own queue while another user
 * makes one of the same name does not take that.
 */
#include "security.h"
#include <mqueue.h>
#include <sys/resource.h>

#define NAME "security-raced-queue"
#define ROUNDS 3000

static volatile int *over;

static long make(void)
{
    struct mq_attr attributes = { .mq_maxmsg = 1, .mq_msgsize = 8 };
    return syscall(SYS_mq_open, NAME, O_CREAT | O_EXCL | O_RDWR, 0600, &attributes);
}

static void *unlinks(void *unused)
{
    while (!*over)
        syscall(SYS_mq_unlink, NAME);
    return unused;
}

/* Looks names up all the time, among many queues: others wait for it between two steps. */
static void *looks(void *unused)
{
    struct mq_attr little = { .mq_maxmsg = 1, .mq_msgsize = 8 }, large = { .mq_maxmsg = 10, .mq_msgsize = 8192 };
    char name[32];
    for (int at = 0; at < 100; at++) {
        snprintf(name, sizeof name, "security-filler-%d", at);
        close(syscall(SYS_mq_open, name, O_CREAT | O_RDWR, 0600, &little));
    }
    while (!*over)
        syscall(SYS_mq_open, "security-no-room", O_CREAT | O_RDWR, 0600, &large);
    for (int at = 0; at < 100; at++) {
        snprintf(name, sizeof name, "security-filler-%d", at);
        syscall(SYS_mq_unlink, name);
    }
    return unused;
}

static int attacker(void *unused)
{
    pthread_t threads[2];
    struct rlimit limit = { 60000, 60000 };
    need(setrlimit(RLIMIT_MSGQUEUE, &limit) == 0);
    become_nobody();
    for (size_t at = 0; at < COUNT_OF(threads); at++)
        need(pthread_create(&threads[at], NULL, at ? looks : unlinks, NULL) == 0);
    while (!*over)
        close(make());
    for (size_t at = 0; at < COUNT_OF(threads); at++)
        pthread_join(threads[at], NULL);
    syscall(SYS_mq_unlink, NAME);
    return unused != NULL;
}

static int victim(void *unused)
{
    int lost = 0, made = 0;
    (void)unused;
    become(1000, 1000);
    for (int round = 0; round < 100 * ROUNDS && made < ROUNDS; round++) {
        int fd = make();
        if (fd == -1)
            continue;
        made++;
        sched_yield();
        if (syscall(SYS_mq_unlink, NAME) == -1)
            lost++;
        close(fd);
    }
    *over = 1;
    show("queues taken by another user", lost);
    return 0;
}

int main(void)
{
    over = shared_page();
    pid_t attacking = spawn(attacker, NULL);
    in_child(victim, NULL);
    show_status("the attacker", reap(attacking));
    return 0;
}
