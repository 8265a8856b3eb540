/* link(2), unlink(2): every name counts, data lives until the last name and the last descriptor are gone. */
#include "../contract.h"

int main(void)
{
    scratch();
    put_file("first", "text", 0600);
    need(mkdir("sub", 0755) == 0 && symlink("first", "soft") == 0);
    struct stat one, two;
    RESULT(link("first", "second"));
    need(stat("first", &one) == 0 && stat("second", &two) == 0);
    show("links", one.st_nlink);
    show("same inode", one.st_ino == two.st_ino && one.st_dev == two.st_dev);
    RESULT(link("first", "second"));
    RESULT(link("absent", "third"));
    RESULT(link("sub", "third"));
    RESULT(link("first", "absent/third"));
    RESULT(link("soft", "softer"));
    need(lstat("softer", &two) == 0);
    show("link() does not follow", S_ISLNK(two.st_mode));
    RESULT(linkat(AT_FDCWD, "soft", AT_FDCWD, "followed", AT_SYMLINK_FOLLOW));
    need(lstat("followed", &two) == 0);
    show("AT_SYMLINK_FOLLOW follows", S_ISREG(two.st_mode));
    RESULT(linkat(AT_FDCWD, "soft", AT_FDCWD, "x", 0x8000));
    int fd = open("first", O_RDONLY);
    need(unlink("first") == 0 && unlink("second") == 0 && unlink("followed") == 0);
    need(fstat(fd, &one) == 0);
    show("links left", one.st_nlink);
    char text[8] = { 0 };
    RESULT(read(fd, text, 7));
    show_text("text", text);
    return 0;
}
