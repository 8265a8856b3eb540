/*
 * epoll(7), proc(5): /proc/sys/fs/epoll/max_user_watches bounds the watches of a user over all its epolls: ENOSPC
 * beyond, also for root. Removing, closing the watched file and closing the epoll give them back; other users have
 * their own.
 */
#include "contract.h"
#include <sys/epoll.h>

#define SETTING "/proc/sys/fs/epoll/max_user_watches"

static void set(const char *value)
{
    int fd = open(SETTING, O_WRONLY);
    need(fd != -1 && write(fd, value, strlen(value)) == (ssize_t)strlen(value));
    close(fd);
}

static void add(int watcher, int count)
{
    struct epoll_event event = { .events = EPOLLIN };
    int added = 0, end = -1;
    for (int i = 0; i < count; i++) {
        int fd = dup(STDOUT_FILENO);
        int ends[2];
        need(fd != -1 && pipe(ends) == 0);
        close(fd), close(ends[1]);
        if (epoll_ctl(watcher, EPOLL_CTL_ADD, ends[0], &event) == 0)
            added++;
        else
            end = errno;
    }
    say("added %d, then %s", added, end == -1 ? "nothing refused" : errno_name(end));
}

static int user(void *uid)
{
    uid_t id = *(uid_t *)uid;
    need(setresgid(id, id, id) == 0 && setresuid(id, id, id) == 0);
    int one = epoll_create1(0), other = epoll_create1(0);
    struct epoll_event event = { .events = EPOLLIN };
    int ends[2];
    need(one != -1 && other != -1 && pipe(ends) == 0);
    add(one, 6);
    RESULT(epoll_ctl(other, EPOLL_CTL_ADD, ends[0], &event));
    RESULT(epoll_ctl(other, EPOLL_CTL_ADD, ends[0], &event));
    add(other, 6);
    RESULT(epoll_ctl(other, EPOLL_CTL_DEL, ends[0], NULL));
    add(one, 3);
    close(one);
    add(other, 10);
    return 0;
}

int main(void)
{
    char before[64];
    uid_t ids[] = { 65511, 65512, 0 };
    need(get_file(SETTING, before, sizeof before) > 0);
    check(atol(before) > 10000 && atol(before) < 1000000, "half a GiB permits some hundred thousand");
    set("10\n");
    for (size_t i = 0; i < COUNT_OF(ids); i++)
        show_status("user", in_child(user, &ids[i]));
    set("0\n");
    show_status("user", in_child(user, &ids[0]));
    set(before);
    return 0;
}
