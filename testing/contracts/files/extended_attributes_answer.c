/* xattr(7): trusted attributes can be set, read, listed and removed by root; sizes and missing names are checked. */
#include "../contract.h"
#include <sys/xattr.h>

int main(void)
{
    scratch();
    put_file("file", "", 0600);
    char value[32] = { 0 };
    RESULT(getxattr("file", "trusted.note", value, sizeof value));
    RESULT(setxattr("file", "trusted.note", "hello", 5, 0));
    RESULT(setxattr("file", "trusted.note", "again", 5, XATTR_CREATE));
    RESULT(setxattr("file", "trusted.other", "x", 1, XATTR_REPLACE));
    RESULT(getxattr("file", "trusted.note", value, sizeof value));
    show_text("value", value);
    RESULT(getxattr("file", "trusted.note", NULL, 0));
    RESULT(getxattr("file", "trusted.note", value, 2));
    RESULT(listxattr("file", value, sizeof value));
    show_text("listed", value);
    RESULT(removexattr("file", "trusted.note"));
    RESULT(removexattr("file", "trusted.note"));
    RESULT(setxattr("file", "noprefix", "x", 1, 0));
    RESULT(setxattr("absent", "trusted.note", "x", 1, 0));
    RESULT(setxattr("file", "trusted.note", "x", 1, 99));
    return 0;
}
