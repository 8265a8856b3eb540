/* proc(5): cmdline and environ hold NUL-separated strings, exe, cwd and root are links, comm can be written. */
#include "../contract.h"

int main(int count, char **arguments)
{
    char text[512];
    if (count == 1) {
        char *const argv[] = { "zero", "one", "", "three", NULL }, *const environment[] = { "A=1", "B=two", NULL };
        execve("/proc/self/exe", argv, environment);
    }
    need(arguments[0]);
    ssize_t length = get_file("/proc/self/cmdline", text, sizeof text);
    for (ssize_t i = 0; i < length; i++)
        if (!text[i])
            text[i] = '|';
    show_text("cmdline", text);
    length = get_file("/proc/self/environ", text, sizeof text);
    for (ssize_t i = 0; i < length; i++)
        if (!text[i])
            text[i] = '|';
    show_text("environ", text);
    scratch();
    memset(text, 0, sizeof text);
    need(readlink("/proc/self/cwd", text, sizeof text - 1) > 0);
    show("cwd right", strcmp(text, scratch_path) == 0);
    memset(text, 0, sizeof text);
    need(readlink("/proc/self/root", text, sizeof text - 1) > 0);
    show_text("root", text);
    memset(text, 0, sizeof text);
    need(readlink("/proc/self/exe", text, sizeof text - 1) > 0);
    show("exe is a path to a file", access(text, X_OK) == 0);
    memset(text, 0, sizeof text);
    need(readlink("/proc/self", text, sizeof text - 1) > 0);
    show("self is the pid", atoi(text) == getpid());
    int fd = open("/proc/self/comm", O_WRONLY);
    RESULT(write(fd, "renamed by writing it", 21));
    get_file("/proc/self/comm", text, sizeof text);
    show_text("comm", strtok(text, "\n"));
    RESULT(access("/proc/self/task", F_OK));
    RESULT(access("/proc/9999999", F_OK));
    RESULT(mkdir("/proc/new", 0755));
    return 0;
}
