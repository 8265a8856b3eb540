/*
 * proc(5): fields of /proc/PID/stat, smaps and oom_score that follow what the process does: the signals it ignores and
 * handles, its scheduling policy, what of its memory is touched, private, shared and anonymous, and how its end is
 * weighed.
 */
#include "../contract.h"

static char text[1 << 16];

/* Field `wanted` of /proc/self/stat, counted from 1. */
static long long stat_field(int wanted)
{
    need(get_file("/proc/self/stat", text, sizeof text) > 0);
    char *at = strrchr(text, ')');
    need(at != NULL);
    for (int field = 2; field < wanted; field++)
        at = strchr(at + 1, ' ');
    return atoll(at + 1);
}

/* A figure of the mapping at `place`. */
static long smaps(char *place, const char *name)
{
    char head[32];
    snprintf(head, sizeof head, "%08lx-", (unsigned long)place);
    need(get_file("/proc/self/smaps", text, sizeof text) > 0);
    char *at = strstr(text, head);
    need(at != NULL && (at = strstr(at, name)) != NULL);
    return atol(at + strlen(name));
}

static void show_smaps(const char *title, char *place)
{
    static const char *const names[] = { "\nRss:", "\nPss:", "\nReferenced:", "\nAnonymous:" };
    section(title);
    for (size_t name = 0; name < COUNT_OF(names); name++)
        show(names[name] + 1, smaps(place, names[name]));
    show("private", smaps(place, "Private_Clean:") + smaps(place, "Private_Dirty:"));
    show("shared", smaps(place, "Shared_Clean:") + smaps(place, "Shared_Dirty:"));
}

static char *pages_of(int count, int flags, int fd)
{
    char *at = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);
    need(at != MAP_FAILED && (fd != -1 || madvise(at, 16 * PAGE, MADV_NOHUGEPAGE) == 0));
    for (int page = 0; page < count; page++)
        at[page * PAGE] = 1;
    return at;
}

static void adjust(const char *value)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY);
    need(fd != -1 && write(fd, value, strlen(value)) == (ssize_t)strlen(value));
    close(fd);
}

static void handler(int number) { (void)number; }

int main(void)
{
    section("signals");
    show("ignored", stat_field(33));
    show("caught", stat_field(34));
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR2, handler);
    show("ignored", stat_field(33));
    show("caught", stat_field(34));

    section("scheduling");
    for (int policy = 0; policy < 2; policy++) {
        struct sched_param param = { .sched_priority = policy ? 7 : 0 };
        need(syscall(SYS_sched_setscheduler, 0, policy ? SCHED_RR : SCHED_OTHER, &param) == 0);
        show("priority", stat_field(18));
        show("real-time priority", stat_field(40));
        show("policy", stat_field(41));
    }
    struct sched_param none = { 0 };
    need(syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &none) == 0);

    char *memory = pages_of(4, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    show_smaps("private memory", memory);
    int ends[2];
    need(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) != 0);
    }
    close(ends[0]);
    show_smaps("the same beside a child", memory);
    memory[0] = 2;
    show_smaps("after a write", memory);
    close(ends[1]);
    need(waitpid(child, NULL, 0) == child);
    show_smaps("without the child", memory);

    int fd = memfd_create("memory", 0);
    need(fd != -1 && ftruncate(fd, 16 * PAGE) == 0);
    char *shared = pages_of(4, MAP_SHARED, fd);
    show_smaps("pages of a file", shared);
    char *again = pages_of(2, MAP_SHARED, fd);
    show_smaps("mapped twice in part", shared);
    munmap(again, 16 * PAGE);

    section("the choice when memory is short");
    need(get_file("/proc/self/oom_score", text, sizeof text) > 0);
    long before = atol(text);
    check(before >= 666 && before < 680, "a small process");
    adjust("300");
    need(get_file("/proc/self/oom_score", text, sizeof text) > 0);
    check(labs(atol(text) - before - 200) <= 2, "one that is to go sooner");
    adjust("-1000");
    need(get_file("/proc/self/oom_score", text, sizeof text) > 0);
    show("never", atol(text));
    return 0;
}
