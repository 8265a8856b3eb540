/*
 * kernel.threads-max (proc(5)): when there are as many threads as it says, clone(2) and fork(2) answer EAGAIN, even to
 * root; what runs goes on, and there is room again when threads have ended.
 */
#include "../contract.h"

#define LIMIT 400

static int gate[2];

static void *wait_at_the_gate(void *unused)
{
    char byte;
    (void)unused;
    read(gate[0], &byte, 1);
    return NULL;
}

static void set_limit(const char *text)
{
    int fd = open("/proc/sys/kernel/threads-max", O_WRONLY);
    need(fd >= 0);
    say("limit %s", write(fd, text, strlen(text)) > 0 ? "set" : errno_name(errno));
    close(fd);
}

int main(void)
{
    static pthread_t threads[LIMIT];
    char before[32] = { 0 }, limit[32];
    pthread_attr_t small;
    int count = 0, error = 0;
    int fd = open("/proc/sys/kernel/threads-max", O_RDONLY);
    need(fd >= 0 && read(fd, before, sizeof before - 1) > 0);
    close(fd);
    need(pipe(gate) == 0);
    need(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN) == 0);
    snprintf(limit, sizeof limit, "%d\n", LIMIT);
    set_limit(limit);
    while (count < LIMIT && (error = pthread_create(&threads[count], &small, wait_at_the_gate, NULL)) == 0)
        count++;
    say("a thread too many: %s", errno_name(error));
    check(count > LIMIT / 4, "most of them are there");
    errno = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    say("a process too many: %s", child < 0 ? errno_name(errno) : "made");
    close(gate[1]);
    for (int index = 0; index < count; index++)
        need(pthread_join(threads[index], NULL) == 0);
    check(pthread_create(&threads[0], &small, wait_at_the_gate, NULL) == 0, "room again");
    need(pthread_join(threads[0], NULL) == 0);
    set_limit("0\n");
    set_limit(before);
    return 0;
}
