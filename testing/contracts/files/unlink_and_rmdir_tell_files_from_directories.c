/* unlink(2), rmdir(2): unlink refuses directories, rmdir refuses files, full directories, "." and busy roots. */
#include "../contract.h"

int main(void)
{
    scratch();
    need(mkdir("sub", 0755) == 0 && mkdir("sub/inner", 0755) == 0);
    put_file("file", "", 0600);
    RESULT(unlink("sub"));
    RESULT(rmdir("file"));
    RESULT(rmdir("sub"));
    RESULT(rmdir("sub/."));
    RESULT(rmdir("sub/.."));
    RESULT(rmdir("sub/inner/"));
    RESULT(unlinkat(AT_FDCWD, "sub", 0));
    RESULT(unlinkat(AT_FDCWD, "sub", AT_REMOVEDIR));
    RESULT(unlinkat(AT_FDCWD, "file", AT_REMOVEDIR));
    RESULT(unlinkat(AT_FDCWD, "file", 0x40));
    RESULT(unlink("file/"));
    RESULT(unlink("file"));
    RESULT(unlink("file"));
    RESULT(unlink(""));
    RESULT(rmdir("/"));
    RESULT(rmdir("/proc"));
    return 0;
}
