/* rename(2): RENAME_NOREPLACE fails when the target exists, RENAME_EXCHANGE swaps two names of any kind. */
#include "../contract.h"

#define NOREPLACE 1
#define EXCHANGE 2
static long renameat2_(const char *from, const char *to, unsigned flags)
{
    return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
}

int main(void)
{
    scratch();
    char text[8];
    struct stat meta;
    put_file("one", "1", 0600);
    put_file("two", "2", 0600);
    need(mkdir("sub", 0755) == 0);
    RESULT(renameat2_("one", "two", NOREPLACE));
    RESULT(renameat2_("one", "three", NOREPLACE));
    RESULT(renameat2_("three", "two", EXCHANGE));
    get_file("three", text, sizeof text);
    show_text("three", text);
    RESULT(renameat2_("three", "sub", EXCHANGE));
    need(stat("three", &meta) == 0);
    show("three is a directory", S_ISDIR(meta.st_mode));
    RESULT(renameat2_("three", "absent", EXCHANGE));
    RESULT(renameat2_("two", "x", EXCHANGE | NOREPLACE));
    RESULT(renameat2_("two", "x", 0x100));
    return 0;
}
