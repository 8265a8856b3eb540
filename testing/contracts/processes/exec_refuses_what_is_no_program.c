/*
 * execve(2): no execute bit or a directory is EACCES, unknown format ENOEXEC, too many bytes E2BIG, bad pointers
 * EFAULT.
 */
#include "../contract.h"

int main(void)
{
    scratch();
    char *const argv[] = { "x", NULL }, *const none[] = { NULL };
    put_file("text", "just text\n", 0755);
    put_file("empty", "", 0755);
    put_file("locked", "\177ELF", 0644);
    put_file("short", "\177ELF\2\1\1", 0755);
    RESULT(execve("absent", argv, none));
    RESULT(execve("text", argv, none));
    RESULT(execve("empty", argv, none));
    RESULT(execve("locked", argv, none));
    RESULT(execve("short", argv, none));
    RESULT(execve(".", argv, none));
    RESULT(execve("text/x", argv, none));
    RESULT(execve("", argv, none));
    RESULT(execve(BAD_POINTER, argv, none));
    RESULT(execve("/proc/self/exe", BAD_POINTER, none));
    RESULT(execve("/proc/self/exe", argv, BAD_POINTER));
    static char huge[200000];
    memset(huge, 'a', sizeof huge - 1);
    char *const large[] = { huge, NULL };
    RESULT(execve("/proc/self/exe", large, none));
    int fd = open("text", O_WRONLY);
    need(fd != -1);
    RESULT(execve("text", argv, none));
    close(fd);
    RESULT(execve("text", argv, none));
    return 0;
}
