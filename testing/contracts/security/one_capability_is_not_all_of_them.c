/*
 * capabilities(7): each override of file permissions has its own capability; one of them gives none of the others.
 */
#include "security.h"
#include <linux/capability.h>

static int attempt(void *capability)
{
    int number = *(int *)capability;
    struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct sets[2] = { { 0 } };
    need(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0);
    become_nobody();
    sets[number / 32].permitted = sets[number / 32].effective = 1u << number % 32;
    need(syscall(SYS_capset, &header, sets) == 0);
    OUTCOME(open("secret", O_RDONLY));
    OUTCOME(open("secret", O_WRONLY));
    OUTCOME(open("closed/file", O_RDONLY));
    OUTCOME(open("closed", O_RDONLY));
    OUTCOME(unlink("closed/other"));
    OUTCOME(access("secret", R_OK));
    OUTCOME(chmod("theirs", 0666));
    OUTCOME(chown("theirs", NOBODY, -1));
    OUTCOME(chown("mine", 1, -1));
    OUTCOME(chown("mine", -1, 1));
    struct timespec times[2] = { { 1, 0 }, { 1, 0 } };
    OUTCOME(utimensat(AT_FDCWD, "theirs", times, 0));
    OUTCOME(unlink("sticky/theirs"));
    OUTCOME(open("theirs", O_RDONLY | O_NOATIME));
    OUTCOME(mknod("open/device", S_IFCHR | 0666, 0x103));
    need(chmod("mine", 02755) == 0);
    struct stat meta;
    need(stat("mine", &meta) == 0);
    say("mode of a file of a foreign group %o", meta.st_mode & 07777);
    int fd = open("setid", O_WRONLY);
    need(fd != -1 && write(fd, "x", 1) == 1 && fstat(fd, &meta) == 0);
    say("mode of a set-id file written to %o", meta.st_mode & 07777);
    return 0;
}

static void make_files(void)
{
    put_file("secret", "secret", 0600);
    put_file("theirs", "theirs", 0644);
    put_file("mine", "mine", 0755);
    need(chown("mine", NOBODY, 0) == 0);
    need((mkdir("closed", 0700) == 0 || errno == EEXIST) && (mkdir("sticky", 0755) == 0 || errno == EEXIST));
    need((mkdir("open", 0755) == 0 || errno == EEXIST) && chmod("open", 0777) == 0 && chmod("sticky", 01777) == 0);
    put_file("closed/file", "text", 0644);
    put_file("closed/other", "text", 0644);
    put_file("sticky/theirs", "text", 0644);
    put_file("setid", "text", 0644);
    need(chmod("setid", 06777) == 0);
    unlink("open/device");
}

int main(void)
{
    static const struct { int number; const char *name; } capabilities[] = {
        { CAP_CHOWN, "CAP_CHOWN" }, { CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE" }, { CAP_FOWNER, "CAP_FOWNER" },
        { CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH" }, { CAP_FSETID, "CAP_FSETID" }, { CAP_MKNOD, "CAP_MKNOD" },
        { CAP_SYS_ADMIN, "CAP_SYS_ADMIN" },
    };
    scratch();
    for (size_t at = 0; at < COUNT_OF(capabilities); at++) {
        section(capabilities[at].name);
        make_files();
        in_child(attempt, (void *)&capabilities[at].number);
    }
    return 0;
}
