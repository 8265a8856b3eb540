/*
 * readlink(2): returns the length without a terminating byte, cuts to the buffer, and refuses a file that is not a
 * link.
 */
#include "../contract.h"

int main(void)
{
    scratch();
    need(symlink("some/target", "link") == 0);
    put_file("file", "", 0600);
    char text[16];
    memset(text, '#', sizeof text);
    RESULT(readlink("link", text, 15));
    say("text %.15s", text);
    memset(text, '#', sizeof text);
    RESULT(readlink("link", text, 4));
    say("text %.6s", text);
    RESULT(readlink("link", text, 0));
    RESULT(readlink("file", text, 15));
    RESULT(readlink(".", text, 15));
    RESULT(readlink("absent", text, 15));
    RESULT(readlink("link", BAD_POINTER, 15));
    RESULT(readlink("file/link", text, 15));
    int fd = open("link", O_PATH | O_NOFOLLOW);
    RESULT(readlinkat(fd, "", text, 15));
    RESULT(readlinkat(-1, "link", text, 15));
    return 0;
}
