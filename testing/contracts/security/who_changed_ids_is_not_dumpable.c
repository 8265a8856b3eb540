/*
 * prctl(2), PR_SET_DUMPABLE: cleared by a change of the effective or file system ids and inherited by fork; set again
 * by the execution of an ordinary program.
 */
#include "security.h"
#include <sys/fsuid.h>

static int dumpable(void) { return prctl(PR_GET_DUMPABLE); }
static void owner(const char *path)
{
    struct stat meta;
    need(stat(path, &meta) == 0);
    say("%s belongs to %d %d, mode %o", path, (int)meta.st_uid, (int)meta.st_gid, meta.st_mode & 07777);
}

static int effective(void *unused)
{
    (void)unused;
    need(seteuid(NOBODY) == 0);
    show("seteuid", dumpable());
    owner("/proc/self/environ");
    owner("/proc/self/fd");
    owner("/proc/self");
    owner("/proc/self/maps");
    OUTCOME(open("/proc/self/environ", O_RDONLY));
    OUTCOME(open("/proc/self/maps", O_RDONLY));
    OUTCOME(open("/proc/self/fd", O_RDONLY | O_DIRECTORY));
    OUTCOME(open("/proc/self/fd/1", O_WRONLY));
    OUTCOME(access("/proc/self/exe", R_OK));
    RESULT(prctl(PR_SET_DUMPABLE, 2));
    RESULT(prctl(PR_SET_DUMPABLE, 1));
    owner("/proc/self/environ");
    OUTCOME(open("/proc/self/environ", O_RDONLY));
    return 0;
}

static int others(void *unused)
{
    (void)unused;
    need(setegid(1000) == 0);
    show("setegid", dumpable());
    need(prctl(PR_SET_DUMPABLE, 1) == 0);
    setfsuid(1000);
    show("setfsuid", dumpable());
    need(prctl(PR_SET_DUMPABLE, 1) == 0);
    need(setresuid(1000, -1, -1) == 0);
    show("real user only", dumpable());
    need(prctl(PR_SET_DUMPABLE, 1) == 0);
    need(setresuid(-1, 2000, -1) == 0);
    show("effective user", dumpable());
    need(prctl(PR_SET_DUMPABLE, 1) == 0);
    need(setresuid(-1, 2000, -1) == 0);
    show("no change", dumpable());
    return 0;
}

static int inherited(void *unused)
{
    (void)unused;
    return dumpable();
}

static int forks(void *unused)
{
    (void)unused;
    need(setresuid(NOBODY, NOBODY, NOBODY) == 0);
    show_status("child", in_child(inherited, NULL));
    need(prctl(PR_SET_DUMPABLE, 1) == 0);
    show_status("child", in_child(inherited, NULL));
    need(prctl(PR_SET_DUMPABLE, 0) == 0);
    execl("./program", "program", "report", NULL);
    return 99;
}

int main(int count, char **arguments)
{
    (void)arguments;
    if (count > 1)
        return show("executed", dumpable()), 0;
    scratch();
    copy_self("program", 0, 0, 0755);
    show("at first", dumpable());
    in_child(effective, NULL);
    in_child(others, NULL);
    in_child(forks, NULL);
    return 0;
}
