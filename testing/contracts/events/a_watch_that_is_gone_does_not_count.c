/*
 * epoll(7), /proc/sys/fs/epoll/max_user_watches: a watch counts until it is removed or its file is closed, also one
 * that was ready and that no epoll_wait(2) asked about.
 */
#include "../contract.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>

enum { MOST = 64, ROUNDS = 4 * MOST };

static int attempts(void *unused)
{
    (void)unused;
    struct epoll_event event = { .events = EPOLLIN };
    int epoll = epoll_create1(0), ready = eventfd(1, 0), refused = 0, found = 0;
    need(setuid(65534) == 0 && epoll != -1 && ready != -1);
    for (int i = 0; i < ROUNDS; i++)
        refused += epoll_ctl(epoll, EPOLL_CTL_ADD, ready, &event) == -1 
            || epoll_ctl(epoll, EPOLL_CTL_DEL, ready, NULL) == -1;
    show("refused after removals", refused);
    refused = 0;
    for (int i = 0; i < ROUNDS; i++) {
        int closed = eventfd(1, 0);
        need(closed != -1);
        refused += epoll_ctl(epoll, EPOLL_CTL_ADD, closed, &event) == -1;
        close(closed);
    }
    show("refused after closings", refused);
    RESULT(epoll_ctl(epoll, EPOLL_CTL_ADD, ready, &event));
    found = epoll_wait(epoll, &event, 1, 0);
    show("ready", found);
    return 0;
}

static void set_most(const char *text)
{
    int fd = open("/proc/sys/fs/epoll/max_user_watches", O_WRONLY);
    need(fd != -1 && write(fd, text, strlen(text)) > 0);
    close(fd);
}

int main(void)
{
    char before[32], most[16];
    need(get_file("/proc/sys/fs/epoll/max_user_watches", before, sizeof before) > 0);
    snprintf(most, sizeof most, "%d", MOST);
    set_most(most);
    show_status("attempts", in_child(attempts, NULL));
    set_most(before);
    return 0;
}
