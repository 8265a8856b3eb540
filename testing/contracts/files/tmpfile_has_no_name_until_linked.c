/* open(2): O_TMPFILE gives a file without a name that linkat can name, unless O_EXCL forbade it. */
#include "../contract.h"

int main(void)
{
    scratch();
    char path[64], text[16];
    struct stat meta;
    int fd = open(".", O_TMPFILE | O_RDWR, 0640);
    need(fd != -1 && write(fd, "hidden", 6) == 6 && fstat(fd, &meta) == 0);
    say("links %d mode %o", (int)meta.st_nlink, meta.st_mode & 07777);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    RESULT(linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
    get_file("named", text, sizeof text);
    show_text("named", text);
    need(fstat(fd, &meta) == 0);
    show("links", meta.st_nlink);
    int sealed = open(".", O_TMPFILE | O_RDWR | O_EXCL, 0640);
    snprintf(path, sizeof path, "/proc/self/fd/%d", sealed);
    RESULT(linkat(AT_FDCWD, path, AT_FDCWD, "other", AT_SYMLINK_FOLLOW));
    OUTCOME(open(".", O_TMPFILE | O_RDONLY, 0600));
    OUTCOME(open("named", O_TMPFILE | O_RDWR, 0600));
    OUTCOME(open("absent", O_TMPFILE | O_RDWR, 0600));
    return 0;
}
