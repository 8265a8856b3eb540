/* proc(5): /proc/sys holds kernel settings as text; hostname follows sethostname; numbers can be written by root. */
#include "../contract.h"
#include <sys/utsname.h>

static void show_setting(const char *path)
{
    char text[128];
    ssize_t length = get_file(path, text, sizeof text);
    say("%s: %s", path, length < 0 ? errno_name(errno) : "present");
}

int main(void)
{
    char text[128];
    struct utsname before, name;
    show_setting("/proc/sys/kernel/ostype");
    show_setting("/proc/sys/kernel/osrelease");
    show_setting("/proc/sys/kernel/pid_max");
    show_setting("/proc/sys/kernel/random/boot_id");
    show_setting("/proc/sys/kernel/random/uuid");
    show_setting("/proc/sys/vm/overcommit_memory");
    show_setting("/proc/sys/fs/file-max");
    show_setting("/proc/sys/fs/pipe-max-size");
    show_setting("/proc/sys/kernel/absent");
    need(uname(&before) == 0);
    RESULT(sethostname("judged", 6));
    need(get_file("/proc/sys/kernel/hostname", text, sizeof text) > 0);
    show_text("hostname", strtok(text, "\n"));
    int fd = open("/proc/sys/kernel/hostname", O_WRONLY);
    RESULT(write(fd, "written\n", 8));
    need(uname(&name) == 0);
    show_text("nodename", name.nodename);
    show_text("sysname", name.sysname);
    show_text("machine", name.machine);
    RESULT(sethostname(before.nodename, 65));
    RESULT(sethostname(before.nodename, -1));
    RESULT(sethostname(before.nodename, strlen(before.nodename)));
    fd = open("/proc/sys/kernel/ostype", O_WRONLY);
    show("ostype can be opened for writing", fd != -1);
    return 0;
}
