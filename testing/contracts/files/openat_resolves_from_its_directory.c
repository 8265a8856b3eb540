/* openat(2): a relative path starts at the directory descriptor, an absolute one ignores it. */
#include "../contract.h"

int main(void)
{
    scratch();
    need(mkdir("sub", 0755) == 0);
    put_file("sub/inner", "x", 0600);
    put_file("outer", "x", 0600);
    int directory = open("sub", O_RDONLY | O_DIRECTORY), path = open("sub", O_PATH), file = open("outer", O_RDONLY);
    OUTCOME(openat(directory, "inner", O_RDONLY));
    OUTCOME(openat(path, "inner", O_RDONLY));
    OUTCOME(openat(AT_FDCWD, "inner", O_RDONLY));
    OUTCOME(openat(AT_FDCWD, "outer", O_RDONLY));
    OUTCOME(openat(directory, "../outer", O_RDONLY));
    OUTCOME(openat(file, "inner", O_RDONLY));
    OUTCOME(openat(-1, "inner", O_RDONLY));
    OUTCOME(openat(-1, "/", O_RDONLY));
    OUTCOME(openat(directory, "", O_RDONLY));
    need(unlink("sub/inner") == 0 && rmdir("sub") == 0);
    OUTCOME(openat(directory, "new", O_WRONLY | O_CREAT, 0600));
    OUTCOME(openat(directory, "..", O_RDONLY));
    OUTCOME(openat(directory, ".", O_RDONLY));
    return 0;
}
