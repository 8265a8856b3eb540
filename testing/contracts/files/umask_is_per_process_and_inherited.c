/*
 * umask(2): returns the old mask, keeps permission bits only, applies to every creation, and children inherit a
 * copy.
 */
#include "../contract.h"

static int child(void *unused)
{
    (void)unused;
    say("child had %o", umask(0));
    return 0;
}

int main(void)
{
    scratch();
    struct stat meta;
    umask(022);
    say("old %o", umask(0777077));
    say("old %o", umask(031));
    need(mkfifo("fifo", 0666) == 0 && mkdir("sub", 0777) == 0 && close(open("file", O_CREAT | O_WRONLY, 0666)) == 0);
    need(stat("fifo", &meta) == 0);
    say("fifo %o", meta.st_mode & 07777);
    need(stat("sub", &meta) == 0);
    say("sub %o", meta.st_mode & 07777);
    need(stat("file", &meta) == 0);
    say("file %o", meta.st_mode & 07777);
    in_child(child, NULL);
    say("parent has %o", umask(022));
    return 0;
}
