/*
 * proc(5), /proc/PID/oom_score_adj: every process may raise its own value; to lower it below the minimum that a
 * privileged process set needs CAP_SYS_RESOURCE (EACCES). Values are -1000 to 1000; fork and exec keep both.
 */
#include "contract.h"

static void put(const char *text)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY);
    need(fd != -1);
    errno = 0;
    ssize_t wrote = write(fd, text, strlen(text));
    say("write \"%s\": %s", text, wrote == -1 ? errno_name(errno) : "ok");
    close(fd);
}

static void see(void)
{
    char text[32];
    need(get_file("/proc/self/oom_score_adj", text, sizeof text) > 0);
    text[strcspn(text, "\n")] = 0;
    show_text("value", text);
}

static int forked(void *unused)
{
    (void)unused;
    see();
    put("100");
    put("99");
    return 0;
}

static int user(void *unused)
{
    (void)unused;
    need(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    /* The change of ids made the own files root's; an exec would give them back. */
    syscall(SYS_prctl, 4, 1, 0, 0, 0);
    see();
    put("99");
    put("300");
    see();
    put("200");
    put("100");
    put("50");
    put("-1000");
    see();
    in_child(forked, NULL);
    return 0;
}

int main(void)
{
    see();
    put("1001");
    put("-1001");
    put("x");
    put("");
    put("-500");
    see();
    put("100");
    see();
    section("an ordinary user");
    show_status("user", in_child(user, NULL));
    return 0;
}
