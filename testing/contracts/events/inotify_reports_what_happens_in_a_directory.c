/*
 * inotify(7): creation, opening, writing, closing, renaming (with one cookie) and removal are reported in order
 * with names.
 */
#include "../contract.h"
#include <sys/inotify.h>

static void show_events(int fd, int directory, int file)
{
    static char buffer[4096] __attribute__((aligned(8)));
    ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0)
        say("nothing: %s", errno_name(errno));
    uint32_t cookie = 0;
    for (ssize_t at = 0; at < got;) {
        struct inotify_event *event = (void *)(buffer + at);
        const char *who = event->wd == directory ? "directory" : event->wd == file ? "file" : "other";
        const char *pairing = !event->cookie ? "none" : event->cookie == cookie ? "same" : "new";
        say("%s mask %08x name \"%s\" cookie %s", who, event->mask, event->len ? event->name : "", pairing);
        cookie = event->cookie;
        at += sizeof *event + event->len;
    }
}

int main(void)
{
    scratch();
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    int directory = inotify_add_watch(fd, ".", IN_ALL_EVENTS & ~IN_ACCESS);
    need(fd != -1 && directory != -1);
    show_events(fd, directory, -2);
    int file = open("file", O_WRONLY | O_CREAT, 0600);
    need(write(file, "x", 1) == 1);
    close(file);
    show_events(fd, directory, -2);
    need(rename("file", "renamed") == 0 && chmod("renamed", 0644) == 0 && mkdir("sub", 0755) == 0);
    show_events(fd, directory, -2);
    int watch = inotify_add_watch(fd, "renamed", IN_ATTRIB | IN_DELETE_SELF);
    need(unlink("renamed") == 0);
    show_events(fd, directory, watch);
    RESULT(inotify_rm_watch(fd, watch));
    RESULT(inotify_rm_watch(fd, directory));
    show_events(fd, directory, watch);
    RESULT(inotify_add_watch(fd, "absent", IN_CREATE));
    RESULT(inotify_add_watch(fd, ".", 0));
    RESULT(inotify_add_watch(1, ".", IN_CREATE));
    RESULT(inotify_init1(1));
    return 0;
}
