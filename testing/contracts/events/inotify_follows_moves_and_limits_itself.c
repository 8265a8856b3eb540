/* inotify(7): moves between watched directories share a cookie, IN_ONESHOT ends itself, identical events merge. */
#include "../contract.h"
#include <sys/inotify.h>

static int fd, from_watch, to_watch;

static void drain(const char *title)
{
    static char buffer[4096] __attribute__((aligned(8)));
    section(title);
    ssize_t got = read(fd, buffer, sizeof buffer);
    uint32_t cookie = 0;
    for (ssize_t at = 0; at < got;) {
        struct inotify_event *event = (void *)(buffer + at);
        say("%s mask %x name \"%s\"%s", event->wd == from_watch ? "from" : event->wd == to_watch ? "to" : "other",
            event->mask, event->len ? event->name : "", event->cookie && event->cookie == cookie ? " same cookie" : "");
        cookie = event->cookie;
        at += sizeof *event + event->len;
    }
}

int main(void)
{
    scratch();
    fd = inotify_init1(IN_NONBLOCK);
    need(mkdir("from", 0755) == 0 && mkdir("to", 0755) == 0);
    put_file("from/file", "", 0600);
    from_watch = inotify_add_watch(fd, "from", IN_MOVE | IN_DELETE_SELF);
    to_watch = inotify_add_watch(fd, "to", IN_MOVE);
    need(rename("from/file", "to/moved") == 0);
    drain("moved across");
    need(rename("to/moved", "outside") == 0 && rename("outside", "to/back") == 0);
    drain("out and in");
    show("watching again keeps its number", inotify_add_watch(fd, "to", IN_MODIFY | IN_MASK_ADD) == to_watch);
    int file = open("to/back", O_WRONLY);
    for (int i = 0; i < 5; i++)
        need(write(file, "x", 1) == 1);
    need(rename("to/back", "to/last") == 0);
    drain("five writes merged");
    RESULT(inotify_add_watch(fd, "to", IN_CREATE | IN_MASK_CREATE));
    need(rmdir("from") == 0);
    drain("directory removed");
    int once = inotify_add_watch(fd, ".", IN_CREATE | IN_ONESHOT);
    need(once != -1);
    put_file("one", "", 0600);
    put_file("two", "", 0600);
    drain("oneshot");
    RESULT(inotify_add_watch(fd, "to/last", IN_CREATE | IN_ONLYDIR));
    return 0;
}
